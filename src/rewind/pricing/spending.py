"""What the steps of a run cost."""

from collections.abc import Callable, Iterable
from typing import Protocol

from rewind.dataclass import dataclass
from rewind.model.step import Ending, Reading, Step
from rewind.model.usage import Usage


class Pricing(Protocol):
    """Who knows prices: :class:`rewind.pricing.prices.Prices`."""

    def cost(
        self, *, host: str, target: str, provider: str, model: str | None, usage: Usage, ts: float
    ) -> float | None: ...


class PricesOnDemand:
    """Prices that are read when the first call is priced."""

    def __init__(self, read: Callable[[], Pricing]) -> None:
        self._read = read
        self._prices: Pricing | None = None

    def cost(
        self, *, host: str, target: str, provider: str, model: str | None, usage: Usage, ts: float
    ) -> float | None:
        if self._prices is None:
            self._prices = self._read()
        return self._prices.cost(host=host, target=target, provider=provider, model=model, usage=usage, ts=ts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A sum that says what it leaves out."""

    usd: float | None = None
    """``None`` when no call could be priced: unknown is not nothing."""
    unpriced: int = 0
    """Calls to a model whose price is not known."""


def cost_of(pricing: Pricing, step: Step, reading: Reading | None = None) -> float | None:
    """US dollars; ``None`` where the price or the tokens are not known. An answer from a tape cost nothing.

    ``reading`` is what today's codec reads, where that was worked out.
    """
    request, response = step.request, step.response
    if response is None:
        return None
    if response.tape is not None:
        return 0.0
    reading = reading or response.reading
    return cost_of_call(
        pricing,
        (reading.model, request.model),
        host=request.head.host,
        target=request.head.target,
        provider=request.provider,
        usage=reading.usage,
        ts=request.ts,
    )


def cost_of_call(
    pricing: Pricing, models: Iterable[str | None], *, host: str, target: str, provider: str, usage: Usage, ts: float
) -> float | None:
    """By the first of the models that has a price: the one that answered, then the one that was asked for."""
    for model in dict.fromkeys(models):
        cost = pricing.cost(host=host, target=target, provider=provider, model=model, usage=usage, ts=ts)
        if cost is not None:
            return cost
    return None


LEFT_OPEN = (Ending.CLIENT_CLOSED.value, Ending.INTERRUPTED.value)
"""Endings of a call that its provider may have gone on with."""


def may_have_cost(ending: str | None, status: int | None) -> bool:
    """Whether a call without token counts may have cost something: it was answered, or nobody waited for the answer.

    One that was turned away, or that never reached a provider, costs nothing that we know of.
    """
    return ending is None or (ending in LEFT_OPEN if status is None else status < 400)


def known_sum(usd: float | None, unpriced: int) -> float | None:
    """Nothing from a tape and something unknown are together unknown."""
    return None if unpriced and not usd else usd


def spending(calls: Iterable[tuple[Step, Reading, float | None]]) -> Spending:
    """The sum over calls to models."""
    known = unpriced = 0
    usd = 0.0
    for step, reading, cost in calls:
        response = step.response
        head = response.head if response is not None else None
        ending = response.ending.value if response is not None else None
        if cost is not None:
            usd += cost
            known += 1
        elif reading.usage.is_told or may_have_cost(ending, head.status if head is not None else None):
            unpriced += 1
    return Spending(usd=known_sum(usd if known else None, unpriced), unpriced=unpriced)
