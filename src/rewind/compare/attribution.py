"""Which change a decision takes up: what two answers differ in, looked for in what differed before them.

Theory. An answer that says "24 days" where the other one says "28 days" has the 24 from somewhere. So the values and
words that only one of the two answers has are looked for in what only that run had read. A number, a date or a code is
strong evidence, a word is weak, and what the other run had read as well is none. A value that stands in several things
is put down to the one that brought it first: what comes later repeats it. Names of fields, tools and models play no
part: only what is written there does.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from rewind.compare.delta import Difference, answer_words, call_text
from rewind.compare.texts import noise_values
from rewind.dataclass import dataclass
from rewind.model.message import Answered

_TOKEN = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?|\w+")
_CODE = re.compile(r"(?=[\w./-]*\d)(?=[\w./-]*[A-Za-z])[A-Za-z0-9]+(?:[-_./][A-Za-z0-9]+)*")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LONGEST = 200_000
"""Characters of a text whose words are looked at."""
_LEAST_WORD = 4
"""Letters of a word that may tell two things apart; shorter ones hold sentences together."""
_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ions", "ion", "als", "al", "ies", "ied", "ed", "es")
_SHORT_ENDINGS = ("s", "y", "e")
_LEAST_STEM = 4
_VALUE, _DIGIT, _WORD, _KNOWN = 3.0, 2.0, 1.0, 0.25
ENOUGH = 3.0
"""What one value weighs, or three words."""


@dataclass(frozen=True, slots=True)
class Use:
    """What a decision takes up of a change."""

    weight: float = 0.0
    gone: tuple[str, ...] = ()
    """What the good answer has of what was there before, as it is written."""
    come: tuple[str, ...] = ()
    """What the bad answer has of what is there now."""

    @property
    def enough(self) -> bool:
        return self.weight >= ENOUGH

    def __add__(self, other: "Use") -> "Use":
        return Use(self.weight + other.weight, (*self.gone, *other.gone), (*self.come, *other.come))

    def __str__(self) -> str:
        gone, come = (", ".join(dict.fromkeys(one)) for one in (self.gone, self.come))
        if gone and come:
            return f"the answers differ in what it says: {gone} → {come}"
        return f"the bad answer has it from there: {come}" if come else f"the good answer had it from there: {gone}"


class DecisionWords:
    """What two answers differ in, and which of it either run can only have from what differs."""

    def __init__(self, good: Answered | None, bad: Answered | None, heard_good: str, heard_bad: str) -> None:
        """``heard_good`` and ``heard_bad``: all that the model had read by then."""
        calls = any(one is not None and one.tool_uses for one in (good, bad))
        self._decided = tuple(_decided(one, calls=calls) for one in (good, bad))
        old, new = map(_tokens, self._decided)
        self._gone = {one: written for one, written in old.items() if one not in new}
        self._come = {one: written for one, written in new.items() if one not in old}
        self._known = {one for one, written in self._gone.items() if _stands_in(written, heard_bad)} | {
            one for one, written in self._come.items() if _stands_in(written, heard_good)
        }
        self._credited: set[str] = set()

    def use_of(self, differences: Sequence[Difference]) -> Use:
        """What the decision takes up of these; to be asked in the order in which they came up, since what an earlier
        one brought is not put down to a later one."""
        weight = 0.0
        gone: list[str] = []
        come: list[str] = []
        for one in differences:
            if one.noise is not None:
                volatile = self._use_of_volatile(one)
                weight, gone, come = weight + volatile.weight, [*gone, *volatile.gone], [*come, *volatile.come]
                continue
            old, new = _tokens(one.before or ""), _tokens(one.after or "")
            for mine, before, after, found in ((self._gone, old, new, gone), (self._come, new, old, come)):
                for token in mine.keys() & before.keys():
                    if token in after or token in self._credited:
                        continue
                    self._credited.add(token)
                    weight += _KNOWN if token in self._known else _weight(token)
                    if token not in self._known:
                        found.append(mine[token])
        return Use(weight, tuple(gone), tuple(come))

    def _use_of_volatile(self, difference: Difference) -> Use:
        """An id or a time is taken up as a whole, or not at all: two times always share a year."""
        old, new = noise_values(difference.before or ""), noise_values(difference.after or "")
        good, bad = self._decided
        gone = [one for one in sorted(old - new) if _stands_in(one, good) and not _stands_in(one, bad)]
        come = [one for one in sorted(new - old) if _stands_in(one, bad) and not _stands_in(one, good)]
        return Use(_VALUE * len([*gone, *come]), tuple(gone), tuple(come))


def _decided(answered: Answered | None, *, calls: bool) -> str:
    """What is decided: the calls where there are any; words beside them are mere words."""
    if answered is None:
        return ""
    if answered.error:
        return answered.error
    if calls and answered.tool_uses:
        return "\n".join(map(call_text, answered.tool_uses))
    return answer_words(answered.parts)


@lru_cache(64)
def _tokens(text: str) -> dict[str, str]:
    """Values and words, as they are compared → as they are written."""
    text = text[:_LONGEST]
    found = {code.lower(): code for code in _CODE.findall(text)}
    for token in _TOKEN.findall(text):
        if token[0].isdigit():
            found.setdefault(_number(token), token)
            continue
        for word in _CAMEL.split(token):
            if len(word) >= _LEAST_WORD:
                found.setdefault(_stem(word), word)
    return found


def _number(token: str) -> str:
    """``1,200.00`` and ``1200`` are one number."""
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", token):
        token = token.replace(",", "")
    if re.fullmatch(r"\d+\.\d+", token):
        token = token.rstrip("0").rstrip(".")
    return token.lstrip("0") or "0"


def _stem(word: str) -> str:
    word = word.lower().replace("’", "'").removesuffix("'s")
    for ending in (*_ENDINGS, *_SHORT_ENDINGS):
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            return word.removesuffix(ending)
    return word


def _weight(token: str) -> float:
    if not any(map(str.isdigit, token)):
        return _WORD
    return _VALUE if len(token) > 1 else _DIGIT


def _stands_in(written: str, text: str) -> bool:
    """Whether it is found there as a whole; of a word the stem will do."""
    if any(map(str.isdigit, written)):
        return re.search(rf"(?<![\w.]){re.escape(written)}(?!\w|\.\d)", text) is not None
    return _stem(written) in text.lower()
