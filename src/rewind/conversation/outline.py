"""A step read from its bodies by today's codecs, and a whole run: every step with its place, and the tools between."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush

from rewind.conversation.retries import retries
from rewind.conversation.threads import ThreadPlace, Threads
from rewind.conversation.tools import ToolCall, ToolRun, ToolTurn, tool_calls, with_recorded_runs
from rewind.dataclass import dataclass
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Answered, Asked, Message, Role, ToolResult, ToolUse
from rewind.model.session import Recording
from rewind.model.step import Reading, Step, StepKind
from rewind.providers.api import Api
from rewind.providers.catalogue import FALLBACK, identify, named
from rewind.providers.summary import short
from rewind.providers.telemetry import telemetry_of

Bodies = Callable[[Step], tuple[bytes, bytes]]
"""The recorded bytes of a step: of its request, and of its answer (none where there is none)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStep:
    """Both halves of a step."""

    provider: Api
    kind: StepKind
    """By today's codecs: a session recorded last year is read as well as they can."""
    asked: Asked
    answered: Answered | None
    """``None`` when no answer came."""


def read_step(step: Step, bodies: Bodies) -> ReadStep:
    """The step, read."""
    provider, kind = reader_of(step)
    request_body, response_body = bodies(step)
    request = HttpRequest(head=step.request.head, body=request_body)
    return ReadStep(
        provider=provider,
        kind=kind,
        asked=provider.reader.asked(request),
        answered=answered_at(step, request_body, response_body),
    )


def reader_of(step: Step) -> tuple[Api, StepKind]:
    """Who reads the step today, and what kind of step that makes it; nobody new leaves the recorded kind."""
    provider = identify(step.request.head)
    return provider, step.request.kind if provider is FALLBACK else provider.kind


def answered_at(step: Step, request_body: bytes, response_body: bytes) -> Answered | None:
    """What was answered. What a model says is read without its question: ``request_body`` may then be empty."""
    if step.response is None or step.response.head is None:
        return None
    head = step.response.head
    request = HttpRequest(head=step.request.head, body=request_body)
    response = HttpResponse(head=head, body=response_body, chunks=(), trailers=step.response.trailers)
    return identify(step.request.head).reader.answered(request, response)


def held_messages(asked: Asked, earlier: Iterable[tuple[Asked, Answered | None]]) -> tuple[Message, ...]:
    """What a model read though the agent did not send it: the history that the provider keeps.

    ``earlier`` are the calls before this one, the latest first; they are read only as far as needed.
    """
    messages: list[Message] = []
    calls = iter(earlier)
    while (asked.continues or asked.history) and (before := next(calls, None)) is not None:
        asked, answered = before
        said = (Message(Role.ASSISTANT, answered.parts),) if answered is not None else ()
        messages[:0] = (*asked.messages, *said)
    return tuple(messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineStep:
    """A step, read."""

    step: Step
    kind: StepKind
    """By today's codecs: a session recorded last year is read as well as they can."""
    asked: Asked
    answered: Answered | None
    """``None`` when no answer came."""
    place: ThreadPlace | None
    """``None`` for what is not part of a conversation: other calls, and embeddings."""
    retry_of: int | None
    reading: Reading
    """The short form, by today's codecs; what they cannot read is as it was read when it was recorded."""

    @property
    def telemetry(self) -> str | None:
        """What kind of telemetry it is; ``None`` for a step of the run itself."""
        return telemetry_of(self.step.request)

    @property
    def label(self) -> str:
        """What lists of steps call it: ``llm``, ``mcp``, ``http``, ``tool``, ``note`` …"""
        if self.telemetry is not None:
            return "upload"
        api = named(self.step.request.provider)
        return (api.label if api else "") or self.kind.value.removesuffix("_call")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What a run was about."""

    steps: tuple[OutlineStep, ...]
    tools: tuple[ToolCall, ...]

    @property
    def run_steps(self) -> tuple[OutlineStep, ...]:
        """The steps less telemetry."""
        return tuple(one for one in self.steps if one.telemetry is None)

    @property
    def uploads(self) -> Mapping[str, int]:
        """Kind of telemetry → how often it was uploaded, the most frequent first."""
        return dict(Counter(one.telemetry for one in self.steps if one.telemetry is not None).most_common())

    @property
    def threads(self) -> int:
        return len({one.place.thread for one in self.steps if one.place is not None})

    def step(self, index: int) -> OutlineStep | None:
        return next((one for one in self.steps if one.step.index == index), None)

    def held(self, index: int) -> tuple[Message, ...]:
        """What the model read at a step though the agent did not send it: the history that the provider keeps."""
        one = self.step(index)
        return () if one is None else held_messages(one.asked, self._before(one))

    def _before(self, one: "OutlineStep") -> Iterator[tuple[Asked, Answered | None]]:
        """The steps of its conversation that it goes on from, the latest first."""
        while one.place and one.place.parent and (before := self.step(one.place.parent)) is not None:
            yield before.asked, before.answered
            one = before

    def tools_of(self) -> Mapping[int, list[ToolCall]]:
        """Step → the tool calls that its answer asks for."""
        found: dict[int, list[ToolCall]] = {}
        for call in self.tools:
            found.setdefault(call.asked_in, []).append(call)
        return found


def _reading(step: Step, provider: Api, asked: Asked, answered: Answered | None) -> Reading:
    recorded = step.response.reading if step.response is not None else Reading()
    if answered is None or provider is FALLBACK:
        return recorded
    now = short(asked, answered)
    return Reading(
        model=now.model or recorded.model,
        text=now.text or recorded.text,
        usage=now.usage if now.usage.is_told else recorded.usage,
        error=now.error or recorded.error,
        note=now.note,
    )


def outline_of(
    recording: Recording, bodies: Bodies, on_progress: Callable[[int], object] = lambda _done: None
) -> Outline:
    """The run, understood. ``on_progress`` is called with the number of steps read."""
    again = retries(recording.steps)
    threads = CallsInTime()
    steps: list[OutlineStep] = []
    for done, step in enumerate(recording.steps, 1):
        talk = read_step(step, bodies)
        asked, answered = talk.asked, talk.answered
        converses = talk.kind is StepKind.LLM_CALL and not asked.embeds
        steps.append(
            OutlineStep(
                step=step,
                kind=talk.kind,
                asked=asked,
                answered=answered,
                place=threads.place(step, asked, answered) if converses else None,
                retry_of=again.get(step.index),
                reading=_reading(step, talk.provider, asked, answered),
            )
        )
        on_progress(done)
    turns = [_turn(one) for one in steps if one.place is not None]
    runs = [run for one in steps if (run := _tool_run(one)) is not None]
    return Outline(steps=tuple(steps), tools=with_recorded_runs(tool_calls(turns), runs))


class CallsInTime:
    """Passes calls and answers to the threads in order of time: a call made before an answer came cannot follow it."""

    def __init__(self) -> None:
        self._threads = Threads()
        self._coming: list[tuple[float, int, Answered]] = []

    def place(self, step: Step, asked: Asked, answered: Answered | None) -> ThreadPlace:
        request = step.request
        while self._coming and self._coming[0][0] <= request.ts:
            _, index, answer = heappop(self._coming)
            self._threads.answer(index, answer)
        if answered is not None and step.response is not None:
            heappush(self._coming, (step.ended, step.index, answered))
        return self._threads.call(step.index, request.match_key, asked)


def _tool_run(one: OutlineStep) -> ToolRun | None:
    """A step in which the agent recorded a tool's run itself."""
    if one.kind is not StepKind.TOOL_CALL:
        return None
    use = next((part for message in one.asked.messages for part in message.parts), None)
    given = one.answered.parts if one.answered is not None else ()
    result = next((part for part in given if isinstance(part, ToolResult)), None)
    response = one.step.response
    if not isinstance(use, ToolUse):
        return None
    return ToolRun(index=one.step.index, ms=None if response is None else response.ms, use=use, result=result)


def _turn(one: OutlineStep) -> ToolTurn:
    assert one.place is not None, "only conversations have turns"
    return ToolTurn(
        index=one.step.index,
        place=one.place,
        began=one.step.request.ts,
        # An import may not say how long an answer took: then its tools' time is not known, either.
        ended=None if one.step.response is None or not one.step.response.ms else one.step.ended,
        asked=one.asked,
        answered=one.answered,
    )
