"""How two texts differ: in what they say, or only in how they say it.

A fact that one text leaves out is no contradiction. A fact that stands in its place, with the same unit or among the
same words, is one: "28 days" against "24 days". The same holds for yes and no: what one text denies, the other says.
"""

import re
from collections.abc import Iterator, Sequence, Set
from enum import StrEnum
from functools import lru_cache

from rewind.compare.stance import VERDICTS, Stance, stance_of
from rewind.compare.text_facts import FactKind, TextFact, TextFacts, facts_of
from rewind.compare.vocabulary import ALL_STOP_WORDS, OPPOSITES, POLITE, POSITIVE_FORMS, stem
from rewind.dataclass import dataclass


class Weight(StrEnum):
    """How much two answers differ."""

    SAME = "same"
    PROSE = "prose"
    """In words alone."""
    DECISIVE = "decisive"


class ChangeKind(StrEnum):
    """What is not the same."""

    TOOL = "tool"
    ARGUMENT = "argument"
    VALUE = "value"
    """Of an answer in JSON."""
    NUMBER = "number"
    AMOUNT = "amount"
    DATE = "date"
    CODE = "code"
    ID = "id"
    """That looks drawn by the run, and was chosen among several."""
    NAME = "name"
    NEGATION = "negation"
    REFUSAL = "refusal"
    ASKING = "asking"
    LANGUAGE = "language"
    FINISH = "finish"
    STATUS = "status"
    WORDS = "words"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that two answers say differently."""

    kind: ChangeKind
    before: str | None
    after: str | None
    place: str = ""
    """``refund.amount``; empty for the words of the answer."""
    weight: Weight = Weight.DECISIVE

    def __str__(self) -> str:
        """As a screen has it: ``28 → 24 days``, ``refund.amount 40 → 400``."""
        before, after = self.before or "—", self.after or "—"
        shared = _shared_end(before, after)
        shown = f"{before.removesuffix(shared) if shared else before} → {after}"
        if self.kind in _NAMED_KINDS:
            return f"{self.kind}: {shown}"
        return f"{self.place} {shown}" if self.place else shown


_NAMED_KINDS = (ChangeKind.TOOL, ChangeKind.LANGUAGE, ChangeKind.FINISH, ChangeKind.STATUS)
_FACT_KINDS = {
    FactKind.NUMBER: ChangeKind.NUMBER,
    FactKind.AMOUNT: ChangeKind.AMOUNT,
    FactKind.DATE: ChangeKind.DATE,
    FactKind.CODE: ChangeKind.CODE,
    FactKind.NAME: ChangeKind.NAME,
}


def _shared_end(before: str, after: str) -> str:
    """The unit that both end with, from its blank on."""
    found = re.search(r"\d(\s[^\W\d_]+)$", before)
    return found[1] if found and after.endswith(found[1]) and before != after else ""


def text_changes(before: str, after: str, place: str = "", *, is_answer: bool = False) -> list[Change]:
    """What two texts say differently; a single change of weight ``PROSE`` where they only say it otherwise."""
    if before == after:
        return []
    old, new = facts_of(before), facts_of(after)
    found = [*_decisive(old, new, before, after, place, is_answer)]
    if found:
        return found
    if old.words == new.words and [one.key for one in old.facts] == [one.key for one in new.facts]:
        return []
    return [Change(ChangeKind.WORDS, excerpt(before), excerpt(after), place, Weight.PROSE)]


def excerpt(text: str, most: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _decisive(old: TextFacts, new: TextFacts, before: str, after: str, place: str, is_answer: bool) -> Iterator[Change]:
    if old.language and new.language and old.language != new.language:
        yield Change(ChangeKind.LANGUAGE, old.language, new.language, place)
        return
    yield from fact_changes(old.facts, new.facts, old, new, place)
    turned = _turned(stance_of(before), stance_of(after), old, new, is_answer)
    if turned is not None:
        yield Change(ChangeKind.NEGATION, *turned, place)
    if is_answer:
        stances = stance_of(before), stance_of(after)
        refuses = tuple(one.refuses for one in stances)
        cannot = tuple(one.cannot for one in stances)
        if turned is None and cannot[0] != cannot[1] and _answers(stances[cannot[0]], (old, new)[not cannot[0]]):
            yield Change(ChangeKind.REFUSAL, *(("cannot", "answers") if cannot[0] else ("answers", "cannot")), place)
        elif turned is None and refuses[0] != refuses[1] and not stances[refuses[0]].negated:
            said = ("refuses", "answers") if refuses[0] else ("answers", "refuses")
            yield Change(ChangeKind.REFUSAL, *said, place)
        asks = is_asking(before), is_asking(after)
        if asks[0] != asks[1]:
            yield Change(ChangeKind.ASKING, *(("asks", "tells") if asks[0] else ("tells", "asks")), place)
        if turned is None and (words := _exchanged_word(old, new)) is not None:
            yield Change(ChangeKind.WORDS, *words, place)
            return
    if not (stance_of(before).refuses and stance_of(after).refuses) and _hardly_shared(old, new, is_answer):
        yield Change(ChangeKind.WORDS, excerpt(before), excerpt(after), place)


# ── facts ────────────────────────────────────────────────────────────────────────────────────────────────────


def fact_changes(
    old: Sequence[TextFact], new: Sequence[TextFact], old_text: TextFacts, new_text: TextFacts, place: str
) -> Iterator[Change]:
    """Facts of one text that stand where the other has another one."""
    keys = {one.key for one in old}, {one.key for one in new}
    gone = [one for one in old if one.key not in keys[1]][:_MOST_FACTS]
    come = [one for one in new if one.key not in keys[0]][:_MOST_FACTS]
    if not gone or not come:
        return
    gone = [one for one in gone if not _is_in(one, new, new_text)]
    come = [one for one in come if not _is_in(one, old, old_text)]
    used: set[int] = set()
    for one in gone:
        rivals = [
            (at, other) for at, other in enumerate(come) if at not in used and _contradict(one, other, gone, come)
        ]
        if rivals:
            at, other = max(rivals, key=lambda rival: (one.unit == rival[1].unit, len(one.near & rival[1].near)))
            used.add(at)
            yield Change(_FACT_KINDS[one.kind], one.shown, other.shown, place)


_MOST_FACTS = 100
"""Facts of one text alone that are looked at: of two long documents, the first."""


def _is_in(one: TextFact, others: Sequence[TextFact], text: TextFacts) -> bool:
    """Whether the other text has the fact in another form: a number without its unit, a date without its year."""
    if one.kind is FactKind.NAME:
        return one.value in text.words or f"{one.value}'s" in text.words
    for other in others[: 10 * _MOST_FACTS]:
        if one.kind is FactKind.DATE and other.kind is FactKind.DATE and one.unit == other.unit == "date":
            first, second = str(one.value), str(other.value)
            if all(a == b or "?" in (a, b) for a, b in zip(first, second, strict=True)):
                return True
        elif isinstance(one.value, float) and isinstance(other.value, float):
            if one.value == other.value and (not one.unit or not other.unit):
                return True
            if (not one.unit and _plain(other) == one.value) or (not other.unit and _plain(one) == other.value):
                return True
        elif one.kind is FactKind.CODE and other.kind in (FactKind.CODE, FactKind.NUMBER):
            if other.kind is FactKind.NUMBER:
                if _digits(str(one.value)) == _digits(str(other.value)) != "":
                    return True
            elif _is_end_of(str(one.value), str(other.value)) or _is_end_of(str(other.value), str(one.value)):
                return True
        elif (
            one.kind is FactKind.NUMBER
            and other.kind is FactKind.CODE
            and _digits(str(other.value)) == _digits(str(one.value))
        ):
            return True
    return False


def _plain(fact: TextFact) -> float | None:
    """The number as it was written, without its unit."""
    found = re.match(r"\D{0,2}([\d.]+)", fact.shown.replace(",", ""))
    try:
        return float(found[1]) if found else None
    except ValueError:
        return None


def _is_end_of(end: str, path: str) -> bool:
    return len(end) < len(path) and "/" in path and path.endswith("/" + end)


@lru_cache(maxsize=4096)
def _digits(text: str) -> str:
    return "".join(re.findall(r"\d+", text.removesuffix(".0")))


def _contradict(one: TextFact, other: TextFact, gone: list[TextFact], come: list[TextFact]) -> bool:
    near = len(one.near & other.near)
    alone = len(gone) == len(come) == 1
    counts = (FactKind.NUMBER, FactKind.AMOUNT)
    if one.kind in counts and other.kind in counts:
        if one.unit and other.unit:
            return one.unit == other.unit or one.kind is other.kind is FactKind.AMOUNT
        if one.unit or other.unit:
            return near >= 2 and alone
        return (
            (one.label == other.label != "") or near >= 2 or (alone and (near >= 1 or not one.near or not other.near))
        )
    if one.kind is not other.kind:
        return False
    if one.kind is FactKind.DATE:
        return one.unit == other.unit
    if one.kind is FactKind.CODE:
        return one.unit == other.unit and (near >= 1 or alone or one.label == other.label != "")
    return near >= 2 or (near >= 1 and alone)


_FEWEST_WORDS = 3


def _exchanged_word(old: TextFacts, new: TextFacts) -> tuple[str, str] | None:
    """The one word that two texts differ in: "Number 3 is blue". Forms of verbs are often said otherwise."""
    ours, theirs = ([word for sentence in one.sentences for word in sentence] for one in (old, new))
    if len(ours) != len(theirs) or len(ours) < _FEWEST_WORDS:
        return None
    pairs = [(one, other) for one, other in zip(ours, theirs, strict=True) if one != other]
    if len(pairs) != 1 or not _MEANINGLESS.isdisjoint(pairs[0]):
        return None
    one, other = pairs[0]
    is_verb = any(one.endswith(end) and other.endswith(end) for end in ("ed", "ing", "ly"))
    return None if is_verb or stem(one) == stem(other) else (one, other)


_MEANINGLESS = ALL_STOP_WORDS | POLITE


def _answers(stance: Stance, of_the_other: TextFacts) -> bool:
    """Whether a text denies nothing that the other one speaks of."""
    return not stance.heads and not stance.denied & of_the_other.stems


# ── yes and no ───────────────────────────────────────────────────────────────────────────────────────────────


def _turned(
    old: Stance, new: Stance, old_text: TextFacts, new_text: TextFacts, is_answer: bool
) -> tuple[str, str] | None:
    """What one text denies and the other says, as both have it.

    Where there is nothing of something ("no sign of"), only answers that else say much the same turn on it.
    """
    if old.opening and new.opening and old.opening != new.opening:
        return f"says {old.opening}", f"says {new.opening}"
    for one, other in ((old, new), (new, old)):
        if one.opening == "no" and not other.negated and not one.affirmed & other.affirmed:
            return ("says no", "says yes") if one is old else ("says yes", "says no")
    for one, other, text, swapped in ((old, new, new_text, False), (new, old, old_text, True)):
        flips = one.denied & other.affirmed
        if not flips or (other.negated and (one.denied & other.denied or one.heads & other.heads)):
            continue
        if not flips & one.heads and (other.negated or not is_answer or _alike(old_text, new_text) < _MUCH_THE_SAME):
            continue
        denial = next((said for said in one.denials if {stem(w) for w in said.split()} & flips), one.denials[0])
        long = max(len(old_text.sentences), len(new_text.sentences)) > 2
        if not flips & one.heads & VERDICTS and (
            (not is_answer and _alike(old_text, new_text) < _MUCH_THE_SAME)
            or (long and not (is_answer and flips & one.heads and _speaks_of(text, denial, flips)))
        ):
            continue  # a word is used about several things
        saying = _around(text, flips & one.heads or flips)
        return (saying, denial) if swapped else (denial, saying)
        # One sentence denies something, and the other one, of the same thing, nothing at all.
    for one, other in ((old, new), (new, old)) if is_answer else ():
        short = len(old_text.sentences) == len(new_text.sentences) == 1
        opposed = {stem(rival) for head in one.heads for rival in OPPOSITES.get(head, "").split()} & other.affirmed
        shares = len(old_text.stems & new_text.stems) >= 2
        if short and shares and one.heads and not other.negated and not opposed:
            sayings = " ".join(new_text.words[:6] if one is old else old_text.words[:6])
            return (one.denials[0], sayings) if one is old else (sayings, one.denials[0])
    words = set(old_text.words), set(new_text.words)
    for word in sorted(words[0] - words[1]):
        for rival in OPPOSITES.get(word, "").split():
            if stem(word) in old.denied or stem(rival) in new.denied:
                continue  # "closed" and "not open"
            if rival in words[1] - words[0] and _alike(old_text, new_text, {stem(word), stem(rival)}) >= _MUCH_THE_SAME:
                return word, rival
    return None


def _speaks_of(text: TextFacts, denial: str, flips: frozenset[str]) -> bool:
    """Whether a sentence has the denied word and another one of the denial."""
    about = {stem(word) for word in denial.split() if word not in ALL_STOP_WORDS and word not in POLITE}
    for sentence in text.sentences:
        found = {stem(word) for word in sentence} & about
        if found & flips and (len(found) > 1 or len(about) == 1):
            return True
    return False


_MUCH_THE_SAME = 0.5
"""The share of words, from which on two texts are about the same."""


def _around(text: TextFacts, stems: frozenset[str]) -> str:
    for sentence in text.sentences:
        for at, word in enumerate(sentence):
            if stem(word) in stems or POSITIVE_FORMS.get(word) in stems:
                return " ".join(w for w in sentence[max(0, at - 2) : at + 2] if w not in (",", "?"))
    return next(iter(stems))


def _alike(old: TextFacts, new: TextFacts, less: Set[str] = frozenset()) -> float:
    """The share of words that both have, from 0 to 1."""
    every = (old.stems | new.stems) - less
    return len((old.stems & new.stems) - less) / len(every) if every else 1.0


# ── asking, and words ────────────────────────────────────────────────────────────────────────────────────────

_COURTESY = re.compile(
    r"anything else|something else|further|any (?:other )?questions?|(?:help|assist|do for) you|make sense"
    r"|more (?:information|details|help)"
    r"|would you like (?:me )?to|do you want (?:me )?to|shall i|should i|want me to|sound good|otra cosa"
    r"|sonst noch|autre chose"
)
_REQUEST = re.compile(
    r"(?:please|could you|can you|would you|kindly|bitte|veuillez|por favor) (?:\w+ )?"
    r"(?:provide|share|tell|give|send|specify|clarify|confirm|supply|let (?:me|us) know|indicate|choose|enter"
    r"|upload|attach|reply)"
    r"|\bi(?:'ll| will)? need (?:your|the|a|more|to know)\b|^which |^what (?:is|are|'s) (?:your|the)"
    r"|let me know (?:which|your)|^what do you (?:need|want|mean)"
)


def _is_open(question: Sequence[str]) -> bool:
    """A question that asks for nothing in particular: "What is next?", "How does that sound?"."""
    if question[0] in ("which", "who", "where", "when") or (question[0] == "what" and "you" in question):
        return False
    return sum(word not in ALL_STOP_WORDS and word not in POLITE for word in question) <= 2  # one is the sign


@lru_cache(maxsize=4096)
def is_asking(text: str) -> bool:
    """Whether the text needs something of its reader before it can go on."""
    sentences = facts_of(text).sentences
    tells = sum(sentence[-1] != "?" for sentence in sentences)
    for sentence in sentences:
        joined = " ".join(sentence)
        if _COURTESY.search(joined):
            continue
        if (sentence[-1] == "?" and not (tells and _is_open(sentence))) or _REQUEST.search(joined):
            return True
    return tells == 0 and bool(sentences)


_DONE = ALL_STOP_WORDS | set(
    re.findall(r"\w+", "ok okay sure completed complete finished set ready great good perfect thanks thank")
)
"""All that a text may consist of that says nothing but that it is done."""


def _hardly_shared(old: TextFacts, new: TextFacts, is_answer: bool) -> bool:
    """A phrase can be said with none of its words; a single word, two key words and a long text cannot."""
    fewest, most = sorted((len(old.stems), len(new.stems)))
    shared = len(old.stems & new.stems)
    if shared or not most:
        if is_answer and fewest >= 5:
            return shared / fewest <= 0.2 and not {one.key for one in old.facts} & {one.key for one in new.facts}
        return fewest >= 8 and shared / fewest < 0.15
    if fewest == 0:
        terse = min(old, new, key=lambda one: len(one.stems))
        return is_answer and bool(terse.words) and not _DONE.issuperset(terse.words) and not terse.facts
    if fewest >= 8:
        return True
    if is_answer:
        return not {one.key for one in old.facts} & {one.key for one in new.facts}
    return all(len(one.words) <= 2 and ALL_STOP_WORDS.isdisjoint(one.words) for one in (old, new))
