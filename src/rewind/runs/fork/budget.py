"""What forks may spend: asked before each live call, told after it. Unknown is never nothing."""

from collections.abc import Iterable

from rewind.errors import UsageError
from rewind.model.clock import Clock, SystemClock
from rewind.model.http import HttpRequest
from rewind.model.step import Step, StepKind
from rewind.model.usage import Usage
from rewind.pricing.spending import Pricing, cost_of
from rewind.providers.catalogue import identify

_SOME = Usage(input=1000, output=1000)
_READ_ONLY = Usage(input=1000)
"""Of an embedding, which writes nothing."""


class Budget:
    """A sum of money for one fork or several.

    A call is let go as long as something is left, and its cost is known when it has ended: the last one, and those
    under way beside it, may go beyond the limit.
    """

    def __init__(self, limit: float, pricing: Pricing, clock: Clock | None = None) -> None:
        self.limit = limit
        self.spent = 0.0
        self._pricing = pricing
        self._clock = clock or SystemClock()
        self._unknown: str | None = None

    @property
    def left(self) -> float:
        return self.limit - self.spent

    def check(self, request: HttpRequest) -> None:
        """Raises UsageError where this request must not go out."""
        provider = identify(request.head)
        if provider.kind is not StepKind.LLM_CALL:
            return
        if self._unknown is not None:
            raise UsageError(f"{self._unknown}, so the limit of ${self.limit:g} cannot be enforced")
        if self.left <= 0:
            raise UsageError(f"the limit of ${self.limit:g} is reached: ${self.spent:.2g} is spent")
        asked = provider.reader.asked(request)
        head = request.head
        if not self.knows(head.host, head.target, provider.name, asked.model, embeds=asked.embeds):
            model = asked.model or "the model"
            raise UsageError(f"the price of {model} is not known, so the limit of ${self.limit:g} cannot be enforced")

    def knows(self, host: str, target: str, provider: str, model: str | None, *, embeds: bool = False) -> bool:
        """Whether a call to that model has a price."""
        usage = _READ_ONLY if embeds else _SOME
        cost = self._pricing.cost(
            host=host, target=target, provider=provider, model=model, usage=usage, ts=self._clock.now()
        )
        return cost is not None

    def pay(self, step: Step) -> None:
        """A live step has ended."""
        response = step.response
        if step.request.kind is not StepKind.LLM_CALL or response is None:
            return
        cost = cost_of(self._pricing, step)
        if cost is not None:
            self.spent += cost
        elif response.head is not None and response.head.status < 400:
            self._unknown = f"the cost of step {step.index} is not known"

    def unknown_model(self, calls: Iterable[tuple[Step, str | None]]) -> str | None:
        """The first model among those that will be asked that has no price, and where."""
        for step, model in calls:
            request = step.request
            head = request.head
            ways = (False, True)
            if not any(self.knows(head.host, head.target, request.provider, model, embeds=way) for way in ways):
                return f"{model or 'the model'} at {head.host}"
        return None

    def check_models(self, calls: Iterable[tuple[Step, str | None]]) -> None:
        """Raises UsageError where a model that will be asked has no price."""
        if unknown := self.unknown_model(calls):
            raise UsageError(
                f"The price of {unknown} is not known, so --max-cost cannot be enforced. Nothing was run.",
                hint="Give its price in [tool.rewind.prices] (docs/prices.md), or leave --max-cost out.",
            )
