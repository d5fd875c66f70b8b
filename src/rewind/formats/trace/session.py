"""A trace as a session that every command can open.

The wire was never seen, so requests are put together from what the trace tells: each call of a model in the shape of
the API that its answer speaks, with all that had been said by then; tools and notes in the form that the SDK gives
them.
Calls of models have the scheme ``trace``, in the store and in cassettes, too: such a session can be read and compared
like any other, but there is nothing in it that a replay could serve to an agent.

A call repeats all that had been said. If each were read whole, a trace would take as long as the square of its length;
so calls are read whole where that is little, else only what is new since the call before (:class:`CallReader`).
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import field, replace
from itertools import pairwise
from math import floor
from pathlib import PurePath

from rewind.conversation.sketch import GrowingSketch, Sketch, said_of, sketch_of
from rewind.conversation.threads import Threads
from rewind.dataclass import dataclass
from rewind.formats.trace.api import RequestForm, Turn
from rewind.formats.trace.conversation import FirstTurns, ModelCall, TracedTool, TraceEvent
from rewind.formats.trace.exchanges import TraceBodies, TraceExchange, exchange_of
from rewind.formats.trace.fields import duration_in
from rewind.formats.trace.lines import LIMITS, TraceFile, TraceLimits, TraceRun, read_run
from rewind.formats.trace.reconstruct import reconstruct
from rewind.match.call import understand
from rewind.model.http import Chunk, HttpRequest, HttpResponse, RequestHead
from rewind.model.ids import MatchKey, SessionId
from rewind.model.message import Answered, Asked, Message, Part, Role
from rewind.model.session import TRACE_SOURCE, Recording, Session, SessionEnd, SessionFile, SessionStart, Status
from rewind.model.step import Ending, Step, StepRequest, StepResponse
from rewind.providers.api import Api
from rewind.providers.catalogue import identify
from rewind.providers.shared.json_fields import start_of
from rewind.providers.summary import short
from rewind.version import __version__

_ID = re.compile(r"[0-9a-f]{8}", re.ASCII)
DIGEST_TAG = "source_sha256"
"""The tag that says which file an imported session came from: the first digits of its hash."""
_DAMAGE_TAG = "damage"
_DAMAGE_SHOWN = 500
_RUNS_NAMED = 5
_EXIT_CODES = {"final": 0, "error": 1}
"""By the kind of the last line. After any other, nobody knows whether the run ended."""
_KEY_RULE = "rt1"
"""Of the keys of calls that are not read whole; see :mod:`rewind.match.call` for those of all others."""


def session_of_trace(file: TraceFile, run: str | None = None, limits: TraceLimits = LIMITS) -> SessionFile:
    """The session that a run of a trace comes to (default: the run that began last).

    Raises SessionNotFound or BadCassette.
    """
    lines = read_run(file, run, limits)
    story = reconstruct(lines.lines, limits)
    bodies = TraceBodies()
    steps = tuple(_steps(lines, story.events, bodies, limits))
    damage = (*_other_runs(lines), *lines.damage, *story.left_out)
    session = _session(file.name, lines)
    return SessionFile(recording=Recording(session=session, steps=steps, damage=damage), blobs=bodies)


def digest_of(file: TraceFile, portable: SessionFile) -> str:
    """Of what could be read of the trace just now: it may be growing, and outputs beside it may be missing."""
    digest = hashlib.sha256(file.data)
    digest.update("\n".join(portable.recording.damage).encode("utf-8", "replace"))
    return digest.hexdigest()


def kept_as(portable: SessionFile, session_id: SessionId, digest: str, name: str | None) -> SessionFile:
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
        # A run whose end is not in the trace has no line for remarks.
        tags[_DAMAGE_TAG] = start_of("; ".join(recording.damage), _DAMAGE_SHOWN)
    session = replace(session, start=replace(start, id=session_id, name=name or start.name, tags=tags), end=end)
    return replace(portable, recording=replace(recording, session=session, damage=()))


def remarks_of(session: Session) -> tuple[str, ...]:
    """What was missing in the trace that an imported session came from."""
    damage = session.start.tags.get(_DAMAGE_TAG)
    return session.end.remarks if session.end is not None else (damage,) if damage else ()


# ── the session ──────────────────────────────────────────────────────────────────────────────────────────────


def _session(file: str, lines: TraceRun) -> Session:
    name = PurePath(file).name
    session_id = SessionId(lines.run if _ID.fullmatch(lines.run) else _digest(lines, name))
    moments = [line.ts for line in lines.lines if line.ts]
    code, end = _EXIT_CODES.get(lines.lines[-1].kind), None
    if code is not None:
        ended = max(moments, default=0.0)
        end = SessionEnd(ended=ended, exit_code=code, stdin=None, stdout=None, stderr=None, redactions=0)
    return Session(
        start=SessionStart(
            id=session_id,
            name=name.removesuffix(".jsonl")[:200] or None,
            command=(),
            cwd="",
            started=min(moments, default=0.0),
            rewind_version=__version__,
            tags={"source": TRACE_SOURCE, **({"run": lines.run} if lines.run not in ("", session_id) else {})},
            imported=True,
        ),
        end=end,
        status=Status.INTERRUPTED if end is None else Status.ENDED,
        folder="",
        file=file,
    )


def _digest(lines: TraceRun, name: str) -> str:
    """Of the run's id; where it has none, of its file's name and its first moment."""
    known = lines.run or f"{name}\0{lines.lines[0].ts}"
    return hashlib.sha256(known.encode()).hexdigest()[:8]


def _other_runs(lines: TraceRun) -> Iterator[str]:
    if lines.other_runs:
        named = ", ".join(run[:40] or "(none)" for run in lines.other_runs[-_RUNS_NAMED:])
        more = ", …" if len(lines.other_runs) > _RUNS_NAMED else ""
        yield f"the file has {len(lines.other_runs)} other run(s), not shown: {named}{more}"


# ── what the calls ask ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSummary:
    """A call, understood as far as lists and comparisons need it."""

    provider: Api
    key: MatchKey
    asked: Asked
    """Of a long call only the last messages."""
    sketch: Sketch | None = None
    thread: int | None = None


@dataclass(frozen=True, slots=True)
class _Settings:
    """A request but for its turns, understood."""

    form: RequestForm
    asked: Asked
    sketch: Sketch


@dataclass(slots=True)
class _Progress:
    """How far the turns of one conversation are read."""

    turns: list[Turn]
    """Held, so that nothing else can get its id."""
    thread: int | None = None
    read: int = 0
    """Turns that ``growing`` has taken in."""
    growing: GrowingSketch | None = field(default_factory=GrowingSketch)
    """``None`` where the sketch cannot be made piece by piece."""
    system: tuple[Part, ...] = ()
    """The system prompt, where the API has it among the turns."""
    messages: tuple[Message, ...] = ()
    """The last two, or the only one."""
    settings: _Settings | None = None
    """Of its latest call."""


class CallReader:
    """Reads every call and every answer of a trace, in order."""

    def __init__(self, bodies: TraceBodies, limits: TraceLimits) -> None:
        self._bodies = bodies
        self._limits = limits
        self._threads = Threads()
        self._conversations: dict[int, _Progress] = {}
        self._reread_bytes = 0
        self._read_bytes = 0
        self._settings_bytes = 0
        self._unsettled = 0

    def call(self, index: int, call: ModelCall, exchange: TraceExchange) -> CallSummary:
        progress, size = self._conversations.get(id(call.turns.all)), exchange.request.size
        if progress is None:
            progress = self._conversations[id(call.turns.all)] = _Progress(call.turns.all)
        elif progress.thread is not None and (self._reread_bytes + size > self._limits.reread_bytes or exchange.note):
            return self._new_turns_only(progress, call, exchange)
        else:
            self._reread_bytes += size
        self._read_bytes += size
        if self._read_bytes > self._limits.read_bytes:
            return _unread(call, exchange)
        understood = understand(HttpRequest(head=exchange.head, body=exchange.request.data()))
        asked = understood.provider.reader.asked(understood.request)
        progress.thread = self._threads.call(index, understood.key, asked).thread
        return CallSummary(
            provider=understood.provider,
            key=understood.key,
            asked=asked,
            sketch=sketch_of(asked, understood.provider),
            thread=progress.thread,
        )

    def answer(self, index: int, answered: Answered) -> None:
        self._threads.answer(index, answered)

    def _new_turns_only(self, progress: _Progress, call: ModelCall, exchange: TraceExchange) -> CallSummary:
        provider = identify(exchange.head)
        self._read_new(progress, call.turns, call.form, exchange.head, provider)
        settings = self._settings(progress, call.form, exchange.head, provider)
        if progress.growing is not None and settings is not None:
            self._unsettled += progress.growing.unsettled
            if self._unsettled > self._limits.unsettled_results:
                progress.growing = None
        if progress.growing is None or settings is None:
            return replace(_unread(call, exchange), thread=progress.thread)
        turns = progress.growing.sketch()
        sketch = replace(settings.sketch, turn=turns.turn, history=turns.history, calls=turns.calls)
        model = settings.asked.model
        return CallSummary(
            provider=provider,
            key=_key(exchange, model, sketch),
            asked=Asked(model=model, messages=progress.messages),
            sketch=sketch,
            thread=progress.thread,
        )

    def _read_new(
        self, progress: _Progress, turns: FirstTurns, form: RequestForm, head: RequestHead, provider: Api
    ) -> None:
        if progress.growing is None or progress.read >= turns.count:
            return
        pieces = b",".join(map(self._bodies.turn, turns.since(progress.read)))
        body = b'{"%s":[%s]}' % (form.turns_at.encode(), pieces)
        asked = provider.reader.asked(HttpRequest(head=head, body=body))
        messages = asked.messages
        if asked.system and not progress.messages:
            progress.system += asked.system
            progress.settings = None
        elif asked.system:
            messages = (Message(Role.SYSTEM, asked.system), *messages)
        progress.read = turns.count
        # Gemini's reader joins an answer to the answer right before it, which is read already.
        starts_with_answer = messages[:1] != () and messages[0].role is Role.ASSISTANT
        joins = provider.joins_turns and progress.growing.speaks and starts_with_answer
        if asked.tools or joins:
            progress.growing = None
            return
        progress.growing.hear(messages)
        progress.messages = (*progress.messages, *messages)[-2:]

    def _settings(self, progress: _Progress, form: RequestForm, head: RequestHead, provider: Api) -> _Settings | None:
        """The settings of a request; ``None`` where they bring turns of their own, or are too many to be read."""
        settings = progress.settings
        if settings is None or settings.form is not form:
            opening, closing = self._bodies.frame(form)
            self._settings_bytes += len(opening) + len(closing)
            if self._settings_bytes > self._limits.settings_bytes:
                return None
            asked = provider.reader.asked(HttpRequest(head=head, body=opening + closing))
            asked = replace(asked, system=asked.system + progress.system)
            settings = progress.settings = _Settings(form, asked, sketch_of(asked, provider))
        return None if settings.asked.messages else settings


def _unread(call: ModelCall, exchange: TraceExchange) -> CallSummary:
    asked = Asked(model=call.model or None)
    return CallSummary(provider=identify(exchange.head), key=_key(exchange, call.model, None), asked=asked)


def _key(exchange: TraceExchange, model: str | None, sketch: Sketch | None) -> MatchKey:
    """Calls that ask the same have one key, as far as a trace can tell."""
    parts = [exchange.head.target, model or "", exchange.request.name if sketch is None else str(sketch)]
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass"))
    return MatchKey(f"{_KEY_RULE}:{digest.hexdigest()[:32]}")


# ── the steps ────────────────────────────────────────────────────────────────────────────────────────────────


def _steps(lines: TraceRun, events: list[TraceEvent], bodies: TraceBodies, limits: TraceLimits) -> Iterator[Step]:
    before = {line.number: earlier.ts for earlier, line in pairwise(lines.lines)}
    calls = CallReader(bodies, limits)
    for index, event in enumerate(events, 1):
        exchange = exchange_of(event, bodies, limits)
        ts, ms = _span(event, before)
        if isinstance(event, ModelCall):
            # The answer alone tells what it means: no provider needs the long request for it.
            summary, body = calls.call(index, event, exchange), b""
        else:
            body = exchange.request.data()
            understood = understand(HttpRequest(head=exchange.head, body=body))
            asked = understood.provider.reader.asked(understood.request)
            summary = CallSummary(provider=understood.provider, key=understood.key, asked=asked)
        response = None
        if (answer := exchange.answer) is not None:
            answered = summary.provider.reader.answered(
                HttpRequest(head=exchange.head, body=body),
                HttpResponse(head=exchange.answer_head, body=answer.data(), chunks=()),
            )
            if isinstance(event, ModelCall):
                calls.answer(index, answered)
            reading = short(summary.asked, answered)
            if exchange.shown is None:
                reading = replace(reading, said=said_of(answered))
            else:
                reading = replace(reading, text=exchange.shown, error=exchange.error)
            response = StepResponse(
                ending=Ending.COMPLETE,
                head=exchange.answer_head,
                body=answer.name,
                body_size=answer.size,
                chunks=(Chunk(round(ms * 1000), answer.size),) if answer.size else (),
                ms=ms,
                reading=reading,
            )
        yield Step(request=_request(index, exchange, ts, summary), response=response)


def _request(index: int, exchange: TraceExchange, ts: float, summary: CallSummary) -> StepRequest:
    model = summary.asked.model
    return StepRequest(
        index=index,
        ts=ts,
        kind=exchange.kind,
        provider=summary.provider.name,
        match_key=summary.key,
        head=exchange.head,
        body=exchange.request.name,
        body_size=exchange.request.size,
        model=model[:200] if model else None,
        thread=summary.thread,
        sketch=None if summary.sketch is None else str(summary.sketch),
        note=exchange.note,
    )


def _span(event: TraceEvent, before: dict[int, float]) -> tuple[float, float]:
    """When it began, and how long it took. A line is written when the thing is done: where it does not say how long it
    took, that is the time since the line before, at most."""
    match event:
        case ModelCall(line=line):
            ms = duration_in(line.fields)
            if ms is None:
                ms = _milliseconds(before.get(line.number, line.ts), line.ts)
            return max(line.ts - ms / 1000, 0.0) if line.ts else 0.0, ms
        case TracedTool(called=called, returned=returned):
            ms = duration_in(returned.fields) if returned is not None else None
            if ms is None and called is not None and returned is not None:
                ms = _milliseconds(called.ts, returned.ts)
            return event.line.ts, ms or 0.0
        case _:
            return event.line.ts, 0.0


def _milliseconds(since: float, until: float) -> float:
    """Never more than passed: what follows must not seem to have begun before this ended."""
    return max(0.0, floor((until - since) * 1_000_000) / 1000) if since and until else 0.0
