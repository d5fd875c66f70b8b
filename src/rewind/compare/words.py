"""Two texts, word by word: what stayed, what went, what came.

White space does not count, as it does not count for whether two texts differ; nor do ids and times, as long as they are
not all that differs. Few letters that happen to be equal between two changes are told as changed, since a sentence that
was rewritten is read more easily whole.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from rewind.compare.noise import FORMS
from rewind.match.difference import common_beginning

_VOLATILE = "|".join(form.pattern.pattern for form in FORMS if not form.may_be_fact)
_WORDS = r"\w+\s*|[^\w\s]\s*|\s+"
_WORD = re.compile(_WORDS)
_TOKEN = re.compile(rf"(?P<volatile>{_VOLATILE})\s*|{_WORDS}")
_MOST = 2_000
"""Words, on either side, that are compared one by one; longer texts are compared line by line first."""
_MOST_LINES = 20_000
_ISLAND = 4
"""Letters of equal text between two changes that are not worth telling apart."""


class WordFate(StrEnum):
    """What became of some words."""

    KEPT = "kept"
    GONE = "gone"
    COME = "come"


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words that share a fate."""

    fate: WordFate
    text: str


def word_pieces(before: str, after: str, *, volatile: bool = False) -> tuple[Piece, ...]:
    """Both texts in one: without what came it is the first, without what went the second.

    With ``volatile``, ids and times count too.
    """
    read = _all_words if volatile else _stable_words
    start, end = _equal_lines(before, after)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    found = [
        _Stretch(before[:start], after[:start], kept=True),
        *_compared(read(old), read(new), read),
        _Stretch(before[len(before) - end :], after[len(after) - end :], kept=True),
    ]
    stretches = [*_joined(_with_islands_taken_in(_joined(found)))]
    if not volatile and all(one.kept for one in stretches):
        return word_pieces(before, after, volatile=True)
    return tuple(_pieces(stretches))


# ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Word:
    """As it is compared, and as it is written: with the white space behind it."""

    key: str
    text: str


_Words = Sequence[_Word]
_Read = Callable[[str], _Words]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Some words of the first text, and what stands there in the second."""

    old: str
    new: str
    kept: bool = False


def _all_words(text: str) -> _Words:
    return [_Word(word.strip(), word) for word in _WORD.findall(text)]


def _stable_words(text: str) -> _Words:
    return [
        _Word("\0" if found["volatile"] else found[0].strip(), found[0]) for found in _TOKEN.finditer(text)
    ]


def _equal_lines(before: str, after: str) -> tuple[int, int]:
    """Characters of whole lines that both texts begin and end with: most of a long text need not be read."""
    start = before.rfind("\n", 0, common_beginning(before, after)) + 1
    end = common_beginning(before[start:][::-1], after[start:][::-1])
    line = before.find("\n", len(before) - end)
    return start, len(before) - line if line >= 0 and end else 0


def _compared(old: _Words, new: _Words, read: _Read) -> Iterator[_Stretch]:
    """The common beginning and end, and what is between them."""
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at].key != new[at].key), shorter)
    rest = shorter - start
    end = next((at for at in range(rest) if old[-1 - at].key != new[-1 - at].key), rest)
    yield _stretch(old[:start], new[:start], kept=True)
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    if max(len(left), len(right)) <= _MOST:
        yield from _matched(left, right, _replaced)
    else:
        yield from _by_line(left, right, read)
    yield _stretch(old[len(old) - end :], new[len(new) - end :], kept=True)


def _by_line(old: _Words, new: _Words, read: _Read) -> Iterator[_Stretch]:
    left, right = _lines(old), _lines(new)
    if max(len(left), len(right)) > _MOST_LINES:
        yield from _replaced(old, new)
        return

    def words_of(gone: _Words, come: _Words) -> Iterable[_Stretch]:
        words = [read("".join(line.text for line in lines)) for lines in (gone, come)]
        few = max(map(len, words)) <= _MOST
        return _matched(words[0], words[1], _replaced) if few else _replaced(gone, come)

    yield from _matched(left, right, words_of, rare=True)


def _matched(
    old: _Words,
    new: _Words,
    between: Callable[[_Words, _Words], Iterable[_Stretch]],
    *,
    rare: bool = False,
) -> Iterator[_Stretch]:
    """What both have, in order; with ``rare``, what occurs often is no reason to match."""
    keys = [word.key for word in old], [word.key for word in new]
    for tag, i, j, m, n in SequenceMatcher(None, *keys, autojunk=rare).get_opcodes():
        if tag == "equal":
            yield _stretch(old[i:j], new[m:n], kept=True)
        else:
            yield from between(old[i:j], new[m:n])


def _lines(words: _Words) -> _Words:
    lines = "".join(word.text for word in words).splitlines(keepends=True)
    return [_Word(" ".join(line.split()), line) for line in lines]


def _replaced(gone: _Words, come: _Words) -> Iterable[_Stretch]:
    return (_stretch(gone, come),)


def _stretch(old: _Words, new: _Words, *, kept: bool = False) -> _Stretch:
    return _Stretch("".join(word.text for word in old), "".join(word.text for word in new), kept)


# ── so that it can be read ───────────────────────────────────────────────────────────────────────────────────


def _with_islands_taken_in(stretches: Iterable[_Stretch]) -> Iterator[_Stretch]:
    """Little that stayed between two changes is told as changed with them."""
    told = list(stretches)
    for at, one in enumerate(told):
        between = 0 < at < len(told) - 1
        small = len(one.new.strip()) <= _ISLAND and "\n" not in one.new
        yield _Stretch(one.old, one.new) if one.kept and between and small else one


def _joined(stretches: Iterable[_Stretch]) -> Iterator[_Stretch]:
    """What is kept and what is changed by turns."""
    last: _Stretch | None = None
    for one in stretches:
        if not one.old and not one.new:
            continue
        if last is None or last.kept != one.kept:
            if last is not None:
                yield last
            last = one
        else:
            last = _Stretch(last.old + one.old, last.new + one.new, one.kept)
    if last is not None:
        yield last


def _pieces(stretches: Iterable[_Stretch]) -> Iterator[Piece]:
    """White space behind a change stands outside of it."""
    for one in stretches:
        if one.kept:
            # Where one text ends here and the other goes on, only one has the space between.
            yield Piece(WordFate.KEPT, max(one.new, one.old, key=_space_behind))
            continue
        gone, come = one.old.rstrip(), one.new.rstrip()
        yield from (
            Piece(fate, text) for fate, text in ((WordFate.GONE, gone), (WordFate.COME, come)) if text
        )
        if space := (one.new or one.old)[len(come if one.new else gone) :]:
            yield Piece(WordFate.KEPT, space)


def _space_behind(text: str) -> int:
    return len(text) - len(text.rstrip())
