"""How a model that never repeats itself words one meaning: many templates, and sentences built another way each time.

A template has alternatives in brackets, ``[Let me|I'll] look at <the order>``, which may be nested and may be empty.
What is not in brackets stays: numbers, ids, paths. On top of that comes what models do to any text: contractions,
synonyms, bullets in place of prose, another order, now and then another way to write a number or a date.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from random import Random

MODEL_WORDS: Mapping[str, list[str]] = json.loads(Path(__file__).with_name("model_words.json").read_text())
"""Sentences that a real small model wrote, sampled at temperature 1: beside tool calls, and to end an answer."""
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SYNONYMS = (
    (r"\bbecause\b", ("since", "as", "given that", "because")),
    (r"\balso\b", ("also", "additionally", "in addition")),
    (r"\bright away\b", ("immediately", "at once", "right away", "straight away")),
    (r"\bhowever\b", ("that said", "still", "however", "though")),
    (r"\bcurrently\b", ("at the moment", "at present", "currently", "right now")),
    (r"\bmore than\b", ("over", "more than")),
    (r"\bat most\b", ("no more than", "up to", "at most")),
    (r"\bsuccessfully\b", ("", "without problems", "successfully")),
    (r"\bcompleted\b", ("finished", "completed", "done")),
    (r"\bpurchase\b", ("order", "purchase")),
    (r"\breturned\b", ("sent back", "returned")),
    (r"\bin total\b", ("altogether", "overall", "in total")),
    (r"\bin order to\b", ("to", "so as to", "in order to")),
    (r"\bafter that\b", ("then", "afterwards", "after that")),
)
_CONTRACTIONS = (
    (r"\bcannot\b", "can't"),
    (r"\bdo not\b", "don't"),
    (r"\bdoes not\b", "doesn't"),
    (r"\bis not\b", "isn't"),
    (r"\bI have\b", "I've"),
    (r"\bI will\b", "I'll"),
    (r"\bit is\b", "it's"),
    (r"\bIt is\b", "It's"),
    (r"\byou will\b", "you'll"),
    (r"\bYou will\b", "You'll"),
    (r"\bthat is\b", "that's"),
    (r"\bThat is\b", "That's"),
    (r"\bI am\b", "I'm"),
)
_SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_TENS = {2: "twenty", 3: "thirty", 4: "forty", 5: "fifty", 6: "sixty", 7: "seventy", 8: "eighty", 9: "ninety"}
_COUNTED = re.compile(r"\b(\d{1,2}) (days?|hours?|files?|items?|sources?|months?|weeks?)\b")
_DATE = re.compile(r"\b(20\d\d)-(\d\d)-(\d\d)\b")
_WHOLE_DOLLARS = re.compile(r"\$(\d+)\.00\b")
_THOUSANDS = re.compile(r"\b\d{1,3}(?:,\d{3})+\b")


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that an answer states."""

    ways: tuple[str, ...]
    reason: tuple[str, ...] = ()
    """Clauses that say why; the ways are then clauses, too."""
    optional: bool = False
    """A detail that a model leaves out as often as not: it was said before, and nothing hangs on it."""
    last: bool = False
    """Stands at the end, as a question does that the user is to answer."""


def states(*ways: str, reason: Sequence[str] = (), optional: bool = False, last: bool = False) -> Statement:
    return Statement(ways=ways, reason=tuple(reason), optional=optional, last=last)


class Voice:
    """Words of one run at one place. The same seed gives the same words."""

    def __init__(self, seed: str, *, free: bool) -> None:
        """``free``: numbers and dates may be written another way, and details may be left out."""
        self._random = Random(seed)
        self._free = free

    def pick(self, ways: Sequence[str]) -> str:
        """One of the templates, filled."""
        text = self._random.choice(list(ways))
        while _CHOICE.search(text):
            text = _CHOICE.sub(lambda found: self._random.choice(found[1].split("|")), text, count=1)
        return re.sub(r" {2,}", " ", text).strip()

    def line(self, ways: Sequence[str]) -> str:
        """A sentence as prose in an argument."""
        return self._polished(self.pick(ways))

    def aside(self, ways: Sequence[str]) -> str:
        """A sentence beside a tool call."""
        if self._free and self._chance(0.25):
            return self._random.choice(MODEL_WORDS["beside"])
        return self.line(ways)

    def answer(self, statements: Sequence[Statement], *, opens: Sequence[str], closes: Sequence[str]) -> str:
        """A last answer: what it states, in an order and a shape of its own."""
        kept = [one for one in statements if not (one.optional and self._free and self._chance(0.35))]
        said = [self._sentence(one) for one in kept if not one.last]
        head, rest = said[:1], said[1:]
        if self._free:
            self._random.shuffle(rest)
        shape = self._random.choice(["prose", "prose", "bullets", "paragraphs", "headed"])
        body = head + rest
        if shape in ("prose", "headed") and rest and self._chance(0.3) and self._free:
            body = rest[:1] + head + rest[1:]
        body += [self._sentence(one) for one in kept if one.last]
        opening = self.pick(opens) if opens and self._chance(0.7) else ""
        closing = self.pick(closes) if closes and self._chance(0.6) else ""
        if closing and self._free and self._chance(0.25):
            closing = self._random.choice(MODEL_WORDS["close"])
        return self._polished(self._shaped(shape, opening, body, closing))

    def shuffled(self, items: Sequence[str]) -> list[str]:
        found = list(items)
        self._random.shuffle(found)
        return found

    def _shaped(self, shape: str, opening: str, body: list[str], closing: str) -> str:
        if shape == "bullets" and len(body) > 1:
            mark = self._random.choice(["- ", "* ", "• "])
            listed = "\n".join(mark + one for one in body)
            return "\n\n".join(part for part in (opening, listed, closing) if part)
        if shape == "paragraphs":
            return "\n\n".join(part for part in (opening, *body, closing) if part)
        if shape == "headed" and len(body) > 1:
            heading = self._random.choice(["**Summary**", "**Result**", "### Outcome", "**In short**"])
            return f"{heading}\n\n" + " ".join(part for part in (opening, *body, closing) if part)
        return " ".join(part for part in (opening, *body, closing) if part)

    def _sentence(self, statement: Statement) -> str:
        main = self.pick(statement.ways)
        if not statement.reason:
            return main
        why = self.pick(statement.reason)
        joined = self._random.choice(
            [
                f"{main} because {why}.",
                f"Since {why}, {main}.",
                f"{_capital(why)}, so {main}.",
                f"{_capital(why)}. That is why {main}.",
                f"{_capital(main)}: {why}.",
                f"{_capital(main)}. The reason: {why}.",
            ]
        )
        return _capital(joined)

    # ── what is done to any text ─────────────────────────────────────────────────────────────────────────────

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _polished(self, text: str) -> str:
        for pattern, words in _SYNONYMS:
            text = re.sub(pattern, self._random.choice(words), text)
        if self._chance(0.5):
            for pattern, word in _CONTRACTIONS:
                text = re.sub(pattern, word, text)
        if self._free:
            text = self._numbers(text)
        return re.sub(r" +([,.;:!?])", r"\1", re.sub(r" {2,}", " ", text)).strip()

    def _numbers(self, text: str) -> str:
        if self._chance(0.06):
            text = _COUNTED.sub(lambda found: f"{in_words(int(found[1]))} {found[2]}", text)
        if self._chance(0.15):
            text = _WHOLE_DOLLARS.sub(r"$\1", text)
        if self._chance(0.1):
            text = _THOUSANDS.sub(lambda found: found[0].replace(",", ""), text)
        if self._chance(0.2):
            form = self._random.choice(["%-d %B %Y", "%B %-d, %Y"])
            text = _DATE.sub(lambda found: date(*(int(part) for part in found.groups())).strftime(form), text)
        return text


def in_words(number: int) -> str:
    """``twenty-eight``; of numbers below a hundred."""
    if number <= 12:
        return _SMALL[number]
    if number < 20:
        teens = ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
        return teens[number - 13]
    return _TENS[number // 10] + (f"-{_SMALL[number % 10]}" if number % 10 else "")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
