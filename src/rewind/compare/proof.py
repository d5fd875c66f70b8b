"""What proving a cause needs: the smallest part of a changed text that matters, and how an answer comes out.

The smallest part is found with as few questions as possible, by delta debugging (Zeller) on the places where two texts
differ, sentence by sentence and then word by word. A probe puts some of them back to the good text and asks how the run
comes out. It is known that all of them together turn the outcome. Halving finds a single culprit among forty in six
probes: if putting the one half back does not turn it, the other half must, and only the last inference is checked.
Where that check fails, several places are needed at once, and the full algorithm takes over with what was learned.

How an answer comes out is decided by what it decides (:mod:`rewind.compare.decision`): it is like the run from which
it differs less. Where it decides something else than both, the tools that it asks for may still tell; where the two
runs themselves differ in words alone, so do the words. Else it is like neither, and that is said.
"""

import re
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from functools import cached_property
from itertools import pairwise, zip_longest

from rewind.compare.decision import Decision, Weight, compare_decisions, decision_of
from rewind.compare.outcome_test import OutcomeTest, facts_of_answer, holds_any
from rewind.dataclass import dataclass
from rewind.model.message import Answered

_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?]+(?=\s|$)|[.!?]+|\n|$)\s*")
_WORD = re.compile(r"\s*\S+")


@dataclass(frozen=True, slots=True)
class Hunk:
    """One place where two texts differ."""

    good: str
    bad: str
    """Either may be empty."""


@dataclass(frozen=True, slots=True)
class Patchwork:
    """A text in pieces: strings that both have, and hunks that differ."""

    pieces: tuple[str | Hunk, ...]

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        return tuple(piece for piece in self.pieces if isinstance(piece, Hunk))

    def text(self, put_back: frozenset[int]) -> str:
        """The bad text with these hunks as they are in the good one."""
        shown, number = [], 0
        for piece in self.pieces:
            if isinstance(piece, Hunk):
                shown.append(piece.good if number in put_back else piece.bad)
                number += 1
            else:
                shown.append(piece)
        return "".join(shown)


def by_sentence(good: str, bad: str) -> Patchwork:
    """The places where two texts differ, each a sentence or a line."""
    return Patchwork(tuple(_pieces(_sentences(good), _sentences(bad), _each)))


def by_word(good: str, bad: str) -> Patchwork:
    """The places where two texts differ, each a run of words: half a phrase makes no sense."""
    return Patchwork(tuple(_pieces(_words(good), _words(bad), _whole)))


def finer(coarse: Patchwork, left: frozenset[int]) -> Patchwork:
    """The hunks that are left, word by word; all the others as they are in the bad text."""
    pieces: list[str | Hunk] = []
    number = 0
    for piece in coarse.pieces:
        if isinstance(piece, Hunk):
            pieces += by_word(piece.good, piece.bad).pieces if number in left else [piece.bad]
            number += 1
        else:
            pieces.append(piece)
    return Patchwork(tuple(pieces))


def is_reworded(hunk: Hunk) -> bool:
    """Whether most words stayed: of sentences that have nothing in common no mixture would make sense."""
    good, bad = (frozenset(text.split()) for text in (hunk.good, hunk.bad))
    return 2 * len(good & bad) >= max(len(good), len(bad))


@dataclass(frozen=True, slots=True)
class HunkSelection:
    """A question: does the outcome turn if these hunks are put back?"""

    put_back: frozenset[int]
    known: frozenset[int]
    """The fewest hunks of which that is known or follows, if nobody asks any further."""


Search = Generator[HunkSelection, bool, frozenset[int]]
"""Yields probes, is sent whether the outcome turned, and gives the fewest hunks that turn it."""


def smallest(count: int) -> Search:
    """Of ``count`` hunks that turn the outcome together, the fewest that do."""
    everything = frozenset(range(count))
    left = yield from _halving(everything)
    if left is not None:
        return left
    return (yield from _delta_debugging(everything))


def _halving(everything: frozenset[int]) -> Generator[HunkSelection, bool, frozenset[int] | None]:
    """For one culprit; ``None`` where there are several."""
    left, inferred = everything, False
    while len(left) > 1:
        first, second = _split(sorted(left), 2)
        inferred = not (yield HunkSelection(first, left))
        left = second if inferred else first
    if inferred and not (yield HunkSelection(left, everything)):
        return None
    return left


def _delta_debugging(everything: frozenset[int]) -> Search:
    """The minimum by which no single hunk can be spared."""
    left, parts = everything, 2
    while len(left) > 1:
        pieces = [piece for piece in _split(sorted(left), parts) if piece]
        smaller = None
        for candidate in [*pieces, *(left - piece for piece in pieces)]:
            if candidate != left and candidate and (yield HunkSelection(candidate, left)):
                smaller = candidate
                break
        if smaller is not None:
            parts = 2 if smaller in pieces else max(parts - 1, 2)
            left = smaller
        elif parts >= len(left):
            break
        else:
            parts = min(parts * 2, len(left))
    return left


def _split(numbers: Sequence[int], parts: int) -> list[frozenset[int]]:
    size = len(numbers) / parts
    cuts = [round(size * at) for at in range(parts + 1)]
    return [frozenset(numbers[start:end]) for start, end in pairwise(cuts)]


def _sentences(text: str) -> list[str]:
    return [found for found in _SENTENCE.findall(text) if found]


def _words(text: str) -> list[str]:
    words = _WORD.findall(text)
    rest = text[sum(map(len, words)) :]
    return [*words, rest] if rest else words


def _pieces(
    good: Sequence[str], bad: Sequence[str], hunks: Callable[[Sequence[str], Sequence[str]], Iterator[Hunk]]
) -> Iterator[str | Hunk]:
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, good, bad, autojunk=False).get_opcodes():
        if tag == "equal":
            yield "".join(bad[j1:j2])
        else:
            yield from hunks(good[i1:i2], bad[j1:j2])


def _each(good: Sequence[str], bad: Sequence[str]) -> Iterator[Hunk]:
    """As far as they can be paired: forty changed sentences are forty suspects."""
    return (Hunk(old, new) for old, new in zip_longest(good, bad, fillvalue=""))


def _whole(good: Sequence[str], bad: Sequence[str]) -> Iterator[Hunk]:
    yield Hunk("".join(good), "".join(bad))


# ── how an answer comes out ──────────────────────────────────────────────────────────────────────────────────────


_CLEARLY = 0.1
"""By how much more of its words an answer must be like the one than like the other."""
_ANY_WORD = re.compile(r"\w+")


class AnswerOutcome(StrEnum):
    """Which run an answer comes out like."""

    GOOD = "good"
    BAD = "bad"
    UNCLEAR = "unclear"
    """An answer that is like neither run."""
    FAILED = "failed"
    """No answer, or an error that tells nothing of what the model would have done."""


@dataclass(frozen=True)
class OutcomeJudge:
    """Says which run an answer comes out like, by what it decides; or by tests that say when an answer is bad."""

    good: Answered | None
    bad: Answered | None
    bad_if: tuple[OutcomeTest, ...] = ()

    def outcome(self, answer: Answered | None) -> AnswerOutcome:
        if not _is_answer(answer) and (self.bad_if or (_is_answer(self.good) and _is_answer(self.bad))):
            return AnswerOutcome.FAILED
        if self.bad_if:
            return _OF_TEST[holds_any(self.bad_if, facts_of_answer(answer))]
        here = decision_of(answer)
        like_good, like_bad = (compare_decisions(one, here).weight for one in self._decisions)
        if like_good is not like_bad:
            return AnswerOutcome.GOOD if _ORDER.index(like_good) < _ORDER.index(like_bad) else AnswerOutcome.BAD
        if like_good is Weight.DECISIVE:
            return self._by_tools(here)
        if compare_decisions(*self._decisions).weight is Weight.DECISIVE:
            return AnswerOutcome.UNCLEAR
        nearer = _likeness(answer, self.good) - _likeness(answer, self.bad)
        if abs(nearer) < _CLEARLY:
            return AnswerOutcome.UNCLEAR
        return AnswerOutcome.GOOD if nearer > 0 else AnswerOutcome.BAD

    def _by_tools(self, here: Decision) -> AnswerOutcome:
        """It decides something else than both: that it came at all, or the tools that it asks for, may still tell."""
        good, bad = self._decisions
        if here.failed:
            return AnswerOutcome.FAILED
        for feature in (_came, _tool_names):
            if feature(good) != feature(bad) and feature(here) in (feature(good), feature(bad)):
                return AnswerOutcome.GOOD if feature(here) == feature(good) else AnswerOutcome.BAD
        return AnswerOutcome.UNCLEAR

    @cached_property
    def _decisions(self) -> tuple[Decision, Decision]:
        return decision_of(self.good), decision_of(self.bad)


_ORDER = (Weight.SAME, Weight.PROSE, Weight.DECISIVE)
_OF_TEST = {True: AnswerOutcome.BAD, False: AnswerOutcome.GOOD, None: AnswerOutcome.UNCLEAR}


def _came(decision: Decision) -> Hashable:
    return not decision.failed


def _tool_names(decision: Decision) -> Hashable:
    return tuple(sorted(call.tool for call in decision.calls))


def _is_answer(answer: Answered | None) -> bool:
    return answer is not None and answer.error is None


def _likeness(one: Answered | None, other: Answered | None) -> float:
    words = [
        frozenset(_ANY_WORD.findall(answer.text.lower())) if answer is not None else frozenset()
        for answer in (one, other)
    ]
    either = words[0] | words[1]
    return len(words[0] & words[1]) / len(either) if either else 1.0
