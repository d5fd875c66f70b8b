"""A trace file as a session that every command can open.

The wire was never seen, so requests are put together from what the trace tells: each call of a model in the shape of
the API that its answer speaks, with all that had been said by then; tools and notes in the form that the SDK gives
them.
Calls of models have the scheme ``trace``, in the store and in cassettes, too: such a session can be read and compared
like any other, but there is nothing in it that a replay could serve to an agent.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import floor
from pathlib import Path

from rewind.conversation.sketch import said_of
from rewind.formats.trace.bodies import Bodies, Body
from rewind.formats.trace.calls import Heard, Talks
from rewind.formats.trace.events import Call, Event, ToolRun
from rewind.formats.trace.exchanges import Exchange, exchange_of
from rewind.formats.trace.fields import duration_in
from rewind.formats.trace.lines import Entry, Lines, bytes_of, lines_of
from rewind.formats.trace.reconstruct import told_by
from rewind.match.call import understand
from rewind.model.http import Chunk, HttpRequest, HttpResponse
from rewind.model.ids import SessionId
from rewind.model.session import TRACE_SOURCE, Portable, Recording, Session, SessionEnd, SessionStart, Status
from rewind.model.step import Ending, Reading, Step, StepRequest, StepResponse
from rewind.providers.shared.json_fields import start_of
from rewind.providers.summary import short
from rewind.trace.blobs import Blobs
from rewind.version import __version__

_ID = re.compile(r"[0-9a-f]{8}", re.ASCII)
DIGEST_TAG = "source_sha256"
"""The tag that tells which file an imported session came from: the first digits of its hash."""
_DAMAGE_TAG = "damage"
_DAMAGE_SHOWN = 500
_RUNS_NAMED = 5


def read_trace_file(path: Path, run: str | None = None) -> Portable:
    """The session that a run of a trace comes to (default: the run that began last).

    Raises SessionNotFound or BadCassette.
    """
    return _portable(path, bytes_of(str(path)), run)


def read_trace_state(path: Path) -> tuple[Portable, str]:
    """The same, and the digest of what could be read of it just now: a trace may be growing."""
    data = bytes_of(str(path))
    portable = _portable(path, data, None)
    digest = hashlib.sha256(data)
    digest.update("\n".join(portable.recording.damage).encode("utf-8", "replace"))
    return portable, digest.hexdigest()


def _portable(path: Path, data: bytes, run: str | None) -> Portable:
    lines = lines_of(data, str(path), Blobs(str(path)), run)
    bodies = Bodies()
    story = told_by(lines.entries)
    steps = tuple(_Steps(lines.entries, story.events, bodies).all())
    damage = (*_others(lines), *lines.damage, *story.left_out)
    recording = Recording(session=_session(path, lines), steps=steps, damage=damage)
    return Portable(recording=recording, blobs=bodies)


def kept_as(portable: Portable, session_id: SessionId, digest: str, name: str | None) -> Portable:
    """The session as the store is to have it: under an id of its own, and with what could not be read of its file.

    A trace grows. Each state of it that is imported is a session for itself; the run's own id stays in a tag.
    """
    recording = portable.recording
    session = recording.session
    start, end = session.start, session.end
    tags = {"run": session.id, **start.tags, DIGEST_TAG: digest[:16]}
    if end is not None:
        end = replace(end, remarks=(*end.remarks, *recording.damage))
    elif recording.damage:
        # A run whose end is not told has no line for remarks.
        tags[_DAMAGE_TAG] = start_of("; ".join(recording.damage), _DAMAGE_SHOWN)
    session = replace(
        session, start=replace(start, id=session_id, name=name or start.name, tags=tags), end=end
    )
    return replace(portable, recording=replace(recording, session=session, damage=()))


def remarks_of(session: Session) -> tuple[str, ...]:
    """What was missing in the trace that an imported session came from."""
    told = session.start.tags.get(_DAMAGE_TAG)
    return session.end.remarks if session.end is not None else (told,) if told else ()


# ── the session ──────────────────────────────────────────────────────────────────────────────────────────────


def _session(path: Path, lines: Lines) -> Session:
    entries = lines.entries
    session_id = SessionId(lines.run if _ID.fullmatch(lines.run) else _digest(lines, path))
    moments = [entry.ts for entry in entries if entry.ts]
    began, ended = min(moments, default=0.0), max(moments, default=0.0)
    end = None
    if (code := _exit_code(entries)) is not None:
        end = SessionEnd(ended=ended, exit_code=code, stdin=None, stdout=None, stderr=None, redactions=0)
    return Session(
        start=SessionStart(
            id=session_id,
            name=path.name.removesuffix(".jsonl")[:200] or None,
            command=(),
            cwd="",
            started=began,
            rewind_version=__version__,
            tags={
                "source": TRACE_SOURCE,
                **({"run": lines.run} if lines.run not in ("", session_id) else {}),
            },
            imported=True,
        ),
        end=end,
        status=Status.INTERRUPTED if end is None else Status.ENDED,
        folder="",
        file=str(path),
    )


def _digest(lines: Lines, path: Path) -> str:
    """Of the run's id; where it has none, of what can be said of it instead."""
    known = lines.run or f"{path.name}\0{lines.entries[0].ts}"
    return hashlib.sha256(known.encode()).hexdigest()[:8]


def _exit_code(entries: tuple[Entry, ...]) -> int | None:
    """A trace ends well with a ``final``, and badly with an ``error``; else nobody knows whether it ended."""
    match entries[-1].kind:
        case "final":
            return 0
        case "error":
            return 1
        case _:
            return None


def _others(lines: Lines) -> Iterator[str]:
    if lines.others:
        named = ", ".join(one[:40] or "(none)" for one in lines.others[-_RUNS_NAMED:])
        more = ", …" if len(lines.others) > _RUNS_NAMED else ""
        yield f"the file has {len(lines.others)} other run(s), not shown: {named}{more}"


# ── the steps ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Steps:
    entries: tuple[Entry, ...]
    events: list[Event]
    bodies: Bodies
    _talks: Talks = field(init=False)

    def __post_init__(self) -> None:
        self._talks = Talks(self.bodies)

    def all(self) -> Iterator[Step]:
        before = {
            entry.number: earlier.ts for earlier, entry in zip(self.entries, self.entries[1:], strict=False)
        }
        for index, event in enumerate(self.events, 1):
            exchange = exchange_of(event, self.bodies)
            ts, ms = _span(event, before)
            if isinstance(event, Call):
                yield self._call(index, event, exchange, ts, ms)
            else:
                yield self._other(index, exchange, ts, ms)

    def _call(self, index: int, call: Call, exchange: Exchange, ts: float, ms: float) -> Step:
        heard = self._talks.call(index, call, exchange)
        asked = heard.asked
        request = _request(index, exchange, ts, heard)
        if exchange.answer is None:
            return Step(request=request, response=None)
        nothing_more = HttpRequest(head=exchange.head, body=b"")
        answered = heard.provider.answered(nothing_more, _answer(exchange, exchange.answer))
        self._talks.answer(index, answered)
        reading = replace(short(asked, answered), said=said_of(answered))
        return Step(request=request, response=_response(exchange, exchange.answer, ms, reading))

    def _other(self, index: int, exchange: Exchange, ts: float, ms: float) -> Step:
        call = understand(HttpRequest(head=exchange.head, body=exchange.request.data()))
        asked = call.provider.asked(call.request)
        request = _request(index, exchange, ts, Heard(provider=call.provider, key=call.key, asked=asked))
        if exchange.answer is None:
            return Step(request=request, response=None)
        answered = call.provider.answered(call.request, _answer(exchange, exchange.answer))
        reading = short(asked, answered)
        if exchange.shown is not None:
            reading = replace(reading, text=exchange.shown, error=exchange.error)
        else:
            reading = replace(reading, said=said_of(answered))
        return Step(request=request, response=_response(exchange, exchange.answer, ms, reading))


def _request(index: int, exchange: Exchange, ts: float, heard: Heard) -> StepRequest:
    model = heard.asked.model
    return StepRequest(
        index=index,
        ts=ts,
        kind=exchange.kind,
        provider=heard.provider.name,
        match_key=heard.key,
        head=exchange.head,
        body=exchange.request.name,
        body_size=exchange.request.size,
        model=model[:200] if model else None,
        thread=heard.thread,
        sketch=None if heard.sketch is None else str(heard.sketch),
        note=exchange.note,
    )


def _answer(exchange: Exchange, answer: Body) -> HttpResponse:
    return HttpResponse(head=exchange.answer_head, body=answer.data(), chunks=())


def _response(exchange: Exchange, answer: Body, ms: float, reading: Reading) -> StepResponse:
    return StepResponse(
        ending=Ending.COMPLETE,
        head=exchange.answer_head,
        body=answer.name,
        body_size=answer.size,
        chunks=(Chunk(round(ms * 1000), answer.size),) if answer.size else (),
        ms=ms,
        reading=reading,
    )


def _span(event: Event, before: dict[int, float]) -> tuple[float, float]:
    """When it began, and how long it took. A line is written when the thing is done: where it does not tell how long it
    took, that is the time since the line before, at most."""
    match event:
        case Call(entry=entry):
            told = duration_in(entry.fields)
            since = before.get(entry.number, entry.ts)
            ms = told if told is not None else _milliseconds(since, entry.ts)
            return max(entry.ts - ms / 1000, 0.0) if entry.ts else 0.0, ms
        case ToolRun(called=called, came=came):
            told = duration_in(came.fields) if came is not None else None
            if called is not None and came is not None:
                return called.ts, told if told is not None else _milliseconds(called.ts, came.ts)
            return event.entry.ts, told or 0.0
        case _:
            return event.entry.ts, 0.0


def _milliseconds(since: float, until: float) -> float:
    """Never more than passed: what follows must not seem to have begun before this ended."""
    return max(0.0, floor((until - since) * 1_000_000) / 1000) if since and until else 0.0
