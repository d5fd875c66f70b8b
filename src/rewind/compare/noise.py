"""Ids and times in texts: what differs between any two runs and means nothing.

A row names one form. Numbers are no noise, nor are names that merely contain digits: an order number or a balance is
what a run may turn on. A day alone, a time of day alone, or a number of seconds is both: a prompt that says what day it
is changes every day, and a delivery date decides about a refund. In what is asked it counts as noise as long as the
answers agree; in an answer it counts as part of the answer. See ``may_be_fact``.
"""

import re
from dataclasses import dataclass

from rewind.match.difference import common_beginning

_MONTHS = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
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
class Form:
    """One kind of noise."""

    name: str
    pattern: re.Pattern[str]
    may_be_fact: bool = False


FORMS = (
    Form("a UUID", re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")),
    Form(
        "an id",  # as providers and frameworks draw them: a known word, then letters and digits at random
        re.compile(
            r"\b(?:call|toolu|srvtoolu|msg|resp|rs|fc|ws|req|chatcmpl|cmpl|run|thread|session|sess|trace|span|item|asst|"
            r"batch|file|tool|user|evt)[_-](?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{12,}"
        ),
    ),
    Form("an id", re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{16,64}\b")),
    Form("a time", re.compile(rf"\b{_ISO_DAY}[T ]{_CLOCK}{_ZONE}")),
    Form("a time", re.compile(rf"{_DAY},? (?:at )?{_CLOCK}{_ZONE}")),
    Form("a time of day", re.compile(rf"(?<![\d:]){_CLOCK}{_ZONE}(?![\d:])"), may_be_fact=True),
    Form(
        "a time",
        re.compile(r"(?<![\d.])1[5-9]\d{8}(?:\.\d{1,9}|\d{3}|\d{6}|\d{9})?(?![\d.])"),
        may_be_fact=True,
    ),
    Form("a date", re.compile(rf"\b{_ISO_DAY}\b"), may_be_fact=True),
    Form("a date", re.compile(_DAY), may_be_fact=True),
    Form("a date", re.compile(rf"\b{_DAYS}\b"), may_be_fact=True),
)
"""In the order in which they are folded: a whole time before the day in it."""


@dataclass(frozen=True, slots=True)
class Noise:
    """All that two texts differ in."""

    names: tuple[str, ...]
    may_be_fact: bool
    """Whether a day or a time of day alone is among it."""

    def __str__(self) -> str:
        return " and ".join(self.names)


def only_noise(before: str, after: str) -> Noise | None:
    """What alone makes the difference, if that is ids and times; ``None`` if more does."""
    if before == after:
        return Noise((), may_be_fact=False)
    before, after = _where_they_differ(before, after)
    if max(len(before), len(after)) > _LONGEST:
        return None
    names: dict[str, None] = {}
    may_be_fact = False
    for form in FORMS:
        old, new = (form.pattern.findall(text) for text in (before, after))
        before, after = (form.pattern.sub("\0", text) for text in (before, after))
        if old != new:
            names[form.name] = None
            may_be_fact = may_be_fact or form.may_be_fact
        if before == after:
            return Noise(tuple(names), may_be_fact)
    return None


def values(text: str) -> frozenset[str]:
    """Every id and time in a text."""
    found: set[str] = set()
    for form in FORMS:
        found.update(match[0] for match in form.pattern.finditer(text))
        text = form.pattern.sub("\0", text)
    return frozenset(found)


def _where_they_differ(before: str, after: str) -> tuple[str, str]:
    """Both texts less what they share at either end, but for enough of it to recognise a form by."""
    start = max(0, common_beginning(before, after) - _AROUND)
    before, after = before[start:], after[start:]
    end = common_beginning(before[::-1], after[::-1]) - _AROUND
    return (before[:-end], after[:-end]) if end > 0 else (before, after)


def folded(text: str) -> str:
    """The text with every id and time taken out, so that texts which differ in nothing else are equal."""
    if len(text) > _LONGEST:
        return text
    for form in FORMS:
        text = form.pattern.sub("\0", text)
    return text
