"""Values → plain JSON, for ``--json`` and for pages alike.

The shapes are a contract: each names its schema, fields are added and never change their meaning. Types of rooms
that this one does not know (totals, damage, the result of a replay) are described here by what is read of them.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from rewind.model.outcome import outcome_of
from rewind.model.session import Recording, Session
from rewind.model.step import Step
from rewind.model.surroundings import Surroundings
from rewind.views.body import body
from rewind.views.fork import lineage


class Totals(Protocol):
    """What a session's steps add up to."""

    @property
    def steps(self) -> int: ...
    @property
    def llm_calls(self) -> int: ...
    @property
    def tokens_in(self) -> int | None: ...
    @property
    def tokens_out(self) -> int | None: ...
    @property
    def cache_read(self) -> int | None: ...
    @property
    def cache_write(self) -> int | None: ...
    @property
    def reasoning(self) -> int | None: ...
    @property
    def peak_context(self) -> int | None: ...
    @property
    def threads(self) -> int | None: ...
    @property
    def cut(self) -> int: ...
    @property
    def errors(self) -> int: ...
    @property
    def retries(self) -> int: ...
    @property
    def replayed(self) -> int: ...
    @property
    def cost(self) -> float | None: ...
    @property
    def unpriced(self) -> int: ...


class Damage(Protocol):
    """Something in the store that is not as it was written."""

    @property
    def session(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def where(self) -> str: ...


class CatalogState(Protocol):
    """How the catalog stands after it has caught up."""

    @property
    def sessions(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def rebuilt(self) -> bool: ...


class MissNote(Protocol):
    """A request that a replay could not answer."""

    @property
    def reason(self) -> str: ...
    @property
    def report(self) -> str: ...


class ReplayResult(Protocol):
    """What a replay came to."""

    @property
    def session_id(self) -> str: ...
    @property
    def played(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def drifted(self) -> int: ...
    @property
    def live(self) -> int: ...
    @property
    def misses(self) -> Sequence[MissNote]: ...
    @property
    def network_calls(self) -> int: ...
    @property
    def output(self) -> str: ...
    @property
    def output_difference(self) -> str: ...
    @property
    def exit_code(self) -> int: ...
    @property
    def recorded_exit_code(self) -> int | None: ...
    @property
    def kept_as(self) -> str | None: ...
    @property
    def served(self) -> Sequence[Step]: ...
    @property
    def remarks(self) -> Sequence[str]: ...


class Client(Protocol):
    """A kind of client, as it is found on this machine."""

    @property
    def name(self) -> str: ...
    @property
    def found(self) -> bool: ...
    @property
    def version(self) -> str: ...
    @property
    def works(self) -> str: ...
    @property
    def note(self) -> str: ...


def sessions(rows: Iterable[tuple[Session, Totals]]) -> dict[str, Any]:
    """The list of sessions."""
    return {"schema": "rewind/sessions@1", "sessions": [session(one, totals) for one, totals in rows]}


def session(one: Session, totals: Totals | None = None) -> dict[str, Any]:
    """A session without its steps."""
    start, end = one.start, one.end
    view: dict[str, Any] = {
        "id": one.id,
        "name": start.name,
        "status": one.status.value,
        "outcome": outcome_of(one).value,
        "command": list(start.command),
        "cwd": start.cwd,
        "started": moment(start.started),
        "ended": moment(end.ended) if end else None,
        "seconds": round(end.ended - start.started, 3) if end else None,
        "exit_code": end.exit_code if end else None,
        "tags": dict(start.tags),
        "hosts": list(start.hosts),
        "all_hosts": start.all_hosts,
        "replay_of": start.replay_of,
        "forked_from": lineage(start.forked_from),
        "redactions": end.redactions if end else None,
        "remarks": list(end.remarks) if end else [],
        "broken": end.broken if end else None,
        "rewind_version": start.rewind_version,
        "folder": one.folder,
        "file": one.file,
        "imported": start.imported,
    }
    if totals is not None:
        view |= {
            "steps": totals.steps,
            "llm_calls": totals.llm_calls,
            "tokens_in": totals.tokens_in,
            "tokens_out": totals.tokens_out,
            "cache_read": totals.cache_read,
            "cache_write": totals.cache_write,
            "reasoning": totals.reasoning,
            "peak_context": totals.peak_context,
            "threads": totals.threads,
            "cut": totals.cut,
            "errors": totals.errors,
            "retries": totals.retries,
            "replayed": totals.replayed,
            "cost_usd": totals.cost,
            "unpriced": totals.unpriced,
        }
    return view


def recording(one: Recording) -> dict[str, Any]:
    """A session with a row for each step."""
    return {
        "schema": "rewind/session@1",
        "session": session(one.session),
        "surroundings": None if one.surroundings is None else surroundings(one.surroundings),
        "steps": [step_row(step) for step in one.steps],
        "damage": list(one.damage),
    }


def surroundings(one: Surroundings) -> dict[str, Any]:
    """What a run stood on."""
    return {
        "commit": one.commit,
        "branch": one.branch,
        "dirty": one.dirty,
        "changes": one.changes,
        "locks": dict(one.locks),
    }


def step_row(step: Step) -> dict[str, Any]:
    """A step without its bodies."""
    request, response = step.request, step.response
    view: dict[str, Any] = {
        "index": request.index,
        "kind": request.kind.value,
        "provider": request.provider,
        "model": (response.reading.model if response else None) or request.model,
        "started": moment(request.ts),
        "method": request.head.method,
        "url": request.head.url,
        "match_key": request.match_key,
        "request_size": request.body_size,
        "note": request.note,
        "status": None,
        "ending": None,
        "reason": None,
        "ms": None,
        "first_ms": None,
        "response_size": None,
        "tokens_in": None,
        "tokens_out": None,
        "text": "",
        "error": None,
        "tape": None,
    }
    if response is not None:
        view |= {
            "status": response.head.status if response.head else None,
            "ending": response.ending.value,
            "reason": response.reason,
            "ms": response.ms,
            "first_ms": response.first_ms,
            "response_size": response.body_size,
            "tokens_in": response.reading.usage.input,
            "tokens_out": response.reading.usage.output,
            "text": response.reading.text,
            "error": response.reading.error,
            "tape": response.tape,
            "note": request.note or response.reading.note,
        }
    return view


def step(session_id: str, one: Step, request_body: bytes, response_body: bytes | None) -> dict[str, Any]:
    """A step in full."""
    request, response = one.request, one.response
    view: dict[str, Any] = {
        "schema": "rewind/step@1",
        "session": session_id,
        "step": step_row(one),
        "request": {
            "method": request.head.method,
            "url": request.head.url,
            "headers": [list(pair) for pair in request.head.headers],
            "body": body(request_body, request.head.headers) | {"blob": request.body},
        },
        "response": None,
    }
    if response is not None and response.head is not None:
        view["response"] = {
            "status": response.head.status,
            "reason": response.head.reason,
            "headers": [list(pair) for pair in response.head.headers],
            "body": body(response_body or b"", response.head.headers, response.chunks)
            | {"blob": response.body},
            "chunks": [{"at_ms": chunk.at / 1000, "size": chunk.size} for chunk in response.chunks],
            "trailers": [list(pair) for pair in response.trailers],
        }
    return view


def replay(result: ReplayResult) -> dict[str, Any]:
    """What a replay came to."""
    return {
        "schema": "rewind/replay@1",
        "session": result.session_id,
        "played": result.played,
        "total": result.total,
        "drifted": result.drifted,
        "live": result.live,
        "network_calls": result.network_calls,
        "misses": [{"reason": miss.reason, "report": miss.report} for miss in result.misses],
        "output": result.output,
        "output_difference": result.output_difference,
        "exit_code": result.exit_code,
        "recorded_exit_code": result.recorded_exit_code,
        "kept_as": result.kept_as,
        "remarks": list(result.remarks),
    }


def verification(
    checked: int, found: Sequence[Damage], catalog: CatalogState | None, catalog_problem: str | None
) -> dict[str, Any]:
    """What hashing everything again came to."""
    view: dict[str, Any] = {
        "schema": "rewind/verify@1",
        "sessions": checked,
        "damage": [{"session": one.session, "what": one.what, "where": one.where} for one in found],
        "catalog": None,
    }
    if catalog is not None:
        view["catalog"] = {"sessions": catalog.sessions, "steps": catalog.steps, "rebuilt": catalog.rebuilt}
    if catalog_problem is not None:
        view["catalog"] = {"problem": catalog_problem}
    return view


def setup(home: Path, clients: Iterable[Client], certificate: Path | None) -> dict[str, Any]:
    """A prepared store, and the clients of this machine."""
    return {
        "schema": "rewind/setup@1",
        "home": str(home),
        "certificate": None if certificate is None else str(certificate),
        "clients": [
            {
                "name": client.name,
                "found": client.found,
                "version": client.version,
                "works": client.works,
                "note": client.note,
            }
            for client in clients
        ],
    }


def moment(seconds: float) -> str:
    """ISO 8601, UTC, to the millisecond."""
    try:
        when = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s"  # a clock that was far off, or a file that is not ours: still to be shown
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
