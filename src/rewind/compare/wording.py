"""How two texts differ: in what they say, or only in how they say it.

A fact that one text leaves out is no contradiction. A fact that stands in its place, with the same unit or among the
same words, is one: "28 days" against "24 days". The same holds for yes and no: what one text denies, the other says.
"""

import re
from collections.abc import Iterator, Sequence, Set
from enum import StrEnum
from functools import lru_cache

from rewind.compare.text_facts import FactKind, TextFact, TextFacts, facts_of
from rewind.compare.vocabulary import (
    ALL_STOP_WORDS,
    CLAUSE_ENDS,
    NEGATIONS,
    NEGATIVE_FORMS,
    OPPOSITES,
    POLITE,
    POSITIVE_FORMS,
    stem,
)
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
    turned = _turned(stance_of(before), stance_of(after), old, new)
    if turned is not None:
        yield Change(ChangeKind.NEGATION, *turned, place)
    if is_answer:
        stances = stance_of(before), stance_of(after)
        refuses = tuple(one.refuses for one in stances)
        if turned is None and refuses[0] != refuses[1] and not stances[refuses[0]].negated:
            said = ("refuses", "answers") if refuses[0] else ("answers", "refuses")
            yield Change(ChangeKind.REFUSAL, *said, place)
        asks = is_asking(before), is_asking(after)
        if asks[0] != asks[1]:
            yield Change(ChangeKind.ASKING, *(("asks", "tells") if asks[0] else ("tells", "asks")), place)
    if (names := _exchanged_subject(before, after)) is not None:
        yield Change(ChangeKind.NAME, *names, place)
    if _hardly_shared(old, new, is_answer):
        yield Change(ChangeKind.WORDS, excerpt(before), excerpt(after), place)


# ── facts ────────────────────────────────────────────────────────────────────────────────────────────────────


def fact_changes(
    old: Sequence[TextFact], new: Sequence[TextFact], old_text: TextFacts, new_text: TextFacts, place: str
) -> Iterator[Change]:
    """Facts of one text that stand where the other has another one."""
    keys = {one.key for one in old}, {one.key for one in new}
    gone = [one for one in old if one.key not in keys[1] and not _is_in(one, new, new_text)]
    come = [one for one in new if one.key not in keys[0] and not _is_in(one, old, old_text)]
    if not gone or not come:
        return
    used: set[int] = set()
    for one in gone:
        rivals = [
            (at, other) for at, other in enumerate(come) if at not in used and _contradict(one, other, gone, come)
        ]
        if rivals:
            at, other = max(rivals, key=lambda rival: (one.unit == rival[1].unit, len(one.near & rival[1].near)))
            used.add(at)
            yield Change(_FACT_KINDS[one.kind], one.shown, other.shown, place)


def _is_in(one: TextFact, others: Sequence[TextFact], text: TextFacts) -> bool:
    """Whether the other text has the fact in another form: a number without its unit, a date without its year."""
    if one.kind is FactKind.NAME:
        return one.value in text.words
    for other in others:
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
            if _digits(str(one.value)) == _digits(str(other.value)) != "" and FactKind.NUMBER is other.kind:
                return True
            if str(one.value).endswith("/" + str(other.value)) or str(other.value).endswith("/" + str(one.value)):
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
        return (one.label == other.label != "") or near >= 2 or (alone and near >= 1) or (alone and not one.near)
    if one.kind is not other.kind:
        return False
    if one.kind is FactKind.DATE:
        return one.unit == other.unit
    if one.kind is FactKind.CODE:
        return (one.unit == other.unit != "" and (near >= 1 or alone)) or near >= 2 or (one.label == other.label != "")
    return near >= 2 or (one.label == other.label != "" and alone)


def _exchanged_subject(before: str, after: str) -> tuple[str, str] | None:
    """Two names at the beginning, where all the rest is the same word for word: "Paris is the capital"."""
    one, _, rest = before.partition(" ")
    other, _, rival = after.partition(" ")
    if not rest or rest != rival or one.lower() in ALL_STOP_WORDS | POLITE or other.lower() in ALL_STOP_WORDS | POLITE:
        return None
    return (one, other) if one.isalpha() and other.isalpha() and one.istitle() and other.istitle() else None


# ── yes and no ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Stance:
    """What a text says yes and no to."""

    affirmed: frozenset[str]
    denied: frozenset[str]
    heads: frozenset[str]
    """The first word that each "not" is about."""
    negated: bool
    opening: str
    """``yes`` or ``no`` where the text begins so."""
    refuses: bool
    denials: tuple[str, ...]
    """The words around each "not", to be shown."""


_IDIOMS = re.compile(
    r"\b(?:not only|no problem|no worries|not to worry|(?:do not|don't) worry|(?:no|not) (?:later|more|less"
    r"|earlier|fewer) than"
    r"|(?:do not|don't|never) hesitate|not too late|no need|nothing else|why not|(?:whether|or|if) not|no matter"
    r"|without (?:any )?(?:issues?|problems?|delay|further)|not just|nothing (?:to worry|more)|not a problem"
    r"|not at all|no doubt|can't wait|no additional|no extra|no further)\b"
)
_REFUSES = re.compile(
    r"\b(?:i|we)(?:'m| am| are|'re)? (?:really |truly |very |so )?(?:sorry , (?:but )?|sorry "
    r"|afraid )?(?:that )?(?:i |we |but i |but we )?"
    r"(?:can't|cannot|can not|am unable|are unable|am not able|'m unable|'m not able|unable|not able|won't"
    r"|will not|'m not allowed"
    r"|am not allowed|must decline|have to decline|need to decline|decline)(?: to)? (?:\w+ )?"
    r"(?:help|assist|do|provide|comply|fulfill|fulfil|process|complete|share|answer|offer|issue|approve|give"
    r"|discuss|support|continue|proceed|perform|create|write|make|refund|grant)"
    r"|\b(?:ich kann (?:ihnen |dir )?(?:dabei |damit )?(?:leider )?nicht|je ne peux pas|no puedo (?:ayudar|hacer)"
    r"|não posso|non posso)\b"
)


@lru_cache(maxsize=4096)
def stance_of(text: str) -> Stance:
    facts = facts_of(text)
    cues = NEGATIONS.get(facts.language or "en", NEGATIONS["en"])
    affirmed: set[str] = set()
    denied: set[str] = set()
    heads: set[str] = set()
    denials: list[str] = []
    opening = ""
    refuses = False
    for at, sentence in enumerate(facts.sentences):
        joined = " ".join(sentence)
        opening = opening or (_opening(sentence) if at == 0 else "")
        if _has_cue(joined):
            joined = _SAID_OTHERWISE.sub("not", joined)
            joined = _IDIOMS.sub(" ", joined)
            refuses = refuses or _REFUSES.search(joined) is not None
        words = joined.split()
        for clause in _clauses(words):
            _read_clause(clause, cues, affirmed, denied, heads, denials)
    return Stance(
        frozenset(affirmed - denied), frozenset(denied - affirmed), frozenset(heads), bool(denials), opening, refuses,
        tuple(denials),
    )  # fmt: skip


def _opening(sentence: Sequence[str]) -> str:
    """Yes or no, where the sentence begins with it and courtesies."""
    for at, word in enumerate(sentence):
        if word in _YES_OR_NO:
            return _YES_OR_NO[word] if sentence[at + 1 : at + 2] in ((), (",",)) else ""
        if word not in POLITE and word != ",":
            return ""
    return ""


_YES_OR_NO = dict.fromkeys(("yes", "ja", "oui", "sí", "sim"), "yes")
_YES_OR_NO |= dict.fromkeys(("no", "nope", "nein", "non", "não"), "no")
_SAID_OTHERWISE = re.compile(r"\b(?:none of|instead of|rather than|in place of|free of)\b")
_CUE = re.compile(
    r"n't\b|\bof\b|\bthan\b|\b(?:no|not|none|never|nothing|without|cannot|can|unable|decline|nicht|pas|puedo|posso|or)\b"
)


def _has_cue(joined: str) -> bool:
    return _CUE.search(joined) is not None


def _clauses(words: list[str]) -> Iterator[list[str]]:
    clause: list[str] = []
    for word in words:
        if word in CLAUSE_ENDS:
            if clause:
                yield clause
            clause = []
        else:
            clause.append(word)
    if clause:
        yield clause


def _read_clause(
    clause: list[str], cues: frozenset[str], affirmed: set[str], denied: set[str], heads: set[str], denials: list[str]
) -> None:
    first = None
    count = 0
    said: list[tuple[int, str]] = []
    for at, word in enumerate(clause):
        if word in cues or word.endswith("n't"):
            count += 1
            first = at if first is None else first
        elif word in NEGATIVE_FORMS:
            count += 1
            said.append((at, NEGATIVE_FORMS[word]))
            first = min(at, 0) if first is None else first
        elif word in POSITIVE_FORMS:
            said.append((at, POSITIVE_FORMS[word]))
        elif word not in ALL_STOP_WORDS and word not in POLITE and word != "?":
            said.append((at, stem(word)))
    if first is None or count % 2 == 0:
        affirmed.update(one for _, one in said)
        return
    behind = [one for at, one in said if at >= first][:6]
    # What stands before the "not" is what is spoken of: neither said nor denied.
    denied.update(behind)
    heads.update(behind[:1])
    heads.update(NEGATIVE_FORMS[word] for word in clause if word in NEGATIVE_FORMS)
    denials.append(" ".join(clause[max(0, first - 2) : first + 5]))


def _turned(old: Stance, new: Stance, old_text: TextFacts, new_text: TextFacts) -> tuple[str, str] | None:
    """What one text denies and the other says, as both have it."""
    if old.opening and new.opening and old.opening != new.opening:
        return f"says {old.opening}", f"says {new.opening}"
    for one, other in ((old, new), (new, old)):
        if one.opening == "no" and not other.negated and not one.affirmed & other.affirmed:
            return ("says no", "says yes") if one is old else ("says yes", "says no")
    for one, other, text, swapped in ((old, new, new_text, False), (new, old, old_text, True)):
        flips = one.denied & other.affirmed
        if not flips or (other.negated and (one.denied & other.denied or one.heads & other.heads)):
            continue
        if not flips & one.heads and (other.negated or _alike(old_text, new_text) < 0.33):
            continue
        denial = next((said for said in one.denials if {stem(w) for w in said.split()} & flips), one.denials[0])
        saying = _around(text, flips & one.heads or flips)
        return (saying, denial) if swapped else (denial, saying)
    words = set(old_text.words), set(new_text.words)
    for word in sorted(words[0] - words[1]):
        for rival in OPPOSITES.get(word, "").split():
            if rival in words[1] - words[0] and _alike(old_text, new_text, {stem(word), stem(rival)}) >= 0.5:
                return word, rival
    return None


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
    r"anything else|something else|further|any (?:other )?questions?|help you|assist you|make sense"
    r"|more (?:information|details|help)"
    r"|would you like (?:me )?to|do you want (?:me )?to|shall i|should i|want me to|sound good|otra cosa"
    r"|sonst noch|autre chose"
)
_REQUEST = re.compile(
    r"(?:please|could you|can you|would you|kindly|bitte|veuillez|por favor) (?:\w+ )?"
    r"(?:provide|share|tell|give|send|specify|clarify|confirm|supply|let (?:me|us) know|indicate|choose|enter"
    r"|upload|attach|reply)"
    r"|\bi(?:'ll| will)? need (?:your|the|a|more|to know)\b|^which |^what (?:is|are|'s) (?:your|the)"
    r"|let me know (?:which|what|your|the|whether|if you (?:want|prefer))"
)


@lru_cache(maxsize=4096)
def is_asking(text: str) -> bool:
    """Whether the text needs something of its reader before it can go on."""
    facts = facts_of(text)
    tells = 0
    for sentence in facts.sentences:
        joined = " ".join(sentence)
        courtesy = _COURTESY.search(joined) is not None
        if sentence[-1] == "?" and not courtesy:
            return True
        if _REQUEST.search(joined) and not courtesy:
            return True
        tells += sentence[-1] != "?"
    return tells == 0 and bool(facts.sentences)


def _hardly_shared(old: TextFacts, new: TextFacts, is_answer: bool) -> bool:
    """A phrase of some words can be said with none of them; a name, a single word and a long text cannot."""
    fewest, most = sorted((len(old.stems), len(new.stems)))
    if fewest == 0:
        return False
    shared = len(old.stems & new.stems)
    if shared == 0:
        return most == 1 or fewest >= 8 or (fewest >= 2 if is_answer else most <= 3 and fewest <= 2)
    return fewest >= 8 and shared / fewest < 0.15
