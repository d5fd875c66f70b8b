"""Coarse keys: requests that are the same but for names have the same one, so that few need to be compared.

The key is made of the shape of a request, of its short texts without a name, and of the short words and numbers in the
others. Left out is whatever could be a token, or part of one: all that holds a digit or a sign, all that is long, words
of times, and the names of the two runs.
"""

import re
from collections.abc import Iterable
from typing import Any

from rewind.match.call import Call, host_class
from rewind.match.result_order import in_no_order
from rewind.match.text_memory import TextMemory
from rewind.match.token_search import legible
from rewind.match.tokens import KINDS

_LONG = 12
_SHORT = 5
"""Capitals up to here may be a time zone."""
_MOST_WORDS = 100_000
# fmt: off
_TIME_WORDS = frozenset((
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec",
    "january", "february", "march", "april", "june", "july", "august", "september", "october", "november", "december",
    "mon", "tue", "tues", "wed", "thu", "thurs", "fri", "sat", "sun",
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "am", "pm", "a", "p", "at", "z",
    "h", "m", "min", "minute", "minutes", "s", "sec", "secs", "second", "seconds",
    "ms", "msec", "msecs", "millisecond", "milliseconds", "us", "µs", "μs", "microsecond", "microseconds", "ns",
))
# fmt: on
_LABELS = frozenset(("took", "duration", "elapsed", "latency", "runtime", "time", "pid", "pgid", "count", "id"))
_NUMBER = re.compile(r"(?<!\S)([^\W\d_]{1,12})\s(\d{1,9})(?=[.,;:?!]?(?:\s([^\W\d_]{1,12})(?!\S)|$))")
_PATTERNS = tuple(pattern for kind in KINDS for pattern in kind.patterns)
_BRIEF = 256
"""Characters of a text that is looked through for names: without one it is the same in both requests."""
_IN_BRACKETS = re.compile(r"\([^()\n]*+\)")
"""A time zone's name may stand so behind a time."""


class Outlines:
    """Makes the keys of one replay."""

    def __init__(self, names: Iterable[str], ignored: Iterable[re.Pattern[str]] = ()) -> None:
        """``names`` that the runs have for themselves may differ, and what the ``ignored`` patterns match."""
        names = tuple(names)
        self._words = frozenset(name for name in names if name.isalpha())
        self._phrases = tuple(sorted((name for name in names if not name.isalpha() and " " in name), key=len))[::-1]
        self._names = tuple(filter(None, names))
        self._ignored = tuple(ignored)
        self._known: TextMemory[int] = TextMemory()
        self._stays: dict[str, bool] = {}
        """Of words that came."""

    def of(self, call: Call) -> int:
        head = call.request.head
        words = self._kept(head.path.split("/"))
        return hash((head.method, host_class(head.host), words, self._of(call.canonical)))

    def _of(self, value: Any) -> int:
        if isinstance(value, str):
            known = self._known.get(value)
            return self._of_text(value) if known is None else known
        if isinstance(value, dict):
            return hash(tuple([(key, self._of(value[key])) for key in sorted(value)]))
        if isinstance(value, list):
            return hash(tuple(in_no_order(value, [self._of(child) for child in value])))
        return hash(value) if isinstance(value, bool) or value is None else 0

    def _of_text(self, value: str) -> int:
        is_plain = len(value) <= _BRIEF and not self._may_hold_names(legible(value))
        found = hash(value if is_plain else self._coarse(value))
        self._known.put(found, value)
        return found

    def _may_hold_names(self, text: str) -> bool:
        if any(name in text for name in self._names):
            return True
        return any(pattern.search(text) for pattern in (*self._ignored, *_PATTERNS))

    def _coarse(self, text: str) -> tuple[str, ...]:
        for pattern in self._ignored:
            text = pattern.sub(" ", text)
        for phrase in self._phrases:
            text = text.replace(phrase, " ")
        if "(" in text:
            text = _IN_BRACKETS.sub(" ", text)
        return (*self._kept(text.split()), *self._numbers(text))

    def _numbers(self, text: str) -> list[str]:
        """Those that stand between plain words, of which none says that it is a time, or the number of a process."""
        return [
            found[2]
            for found in _NUMBER.finditer(text)
            if found[1].lower() not in _LABELS
            and self._is_plain(found[1])
            and (not found[3] or self._is_plain(found[3]))
        ]

    def _kept(self, words: list[str]) -> tuple[str, ...]:
        """The words that are the same in both runs, if the texts are."""
        if len(self._stays) > _MOST_WORDS:
            self._stays.clear()
        for word in set(words) - self._stays.keys():
            self._stays[word] = self._is_plain(word)
        return tuple([word for word in words if self._stays[word]])

    def _is_plain(self, word: str) -> bool:
        return (
            len(word) < _LONG
            and word.isalpha()
            and not (len(word) <= _SHORT and word.isupper())
            and word.lower() not in _TIME_WORDS
            and not word.startswith("tmp")
            and word not in self._words
        )
