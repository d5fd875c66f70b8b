"""Runs compared → plain JSON: what differs, where they part and why, and what came of putting things back."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rewind.compare.align import Row
from rewind.compare.cause import Cause
from rewind.compare.columns import MoveColumn
from rewind.compare.comparison import Comparison
from rewind.compare.delta import Aspect, Difference
from rewind.compare.divergence import Finding, Parting
from rewind.compare.groups import GroupCause, GroupFinding
from rewind.compare.phrases import cause_place, cause_title, folded_text, move_result, ruled_out_text, slug
from rewind.compare.proof import Hunk
from rewind.compare.rates import Effect, Interval
from rewind.compare.run import ComparedRun, Move
from rewind.compare.statistics import SIGNIFICANT, SplitEvidence
from rewind.compare.summary import Likeness, RowChange, Summary, likeness
from rewind.model.session import Session
from rewind.reading.bisect import CodeComparison, History, PairBisection
from rewind.reading.compare import SessionDiff
from rewind.reading.groups import GroupBisection
from rewind.store.journal.first_seen import FieldUse, FirstSeen
from rewind.store.journal.totals import Totals
from rewind.text import moment
from rewind.views.session import session as session_view
from rewind.views.session import surroundings as surroundings_view

if TYPE_CHECKING:
    from rewind.runs.proof import ProbeResult, Proof, Smallest


def tokens_of(totals: Totals) -> int | None:
    """In and out; ``None`` where no step told any."""
    if totals.tokens_in is None and totals.tokens_out is None:
        return None
    return (totals.tokens_in or 0) + (totals.tokens_out or 0)


def seconds_of(session: Session) -> float | None:
    """How long it took; ``None`` where it has no end."""
    return (
        None if session.end is None or not session.start.dated else max(0.0, session.end.ended - session.start.started)
    )


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "aspect": slug(difference.aspect),
        "place": str(difference.place),
        "fate": difference.fate.value,
        "before": difference.before,
        "after": difference.after,
        "about": difference.about or None,
        "volatile": str(difference.noise) if difference.noise is not None else None,
    }


def diff(found: SessionDiff) -> dict[str, Any]:
    """Two sessions side by side.

    ``damaged`` are steps of which a body could not be read: what the rows say of them is not known to be so.
    """
    summary = None if found.summary is None else _summary(found.summary)
    same = found.is_same()
    by_row = {id(change.row): change for change in found.changes()}
    a, b = found.a.session, found.b.session
    return {
        "schema": "rewind/diff@1",
        "a": session_view(a, found.totals[0]),
        "b": session_view(b, found.totals[1]),
        "same": same,
        "summary": summary,
        "tokens": _figure(*map(tokens_of, found.totals)),
        "cost_usd": _figure(*(None if totals.unpriced else totals.cost for totals in found.totals)),
        "seconds": _figure(seconds_of(a), seconds_of(b)),
        "rows": [_diff_row(found.comparison, row, by_row.get(id(row))) for row in found.rows],
        "damaged": {"a": sorted(found.a.damaged), "b": sorted(found.b.damaged)},
    }


def _diff_row(comparison: Comparison, row: Row, change: RowChange | None) -> dict[str, Any]:
    """One row; what was told in an earlier one is named by its steps."""
    view: dict[str, Any] = {
        "a": row.indexes[0],
        "b": row.indexes[1],
        "likeness": likeness(comparison, row).value,
        "changed": [],
        "volatile": [],
        "history_inherited": False,
        "tries": {"a": _tries(row, 0), "b": _tries(row, 1)},
        "differences": [],
        "repeated": [],
    }
    if row.a is None or row.b is None:
        run, move = (comparison.a, row.a) if row.b is None else (comparison.b, row.b)
        assert move is not None, "a row has a move"
        return view | {"text": str(move_result(run, move))}
    relation = comparison.relation(row)
    view |= {
        "changed": _slugs(relation.changed),
        "volatile": _slugs(relation.noise),
        "history_inherited": relation.inherited,
    }
    if change is not None:
        view["differences"] = [_difference(difference) for difference in change.differences]
        view["repeated"] = [
            {"aspect": slug(aspect), "as_at": _steps(earlier, "a", "b")} for aspect, earlier in change.repeated.items()
        ]
    return view


def _steps(row: Row, first: str, second: str) -> dict[str, int | None]:
    """The steps of a row, by what the runs are called."""
    return {first: row.indexes[0], second: row.indexes[1]}


def _slugs(aspects: Iterable[Aspect]) -> list[str]:
    known = set(aspects)
    return [slug(aspect) for aspect in Aspect if aspect in known]


def _tries(row: Row, side: int) -> int | None:
    move = (row.a, row.b)[side]
    return None if move is None else len(move.failures) + 1


def _summary(summary: Summary) -> dict[str, int]:
    return {
        "equal": summary.equal,
        "changed": summary.changed,
        "only_in_a": summary.counts[Likeness.ONLY_A],
        "only_in_b": summary.counts[Likeness.ONLY_B],
        "volatile": summary.counts[Likeness.VOLATILE],
        "reworded": summary.counts[Likeness.REWORDED],
        "reordered": summary.reordered,
        "retried": summary.retried,
    }


def _figure(a: float | None, b: float | None) -> dict[str, float | None]:
    return {"a": a, "b": b, "delta": None if a is None or b is None else b - a}


# ── where they part, and why ────────────────────────────────────────────────────────────────────────────────────────


def bisection(found: PairBisection) -> dict[str, Any]:
    """Where one bad run left one good run."""
    finding = found.finding
    comparison = finding.comparison
    return {
        "schema": "rewind/bisect@2",
        "good": session_view(comparison.a.recording.session),
        "bad": session_view(comparison.b.recording.session),
        "diverges": finding.diverges,
        "answers_part": finding.answers_part,
        "step": None if finding.at is None else _steps(finding.at, "good", "bad"),
        "at": None if finding.at is None else _parting(finding, finding.at),
        "causes": [_cause(finding, cause, found.since.get(at)) for at, cause in enumerate(finding.causes)],
        "ruled_out": [
            {"kind": slug(fact.kind), "fact": fact.fact, "text": ruled_out_text(fact)} for fact in finding.ruled_out
        ],
        "partings": [_weighed(one) for one in finding.partings],
        "folded": folded_text(finding) or None,
        "matched": finding.matched,
        "total": finding.total,
        "resync": None if finding.resync is None else _steps(finding.resync, "good", "bad"),
        "steps": [_match(finding, row) for row in finding.before],
        "beside": [
            _steps(row, "good", "bad") | {"text": str(move_result(run, move))}
            for row in finding.beside
            for run, move in _made(finding, row)
        ],
        "code": _code(found.code),
        "history": None if found.history is None else _history(found.history),
    }


def _history(history: History) -> dict[str, Any]:
    return {
        "sessions": list(history.sessions),
        "learnt": [
            {
                "kind": slug(one.cause.kind),
                "step": _steps(one.cause.since, "good", "bad"),
                "place": str(one.difference.place),
                "tool": one.difference.tool or None,
                "runs": one.variation.runs,
                "reach": one.variation.reach.value,
                "seen": list(one.variation.seen),
                "demoted": one.demoted,
            }
            for one in history.learnt
        ],
    }


def group_bisection(found: GroupBisection) -> dict[str, Any]:
    """What tells several bad runs from several good ones."""
    finding = found.parting
    test = finding.test
    return {
        "schema": "rewind/bisect_runs@2",
        "good": [session_view(run.recording.session) for run in finding.goods],
        "bad": [session_view(run.recording.session) for run in finding.bads],
        "left_out": [{"session": one.session.id, "reason": one.reason} for one in found.left_out],
        "verdict": finding.verdict.value,
        "diverges": found.diverges,
        "column": finding.at,
        "columns": [_column(finding, number, column) for number, column in enumerate(finding.columns)],
        "causes": [_group_cause(cause) for cause in finding.causes],
        "nearest": [_group_cause(cause) for cause in finding.nearest],
        "more_runs": None if finding.needed is None else dict(zip(("good", "bad"), finding.needed, strict=True)),
        "tested": {
            "patterns": test.patterns,
            "deals": test.deals,
            "exact": test.is_exact,
            "significant": SIGNIFICANT,
            "perfect_p": test.perfect,
        },
    }


def _parting(finding: Finding, row: Row) -> dict[str, Any]:
    good = None if row.a is None else _move(finding.comparison.a, row.a)
    bad = None if row.b is None else _move(finding.comparison.b, row.b)
    return {"good": good, "bad": bad}


def _weighed(parting: Parting) -> dict[str, Any]:
    return _steps(parting.row, "good", "bad") | {
        "weight": parting.weight.value,
        "changes": [
            {
                "kind": change.kind.value,
                "place": change.place or None,
                "before": change.before,
                "after": change.after,
                "weight": change.weight.value,
                "text": str(change),
            }
            for change in parting.changes
        ],
    }


def _move(run: ComparedRun, move: Move) -> dict[str, Any]:
    said = move_result(run, move)
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


def _cause(finding: Finding, cause: Cause, seen: FirstSeen | None) -> dict[str, Any]:
    return {
        "kind": slug(cause.kind),
        "title": cause_title(cause),
        "first_seen_at": _steps(cause.since, "good", "bad"),
        "place": cause_place(finding, cause) or None,
        "evidence": cause.evidence or None,
        "standing": cause.standing.name.lower(),
        "differences": [_difference(each) for each in cause.differences],
        "since": None if seen is None else _seen(seen),
    }


def _seen(seen: FirstSeen) -> dict[str, Any]:
    return _use(seen) | {
        "last_without": None if seen.last_without is None else _use(seen.last_without),
        "sessions_before": seen.before,
        "sessions_after": seen.after,
        "sessions_unread": seen.unread,
    }


def _use(use: FieldUse) -> dict[str, Any]:
    return {
        "session": use.session.id,
        "name": use.session.start.name,
        "step": use.step,
        "time": moment(use.ts),
        "surroundings": None if use.surroundings is None else surroundings_view(use.surroundings),
    }


def _match(finding: Finding, row: Row) -> dict[str, Any]:
    assert row.b is not None, "what matches has two moves"
    response = row.b.step.response
    # As it was read while recording: a thousand bodies are not read for a list.
    known = response.reading.text if response is not None else ""
    return _steps(row, "good", "bad") | {
        "answers_match": finding.comparison.relation(row).answers_alike,
        "likeness": likeness(finding.comparison, row).value,
        "text": known or str(move_result(finding.comparison.b, row.b)),
    }


def _made(finding: Finding, row: Row) -> Sequence[tuple[ComparedRun, Move]]:
    pairs = ((finding.comparison.a, row.a), (finding.comparison.b, row.b))
    return [(run, move) for run, move in pairs if move is not None]


def _code(code: CodeComparison) -> dict[str, Any]:
    return {
        "good": None if code.good is None else surroundings_view(code.good),
        "bad": None if code.bad is None else surroundings_view(code.bad),
        "same": code.same,
        "versions": {"good": dict(code.good_versions), "bad": dict(code.bad_versions)},
        "changed_versions": [
            {"name": change.name, "good": change.before, "bad": change.after} for change in code.changed_versions
        ],
        "changed_locks": list(code.changed_locks),
    }


def _column(finding: GroupFinding, number: int, column: MoveColumn) -> dict[str, Any]:
    return {
        "cells": [
            {
                "session": run.recording.session.id,
                "step": None if move is None else move.index,
                "answer": answer,
                "text": None if move is None else str(move_result(run, move)),
            }
            for run, move, answer in zip(finding.runs, column.cells, column.answers, strict=True)
        ],
        "tells": None if number not in finding.deciding else _rates(finding.deciding[number].evidence),
    }


def _group_cause(cause: GroupCause) -> dict[str, Any]:
    return {
        "kind": slug(cause.kind),
        "column": cause.column,
        "things": [
            {"place": one.feature.shown_place or None, "text": one.feature.text} | _rates(one.evidence)
            for one in cause.tested
        ],
    } | _rates(cause.evidence)


def _rates(evidence: SplitEvidence) -> dict[str, Any]:
    return {
        "good": {"with": evidence.good_with, "of": evidence.good_with + evidence.good_without},
        "bad": {"with": evidence.bad_with, "of": evidence.bad_with + evidence.bad_without},
        "p": evidence.p,
        "adjusted_p": evidence.adjusted,
    }


# ── what was proven ─────────────────────────────────────────────────────────────────────────────────────────────────


def proof(proof: "Proof") -> dict[str, Any]:
    """What ``rewind bisect --prove`` adds."""
    judged = proof.judged
    return {
        "verdict": proof.verdict.value,
        "error_rate": 0.05,
        "proven": [_trial(trial, judged) for trial in proof.proven],
        "control": _trial(proof.control, judged),
        "trials": [_trial(trial, judged) for trial in proof.trials],
        "more_calls": proof.more_calls,
        "smallest": None if proof.smallest is None else _smallest(proof.smallest, judged),
        "live_calls": proof.live_calls,
        "cost_usd": proof.spent.usd,
        "unpriced": proof.spent.unpriced,
        "drifted": proof.drifted,
        "stopped": proof.stopped,
    }


def _trial(trial: "ProbeResult", judged: int) -> dict[str, Any]:
    rate = trial.rate
    return {
        "put_back": trial.what,
        "cause": None if trial.kind is None else slug(trial.kind),
        "edits": [edit.written for edit in trial.edits],
        "outcomes": [outcome.value for outcome in trial.outcomes],
        "like_good": rate.of - rate.bad,
        "bad": rate.bad,
        "of": rate.of,
        "unclear": trial.unclear,
        "failed": trial.failed,
        "rate": rate.share,
        "interval": _interval(rate.interval(judged)) if rate.of else None,
        "effect": None if trial.effect is None else _effect(trial.effect),
        "sessions": list(trial.sessions),
        "refused": trial.refused,
    }


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "verdict": effect.verdict.value,
        "difference": _interval(effect.difference),
        "within": effect.within,
        "of": effect.put_back.of,
    }


def _interval(interval: Interval) -> list[float]:
    return [interval.low, interval.high]


def _smallest(least: "Smallest", judged: int) -> dict[str, Any]:
    return {
        "sentences": [_hunk(hunk) for hunk in least.sentences],
        "words": [_hunk(hunk) for hunk in least.words],
        "of": least.of,
        "complete": least.complete,
        "check": None if least.check is None else _trial(least.check, judged),
    }


def _hunk(hunk: Hunk) -> dict[str, str]:
    return {"good": hunk.good, "bad": hunk.bad}
