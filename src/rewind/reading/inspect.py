"""A session step by step, one step in full, a tool call, or what the model read at a step."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from rewind.conversation.context import ContextChange, ContextEntry, compare_contexts, context_of
from rewind.conversation.outline import Outline, OutlineStep
from rewind.conversation.tools import ToolCall
from rewind.dataclass import dataclass
from rewind.errors import SessionNotFound, UsageError
from rewind.model.message import Asked
from rewind.model.session import Recording, step_in
from rewind.model.step import StepKind
from rewind.pricing.prices import Prices
from rewind.pricing.spending import Spending, cost_of, spending
from rewind.reading.progress import OnProgress, ignored
from rewind.reading.session import answer_to_look_at, open_session, read_body_of, read_outline
from rewind.reading.thread_outline import outline_around
from rewind.store.journal.reader import LONG_ANSWER
from rewind.store.replays import ReplayNote, last_replay


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOverview:
    """A session step by step."""

    recording: Recording
    outline: Outline
    costs: Mapping[int, float | None]
    """Step → what it cost, in US dollars."""
    spent: Spending
    context_window: int | None
    """How much the model can read that read the most."""
    replayed: ReplayNote | None = None
    """The last replay of it that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDetail:
    """One step in full, or one half of it."""

    session: str
    step: OutlineStep
    cost: float | None
    request_body: bytes | None
    """``None`` where only the answer was asked for."""
    response_body: bytes | None
    with_response: bool = True
    """False where only the request was asked for."""
    damage: tuple[str, ...] = ()
    """A half that cannot be read; it is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallDetail:
    """A tool call from the asking to the result."""

    session: str
    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """What the model read at a step, and what changed since another."""

    session: str
    step: int
    asked: Asked
    entries: tuple[ContextEntry, ...]
    since: int | None
    """The step it is compared with; ``None`` where there is no earlier call."""
    changes: tuple[ContextChange, ...] = ()


Inspection = SessionOverview | StepDetail | ToolCallDetail | StepContext


def inspect_session(home: Path, ref: str, prices: Prices, *, on_progress: OnProgress = ignored) -> SessionOverview:
    with open_session(home, ref) as reader:
        recording, damage = reader.recording(), list[str]()
        outline = read_outline(reader, recording, on_progress, damage=damage)
        recording = replace(recording, damage=(*recording.damage, *damage))
    costs = {entry.step.index: cost_of(prices, entry.step, entry.reading) for entry in outline.steps}
    calls = [entry for entry in outline.steps if entry.kind is StepKind.LLM_CALL]
    return SessionOverview(
        recording=recording,
        outline=outline,
        costs=costs,
        spent=spending((entry.step, entry.reading, costs[entry.step.index]) for entry in calls),
        context_window=_context_window(outline, prices),
        replayed=last_replay(home, recording.session.id),
    )


def inspect_step(
    home: Path,
    ref: str,
    index: int,
    prices: Prices,
    *,
    request: bool = True,
    response: bool = True,
    on_progress: OnProgress = ignored,
) -> StepDetail:
    """``request`` and ``response``: which bodies are read. Raises DamagedStore if none of them can be."""
    with open_session(home, ref) as reader:
        recording = _upto(reader.recording(upto=index), index)
        entry = _understood(recording, outline_around(reader, recording, index, on_progress=on_progress), index)
        step = entry.step
        asked, problem = read_body_of(reader.blob, step, "request") if request else (None, None)
        answered, another = answer_to_look_at(reader, step) if response else (None, None)
        damage = tuple(filter(None, (problem, another)))
        if damage and len(damage) == request + response:
            step.bodies(reader.blob)  # nothing is left to be shown: raises, with the reason
        return StepDetail(
            session=recording.session.id,
            step=entry,
            cost=cost_of(prices, step, entry.reading),
            request_body=asked,
            response_body=answered if step.response is not None else None,
            with_response=response and another is None,
            damage=damage,
        )


def inspect_tool_call(
    home: Path, ref: str, index: int, number: int, *, on_progress: OnProgress = ignored
) -> ToolCallDetail:
    """The tool call of that number that the answer of step ``index`` asks for. Raises SessionNotFound."""
    with open_session(home, ref) as reader:
        recording = reader.recording()
        outline = read_outline(reader, recording, on_progress)
    step_in(recording, index)
    calls = outline.tools_of().get(index, [])
    call = next((call for call in calls if call.number == number), None)
    session = recording.session
    if call is None:
        asked = f"it asks for {len(calls)}" if calls else "its answer asks for none"
        raise SessionNotFound(
            f"Step {index} of session {session.id} has no tool call {number}; {asked}.",
            hint=f"rewind inspect {session.ref}:{index}",
        )
    return ToolCallDetail(session=session.id, call=call)


def inspect_context(
    home: Path, ref: str, index: int, *, since: int | None = None, on_progress: OnProgress = ignored
) -> StepContext:
    """Compared with step ``since``; without one, with the call that this one goes on from."""
    with open_session(home, ref) as reader:
        whole = reader.recording(upto=max(index, since or 0))
        recording = _upto(whole, index, since or 0)
        reader.blob(step_in(recording, index).request.body)  # a damaged one is named, not shown as empty
        outline = outline_around(reader, recording, index, since, on_progress=on_progress)
    entry = _understood(recording, outline, index)
    if entry.kind is not StepKind.LLM_CALL:
        raise UsageError(f"Step {index} is not a call to a model, so no model read anything.")
    if since is None and entry.place is not None:
        since = entry.place.parent
    entries = context_of(entry.asked, outline.held(index))
    changes: tuple[ContextChange, ...] = ()
    if since is not None:
        before = _understood(recording, outline, since)
        changes = compare_contexts(context_of(before.asked, outline.held(since)), entries, before.answered)
    return StepContext(
        session=recording.session.id,
        step=index,
        asked=entry.asked,
        entries=tuple(entries),
        since=since,
        changes=changes,
    )


def recorded_body(home: Path, ref: str, index: int, *, request: bool = False) -> Iterator[bytes]:
    """The exact bytes of the answer, or of the request, in blocks; none where no answer is recorded."""
    with open_session(home, ref) as reader:
        step = step_in(reader.recording(upto=0), index)
        if request:
            yield reader.blob(step.request.body)
        elif step.response is not None and step.response.body_size > LONG_ANSWER:
            yield from reader.blocks(step.response.body)
        elif step.response is not None:
            yield reader.blob(step.response.body)


def _upto(recording: Recording, index: int, other: int = 0) -> Recording:
    """Where a step stands depends on what came before it, and on nothing else."""
    step_in(recording, index)
    last = max(index, other)
    return replace(recording, steps=tuple(step for step in recording.steps if step.index <= last))


def _understood(recording: Recording, outline: Outline, index: int) -> OutlineStep:
    step_in(recording, index)
    entry = outline.step(index)
    assert entry is not None, "an outline has every step of its recording"
    return entry


def _context_window(outline: Outline, prices: Prices) -> int | None:
    turns = (entry for entry in outline.steps if entry.place is not None)
    fullest = max(turns, key=lambda entry: entry.reading.usage.input or 0, default=None)
    if fullest is None:
        return None
    request = fullest.step.request
    return prices.context_window(
        host=request.head.host,
        target=request.head.target,
        provider=request.provider,
        model=fullest.reading.model or request.model,
    )
