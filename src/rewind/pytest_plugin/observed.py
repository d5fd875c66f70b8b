"""``rewind_run``: what the agent did in this test, to assert on. Read again at every access."""

from collections.abc import Callable, Sequence
from typing import NoReturn

from rewind.errors import RewindError
from rewind.model.step import StepKind
from rewind.reading.run_steps import RunStep, RunSteps, RunToolCall, Sent


class UnknownCost:
    """Stands for a sum that is not known. Comparing it raises, so that no assertion passes or fails by accident."""

    def __init__(self, calls: int) -> None:
        self.calls = calls
        """How many calls have no price."""

    def _refuse(self, other: object = None) -> NoReturn:
        calls = f"{self.calls} calls have" if self.calls != 1 else "1 call has"
        raise RewindError(
            f"The cost of this run is not known: {calls} no price.",
            hint="Set the model's price in pyproject.toml: [tool.rewind.prices]",
        )

    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = _refuse

    def __bool__(self) -> bool:
        self._refuse()

    def __repr__(self) -> str:
        return "—"


class RewindRun:
    """The run of one test, at any moment of it."""

    def __init__(self, read: Callable[[], RunSteps], misses: Callable[[], Sequence[str]], *, cassette: str) -> None:
        self._read = read
        self._misses = misses
        self.cassette = cassette

    def __repr__(self) -> str:
        return f"<rewind run of {self.cassette}: {self.replayed} replayed, {self.live} live>"

    @property
    def steps(self) -> list[RunStep]:
        return self._read().steps

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
        return self._read().tool_calls

    @property
    def tools(self) -> list[str]:
        """The names of the tools, in the order in which they were asked for."""
        return [call.name for call in self.tool_calls]

    @property
    def cost(self) -> "float | UnknownCost":
        """US dollars for all calls to models, those that the tape answered included: what the run costs live."""
        spent = self._read().spent
        return UnknownCost(spent.unpriced) if spent.unpriced or spent.usd is None else spent.usd

    @property
    def tokens(self) -> int | None:
        """Read and written by models; ``None`` where no answer says so."""
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
