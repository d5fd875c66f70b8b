"""Bars of one line: a value for each day, from the first to the last."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

BARS = "▁▂▃▄▅▆▇█"
NOTHING = " "


def bars(values: Sequence[float]) -> str:
    """One sign for each value. The highest is full, and what is more than nothing can be seen."""
    highest = max(values, default=0)
    return "".join(_bar(value / highest) if value > 0 else NOTHING for value in values)


def _bar(share: float) -> str:
    return BARS[min(int(share * len(BARS)), len(BARS) - 1)]


def spans(first: date, last: date, room: int) -> Iterator[tuple[date, date]]:
    """The days, each by itself; several together where there are more of them than room."""
    days = (last - first).days + 1
    size = -(-days // max(room, 1))
    while first <= last:
        end = min(first + timedelta(days=size - 1), last)
        yield first, end
        first = end + timedelta(days=1)
