"""How two texts differ: whether only in ids and times (noise), and word by word.

Noise is what differs between any two runs and means nothing. Each :class:`NoiseForm` is one kind of it; all but days
and times are the rows of :mod:`rewind.match.tokens` that do not count as a cause, some of them (durations) only in
what a tool gave back. Numbers are not noise, nor are names that merely contain digits: an order number or a balance is
what a run may turn on. A day
alone, a time of day alone, or a number of seconds is both: a prompt that says what day it is changes every day, and a
delivery date decides about a refund. In what is asked it counts as noise as long as the answers agree; in an answer it
counts as part of the answer. See ``may_be_fact``.

Word by word, white space does not count, as it does not count for whether two texts differ; nor does noise, as long as
it is not all that differs. Few letters that happen to be equal between two changes are shown as changed, since a
sentence that was rewritten is read more easily whole.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from functools import lru_cache

from rewind.dataclass import dataclass
from rewind.match import tokens
from rewind.match.difference import common_beginning
from rewind.match.token_search import is_token, token_span
from rewind.match.tokens import KINDS, OF_THE_CALL, UUID, Scope, TokenKind

_NAMED_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NAMED_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = f"(?:{'|'.join(_NAMED_MONTHS)})[a-z]*"
_DAYS = "(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?[AaPp][Mm]\b)?"
_ZONE = r"(?: ?(?:Z\b|UTC\b|GMT\b|[+-]\d\d:?\d\d\b))?"
_ISO_DAY = r"\d{4}-\d\d-\d\d"
_DAY = rf"(?:\b{_DAYS},? )?\b(?:{_MONTHS} \d{{1,2}}(?:st|nd|rd|th)?|\d{{1,2}} {_MONTHS})(?:,? \d{{4}})?"
_LONGEST = 200_000
"""Characters of a text that are looked at; what is longer is compared as it is."""
_AROUND = 100
"""Characters before and behind a difference that are looked at with it; no form is longer."""


@dataclass(frozen=True, slots=True)
class NoiseForm:
    """One kind of noise."""

    name: str
    pattern: re.Pattern[str]
    may_be_fact: bool = False
    signs: tuple[str, ...] = ()
    """One of these stands in every text that has it: looked for first, which takes next to no time."""
    has_digit: bool = False
    """Whether it always has one."""
    kind: TokenKind | None = None
    """The row of the table of tokens that it is from."""

    @property
    def only_in_results(self) -> bool:
        return self.kind is not None and self.kind.uses.cause is Scope.RESULTS

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where it stands in the text."""
        if self.signs and not any(sign in text for sign in self.signs):
            return
        if self.has_digit and _DIGIT.search(text) is None:
            return
        for found in self.pattern.finditer(text):
            if self.kind is None:
                yield found.span()
            elif is_token(self.kind, found):
                yield token_span(found)

    def folded(self, text: str) -> tuple[str, list[str]]:
        """The text without it, and what was taken out."""
        pieces, values, at = [], [], 0
        for start, end in self.spans(text):  # none for most forms and texts
            if start >= at and end > start:
                pieces += [text[at:start], "\0"]
                values.append(text[start:end])
                at = end
        return ("".join((*pieces, text[at:])) if pieces else text), values


_DIGIT = re.compile(r"\d")
_WITH_DIGITS = (tokens.ADDRESS, tokens.BASE64, tokens.COUNT, tokens.DURATION, tokens.HEXADECIMAL, tokens.LABELLED)
_SIGNS = {
    tokens.ADDRESS: ("0x",),
    tokens.BEDROCK: ("tooluse_",),
    tokens.CHECKSUM: ("cch=",),
    tokens.CHUNK: ("hunk",),
    tokens.COUNT: ("riginal",),
    tokens.LABELLED: ("id", "Id", "ID", "iD"),
    tokens.MKDTEMP: ("/",),
    tokens.OF_THE_CALL: (":", "="),
    tokens.PORT: (":",),
    tokens.PREFIXED: ("_", "-"),
    tokens.PROCESS: ("pid", "PID", "pgid", "PGID"),
    tokens.TEMPORARY: ("tmp",),
    tokens.UUID: ("-",),
}
"""What stands in every token of a kind."""


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"


_TIMES = (
    NoiseForm("a time", re.compile(rf"\b{_ISO_DAY}[T ]{_CLOCK}{_ZONE}"), signs=(":",)),
    NoiseForm("a time", re.compile(rf"{_DAY},? (?:at )?{_CLOCK}{_ZONE}"), signs=(":",)),
    NoiseForm("a time of day", re.compile(rf"(?<![\d:]){_CLOCK}{_ZONE}(?![\d:])"), may_be_fact=True, signs=(":",)),
    NoiseForm(
        "a time", re.compile(r"(?<![\d.])1[5-9]\d{8}(?:\.\d{1,9}|\d{3}|\d{6}|\d{9})?(?![\d.])"), may_be_fact=True
    ),
    NoiseForm("a date", re.compile(rf"\b{_ISO_DAY}\b"), may_be_fact=True, signs=("-",)),
    NoiseForm("a date", re.compile(_DAY), may_be_fact=True, signs=_NAMED_MONTHS),
    NoiseForm("a date", re.compile(rf"\b{_DAYS}\b"), may_be_fact=True, signs=_NAMED_DAYS),
)
NOISE_FORMS = (
    *(
        NoiseForm(
            "a UUID" if kind is UUID else _article(kind.noun),
            pattern,
            signs=_SIGNS.get(kind, ()),
            has_digit=kind in _WITH_DIGITS,
            kind=kind,
        )
        for kind in (OF_THE_CALL, *KINDS)
        if kind.uses.cause is not Scope.COUNTS
        for pattern in kind.patterns
    ),
    *_TIMES,
)
"""In the order in which they are folded: what says what it is first, and a whole time before the day in it."""
_ANYWHERE = tuple(form for form in NOISE_FORMS if not form.only_in_results)


@dataclass(frozen=True, slots=True)
class Noise:
    """All that two texts differ in."""

    names: tuple[str, ...]
    may_be_fact: bool
    """Whether a day or a time of day alone is among it."""

    def __str__(self) -> str:
        return " and ".join(self.names)


def only_noise(before: str, after: str, *, results: bool = False) -> Noise | None:
    """What alone makes the difference, if that is ids and times; ``None`` if more does.

    ``results``: both are what a tool gave back, where durations and the like are noise, too.
    """
    if before == after:
        return Noise((), may_be_fact=False)
    before, after = _where_they_differ(before, after)
    if max(len(before), len(after)) > _LONGEST:
        return None
    if not _may_be_noise(before, after, results=results):
        return None
    names: dict[str, None] = {}
    may_be_fact = False
    for form in NOISE_FORMS if results else _ANYWHERE:
        (before, old), (after, new) = form.folded(before), form.folded(after)
        if old != new:
            names[form.name] = None
            may_be_fact = may_be_fact or form.may_be_fact
        if before == after:
            return Noise(tuple(names), may_be_fact)
    return None


_STRETCH = re.compile(r"[\w.:+/=-]+")
_DAYS_AND_MONTHS = frozenset(name.lower() for name in (*_NAMED_DAYS, *_NAMED_MONTHS))
_SIGNS_OF_NOISE = ("tmp", "/T/", "cch=")


def _may_be_noise(before: str, after: str, *, results: bool) -> bool:
    """False where other words stand there: told in one pass, which spares most texts a pass for each form."""
    for form in NOISE_FORMS[: len(OF_THE_CALL.patterns)] if results else ():
        before, after = form.folded(before)[0], form.folded(after)[0]
    return plain_words(before) == plain_words(after)


def plain_words(text: str) -> list[str]:
    """The words that are no part of any noise, nearly always because there is no digit in them."""
    return [
        word
        for word in _STRETCH.findall(text)
        if not any(map(str.isdigit, word))
        and word[:3].lower() not in _DAYS_AND_MONTHS
        and not any(sign in word for sign in _SIGNS_OF_NOISE)
        and word.upper() not in ("AM", "PM", "UTC", "GMT", "Z", "AT")
    ]


def noise_values(text: str) -> frozenset[str]:
    """Every id and time in a text."""
    found: set[str] = set()
    for form in NOISE_FORMS:
        text, values = form.folded(text)
        found.update(values)
    return frozenset(found)


def _where_they_differ(before: str, after: str) -> tuple[str, str]:
    """Both texts less what they share at either end, but for enough of it to recognise a form by."""
    start = max(0, common_beginning(before, after) - _AROUND)
    before, after = before[start:], after[start:]
    end = common_beginning(before[::-1], after[::-1]) - _AROUND
    return (before[:-end], after[:-end]) if end > 0 else (before, after)


@lru_cache(maxsize=256)
def without_noise(text: str) -> str:
    """The text with every id and time taken out, so that texts which differ in nothing else are equal."""
    if len(text) > _LONGEST:
        return text
    for form in _ANYWHERE:
        text, _ = form.folded(text)
    return text


# ── word by word ─────────────────────────────────────────────────────────────────────────────────────────────────

_WORD = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
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
class WordPiece:
    """Some words that share a fate."""

    fate: WordFate
    text: str


def word_pieces(before: str, after: str, *, volatile: bool = False) -> tuple[WordPiece, ...]:
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
    words: list[_Word] = []
    at = 0
    for start, end in sorted(span for form in _ANYWHERE if not form.may_be_fact for span in form.spans(text)):
        if start >= at:
            words += _all_words(text[at:start])
            at = end + len(text[end:]) - len(text[end:].lstrip())
            words.append(_Word("\0", text[start:at]))
    return [*words, *_all_words(text[at:])]


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
    old: _Words, new: _Words, between: Callable[[_Words, _Words], Iterable[_Stretch]], *, rare: bool = False
) -> Iterator[_Stretch]:
    """What both have, in order; with ``rare``, what occurs often does not count as a match."""
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
    """Little that stayed between two changes is shown as changed with them."""
    known = list(stretches)
    for at, one in enumerate(known):
        between = 0 < at < len(known) - 1
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


def _pieces(stretches: Iterable[_Stretch]) -> Iterator[WordPiece]:
    """White space behind a change stands outside of it."""
    for one in stretches:
        if one.kept:
            # Where one text ends here and the other goes on, only one has the space between.
            yield WordPiece(WordFate.KEPT, max(one.new, one.old, key=_space_behind))
            continue
        gone, come = one.old.rstrip(), one.new.rstrip()
        yield from (WordPiece(fate, text) for fate, text in ((WordFate.GONE, gone), (WordFate.COME, come)) if text)
        if space := (one.new or one.old)[len(come if one.new else gone) :]:
            yield WordPiece(WordFate.KEPT, space)


def _space_behind(text: str) -> int:
    return len(text) - len(text.rstrip())
