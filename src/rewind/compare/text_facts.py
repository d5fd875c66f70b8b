"""The facts in a text: numbers with their units, dates, codes, names; and the words that are left.

A number in another form is the same number: "28", "28.0", "twenty-eight" and "28-day"; "$40" and "40.00 dollars".
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache

from rewind.compare.vocabulary import (
    ALL_STOP_WORDS,
    AMBIGUOUS_DAYS,
    DAYS,
    MONEY,
    MONTHS,
    NUMBER_WORDS,
    POLITE,
    SCALES,
    TENS,
    UNITS,
    WORKING_DAYS,
    language_of,
    stem,
)
from rewind.dataclass import dataclass


class FactKind(StrEnum):
    """What a fact is; only facts of one kind contradict each other."""

    NUMBER = "number"
    AMOUNT = "amount"
    DATE = "date"
    CODE = "code"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class TextFact:
    """One value that a text states."""

    kind: FactKind
    value: str | float
    """In one form, whatever it was written in."""
    unit: str
    """``s`` for every span of time, ``usd``, ``%``; for a code what it is made of; empty where there is none."""
    shown: str
    """As it was written."""
    near: frozenset[str]
    """Stems of the words around it."""
    label: str
    """The stem of the word that it belongs to: of "order" in "order 66", of "files" in "3 files"."""

    @property
    def key(self) -> tuple[str, str | float, str]:
        return self.kind, self.value, self.unit


@dataclass(frozen=True, slots=True)
class TextFacts:
    """All that is read off one text."""

    facts: tuple[TextFact, ...]
    words: tuple[str, ...]
    """In small letters, in order."""
    stems: frozenset[str]
    """Of the words that carry meaning."""
    sentences: tuple[tuple[str, ...], ...]
    """The words, sentence by sentence; a question ends with ``?``."""
    language: str


_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_NUMBER = r"\d+(?:[,.\u202f\u00a0']\d{3})*(?:[.,]\d+)?"
_FILE = (
    "py|js|ts|tsx|jsx|go|rs|java|c|h|cpp|rb|sh|sql|md|txt|json|yaml|yml|toml|csv|html"
    "|css|pdf|png|jpg|log|cfg|ini|lock|xml|docx|xlsx|zip"
)
# Plain words, blanks and marks stand first: most of a text is made of them, and the rest takes longer to tell.
_TOKEN = re.compile(
    rf"""
      (?P<plain>(?-i:\b[A-Z]?[a-z]++)(?![\w@/\#'’]|[.:-]\w|\s\d))
    | (?P<space>[ ]+)
    | (?P<end>[.!?;](?=\s|$|["')*])|\n)
    | (?P<mark>[,:—–](?=\s|$)|[()])
    | (?P<url>\b(?:https?://|www\.)[^\s<>"'`)\]]+[^\s<>"'`)\].,;:!?])
    | (?P<email>[\w.+-]+@[\w-]+\.[\w.-]*\w)
    | (?P<iso>\b\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z\b|[+-]\d\d:?\d\d)?)?(?!\w))
    | (?P<path>(?<![\w/])(?:~|\.{{1,2}})?/(?:[\w.@*-]+/)*[\w.@*-]*[\w*](?:/(?!\w))?
        | \b[\w.@-]+(?:/[\w.@-]+)+\.(?:{_FILE})\b | \b\w[\w-]*(?:/[\w.-]+){{2,}}/?
        | \b[\w-]+(?:\.[\w-]+)*\.(?:{_FILE})\b)
    | (?P<clock>\b\d{{1,2}}:\d\d(?::\d\d)?(?:\s?[ap]\.?m\b)? | \b\d{{1,2}}\s?(?:am|pm|a\.m\.|p\.m\.)(?!\w))
    | (?P<day>\b(?:{_MONTH})\.?\s\d{{1,2}}(?:st|nd|rd|th)?(?!\d)(?:,?\s\d{{4}})?
        | \b\d{{1,2}}(?:st|nd|rd|th)?\.?\s(?:of\s|de\s)?(?:{_MONTH})\b\.?(?:,?\s(?:de\s)?\d{{4}})?
        | \b(?:{_MONTH})\s\d{{4}}\b)
    | (?P<slashed>\b\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{2,4}}\b)
    | (?P<version>\bv?\d+(?:\.\d+){{2,}}(?:-?[a-z]\w*)?\b)
    | (?P<quantity>(?<![\w.-])(?P<sign>[-+−]?)(?:(?P<currency>(?:US)?[$€£¥₹])\s?)?(?P<number>{_NUMBER})
        (?P<scale>\s?(?:k|m|bn|thousand|millions?|millionen|billion)\b)?(?P<ordinal>st|nd|rd|th)?
        (?:[\s\u00a0\u202f-]?(?P<unit>[%€£$]|°[CF]\b|[^\W\d_]+\b(?!['’]\w)))?(?!\w|\.\d))
    | (?P<code>\#?\b(?=[\w#-]*\d)(?=[\w#-]*[^\W\d_])[\w#]+(?:-\w+)* | \b[^\W\d_]+(?:_[^\W\d_]+)+\b
        | (?-i:\b[a-z]+(?:[A-Z][a-z]+)+\b))
    | (?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LIST_NUMBER = re.compile(
    r"^[ \t]*+[#>*\t -]*+(?:(?:step|schritt)[ \t]*+)?\d{1,2}[.):](?=[ \t]|$)", re.MULTILINE | re.IGNORECASE
)
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2,}")
_WORDS = frozenset({"word", "plain"})
_TITLES = frozenset({"dr", "mr", "mrs", "ms", "st", "mme", "sr", "no", "nr"})
_NEAR = 4
_LONG_NUMBER = 16
"""Digits from which a number is an id: as a float, two of them might be equal."""
_LONGEST_NUMBER = 4_000
_LONGEST = 40_000
"""Characters of a text that are read; what is longer differs in its beginning or is compared by words alone."""


@lru_cache(maxsize=4096)
def facts_of(text: str) -> TextFacts:
    """What one text states; remembered, since runs repeat themselves."""
    return _Reader(_LIST_NUMBER.sub("\n", text[:_LONGEST].replace("**", ""))).read()


_Found = tuple[int, FactKind, str | float, str, str]
"""A fact, with the position of its token: kind, value, unit, as written."""


class _Reader:
    """Goes through a text once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found = [match for match in _TOKEN.finditer(text) if match.lastgroup != "space"]
        self.words = [match[0].lower().replace("’", "'") for match in self.found if match.lastgroup in _WORDS]
        self.language = language_of(self.words, text)
        self.numbers = NUMBER_WORDS.get(self.language, NUMBER_WORDS[""])
        self.places: list[int] = []
        """Positions of the tokens that ``stems`` are of."""
        self.stems: list[str] = []
        self.facts: list[_Found] = []

    def read(self) -> TextFacts:
        sentences: list[tuple[str, ...]] = []
        sentence: list[str] = []
        words = iter(self.words)
        begins = True
        skip = -1
        for at, match in enumerate(self.found):
            group = match.lastgroup
            if group in _WORDS:
                word = next(words)
                if at > skip:
                    sentence.append(word)
                    skip = self._word_fact(at, word, match, begins)
                    begins = False
            elif group == "end":
                if match[0] == "." and self.text[match.start() - 3 : match.start()].lstrip().lower() in _TITLES:
                    continue
                if match[0] == "?":
                    sentence.append("?")
                if sentence:
                    sentences.append(tuple(sentence))
                sentence = []
                begins = True
            elif group == "mark":
                begins = begins or match[0] != ","
                sentence.append(",")
            elif group == "quantity":
                begins = False
                self.facts.append((at, *self._quantity(match)))
                if unit := (match["unit"] or "").lower():
                    sentence.append(unit)
                    if unit not in UNITS and unit not in WORKING_DAYS:
                        self._keep_stems(at, unit)
            else:
                begins = False
                self.facts.extend((at, *one) for one in _coded(group or "", match[0]))
                sentence.append(match[0].lower())
        if sentence:
            sentences.append(tuple(sentence))
        facts = tuple(map(self._placed, self.facts))
        return TextFacts(facts, tuple(self.words), frozenset(self.stems), tuple(sentences), self.language)

    def _word_fact(self, at: int, word: str, match: re.Match[str], begins: bool) -> int:
        """Keeps what a word says; gives the last token that belongs to it."""
        if word in self.numbers:
            number, last = self._number_words(at, word)
            if number is not None:
                last, fact = self._counted(last, number, self.text[match.start() : self.found[last].end()])
                self.facts.append((at, *fact))
                return last
        if word in DAYS and (word not in AMBIGUOUS_DAYS or (self.language == "de" and word != "hier")):
            self.facts.append((at, FactKind.DATE, DAYS[word], "day", match[0]))
        elif self._keep_stems(at, word) and not begins and len(word) > 1 and self._is_name(match[0]):
            self.facts.append((at, FactKind.NAME, word.removesuffix("'s"), "", match[0].removesuffix("'s")))
        return at

    def _is_name(self, written: str) -> bool:
        """In German every noun has a capital."""
        return written[0].isupper() and self.language != "de"

    def _keep_stems(self, at: int, word: str) -> bool:
        """Whether the word carries meaning."""
        if word in ALL_STOP_WORDS or word in POLITE:
            return False
        if word.isascii():
            self.places.append(at)
            self.stems.append(stem(word.removesuffix("'s")))
            return True
        for one in _stems(word):
            self.places.append(at)
            self.stems.append(one)
        return True

    def _placed(self, found: _Found) -> TextFact:
        at, kind, value, unit, shown = found
        low, high = bisect_left(self.places, at - 2 * _NEAR), bisect_right(self.places, at + 2 * _NEAR)
        around = self.stems[low:high]
        before = [one for place, one in zip(self.places[low:high], around, strict=True) if at - 2 <= place < at]
        after = [one for place, one in zip(self.places[low:high], around, strict=True) if at <= place <= at + 1]
        label = (after or before or [""])[0] if kind is FactKind.NUMBER and not unit else (before or [""])[-1]
        return TextFact(kind, value, unit, shown, frozenset(around) - {value}, label)

    def _number_words(self, at: int, word: str) -> tuple[float | None, int]:
        """The number that is written in words there, and its last token."""
        value, last = self.numbers[word], at
        if word in TENS and (follow := self._word(at + 1)) in self.numbers and self.numbers[follow] < 10:
            value, last = value + self.numbers[follow], at + 1
        if self._word(last + 1) in ("hundred", "hundert"):
            value, last = value * 100, last + 1
        if scale := SCALES.get(self._word(last + 1)) if len(self._word(last + 1)) > 2 else None:
            value, last = value * scale, last + 1
        if value <= 1 and self._word(last + 1) not in UNITS and self._word(last + 1) not in WORKING_DAYS:
            return None, at  # "one of them", "no one"
        return value, last

    def _word(self, at: int) -> str:
        if at < len(self.found) and self.found[at].lastgroup in _WORDS:
            gap = self.text[self.found[at - 1].end() : self.found[at].start()]
            return self.found[at][0].lower() if len(gap) <= 1 else ""
        return ""

    def _counted(self, last: int, value: float, shown: str) -> tuple[int, tuple[FactKind, str | float, str, str]]:
        """A number in words, with the unit behind it: the last token of both, and the fact."""
        unit = self._word(last + 1)
        if unit in WORKING_DAYS and self._word(last + 2) in UNITS:
            return last + 2, (FactKind.NUMBER, value, "working day", f"{shown} {unit} {self._word(last + 2)}")
        if unit in UNITS and len(unit) > 1:
            return last + 1, _measured(value, unit, f"{shown} {unit}")
        return last, (FactKind.NUMBER, value, "", shown)

    def _quantity(self, match: re.Match[str]) -> tuple[FactKind, str | float, str, str]:
        value = _value_of(match["number"], self.language)
        if scale := (match["scale"] or "").strip().lower():
            value *= SCALES.get(scale, 1e6)
        if match["sign"] in ("-", "−"):
            value = -value
        unit = (match["unit"] or "").lower()
        shown = match[0].strip()
        if match["currency"]:
            unit_written = match["unit"] if unit in UNITS and UNITS[unit][0] in MONEY else ""
            return _measured(value, match["currency"].lower()[-1], shown if unit_written else _less_unit(match))
        if unit in WORKING_DAYS or unit in ("calendar",):
            following = _NEXT_WORD.match(self.text, match.end())
            if following and following[1].lower() in UNITS:
                if unit == "calendar":
                    return _measured(value, following[1].lower(), f"{shown} {following[1]}")
                return FactKind.NUMBER, value, "working day", f"{shown} {following[1]}"
        if unit in UNITS and (
            len(unit) > 1 or not unit.isalpha() or match["unit"] in ("s", "h", "d", "g", "l", "m", "b")
        ):
            return _measured(value, unit, shown)
        before = self.text[max(0, match.start() - 4) : match.start()].strip().lower()
        if before in UNITS and UNITS[before][0] in MONEY:
            return _measured(value, before, f"{before.upper()} {_less_unit(match)}")
        return FactKind.NUMBER, value, "", _less_unit(match) if not unit or unit in ALL_STOP_WORDS else shown


_NEXT_WORD = re.compile(r"\s+([^\W\d_]+)")


def _less_unit(match: re.Match[str]) -> str:
    return match[0][: match.end("number") - match.start()].strip() + (match["scale"] or "")


def _measured(value: float, unit: str, shown: str) -> tuple[FactKind, str | float, str, str]:
    base, factor = UNITS[unit]
    return FactKind.AMOUNT if base in MONEY else FactKind.NUMBER, round(value * factor, 6), base, shown


def _value_of(written: str, language: str) -> float:
    """``1,200.50``, ``1.200,50`` and ``1 200,5``; a single sign before three digits is read by the language."""
    if written.isdecimal():
        return float(written) if len(written) < _LONG_NUMBER else int(written[:_LONGEST_NUMBER])
    text = written.replace("\u202f", "").replace("\u00a0", "").replace("'", "")
    comma, point = text.rfind(","), text.rfind(".")
    if comma >= 0 and point >= 0:
        decimal = max(comma, point)
        return float(re.sub("[.,]", "", text[:decimal]) + "." + text[decimal + 1 :])
    sign = "," if comma >= 0 else "."
    if text.count(sign) > 1:
        return float(text.replace(sign, ""))
    whole, found, rest = text.partition(sign)
    groups = sign == "," if language in ("", "en", "zh", "ja", "ko") else sign == "."
    if found and len(rest) == 3 and groups and whole != "0":
        return float(whole + rest)
    return float(f"{whole}.{rest or 0}")


def _coded(group: str, text: str) -> Iterator[tuple[FactKind, str | float, str, str]]:
    if group == "iso":
        yield FactKind.DATE, text[:10], "date", text[:10]
        if len(text) > 10:
            yield FactKind.DATE, _minutes(text[11:16]), "time", text[11:16]
    elif group == "day":
        yield FactKind.DATE, _day(text), "date", text
    elif group == "slashed":
        yield FactKind.DATE, _slashed(text), "date", text
    elif group == "clock":
        yield FactKind.DATE, _minutes(text), "time", text
    elif group in ("url", "path", "email"):
        yield (
            FactKind.CODE,
            text.rstrip("/").removeprefix("./").lower().removeprefix("https://").removeprefix("http://"),
            group,
            text,
        )
    elif text.startswith("#") and text[1:].isdigit():
        yield FactKind.NUMBER, float(text[1:]), "", text
    else:
        code = text.lstrip("#").lower()
        yield (
            FactKind.CODE,
            code.removeprefix("v") if group == "version" else code.replace("_", "-"),
            "version" if group == "version" else _shape(code),
            text,
        )


def _shape(code: str) -> str:
    """What it is made of: ``a-9`` for A-1042, ``a-a-9`` for eu-west-1."""
    if not any(map(str.isdigit, code)):
        return "identifier"
    return re.sub(r"\d+", "9", re.sub(r"[^\W\d_]+", "a", code))


def _minutes(text: str) -> float:
    """Of the day."""
    numbers = [int(one) for one in re.findall(r"\d+", text)]
    hour, minute = numbers[0], numbers[1] if len(numbers) > 1 else 0
    half = re.search(r"([ap])\.?m", text, re.IGNORECASE)
    if half:
        hour = hour % 12 + (12 if half[1].lower() == "p" else 0)
    return float(60 * hour + minute)


def _day(text: str) -> str:
    month = next(MONTHS[word] for word in re.findall(r"[^\W\d_]+", text.lower()) if word in MONTHS)
    numbers = re.findall(r"\d+", text)
    year = next((one for one in numbers if len(one) == 4), "")
    day = next((one for one in numbers if len(one) < 3), "")
    return f"{year or '????'}-{month:02d}-{int(day):02d}" if day else f"{year}-{month:02d}-??"


def _slashed(text: str) -> str:
    first, second, year = re.findall(r"\d+", text)
    year = f"20{year}" if len(year) == 2 else year
    day, month = (first, second) if "." in text or int(first) > 12 else (second, first)
    return f"{year}-{int(month):02d}-{int(day):02d}"


def _stems(word: str) -> Iterator[str]:
    """Writing without spaces is taken apart into pairs of signs."""
    if _IDEOGRAPHS.match(word):
        yield from (word[at : at + 2] for at in range(len(word) - 1))
    else:
        yield stem(word.removesuffix("'s"))
