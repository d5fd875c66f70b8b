"""Does an answer come out like the good run's or like the bad one's?

Decided by the first of these in which the two differ: whether there was an answer at all, the tools that it asks for
with their arguments, the tools by name, the words as they are, and at last which of the two it shares more words with.
"""

import re
from collections.abc import Callable, Hashable
from enum import StrEnum

from rewind.compare.delta import call_text
from rewind.compare.noise import folded
from rewind.model.message import Answered

_CLEARLY = 0.1
"""By how much more of its words an answer must be like the one than like the other."""
_WORD = re.compile(r"\w+")


class Outcome(StrEnum):
    """Whom an answer takes after."""

    GOOD = "good"
    BAD = "bad"
    UNCLEAR = "unclear"


def outcome_of(answer: Answered | None, good: Answered | None, bad: Answered | None) -> Outcome:
    """Whom this answer takes after."""
    for feature in _FEATURES:
        like_good, like_bad, here = feature(good), feature(bad), feature(answer)
        if like_good != like_bad and here in (like_good, like_bad):
            return Outcome.GOOD if here == like_good else Outcome.BAD
    nearer = _likeness(answer, good) - _likeness(answer, bad)
    if abs(nearer) < _CLEARLY:
        return Outcome.UNCLEAR
    return Outcome.GOOD if nearer > 0 else Outcome.BAD


def _answers(answer: Answered | None) -> Hashable:
    return answer is not None and answer.error is None


def _calls(answer: Answered | None) -> Hashable:
    return () if answer is None else tuple(sorted(folded(call_text(use)) for use in answer.tool_uses))


def _tools(answer: Answered | None) -> Hashable:
    return () if answer is None else tuple(sorted(use.name for use in answer.tool_uses))


def _words(answer: Answered | None) -> Hashable:
    return "" if answer is None else " ".join(folded(answer.text).split())


_FEATURES: tuple[Callable[[Answered | None], Hashable], ...] = (_answers, _calls, _tools, _words)


def _likeness(one: Answered | None, other: Answered | None) -> float:
    words = [
        frozenset(_WORD.findall(answer.text.lower())) if answer is not None else frozenset()
        for answer in (one, other)
    ]
    either = words[0] | words[1]
    return len(words[0] & words[1]) / len(either) if either else 1.0
