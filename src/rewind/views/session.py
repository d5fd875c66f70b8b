"""Sessions, their steps and bodies as plain JSON."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rewind.model.http import Chunk, Headers
from rewind.model.names import Renamed
from rewind.model.outcome import outcome_of
from rewind.model.session import Lineage, Recording, Session, Surroundings
from rewind.model.step import Reading, Step
from rewind.providers.telemetry import telemetry_of
from rewind.reading.body_text import decoded, is_event_stream, read_body
from rewind.store.journal.totals import Totals
from rewind.text import moment
from rewind.views import members
from rewind.wire.sse import parse_events

if TYPE_CHECKING:
    from rewind.reading.sessions import ListedSession

_TOTALS = (
    *("steps", "llm_calls", "tokens_in", "tokens_out", "cache_read", "cache_write", "reasoning", "peak_context"),
    *("threads", "cut", "errors", "retries", "replayed", "telemetry"),
)


def sessions(rows: Iterable["ListedSession"]) -> dict[str, Any]:
    """The list of sessions."""
    return {"schema": "rewind/sessions@1", "sessions": [session(value, totals) for value, totals in rows]}


def session(value: Session, totals: Totals | None = None) -> dict[str, Any]:
    """A session without its steps."""
    start, end = value.start, value.end
    view: dict[str, Any] = {
        "id": value.id,
        "name": start.name,
        "status": value.status.value,
        "outcome": outcome_of(value).value,
        "command": list(start.command),
        "cwd": start.cwd,
        "started": moment(start.started) if start.dated else None,
        "ended": moment(end.ended) if end and start.dated else None,
        "seconds": round(end.ended - start.started, 3) if end and start.dated else None,
        "exit_code": end.exit_code if end else None,
        "tags": dict(start.tags),
        "hosts": list(start.hosts),
        "all_hosts": start.all_hosts,
        "replay_of": start.replay_of,
        "forked_from": lineage(start.forked_from),
        "part_of": start.part_of,
        "redactions": end.redactions if end else None,
        "remarks": list(end.remarks) if end else [],
        "broken": end.broken if end else None,
        "rewind_version": start.rewind_version,
        "folder": value.folder,
        "file": value.file,
        "imported": start.imported,
        "pinned": value.pinned,
    }
    if totals is not None:
        view |= members(totals, *_TOTALS) | {"cost_usd": totals.cost, "unpriced": totals.unpriced}
    return view


def lineage(value: Lineage | None) -> dict[str, Any] | None:
    """Where a fork comes from; ``None`` for a session that is none."""
    if value is None:
        return None
    return {
        **members(value, "session", "step"),
        "edits": list(value.edits),
        "by_hand": value.by_hand,
        "earlier": [list(earlier.edits) for earlier in value.earlier],
        **members(value, "sample", "probe"),
    }


def recording(value: Recording) -> dict[str, Any]:
    """A session with a row for each step."""
    return {
        "schema": "rewind/session@1",
        "session": session(value.session),
        "surroundings": None if value.surroundings is None else surroundings(value.surroundings),
        "steps": [step_row(step) for step in value.steps],
        "damage": list(value.damage),
    }


def renamed_steps(renamed: Mapping[int, tuple[Renamed, ...]]) -> list[dict[str, Any]]:
    """The steps that were asked for by other names, and those names."""
    return [{"step": step, "names": [renamed_name(pair) for pair in pairs]} for step, pairs in sorted(renamed.items())]


def renamed_name(pair: Renamed) -> dict[str, Any]:
    """One thing, and what it was called."""
    return {"kind": pair.kind, "recorded": pair.then, "asked": pair.now}


def surroundings(value: Surroundings) -> dict[str, Any]:
    """What a run stood on."""
    return members(value, "commit", "branch", "dirty", "changes") | {"locks": dict(value.locks)}


def step_row(step: Step) -> dict[str, Any]:
    """A step without its bodies."""
    request, response = step.request, step.response
    head = response.head if response else None
    reading = response.reading if response else Reading()
    return {
        "index": request.index,
        "kind": request.kind.value,
        "provider": request.provider,
        "model": reading.model or request.model,
        "started": moment(request.ts),
        "method": request.head.method,
        "url": request.head.url,
        "match_key": request.match_key,
        "request_size": request.body_size,
        "note": request.note or reading.note,
        "status": head.status if head else None,
        "ending": response.ending.value if response else None,
        "reason": response.reason if response else None,
        "ms": response.ms if response else None,
        "first_ms": response.first_ms if response else None,
        "response_size": response.body_size if response else None,
        "tokens_in": reading.usage.input,
        "tokens_out": reading.usage.output,
        "text": reading.text,
        "error": reading.error,
        "tape": response.tape if response else None,
        "telemetry": telemetry_of(request),
    }


def step(session_id: str, value: Step, request_body: bytes, response_body: bytes | None) -> dict[str, Any]:
    """A step in full."""
    request, response = value.request, value.response
    view: dict[str, Any] = {
        "schema": "rewind/step@1",
        "session": session_id,
        "step": step_row(value),
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
            | {"blob": response.body}
            | ({"not_shown": left} if response_body and (left := response.body_size - len(response_body)) else {}),
            "chunks": [{"at_ms": chunk.at / 1000, "size": chunk.size} for chunk in response.chunks],
            "trailers": [list(pair) for pair in response.trailers],
        }
    return view


def body(data: bytes, headers: Headers, chunks: Sequence[Chunk] = ()) -> dict[str, Any]:
    """A body with its content encoding taken off: ``json``, ``events``, ``text`` or ``base64``."""
    view: dict[str, Any] = {"size": len(data)}
    read = read_body(data, headers)
    if read.note:
        view["note"] = read.note
    if read.binary is not None:
        view["base64"] = base64.b64encode(read.binary).decode("ascii")
    elif read.is_json:
        view["json"] = read.json
    else:
        view["text"] = read.text
        if is_event_stream(headers):
            view["events"] = events(data, headers, chunks)
    return view


def events(data: bytes, headers: Headers, chunks: Sequence[Chunk] = ()) -> list[dict[str, Any]]:
    """The events of a stream, with the time each was complete where that is known."""
    plain, _ = decoded(data, headers)
    # In a compressed stream the place of an event in the received bytes is not known, so neither is its time.
    known = chunks if plain == data else ()
    arrivals, received = [], 0
    for chunk in known:
        received += chunk.size
        arrivals.append((received, chunk.at / 1000))
    view, at = [], 0
    for event in parse_events(plain):
        while at < len(arrivals) and arrivals[at][0] < event.end:
            at += 1
        when = arrivals[at][1] if at < len(arrivals) else None
        view.append({"event": event.event, "data": event.data, "at_ms": when})
    return view
