"""The steps of a recorded run, the tools it called and what it costs, as a test asserts on them."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

from rewind.conversation.meaning import answer_reading
from rewind.conversation.outline import Outline, OutlineStep, outline_of
from rewind.conversation.tools import ToolCall
from rewind.dataclass import dataclass
from rewind.model.http import Headers
from rewind.model.message import ToolResult, ToolUse
from rewind.model.step import Reading, Step, StepKind
from rewind.pricing.prices import Prices
from rewind.pricing.spending import Spending, cost_of, known_sum, may_have_cost, spending
from rewind.reading.body_text import read_body
from rewind.reading.cassettes import RecordedRun
from rewind.reading.prices import prices_for
from rewind.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request as the agent sent it just now; keys are redacted."""

    method: str
    url: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    json: Any
    """``None`` where the body is not JSON."""
    model: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStep:
    """One step of the run."""

    index: int
    kind: str
    """``llm_call``, ``http_call``, ``tool_call``, …"""
    provider: str
    model: str | None
    status: int | None
    """Of the answer; ``None`` where none came."""
    sent: Sent
    request: Any
    """The request's body: JSON, text, or bytes."""
    response: Any
    """The answer's body: JSON, text (of a stream: its events as they came), or bytes; ``None`` where none came."""
    text: str
    """What the model said."""
    error: str | None
    tokens: int | None
    cost: float | None
    """US dollars, also of an answer that the tape gave; ``None`` where no price is known."""
    replayed: bool
    """Whether the tape answered."""
    live: bool
    """Whether the world was asked; what was refused is neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunToolCall:
    """A tool that the model asked for, or that ran under ``@rewind.tool``."""

    name: str
    arguments: Any
    result: str | None
    """What the tool gave back, as text; ``None`` where nothing was given back."""
    failed: bool
    step: int
    """The step whose answer asks for it, or in which it ran."""


class ProjectPrices:
    """The prices that a project's settings name, loaded when something is to be priced."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def prices(self) -> Prices:
        return prices_for(self._settings)


class RunSteps:
    """A run as it stands."""

    def __init__(self, run: RecordedRun, project: ProjectPrices) -> None:
        self._run = run
        self._project = project

    @cached_property
    def _outline(self) -> Outline:
        return outline_of(self._run.recording, self._run.bodies)

    @cached_property
    def steps(self) -> list[RunStep]:
        return [self._step(understood) for understood in self._outline.steps]

    def _step(self, understood: OutlineStep) -> RunStep:
        step, head = understood.step, understood.step.request.head
        asked, answered = self._run.bodies(step)
        response = step.response
        usage = understood.reading.usage
        counts = [count for count in (usage.input, usage.output) if count is not None]
        request = _document(asked, head.headers)
        return RunStep(
            index=step.index,
            kind=understood.kind.value,
            provider=step.request.provider,
            model=understood.reading.model or understood.asked.model,
            status=response.head.status if response is not None and response.head is not None else None,
            sent=Sent(
                method=head.method,
                url=head.url,
                headers={name.lower(): value for name, value in head.headers},
                body=asked,
                json=None if isinstance(request, str | bytes) else request,
                model=understood.asked.model,
            ),
            request=request,
            response=None if response is None or response.head is None else _document(answered, response.head.headers),
            text="" if understood.answered is None else understood.answered.text,
            error=understood.reading.error,
            tokens=sum(counts) if counts else None,
            cost=_cost_as_if_live(self._project.prices, step, understood.reading)
            if understood.kind is StepKind.LLM_CALL
            else None,
            replayed=response is not None and bool(response.tape),
            live=response is None or response.tape is None,
        )

    @property
    def spent(self) -> Spending:
        """For all calls to models, those that the tape answered included: what the run costs live."""
        calls = [step for step in self.steps if step.kind == StepKind.LLM_CALL]
        unpriced = sum(step.cost is None and _may_cost(step) for step in calls)
        return Spending(usd=known_sum(sum(step.cost or 0.0 for step in calls), unpriced), unpriced=unpriced)

    @cached_property
    def tool_calls(self) -> list[RunToolCall]:
        asked_for = [((call.asked_in, call.number), _tool_call(call)) for call in self._outline.tools]
        merged = {call.recorded_as for call in self._outline.tools}
        alone = [
            ((understood.step.index, 0), own)
            for understood in self._outline.steps
            if understood.step.index not in merged and (own := _own_tool_call(understood)) is not None
        ]
        return [call for _, call in sorted((*asked_for, *alone), key=lambda pair: pair[0])]


def cost_of_steps(run: RecordedRun, steps: Iterable[Step], project: ProjectPrices) -> Spending:
    """Of these steps of the run, once for each time they are named; an answer from a tape as if it were live."""
    calls = [step for step in steps if step.request.kind is StepKind.LLM_CALL and step.response is not None]
    if not calls:
        return Spending()
    readings = _readings(run, calls)
    pairs = ((step, readings[step.index]) for step in calls)
    return spending((step, reading, _cost_as_if_live(project.prices, step, reading)) for step, reading in pairs)


def _readings(run: RecordedRun, calls: list[Step]) -> dict[int, Reading]:
    """As they were read when they were recorded; where that tells no tokens, by today's codecs: from the answers alone
    if these say enough."""
    kept = {step.index: step.response.reading for step in calls if step.response is not None}
    for step in calls:
        if not kept[step.index].usage.is_told:
            kept[step.index] = answer_reading(step, run.answer(step))
    if all(reading.usage.is_told and reading.model for reading in kept.values()):
        return kept
    named = tuple(step for step in run.recording.steps if step.index in kept)
    outline = outline_of(replace(run.recording, steps=named), run.bodies)
    return {understood.step.index: understood.reading for understood in outline.steps}


def _cost_as_if_live(prices: Prices, step: Step, reading: Reading) -> float | None:
    """What the call costs when the world answers it: a tape's answers cost nothing now, and did when recorded."""
    if step.response is None:
        return None
    return cost_of(prices, replace(step, response=replace(step.response, tape=None)), reading)


def _may_cost(step: RunStep) -> bool:
    return step.tokens is not None or may_have_cost("complete", step.status)


def _tool_call(call: ToolCall) -> RunToolCall:
    return RunToolCall(
        name=call.use.name,
        arguments=call.use.arguments,
        result=None if call.result is None else call.result.text,
        failed=call.result is not None and call.result.failed,
        step=call.asked_in,
    )


def _own_tool_call(understood: OutlineStep) -> RunToolCall | None:
    """A step in which the agent recorded a tool's run that no model had asked for."""
    if understood.kind is not StepKind.TOOL_CALL:
        return None
    use = next((part for message in understood.asked.messages for part in message.parts), None)
    given = understood.answered.parts if understood.answered is not None else ()
    result = next((part for part in given if isinstance(part, ToolResult)), None)
    if not isinstance(use, ToolUse):
        return None
    return RunToolCall(
        name=use.name,
        arguments=use.arguments,
        result=None if result is None else result.text,
        failed=result is not None and result.failed,
        step=understood.step.index,
    )


def _document(data: bytes, headers: Headers) -> Any:
    """JSON, text, or bytes; whichever it is."""
    if not data:
        return ""
    read = read_body(data, headers)
    if read.binary is not None:
        return read.binary
    return read.json if read.is_json else read.text
