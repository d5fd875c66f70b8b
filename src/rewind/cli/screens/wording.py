"""Numbers, spans and commands as people write them."""

import shlex
from collections.abc import Sequence

NONE = "-"
"""What stands where there is no value."""


def plural(number: int, one: str, many: str | None = None) -> str:
    """``1 step``, ``1,204 steps``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def number(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


def age(seconds: float) -> str:
    """How long ago, in the largest unit that says enough."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def seconds(value: float) -> str:
    """A span, as exact as it is interesting."""
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def command_line(command: Sequence[str]) -> str:
    """The command as one would type it."""
    return shlex.join(command)
