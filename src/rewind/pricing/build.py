"""The data of genai-prices as a snapshot of ours. Needs that package; nothing that only reads prices imports this."""

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, assert_never

import genai_prices
from genai_prices import types
from genai_prices.data_units import unit_data

from rewind.pricing.snapshot import FORMAT

_DIGITS = 12
"""Decimals kept of a price: sources that divide give 0.18000000000000002."""

Constraint = types.StartDateConstraint | types.TimeOfDateConstraint | None


def bundled() -> Sequence[types.Provider]:
    """The data inside the installed package."""
    from genai_prices.data import providers  # lazily: this alone takes a second, and fetched data replaces it

    return providers


def snapshot_of(providers: Sequence[types.Provider], *, day: str) -> bytes:
    """The file of :mod:`rewind.pricing.snapshot`. The same data on the same day gives the same bytes.

    Raises ValueError for data that is not as expected.
    """
    if not providers:
        raise ValueError("genai-prices has no providers")
    models = [_model(model) for provider in providers for model in provider.models]
    units = [[name, unit["price_key"], unit["per"], unit["dimensions"]] for name, unit in sorted(unit_data.items())]
    rows = [*units, *map(_seller, providers), *models]
    body = "".join(_line(row) for row in rows).encode("ascii")
    header = {
        "format": FORMAT,
        "source": f"genai-prices {genai_prices.__version__}",
        "date": day,
        "units": len(units),
        "sellers": len(providers),
        "models": len(models),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return _line(header).encode("ascii") + body


def _line(row: Any) -> str:
    return json.dumps(row, separators=(",", ":")) + "\n"


def _seller(provider: types.Provider) -> dict[str, Any]:
    address = _pattern(provider.api_pattern)
    row: dict[str, Any] = {"id": provider.id, "api": address, "models": len(provider.models)}
    if provider.fallback_model_providers:
        row["fallback"] = provider.fallback_model_providers
    return row


def _model(model: types.ModelInfo) -> dict[str, Any]:
    row: dict[str, Any] = {"id": model.id}
    if (clause := _clause(model.match)) != {"equals": model.id.lower()}:
        row["match"] = clause
    if model.context_window is not None:
        row["context"] = model.context_window
    if isinstance(model.prices, types.ModelPrice):
        row["prices"] = _prices(model.prices)
    else:
        if not model.prices:
            raise ValueError(f"genai-prices has an empty list of prices: {model.id}")
        row["prices"] = [_condition(each.constraint) | {"prices": _prices(each.prices)} for each in model.prices]
    variants = [
        {"when": variant.when} | _condition(variant.constraint) | {"prices": prices}
        for variant in model.price_variants or ()
        if (prices := _prices(variant.prices))
    ]
    if variants:
        row["variants"] = variants
    return row


def _clause(clause: Any) -> dict[str, Any]:
    match clause:
        case types.ClauseOr(or_=clauses):
            # One choice is no choice: the same meaning in fewer words.
            return _clause(clauses[0]) if len(clauses) == 1 else {"or": [_clause(each) for each in clauses]}
        case types.ClauseAnd(and_=clauses):
            return {"and": [_clause(each) for each in clauses]}
        case types.ClauseRegex(regex=pattern):
            return {"regex": _pattern(pattern)}
        case types.ClauseEquals(equals=text):
            return {"equals": text.lower()}
        case types.ClauseStartsWith(starts_with=text):
            return {"starts_with": text.lower()}
        case types.ClauseEndsWith(ends_with=text):
            return {"ends_with": text.lower()}
        case types.ClauseContains(contains=text):
            return {"contains": text.lower()}
    raise ValueError(f"genai-prices has a new way to match models: {type(clause).__name__}")


def _pattern(written: str) -> str:
    """The pattern; a bad one is refused when it is written, not when it is read."""
    try:
        re.compile(written)
    except re.error as problem:
        raise ValueError(f"genai-prices has a pattern that is not valid: {written}") from problem
    return written


def _prices(prices: types.ModelPrice) -> dict[str, Any]:
    known = {unit["price_key"] for unit in unit_data.values()}
    return {key: _price(price) for key, price in vars(prices).items() if price is not None and key in known}


def _price(price: Decimal | types.TieredPrices) -> Any:
    if isinstance(price, types.TieredPrices):
        return [_number(price.base), *([tier.start, _number(tier.price)] for tier in price.tiers)]
    return _number(price)


def _number(price: Decimal) -> int | float:
    rounded = round(price, _DIGITS)
    return int(rounded) if rounded == int(rounded) else float(rounded)


def _condition(constraint: Constraint) -> dict[str, Any]:
    match constraint:
        case None:
            return {}
        case types.StartDateConstraint(start_date=day):
            return {"from": day.isoformat()}
        case types.TimeOfDateConstraint(start_time=start, end_time=end):
            return {"daily": [_utc(start), _utc(end)]}
        case _:
            assert_never(constraint)


def _utc(clock: time) -> str:
    if clock.tzinfo is not None:
        clock = datetime.combine(date(1970, 1, 1), clock).astimezone(UTC).time()
    return clock.isoformat("seconds")
