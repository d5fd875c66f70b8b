"""Where two runs part, and why → plain JSON."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rewind.compare.align import Row
from rewind.compare.cause import Cause
from rewind.compare.divergence import Finding
from rewind.compare.many import Column, Parting, Shared
from rewind.compare.move_result import saying_of
from rewind.compare.phrases import cause_place, cause_title, ruled_out_text, slug
from rewind.compare.run import Move, Run
from rewind.compare.summary import likeness
from rewind.compare.versions import changed_locks, changed_versions, same_code, versions_of
from rewind.views.compare import difference, steps
from rewind.views.session import moment
from rewind.views.session import session as session_view
from rewind.views.session import surroundings as surroundings_view

if TYPE_CHECKING:
    from rewind.store.catalog.since import Seen, Use


def finding(one: Finding, seen: Mapping[int, "Seen"]) -> dict[str, Any]:
    """What ``rewind bisect GOOD BAD`` found; ``seen`` tells since when, by the number of the cause."""
    comparison = one.comparison
    return {
        "schema": "rewind/bisect@1",
        "good": session_view(comparison.a.recording.session),
        "bad": session_view(comparison.b.recording.session),
        "diverges": one.diverges,
        "answers_part": one.answers_part,
        "step": None if one.at is None else steps(one.at, "good", "bad"),
        "at": None if one.at is None else _parting(one, one.at),
        "causes": [_cause(one, cause, seen.get(at)) for at, cause in enumerate(one.causes)],
        "ruled_out": [
            {"kind": slug(fact.kind), "fact": fact.fact, "text": ruled_out_text(fact)}
            for fact in one.ruled_out
        ],
        "matched": one.matched,
        "total": one.total,
        "resync": None if one.resync is None else steps(one.resync, "good", "bad"),
        "steps": [_match(one, row) for row in one.before],
        "beside": [
            steps(row, "good", "bad") | {"text": str(saying_of(run, move))}
            for row in one.beside
            for run, move in _made(one, row)
        ],
        "code": _code(comparison.a, comparison.b),
    }


def parting(one: Parting) -> dict[str, Any]:
    """What ``rewind bisect --good … --bad …`` found."""
    return {
        "schema": "rewind/bisect_runs@1",
        "good": [session_view(run.recording.session) for run in one.goods],
        "bad": [session_view(run.recording.session) for run in one.bads],
        "diverges": one.at is not None,
        "column": one.at,
        "columns": [_column(one, column) for column in one.columns],
        "shared": [_shared(one, shared) for shared in one.shared],
    }


def _parting(one: Finding, row: Row) -> dict[str, Any]:
    good = None if row.a is None else _move(one.comparison.a, row.a)
    bad = None if row.b is None else _move(one.comparison.b, row.b)
    return {"good": good, "bad": bad}


def _move(run: Run, move: Move) -> dict[str, Any]:
    said = saying_of(run, move)
    response = move.step.response
    return {
        "step": move.index,
        "kind": move.kind.value,
        "provider": move.step.request.provider,
        "model_asked": move.model_asked,
        "model_answered": move.model_answered,
        "status": response.head.status if response is not None and response.head is not None else None,
        "failed": move.failed,
        "failure": said.failure or None,
        "tries": len(move.failures) + 1,
        "words": said.words,
        "calls": list(said.calls),
        "text": str(said),
    }


def _cause(one: Finding, cause: Cause, seen: "Seen | None") -> dict[str, Any]:
    return {
        "kind": slug(cause.kind),
        "title": cause_title(cause),
        "first_seen_at": steps(cause.since, "good", "bad"),
        "place": cause_place(one, cause) or None,
        "evidence": cause.evidence or None,
        "differences": [difference(each) for each in cause.differences],
        "since": None if seen is None else _seen(seen),
    }


def _seen(seen: "Seen") -> dict[str, Any]:
    return _use(seen) | {
        "last_without": None if seen.last_without is None else _use(seen.last_without),
        "sessions_before": seen.before,
        "sessions_after": seen.after,
        "sessions_unread": seen.unread,
    }


def _use(use: "Use") -> dict[str, Any]:
    return {
        "session": use.session.id,
        "name": use.session.start.name,
        "step": use.step,
        "time": moment(use.ts),
        "surroundings": None if use.surroundings is None else surroundings_view(use.surroundings),
    }


def _match(one: Finding, row: Row) -> dict[str, Any]:
    assert row.b is not None, "what matches has two moves"
    response = row.b.step.response
    # As it was read while recording: a thousand bodies are not read for a list.
    known = response.reading.text if response is not None else ""
    return steps(row, "good", "bad") | {
        "answers_match": one.comparison.relation(row).answers_alike,
        "likeness": likeness(one.comparison, row).value,
        "text": known or str(saying_of(one.comparison.b, row.b)),
    }


def _made(one: Finding, row: Row) -> Sequence[tuple[Run, Move]]:
    pairs = ((one.comparison.a, row.a), (one.comparison.b, row.b))
    return [(run, move) for run, move in pairs if move is not None]


def _code(good: Run, bad: Run) -> dict[str, Any]:
    one, other = good.recording.surroundings, bad.recording.surroundings
    before, after = versions_of(good.recording), versions_of(bad.recording)
    return {
        "good": None if one is None else surroundings_view(one),
        "bad": None if other is None else surroundings_view(other),
        "same": same_code(one, other),
        "versions": {"good": before, "bad": after},
        "changed_versions": [
            {"name": found.name, "good": found.before, "bad": found.after}
            for found in changed_versions(before, after)
        ],
        "changed_locks": list(changed_locks(one, other)),
    }


def _column(one: Parting, column: Column) -> dict[str, Any]:
    return {
        "cells": [
            {
                "session": run.recording.session.id,
                "step": None if move is None else move.index,
                "answer": answer,
                "text": None if move is None else str(saying_of(run, move)),
            }
            for run, move, answer in zip(one.runs, column.cells, column.answers, strict=True)
        ]
    }


def _shared(one: Parting, shared: Shared) -> dict[str, Any]:
    return {
        "kind": slug(shared.kind),
        "column": shared.column,
        "title": cause_title(shared_cause(one, shared)),
        "differences": [difference(each) for each in shared.differences],
    }


def shared_cause(one: Parting, shared: Shared) -> Cause:
    """What the bad runs share, told as the cause of a pair: the first good run and the first bad one."""
    cells = one.columns[shared.column].cells
    row = Row(cells[0], cells[len(one.goods)])
    return Cause(kind=shared.kind, since=row, differences=shared.differences)
