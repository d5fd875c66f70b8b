"""Where two canonical bodies differ, field by field, and how, word by word.

Everything shown is one bounded line: bodies may hold megabytes of base64.
"""

import json
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from rewind.dataclass import dataclass
from rewind.match.paths import path_text

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_MOST_WORDS = 400
_CONTEXT = 32
_PIECE = 120
_LINE = 600

_MONTHS = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DAYS = "(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?"
_CHANGING: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a UUID", re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)),
    ("an ISO date", re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")),
    ("a time of day", re.compile(r"\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?: ?[AaPp][Mm]\b)?")),
    ("a date", re.compile(rf"(?:\b{_DAYS},? )?(?:\b{_MONTHS} {_DAY}|\b{_DAY} {_MONTHS})(?:,? \d{{4}})?|\b{_DAYS}\b")),
    ("a random id", re.compile(r"\b[A-Za-z]{2,16}[_-](?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{8,}\b|\b[0-9a-f]{12,64}\b")),
    ("a number", re.compile(r"-?\d+(?:\.\d+)?")),
)


class _Absent:
    """There is no such field."""

    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field that is not the same."""

    path: tuple[str | int, ...]
    recorded: Any
    """``ABSENT`` where only this call has the field."""
    asked: Any
    """``ABSENT`` where only the recording has it."""

    @property
    def where(self) -> str:
        """``messages[3].content``; ``body`` for the whole of it."""
        return _clipped(path_text(self.path) or "body", 200)

    def shown(self) -> str:
        """The difference in one line: ``a [-refund-]{+return+} is due``."""
        if isinstance(self.recorded, str) and isinstance(self.asked, str):
            return word_diff(self.recorded, self.asked)
        removed = "" if self.recorded is ABSENT else f"[-{_piece(_plain(self.recorded))}-]"
        added = "" if self.asked is ABSENT else f"{{+{_piece(_plain(self.asked))}+}}"
        return removed + added

    def size(self) -> int:
        """About how many letters would have to be rewritten."""
        if isinstance(self.recorded, str) and isinstance(self.asked, str):
            return max(len(self.recorded), len(self.asked)) - sum(_equal_ends(self.recorded, self.asked))
        return sum(len(value) if isinstance(value, str) else 8 for value in (self.recorded, self.asked))

    def volatile(self) -> str | None:
        """``an ISO date`` and the like, where nothing but such values differ."""
        kinds = (str, int, float)
        if not isinstance(self.recorded, kinds) or not isinstance(self.asked, kinds):
            return None
        if isinstance(self.recorded, bool) or isinstance(self.asked, bool):
            return None
        return only_volatile(str(self.recorded), str(self.asked))

    def pattern(self) -> str | None:
        """An expression that finds what differs in two texts, and as little else as possible."""
        if not isinstance(self.recorded, str) or not isinstance(self.asked, str):
            return None
        start, _ = _equal_ends(self.recorded, self.asked)
        before = re.search(r"\S{0,24}\s?$", self.recorded[:start])
        found = re.escape(before[0] if before else "").replace("\\ ", " ") + r"\S+"
        is_enough = re.sub(found, "", self.recorded) == re.sub(found, "", self.asked)
        return found if before and before[0].strip() and is_enough else None

    def whole(self) -> bool:
        """Whether the field is such a value and nothing else, so that ignoring it hides nothing."""
        texts = (str(self.recorded), str(self.asked))
        return all(any(kind.fullmatch(text) for _, kind in _CHANGING) for text in texts)


def differences(recorded: Any, asked: Any) -> Iterator[FieldDifference]:
    """The fields in which two bodies differ, in reading order. Lists are compared after their common start and end."""
    yield from _between((), recorded, asked)


def _between(path: tuple[str | int, ...], recorded: Any, asked: Any) -> Iterator[FieldDifference]:
    if isinstance(recorded, dict) and isinstance(asked, dict):
        for key in dict.fromkeys([*recorded, *asked]):
            yield from _between((*path, key), recorded.get(key, ABSENT), asked.get(key, ABSENT))
    elif isinstance(recorded, list) and isinstance(asked, list):
        start, end = _common_ends(recorded, asked)
        old, new = recorded[start : len(recorded) - end], asked[start : len(asked) - end]
        for number in range(max(len(old), len(new))):
            left = old[number] if number < len(old) else ABSENT
            right = new[number] if number < len(new) else ABSENT
            yield from _between((*path, start + number), left, right)
    elif type(recorded) is not type(asked) or recorded != asked:
        yield FieldDifference(path, recorded, asked)


def _common_ends(recorded: list[Any], asked: list[Any]) -> tuple[int, int]:
    shorter = min(len(recorded), len(asked))
    start = 0
    while start < shorter and same_json(recorded[start], asked[start]):
        start += 1
    end = 0
    while end < shorter - start and same_json(recorded[-1 - end], asked[-1 - end]):
        end += 1
    return start, end


def same_json(one: Any, other: Any) -> bool:
    """Equality as JSON sees it: ``true`` is not ``1``."""
    return bool(one == other) and next(differences(one, other), None) is None


def only_volatile(recorded: str, asked: str) -> str | None:
    """What kind of value alone makes the difference, if it is one that changes from run to run."""
    if max(len(recorded), len(asked)) > 200_000:
        return None
    for name, kind in _CHANGING:
        if kind.sub("\0", recorded) == kind.sub("\0", asked):
            return name
    for _, kind in _CHANGING:
        recorded, asked = kind.sub("\0", recorded), kind.sub("\0", asked)
    return "dates, ids or numbers" if recorded == asked else None


def word_diff(recorded: str, asked: str) -> str:
    """Both texts in one line, equal stretches shortened."""
    start, end = _equal_ends(recorded, asked)
    before, after = recorded[:start], recorded[len(recorded) - end :]
    old, new = recorded[start : len(recorded) - end], asked[start : len(asked) - end]
    middle = _compared(old, new) if max(len(old), len(new)) <= 20_000 else _changed(old, new)
    lead = _flat(before) if len(before) <= _CONTEXT else "…" + _flat(before[-_CONTEXT:])
    tail = _flat(after) if len(after) <= _CONTEXT else _flat(after[:_CONTEXT]) + "…"
    return lead + _clipped(middle, _LINE) + tail


def _equal_ends(one: str, other: str) -> tuple[int, int]:
    """How many characters are equal at the start and at the end, moved outwards to whole words."""
    start = common_beginning(one, other)
    end = common_beginning(one[start:][::-1], other[start:][::-1])
    # A word longer than this (base64, say) may be cut.
    for _ in range(64):
        if start and _inside_word(one, start) | _inside_word(other, start):
            start -= 1
    for _ in range(64):
        if end and _inside_word(one, len(one) - end) | _inside_word(other, len(other) - end):
            end -= 1
    return start, end


def _inside_word(text: str, position: int) -> bool:
    return 0 < position < len(text) and (text[position - 1] + text[position]).replace("_", "a").isalnum()


def common_beginning(one: str, other: str) -> int:
    """Found by halving, as comparing slices is far quicker than comparing letters."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _compared(removed: str, added: str) -> str:
    old, new = _WORDS.findall(removed), _WORDS.findall(added)
    if max(len(old), len(new)) > _MOST_WORDS:
        return _changed(removed, added)  # comparing word by word takes quadratic time
    line = ""
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for tag, i1, i2, j1, j2 in blocks:
        if tag == "equal":
            text = _flat("".join(old[i1:i2]))
            long = len(text) > 2 * _CONTEXT + 1
            line += f"{text[:_CONTEXT]}…{text[-_CONTEXT:]}" if long else text
        else:
            line += _changed("".join(old[i1:i2]), "".join(new[j1:j2]))
    return line


def _changed(removed: str, added: str) -> str:
    return (f"[-{_piece(removed)}-]" if removed else "") + (f"{{+{_piece(added)}+}}" if added else "")


def _piece(text: str) -> str:
    text = _flat(text[: 4 * _PIECE]) if len(text) <= 4 * _PIECE else _flat(text[:_PIECE] + "…" + text[-24:])
    return text if len(text) <= _PIECE else f"{text[: _PIECE - 25]}…{text[-24:]}"


def _clipped(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"


def _flat(text: str) -> str:
    return text.replace("\r", "\\r").replace("\n", "\\n").replace("\t", "\\t")


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
