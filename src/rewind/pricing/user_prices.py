"""Prices that the user names: ``"my-model" = { input = 0.5, output = 1.5 }``, in US dollars per million tokens."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PRICE_KEYS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "reasoning": "output_reasoning_mtok",
}
"""As the user writes it → as price lists call it. What is not named costs what contains it: cached input is input."""
_CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class OwnPrice:
    """What the user says of a model, or of all whose names fit a pattern."""

    name: str
    prices: Mapping[str, float]
    """Empty where only the context window is named."""
    context: int | None


def own_price(name: str, entry: Any) -> OwnPrice:
    """One entry, read. Raises ValueError with what is wrong with it."""
    if not name.strip():
        raise ValueError("needs the name of a model")
    if not isinstance(entry, Mapping) or not entry:
        raise ValueError(f"must be a table such as {{ input = 0.5, output = 1.5 }}, not {entry!r}")
    for key, value in entry.items():
        if isinstance(value, Mapping):
            raise ValueError(f'has a table inside; a name with a dot needs quotes: "{name}.{key}"')
        if key not in PRICE_KEYS and key != _CONTEXT:
            raise ValueError(f"knows no {key!r}; what can be named: {', '.join((*PRICE_KEYS, _CONTEXT))}")
        if key == _CONTEXT:
            if type(value) is not int or value <= 0:
                raise ValueError(f"{key!r} must be a number of tokens, not {value!r}")
        elif type(value) not in (int, float) or not 0 <= value < math.inf:
            raise ValueError(f"{key!r} must be US dollars per million tokens, not {value!r}")
    prices = {PRICE_KEYS[key]: value for key, value in entry.items() if key != _CONTEXT}
    if missing := [key for key in ("input", "output") if prices and key not in entry]:
        raise ValueError(f"needs {missing[0]!r} as well; 0 where nothing is charged")
    return OwnPrice(name, prices, entry.get(_CONTEXT))


class OwnPrices:
    """The user's prices. A full name goes before patterns, and among these the first."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self.entries = {name: own_price(name, entry) for name, entry in entries.items()}
        self._exact = {name.lower(): entry for name, entry in self.entries.items()}
        self._patterns = [
            (re.compile(".*".join(map(re.escape, name.lower().split("*"))), re.DOTALL), entry)
            for name, entry in self.entries.items()
            if "*" in name
        ]

    def of(self, model: str) -> OwnPrice | None:
        name = model.lower()
        if (entry := self._exact.get(name)) is not None:
            return entry
        return next((entry for pattern, entry in self._patterns if pattern.fullmatch(name)), None)
