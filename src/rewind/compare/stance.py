"""What a text says yes and no to, and whether it declines.

A "not" denies what stands behind it in its clause; what stands before it is what is spoken of. "Denied", "failed" and
the like say no to what their opposites say. What may be, and what is only set against something ("this, not that"),
is neither said nor denied.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from rewind.compare.text_facts import facts_of
from rewind.compare.vocabulary import (
    ALL_STOP_WORDS,
    CLAUSE_ENDS,
    NEGATIONS,
    NEGATIVE_FORMS,
    POLITE,
    POSITIVE_FORMS,
    stem,
)
from rewind.dataclass import dataclass


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
    cannot: bool
    """Whether the writer says that he could not do something."""
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


_CANNOT = re.compile(
    r"\b(?:i|we)(?:'m| am| was|'re| are| were)? (?:\w+ )?(?:unable to|not able to|can't|cannot|can not|could not"
    r"|couldn't)"
    r" (?!(?:find|see|spot|detect) (?:any|a problem|problems|errors|issues)\b)"
)
VERDICTS = frozenset((*NEGATIVE_FORMS.values(), *POSITIVE_FORMS.values()))
"""What is decided about something: approved, eligible, possible."""


@lru_cache(maxsize=4096)
def stance_of(text: str) -> Stance:
    facts = facts_of(text)
    cues = NEGATIONS.get(facts.language or "en", NEGATIONS["en"])
    affirmed: set[str] = set()
    opening = _opening(facts.sentences[0]) if facts.sentences else ""
    words = frozenset().union(*facts.sentences)
    if not _may_deny(words, cues):
        affirmed = {POSITIVE_FORMS.get(word) or stem(word) for word in words}
        return Stance(frozenset(affirmed), frozenset(), frozenset(), False, opening, False, False, ())
    denied: set[str] = set()
    heads: set[str] = set()
    denials: list[str] = []
    refuses = cannot = False
    for sentence in facts.sentences:
        joined = " ".join(sentence)
        if _has_cue(joined):
            joined = _SAID_OTHERWISE.sub("not", joined)
            joined = _IDIOMS.sub(" ", joined)
            refuses = refuses or _REFUSES.search(joined) is not None
            cannot = cannot or _CANNOT.search(joined) is not None
        for number, clause in enumerate(_clauses(joined.split())):
            _read_clause(clause, cues, affirmed, denied, heads, denials, begins=number == 0)
    return Stance(
        frozenset(affirmed - denied), frozenset(denied - affirmed), frozenset(heads), bool(denials), opening, refuses,
        cannot, tuple(denials),
    )  # fmt: skip


def _may_deny(words: frozenset[str], cues: frozenset[str]) -> bool:
    """Whether any word says no; most texts are done with that."""
    if not (cues.isdisjoint(words) and _UNSURE.isdisjoint(words) and NEGATIVE_FORMS.keys().isdisjoint(words)):
        return True
    return any(word.endswith("n't") for word in words)


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
    r"n't\b|\bof\b|\bthan\b|\b(?:no|not|none|never|nothing|without|cannot|can|unable|decline|nicht|pas|puedo"
    r"|posso|or)\b"
)


def _has_cue(joined: str) -> bool:
    return _CUE.search(joined) is not None


def _clauses(words: list[str]) -> Iterator[list[str]]:
    """What stands between commas and conjunctions; a condition is no statement."""
    clause: list[str] = []
    opener = ""
    for word in (*words, ","):
        if word in CLAUSE_ENDS:
            if clause and opener not in _CONDITIONS:
                yield clause
            if clause or word != ",":
                opener = word
            clause = []
        else:
            clause.append(word)


_CONDITIONS = frozenset({"if", "when", "unless", "wenn", "falls"})
_MODALS = frozenset({"may", "might", "could", "would"})
"""What is only thought of is neither said nor denied."""
_WEAK_CUES = frozenset({"no", "without", "nothing", "nobody", "neither", "nor", "ohne", "sans", "sin", "sem", "senza"})
"""They deny that there is such a thing, and leave open what is said of it."""


_AUXILIARIES = frozenset(
    re.findall(
        r"\w+",
        "is are was were be been being am do does did can could will would shall should must may might have has had",
    )
)
"""One of them stands before a "not" that turns a sentence; else it only sets one thing against another."""


def _is_auxiliary(word: str) -> bool:
    return word in _AUXILIARIES or "'" in word


_OTHERS = frozenset({"others", "other", "rest", "alternatives"})
_UNSURE = _MODALS | {"none", "instead", "rather", "place", "free", "decline"}


def _read_clause(
    clause: list[str],
    cues: frozenset[str],
    affirmed: set[str],
    denied: set[str],
    heads: set[str],
    denials: list[str],
    *,
    begins: bool,
) -> None:
    first = None
    turns = 0
    said: list[tuple[int, str]] = []
    for at, word in enumerate(clause):
        if word in cues or word.endswith("n't"):
            turns += first is None  # "must not hang without a timeout" is one denial
            first = at if first is None else first
        elif word in NEGATIVE_FORMS:
            turns += 1
            said.append((at, NEGATIVE_FORMS[word]))
            first = 0 if first is None else first
        elif word in POSITIVE_FORMS:
            said.append((at, POSITIVE_FORMS[word]))
        elif word not in ALL_STOP_WORDS and word not in POLITE and word != "?":
            said.append((at, stem(word)))
    contrasts = first is not None and clause[first] == "not" and (first > 0 or not begins)
    if first is not None and contrasts and not any(map(_is_auxiliary, clause[max(0, first - 3) : first])):
        return  # "use the new one, not the old one"
    if first is not None and not _OTHERS.isdisjoint(clause[:first]):
        return  # "the others do not fit"
    if first is None or turns % 2 == 0:
        if _MODALS.isdisjoint(clause):
            affirmed.update(one for _, one in said)
        return
    behind = [one for at, one in said if at >= first][:6]
    # What stands before the "not" is what is spoken of: neither said nor denied.
    denied.update(behind)
    if clause[first] not in _WEAK_CUES:
        heads.update(behind[:1])
    heads.update(NEGATIVE_FORMS[word] for word in clause if word in NEGATIVE_FORMS)
    denials.append(" ".join(clause[max(0, first - 2) : first + 5]))
