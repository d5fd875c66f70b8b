"""What an API says of its parameters: which there are, and what each of them takes.

Each API has its table in its own package. The tables are for questions before a request is sent, never for recording
or reading: a parameter that they do not have may be a new one.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rewind.dataclass import dataclass

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "a number": (int, float),
    "a whole number": int,
    "true or false": bool,
    "a text": str,
    "a list": list,
    "an object": dict,
}


@dataclass(frozen=True, slots=True)
class Allowed:
    """The values that a parameter takes; no kinds at all where it takes any."""

    kinds: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None

    def __or__(self, other: "Allowed") -> "Allowed":
        return Allowed((*self.kinds, *other.kinds))

    def between(self, least: float, most: float | None = None) -> "Allowed":
        """The same kind of number, in the documented range."""
        return replace(self, least=least, most=most)

    def objection(self, value: Any) -> str | None:
        """What is wrong with a value, as the end of a sentence; ``null`` is always allowed, as "not given"."""
        if value is None or not self.kinds:
            return None
        if not any(_is_of(kind, value) for kind in self.kinds):
            return f"takes {' or '.join(self.kinds)}"
        if isinstance(value, int | float) and not isinstance(value, bool):
            if self.least is not None and self.most is not None and not self.least <= value <= self.most:
                return f"takes {self.kinds[0]} from {self.least:g} to {self.most:g}"
            if self.least is not None and value < self.least:
                return f"takes {self.kinds[0]} of at least {self.least:g}"
        return None


def _is_of(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "true or false"
    if kind == "a whole number" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


NUMBER = Allowed(("a number",))
INTEGER = Allowed(("a whole number",))
FLAG = Allowed(("true or false",))
TEXT = Allowed(("a text",))
LIST = Allowed(("a list",))
OBJECT = Allowed(("an object",))
ANYTHING = Allowed()

ParameterTable = Mapping[str, Allowed]
"""By the path in the body, with dots. An object whose own fields are listed has no others."""


def named(names: str, allowed: Allowed) -> ParameterTable:
    """Rows of a table that are alike."""
    return dict.fromkeys(names.split(), allowed)
