"""``rewind_run``: what the agent did in this test, to assert on. Read anew whenever it is asked for."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NoReturn

from rewind.conversation.outline import Outline, OutlineStep, outline_of
from rewind.conversation.tools import ToolCall
from rewind.errors import RewindError
from rewind.model.http import Headers
from rewind.model.message import ToolResult, ToolUse
from rewind.model.step import Reading, Step, StepKind
from rewind.pricing.prices import Prices
from rewind.pricing.spending import Pricing, Spending, cost_of, known_sum, may_have_cost, spending
from rewind.reading.cassettes import RecordedRun
from rewind.reading.prices import prices_for
from rewind.settings import Settings, read_settings
from rewind.views.body import read_body


class UnknownCost:
    """In place of a sum that nobody knows. Comparing it says so, rather than pass or fail by accident."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        """How many calls have no price."""

    def _refuse(self, other: object = None) -> NoReturn:
        calls = f"{self.calls} calls have" if self.calls != 1 else "1 call has"
        raise RewindError(
            f"The cost of this run is not known: {calls} no price.",
            hint="Name the model's price in pyproject.toml: [tool.rewind.prices]",
        )

    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = _refuse

    def __bool__(self) -> bool:
        self._refuse()

    def __repr__(self) -> str:
        return "—"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request as the agent sent it just now; keys are redacted."""

    method: str
    url: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    json: Any
    """``None`` where the body is no JSON."""
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


class RewindRun:
    """The run of one test, at any moment of it."""

    def __init__(
        self,
        look: Callable[[], RecordedRun],
        misses: Callable[[], Sequence[str]],
        pricing: Callable[[], Pricing],
        *,
        cassette: str,
    ) -> None:
        self._look = look
        self._misses = misses
        self._pricing = pricing
        self.cassette = cassette

    def __repr__(self) -> str:
        return f"<rewind run of {self.cassette}: {self.replayed} replayed, {self.live} live>"

    @property
    def _now(self) -> "_RunSoFar":
        return _RunSoFar(self._look(), self._pricing)

    @property
    def steps(self) -> list[RunStep]:
        return self._now.steps

    @property
    def llm_calls(self) -> list[RunStep]:
        """The calls to models."""
        return [step for step in self.steps if step.kind == StepKind.LLM_CALL]

    @property
    def sent(self) -> list[Sent]:
        """The requests as they were sent in this run, not those on the cassette."""
        return [step.sent for step in self.steps]

    @property
    def tool_calls(self) -> list[RunToolCall]:
        """In the order in which they were asked for."""
        return self._now.tool_calls

    @property
    def tools(self) -> list[str]:
        """The names of the tools, in the order in which they were asked for."""
        return [call.name for call in self.tool_calls]

    @property
    def cost(self) -> "float | UnknownCost":
        """US dollars for all calls to models, those that the tape answered included: what the run costs live."""
        calls = self.llm_calls
        unpriced = sum(step.cost is None and _may_cost(step) for step in calls)
        usd = known_sum(sum(step.cost or 0.0 for step in calls), unpriced)
        return UnknownCost(unpriced) if unpriced or usd is None else usd

    @property
    def tokens(self) -> int | None:
        """Read and written by models; ``None`` where nobody told."""
        counts = [step.tokens for step in self.steps if step.tokens is not None]
        return sum(counts) if counts else None

    @property
    def final_text(self) -> str:
        """What the model said last."""
        return next((step.text for step in reversed(self.llm_calls) if step.text), "")

    answer = final_text

    @property
    def replayed(self) -> int:
        """How many calls the tape answered."""
        return sum(step.replayed for step in self.steps)

    @property
    def live(self) -> int:
        """How many calls went to the world; what was refused did not."""
        return sum(step.live for step in self.steps)

    @property
    def misses(self) -> list[str]:
        """Why calls were not answered."""
        return list(self._misses())


def _may_cost(step: RunStep) -> bool:
    return step.tokens is not None or may_have_cost("complete", step.status)


class _RunSoFar:
    """The run as it stands."""

    def __init__(self, run: RecordedRun, pricing: Callable[[], Pricing]) -> None:
        self._run = run
        self._pricing = pricing

    @cached_property
    def _outline(self) -> Outline:
        return outline_of(self._run.recording, self._run.bodies)

    @cached_property
    def steps(self) -> list[RunStep]:
        return [self._step(one) for one in self._outline.steps]

    def _step(self, one: OutlineStep) -> RunStep:
        step, head = one.step, one.step.request.head
        asked, answered = self._run.bodies(step)
        response = step.response
        usage = one.reading.usage
        counts = [count for count in (usage.input, usage.output) if count is not None]
        request = _document(asked, head.headers)
        return RunStep(
            index=step.index,
            kind=one.kind.value,
            provider=step.request.provider,
            model=one.reading.model or one.asked.model,
            status=response.head.status if response is not None and response.head is not None else None,
            sent=Sent(
                method=head.method,
                url=head.url,
                headers={name.lower(): value for name, value in head.headers},
                body=asked,
                json=None if isinstance(request, str | bytes) else request,
                model=one.asked.model,
            ),
            request=request,
            response=None
            if response is None or response.head is None
            else _document(answered, response.head.headers),
            text="" if one.answered is None else one.answered.text,
            error=one.reading.error,
            tokens=sum(counts) if counts else None,
            cost=_cost_as_if_live(self._pricing(), step, one.reading)
            if one.kind is StepKind.LLM_CALL
            else None,
            replayed=response is not None and bool(response.tape),
            live=response is None or response.tape is None,
        )

    @cached_property
    def tool_calls(self) -> list[RunToolCall]:
        asked_for = [((call.asked_in, call.number), _tool_call(call)) for call in self._outline.tools]
        merged = {call.recorded_as for call in self._outline.tools}
        alone = [
            ((one.step.index, 0), own)
            for one in self._outline.steps
            if one.step.index not in merged and (own := _own_tool_call(one)) is not None
        ]
        return [call for _, call in sorted((*asked_for, *alone), key=lambda pair: pair[0])]


# ── what it costs ────────────────────────────────────────────────────────────────────────────────────────────


@cache
def settings_at(folder: Path) -> Settings:
    """The project's settings, read once in a run of pytest. Raises UsageError."""
    return read_settings(cwd=folder)


@cache
def prices_at(folder: Path) -> Prices:
    settings = settings_at(folder)
    return prices_for(settings)


def cost_of_steps(run: RecordedRun, steps: Iterable[Step], folder: Path) -> Spending:
    """Of these steps of the run, once for each time they are named; an answer from a tape as if it were live."""
    calls = [step for step in steps if step.request.kind is StepKind.LLM_CALL and step.response is not None]
    if not calls:
        return Spending()
    readings = _readings(run, calls)
    prices = prices_at(folder)
    pairs = ((step, readings[step.index]) for step in calls)
    return spending((step, reading, _cost_as_if_live(prices, step, reading)) for step, reading in pairs)


def _readings(run: RecordedRun, calls: list[Step]) -> dict[int, Reading]:
    """As they were read when they were recorded; where that tells no tokens, by today's codecs."""
    kept = {step.index: step.response.reading for step in calls if step.response is not None}
    if all(reading.usage.is_told for reading in kept.values()):
        return kept
    named = tuple(step for step in run.recording.steps if step.index in kept)
    outline = outline_of(replace(run.recording, steps=named), run.bodies)
    return {understood.step.index: understood.reading for understood in outline.steps}


def _cost_as_if_live(pricing: Pricing, step: Step, reading: Reading) -> float | None:
    """What the call costs when the world answers it: a tape's answers cost nothing now, and did when recorded."""
    if step.response is None:
        return None
    return cost_of(pricing, replace(step, response=replace(step.response, tape=None)), reading)


def _tool_call(call: ToolCall) -> RunToolCall:
    return RunToolCall(
        name=call.use.name,
        arguments=call.use.arguments,
        result=None if call.result is None else call.result.text,
        failed=call.result is not None and call.result.failed,
        step=call.asked_in,
    )


def _own_tool_call(one: OutlineStep) -> RunToolCall | None:
    """A step in which the agent recorded a tool's run that no model had asked for."""
    if one.kind is not StepKind.TOOL_CALL:
        return None
    use = next((part for message in one.asked.messages for part in message.parts), None)
    given = one.answered.parts if one.answered is not None else ()
    result = next((part for part in given if isinstance(part, ToolResult)), None)
    if not isinstance(use, ToolUse):
        return None
    return RunToolCall(
        name=use.name,
        arguments=use.arguments,
        result=None if result is None else result.text,
        failed=result is not None and result.failed,
        step=one.step.index,
    )


def _document(data: bytes, headers: Headers) -> Any:
    """JSON, text, or bytes; whichever it is."""
    if not data:
        return ""
    read = read_body(data, headers)
    if read.binary is not None:
        return read.binary
    return read.json if read.is_json else read.text
