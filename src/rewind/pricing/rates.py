"""From counts to dollars, by the rules of genai-prices.

A unit with its own price is taken out of the units that contain it: tokens read from a cache are no longer paid as
input, tokens of sound no longer as tokens of any kind. What remains of each is multiplied by its price. Counts that
contradict each other (more cached than read) have no price. Sums are whole numbers until the last division, so
they are exact.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, NamedTuple

from rewind.model.usage import Usage
from rewind.pricing.snapshot import Model, Unit

_GRAIN = 10**12
"""Prices are whole numbers of this fraction of a dollar."""
_DAY = 86_400

Counts = Mapping[str, int]
Pairs = tuple[tuple[str, str], ...]
Price = float | list[Any]
"""A number; or with tiers: the base, then ``[above how many input tokens, number]`` in rising order."""


def counts_of(usage: Usage) -> dict[str, int]:
    """What was counted, by the names of the units."""
    counts = dict(usage.more)
    if usage.input is not None:
        counts["input_tokens"] = usage.input
    if usage.output is not None:
        counts["output_tokens"] = usage.output
    if usage.cache_read is not None:
        counts["cache_read_tokens"] = usage.cache_read
    if usage.cache_write is not None:
        counts["cache_write_tokens"] = usage.cache_write
    if usage.reasoning is not None:
        counts["output_reasoning_tokens"] = usage.reasoning
    # Cohere bills fewer tokens than the model reads.
    for name in ("input_tokens", "output_tokens"):
        if (billed := counts.pop(f"billed_{name}", None)) is not None:
            counts[name] = billed
    return counts


class UnitTable:
    """The units, and how they lie inside each other."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self.by_price = {unit.price: unit for unit in units}
        self._inner: dict[str, frozenset[str]] = {}
        self._crossing: dict[str, Pairs] = {}

    def inner(self, unit: Unit) -> frozenset[str]:
        """The names of all units inside this one."""
        if (names := self._inner.get(unit.name)) is None:
            names = frozenset(each.name for each in self.by_price.values() if unit.dimensions < each.dimensions)
            self._inner[unit.name] = names
        return names

    def crossing(self, unit: Unit) -> Pairs:
        """Pairs of units, neither inside the other, whose common part this one is."""
        if (pairs := self._crossing.get(unit.name)) is None:
            around = [each for each in self.by_price.values() if each.dimensions < unit.dimensions]
            pairs = tuple(
                (one.name, other.name)
                for number, one in enumerate(around)
                for other in around[number + 1 :]
                if one.dimensions | other.dimensions == unit.dimensions
                and not one.dimensions <= other.dimensions
                and not other.dimensions <= one.dimensions
            )
            self._crossing[unit.name] = pairs
        return pairs


class _Row(NamedTuple):
    """One price, ready to be multiplied. A tuple, because a million calls are priced at once."""

    name: str
    price: int
    """In grains, times the common measure over what the unit's price is for."""
    inside: tuple[int, ...]
    """Rows, all earlier ones, whose counts are part of this one's."""
    inner: frozenset[str]
    crossing: Pairs
    suspects: frozenset[str]
    """Counts that may say that this one cannot be nothing: all names in the two before."""


class Rates:
    """What each unit costs at one moment, for one way of being served."""

    __slots__ = ("_bands", "_flat", "_measure", "_starts")

    def __init__(self, prices: Mapping[str, Price], table: UnitTable) -> None:
        priced = [(table.by_price[key], price) for key, price in prices.items() if key in table.by_price]
        # The innermost first, so that what they take is known when their turn comes.
        priced.sort(key=lambda pair: (-len(pair[0].dimensions), pair[0].name))
        common = math.lcm(*(unit.per for unit, _ in priced))
        self._measure = common * _GRAIN
        # Each call is one request, whatever was counted.
        flat = [pair for pair in priced if pair[0].name == "requests"]
        self._flat = sum(_grains(price, 0) * (common // unit.per) for unit, price in flat)
        units = [unit for unit, _ in priced if unit.name != "requests"]
        inside = [tuple(at for at, other in enumerate(units) if unit.dimensions < other.dimensions) for unit in units]
        tiers = {start for _, price in priced if isinstance(price, list) for start, _ in price[1:]}
        self._starts = sorted(tiers)
        self._bands = [
            tuple(
                _Row(
                    unit.name,
                    _grains(prices[unit.price], read) * (common // unit.per),
                    taken,
                    inner := table.inner(unit),
                    crossing := table.crossing(unit),
                    inner.union(*crossing),
                )
                for unit, taken in zip(units, inside, strict=True)
            )
            for read in (0, *(start + 1 for start in self._starts))
        ]
        """The rows below the first tier, above it, above the second …: a tier holds for every token of the call."""

    def cost(self, counts: Counts) -> float | None:
        """US dollars; ``None`` where the counts contradict each other, or none of them has a price."""
        total = self._flat
        left: list[int] = []
        rows = self._bands[bisect_left(self._starts, counts.get("input_tokens", 0))]
        for name, price, inside, inner, crossing, suspects in rows:
            count = counts.get(name)
            if count is None:
                if not suspects.isdisjoint(counts) and _cannot_be_nothing(inner, crossing, counts):
                    return None
                left.append(0)
                continue
            for at in inside:
                count -= left[at]
            if count < 0:
                return None
            left.append(count)
            total += count * price
        if not total and not self._says_nothing_is_due(counts):
            return None
        try:
            return total / self._measure
        except OverflowError:  # a count that no provider ever told
            return None

    def _says_nothing_is_due(self, counts: Counts) -> bool:
        """Whether nothing is a price here, and not the lack of one: speech is not free because it has no tokens."""
        counted = {name for name, count in counts.items() if count}
        rows = self._bands[0]
        reached = any(row.name in counted or not row.inner.isdisjoint(counted) for row in rows)
        return reached or not counted or not rows


def _cannot_be_nothing(inner: frozenset[str], crossing: Pairs, counts: Counts) -> bool:
    """Whether a count that is missing contains, or is the common part of, some that are not."""
    return any(counts.get(name) for name in inner) or any(
        counts.get(one) and counts.get(other) for one, other in crossing
    )


def _grains(price: Price, read: int) -> int:
    """The price for a call that read so many tokens."""
    if isinstance(price, list):
        base, *tiers = price
        return _grains(next((number for start, number in reversed(tiers) if read > start), base), read)
    return round(price * _GRAIN)


class Tariff:
    """A model's prices through time, for one way of being served."""

    def __init__(self, model: Model, context: Mapping[str, str], table: UnitTable) -> None:
        prices = model.prices
        self._standard: list[Mapping[str, Any]] = prices if isinstance(prices, list) else [{"prices": prices}]
        self._variants = [
            variant
            for variant in model.variants
            if context and all(context.get(key) == value for key, value in variant["when"].items())
        ]
        self._table = table
        every = [*self._standard, *self._variants]
        self._days = sorted({_second(entry["from"]) for entry in every if "from" in entry})
        self._times = sorted({_clock(end) for entry in every for end in entry.get("daily", ())})
        self._rates: dict[tuple[int, int], Rates] = {}

    @property
    def turns(self) -> bool:
        """Whether it matters when a call was made."""
        return bool(self._days or self._times)

    def at(self, ts: float) -> Rates:
        """The rates at that moment. Between two turns of calendar and clock they stay the same."""
        stretch = bisect_right(self._days, ts), bisect_right(self._times, ts % _DAY)
        if (rates := self._rates.get(stretch)) is None:
            rates = self._rates[stretch] = Rates(self._prices_at(ts), self._table)
        return rates

    def _prices_at(self, ts: float) -> dict[str, Price]:
        holding = [entry for entry in self._standard if _holds(entry, ts)] or self._standard[:1]
        prices: dict[str, Price] = dict(holding[-1]["prices"]) if holding else {}
        # The first variant that names a price decides, so it is written last.
        for variant in reversed(self._variants):
            if _holds(variant, ts):
                prices.update(variant["prices"])
        return prices


def _holds(entry: Mapping[str, Any], ts: float) -> bool:
    if "from" in entry:
        return ts >= _second(entry["from"])
    if "daily" in entry:
        start, end = map(_clock, entry["daily"])
        now = ts % _DAY
        return start <= now < end if start <= end else now >= start or now < end
    return True


def _second(day: str) -> int:
    """When that day begins, in UTC."""
    return (date.fromisoformat(day).toordinal() - date(1970, 1, 1).toordinal()) * _DAY


def _clock(time: str) -> int:
    hours, minutes, seconds = map(int, time.split(":"))
    return hours * 3600 + minutes * 60 + seconds
