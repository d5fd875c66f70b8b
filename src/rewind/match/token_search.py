"""Where two texts part, and which tokens and facts of the runs stand there in both."""

import re
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from rewind.match.facts import SameFact, stands_alone
from rewind.match.tokens import Evidence, TokenKind, stands_for_something

_AROUND = 160
"""Characters on both sides of a difference in which a token is looked for; none is longer."""
_BLOCK = 512
_ESCAPES = re.compile(r"(?<!\\)\\++[nrt]|(?:\x1b|(?<!\\)\\++(?:u001[bB]|x1[bB]|033))\[[0-9;]{0,32}m")
"""Line breaks and tabs of JSON within a text, and colours of a terminal."""


def common_beginning(then: str, now: str, i: int, j: int) -> int:
    """How many characters are the same from there on."""
    start, limit = i, min(len(then) - i, len(now) - j)
    same = 0
    while same < limit and then[i + same : i + same + _BLOCK] == now[j + same : j + same + _BLOCK]:
        same += _BLOCK
    same = min(same, limit)
    low, high = same, min(same + _BLOCK, limit)
    while low < high:
        middle = (low + high + 1) // 2
        if then[start + same : start + middle] == now[j + same : j + middle]:
            low = middle
        else:
            high = middle - 1
    return low


def legible(text: str) -> str:
    """The text, as long as it was, with line breaks and blanks where its reader sees a line break or a colour: a token
    may begin behind them, and their letters are no part of it."""
    return _ESCAPES.sub(_seen, text) if "\\" in text or "\x1b" in text else text


def _seen(escape: re.Match[str]) -> str:
    return (" " if escape[0].endswith("m") else "\n") * len(escape[0])


def unwrapped(text: str) -> str:
    """An output less the line breaks that were made to fit a screen, and less the frames around its texts.

    A line as long as the longest one was cut there; where another one ends, words may stand apart.
    """
    lines = text.splitlines()
    width = max(map(len, lines), default=0)
    parts = []
    for line in lines:
        is_framed = len(line) == width > 4 and line[0] == line[-1] == "│"
        inner = line[2:-2].rstrip() if is_framed else line.rstrip()
        parts.append(inner if len(inner) == (width - 4 if is_framed else width) else inner + " ")
    return re.sub(r"\s+", " ", "".join(parts))


def same_breaks(then: str, now: str) -> bool:
    """Whether two outputs of the same words but for names break their lines at the same words, except where a line
    was full: no line is lost, and what is set in is set in as it was."""
    old, new = list(_words(then)), list(_words(now))
    i = j = 0
    while i < len(old) and j < len(new):
        if old[i].text != new[j].text:
            steps = next((steps for steps in _STEPS if _meet(old, i + steps[0], new, j + steps[1])), None)
            if steps is None:
                return len(old) - i <= _LONGEST_NAME >= len(new) - j  # a name is the last that is said
            i, j = i + steps[0], j + steps[1]
        if not old[i].stands_like(new[j]):
            return False
        i, j = i + 1, j + 1
    return True


_LONGEST_NAME = 12
"""Words of a name, at most: a folder may have blanks in it."""
_STEPS = sorted(product(range(_LONGEST_NAME), repeat=2), key=sum)


def _meet(old: "list[_Word]", i: int, new: "list[_Word]", j: int) -> bool:
    """Whether the same two words follow there."""
    return [word.text for word in old[i : i + 2]] == [word.text for word in new[j : j + 2]] != []


class _Word(NamedTuple):
    """A word of an output, and how it stands to the one before."""

    text: str
    place: tuple[int, int] | None
    """How many line breaks before it somebody wrote, and how far it is set in then; ``None``: on a line that was full
    before it."""

    def stands_like(self, other: "_Word") -> bool:
        if self.place is None or other.place is None:
            return (self.place or other.place or (0, 0))[0] < 2
        return self.place == other.place


def _words(text: str) -> Iterator[_Word]:
    lines = text.splitlines()
    width = max(map(len, lines), default=0)
    breaks, room, was_framed = 0, width, False
    for line in lines:
        is_framed = len(line) == width > 4 and line[0] == line[-1] == "│"
        inner = line[2:-2].rstrip() if is_framed else line.rstrip()
        words = inner.split()
        if words:
            is_full = breaks == 1 and was_framed == is_framed and room <= len(words[0])
            yield _Word(words[0], None if is_full else (breaks, len(inner) - len(inner.lstrip())))
            yield from (_Word(word, (0, 0)) for word in words[1:])
            breaks, was_framed = 0, is_framed
        breaks += 1
        room = width - 4 * is_framed - len(inner)


def window(text: str, at: int) -> tuple[int, int]:
    """Where a token that reaches over this place is looked for."""
    begin = max(0, at - _AROUND)
    # A window must not begin within a word: what stands there would look like the beginning of a token.
    while begin > 0 and at - begin < 2 * _AROUND and (text[begin - 1].isalnum() or text[begin - 1] in "_-"):
        begin -= 1
    until = min(len(text), at + _AROUND)
    while until < len(text) and until - at < 2 * _AROUND and (text[until].isalnum() or text[until] in "_-"):
        until += 1
    return begin, until


def _around(pattern: re.Pattern[str], text: str, at: int, low: int, within: tuple[int, int]) -> Iterator[re.Match[str]]:
    """The tokens of that pattern that reach over this place, and begin behind what was compared before."""
    for found in pattern.finditer(text, *within):
        start, end = token_span(found)
        if start > at:
            return
        if low <= start and at <= end and start < end:
            yield found


def token_span(found: re.Match[str]) -> tuple[int, int]:
    return found.span("token") if "token" in found.re.groupindex else found.span()


def is_token(kind: TokenKind, found: re.Match[str]) -> bool:
    """Whether what a pattern of the kind matched is drawn, where that must be so, and stands for nothing else."""
    start, end = token_span(found)
    drawn = kind.is_drawn is None or kind.is_drawn(found.string[start:end])
    return drawn and not (kind.evidence is Evidence.BOUND and stands_for_something(found.string, start, end))


class DifferencePlace(NamedTuple):
    """Where two texts part."""

    then: str
    i: int
    low_i: int
    """What stands before was compared already."""
    now: str
    j: int
    low_j: int
    is_field: bool
    """Whether the texts are the whole values of a field."""
    windows: tuple[tuple[int, int], tuple[int, int]]

    def tokens(self, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
        """Tokens on both sides that begin together."""
        for old in _around(pattern, self.then, self.i, self.low_i, self.windows[0]):
            for new in _around(pattern, self.now, self.j, self.low_j, self.windows[1]):
                if self.i - token_span(old)[0] == self.j - token_span(new)[0]:
                    yield old, new

    def is_whole(self, old: re.Match[str], new: re.Match[str]) -> bool:
        """Whether the tokens are the whole values of a field."""
        return self.is_field and token_span(old) == (0, len(self.then)) and token_span(new) == (0, len(self.now))

    def behind(self, fact: "FoundFact") -> tuple[int, int] | None:
        """Where both writings of a fact end, if they stand there."""
        for more in range(fact.least, fact.most):
            start, begin = self.i - more, self.j - more
            if start < self.low_i or begin < self.low_j:
                return None
            if self.then.startswith(fact.then, start) and self.now.startswith(fact.now, begin):
                end, stop = start + len(fact.then), begin + len(fact.now)
                if stands_alone(self.then, start, end, fact.fact) and stands_alone(self.now, begin, stop, fact.fact):
                    return end, stop
        return None


class FoundFact(NamedTuple):
    """A fact of both runs, and how far before a difference its writings begin."""

    fact: SameFact
    kind: TokenKind
    then: str
    now: str
    least: int
    most: int
    """More than one place is possible where one of the writings is the beginning of the other."""

    @classmethod
    def of(cls, fact: SameFact) -> "FoundFact":
        shared = common_beginning(fact.then, fact.now, 0, 0)
        lengths = len(fact.then), len(fact.now)
        more = max(lengths) - shared + 1 if shared == min(lengths) else 1
        return cls(fact, fact.kind, fact.then, fact.now, shared, shared + more)
