"""What steps cost, for the catalog: rows of it go to the prices, and the answers come back as lines it can read."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from rewind.model.usage import Usage
from rewind.pricing.spending import LEFT_OPEN, Pricing
from rewind.store.derived import Row
from rewind.store.journal.records import whole

COSTS = {"nr": "INTEGER", "step": "BIGINT", "cost": "DOUBLE"}
"""The columns of the lines."""
PRICEABLE = """
    SELECT coalesce(host, '') AS host, coalesce(target, '/') AS target, coalesce(provider, '') AS provider,
        asked, model, coalesce(tier, '') AS tier,
        list(nr), list(step), list(coalesce(ts, 0.0)),
        list(tokens_in), list(tokens_out), list(cache_read), list(cache_write), list(reasoning), list("usage")
    FROM steps
    WHERE type = 'llm_call' AND NOT replayed
        AND (tokens_in IS NOT NULL OR tokens_out IS NOT NULL OR "usage" IS NOT NULL)
        AND {chosen}
    GROUP BY ALL
"""
"""The steps that may have cost something, those together that have the same price list."""
UNPRICED = f"""
    type = 'llm_call' AND cost IS NULL
    AND (tokens_in IS NOT NULL OR tokens_out IS NOT NULL OR status < 400
        OR ending IS NULL OR (status IS NULL AND ending IN {LEFT_OPEN}))
"""
"""What a sum of costs leaves out, by the rule of :func:`rewind.pricing.spending.may_have_cost`."""


class _Refilled:
    """A usage that is filled anew for each call: to make so many values would take as long as to price them."""

    __slots__ = ("cache_read", "cache_write", "input", "more", "output", "reasoning", "tier")


def cost_lines(prices: Pricing, groups: Iterable[Row]) -> Iterator[bytes]:
    """``nr,step,cost`` for each call that has a price: by the model that answered, or else by the one asked for."""
    told: Any = _Refilled()
    usage: Usage = told
    for host, target, provider, asked, model, told.tier, *columns in groups:
        lines = []
        for (
            nr,
            step,
            ts,
            told.input,
            told.output,
            told.cache_read,
            told.cache_write,
            told.reasoning,
            more,
        ) in zip(*columns, strict=True):
            told.more = _counts(more) if more else _NO_MORE
            cost = prices.cost(host=host, target=target, provider=provider, model=model, usage=usage, ts=ts)
            if cost is None and asked is not None:
                cost = prices.cost(
                    host=host, target=target, provider=provider, model=asked, usage=usage, ts=ts
                )
            if cost is not None:
                lines.append(f"{nr},{step},{cost!r}\n")
        yield "".join(lines).encode()


_NO_MORE: dict[str, int] = {}


def _counts(told: str) -> dict[str, int]:
    """The rarer kinds of tokens, from their JSON."""
    try:
        found = json.loads(told)
    except (ValueError, RecursionError):
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {name: count for name, value in pairs if (count := whole(value)) is not None}
