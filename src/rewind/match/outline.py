"""A coarse key: requests that are the same but for names have the same one, so that few need to be compared.

It is made of the shape of a request and of the short words in it. Left out is whatever could be a token, or part of
one: all that holds a digit or a sign, all that is long, the names of months and days, and the names of the two runs.
"""

from collections.abc import Iterable
from typing import Any

from rewind.match.call import Call, host_class
from rewind.wire.growing_json import read_each

_LONG = 12
_TIME_WORDS = frozenset(
    [
        "jan",
        "feb",
        "mar",
        "apr",
        "may",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
        "january",
        "february",
        "march",
        "april",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "mon",
        "tue",
        "tues",
        "wed",
        "thu",
        "thurs",
        "fri",
        "sat",
        "sun",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "am",
        "pm",
        "at",
        "z",
        "utc",
        "gmt",
        "cet",
        "cest",
        "est",
        "edt",
        "pst",
        "pdt",
        "cst",
        "mst",
        "bst",
        "ist",
        "ms",
        "us",
        "ns",
        "s",
        "sec",
        "secs",
        "second",
        "seconds",
        "m",
        "min",
        "minute",
        "minutes",
        "millisecond",
        "milliseconds",
        "microseconds",
    ]
)


class Outlines:
    """Makes the keys of one replay."""

    def __init__(self, names: Iterable[str]) -> None:
        """``names`` that the runs have for themselves: words that may differ."""
        self._names = frozenset(names)

    def of(self, call: Call) -> int:
        head = call.request.head
        words = tuple(filter(self._stays, head.path.split("/")))
        return hash((head.method, host_class(head.host), words, self._of(call.canonical)))

    def _of(self, value: Any) -> int:
        if isinstance(value, str):
            return hash(tuple(filter(self._stays, value.split())))
        if isinstance(value, dict):
            return hash(tuple((key, self._of(value[key])) for key in sorted(value)))
        if isinstance(value, list):
            return hash(tuple(read_each(self._of, value)))
        return hash(value) if isinstance(value, bool) or value is None else 0

    def _stays(self, word: str) -> bool:
        return len(word) < _LONG and word.isalpha() and word.lower() not in _TIME_WORDS and word not in self._names
