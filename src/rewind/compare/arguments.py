"""The values that a model chose, taken apart: what decides what happens, and what is only words.

Decided for each value of the JSON, by how it is written:

========================================  ========  ==============================================================
value                                     counts    why
========================================  ========  ==============================================================
number, yes or no                         always    a tool does something else
nothing: null, "", [], {}, left out       alike     defaults that some answers write out
one word, code, id, path, URL, number     always    an enum, a name, a key; words that differ in their ending do not
several words                             as text   facts and yes or no count; other words do not, unless none is shared
two names of several words                always    "San Diego" is not "San Jose"
JSON in a text                            inside    a tool reads it as JSON
program text, a command                   always    but for comments, layout, and options in another order
ids drawn by the run                      never     the table of token kinds says which
list of texts or objects                  unordered models list things in any order; numbers keep their order
========================================  ========  ==============================================================
"""

import json
import re
from collections import Counter
from collections.abc import Hashable
from functools import lru_cache, partial
from itertools import zip_longest
from typing import Any

from rewind.compare.program_text import (
    command_changes,
    command_tokens,
    is_command,
    is_program,
    program_changes,
    program_tokens,
)
from rewind.compare.text_facts import FactKind, facts_of
from rewind.compare.vocabulary import stem
from rewind.compare.wording import Change, ChangeKind, Weight, excerpt, text_changes
from rewind.match.tokens import KINDS, Evidence, Scope, TokenKind, stands_for_something

_EMPTY: tuple[object, ...] = (None, "", [], {})


def value_changes(before: Any, after: Any, place: str, kind: ChangeKind = ChangeKind.ARGUMENT) -> list[Change]:
    """How two JSON values differ, leaf by leaf."""
    try:
        return _value_changes(before, after, place, kind)
    except RecursionError:  # a stranger's value, nested without end
        return [Change(kind, "nested too deeply", "nested too deeply", place)]


def _value_changes(before: Any, after: Any, place: str, kind: ChangeKind) -> list[Change]:
    if before == after and type(before) is type(after):
        return []
    before, after = _less_empty(_plain(before)), _less_empty(_plain(after))
    if before in _EMPTY or after in _EMPTY:
        if before in _EMPTY and after in _EMPTY:
            return []
        return [Change(kind, _shown(before), _shown(after), place)]
    if isinstance(before, dict) and isinstance(after, dict):
        keys = dict.fromkeys([*before, *after])
        found = (_value_changes(before.get(key), after.get(key), _inner(place, key), kind) for key in keys)
        return [change for changes in found for change in changes]
    if isinstance(before, list) and isinstance(after, list):
        return _list_changes(before, after, place, kind)
    if isinstance(before, str) and isinstance(after, str):
        return _string_changes(before, after, place, kind)
    if canonical(before) == canonical(after):
        return []
    return [Change(kind, _shown(before), _shown(after), place)]


def canonical(value: Any) -> Hashable:
    """What of a value is exact, in one form and hashable; texts by their facts."""
    try:
        return _canonical(value)
    except RecursionError:
        return "nested too deeply"


def _canonical(value: Any) -> Hashable:
    value = _less_empty(_plain(value))
    if value in _EMPTY:
        return None
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | float):
        return ("number", value)  # 40 and 40.0 are equal; as a float, two long ids would be, too
    if isinstance(value, dict):
        return ("object", frozenset((key, _canonical(inner)) for key, inner in value.items()))
    if isinstance(value, list):
        inner = tuple(map(_canonical, value))
        return ("list", inner if _is_ordered(value) else frozenset(Counter(inner).items()))
    return _canonical_text(value)


@lru_cache(maxsize=4096)
def _canonical_text(text: str) -> Hashable:
    folded = less_drawn(text.strip())
    if (number := _number(folded)) is not None:
        return ("number", number)
    if is_command(folded):
        return ("command", command_tokens(folded))
    if is_program(folded):
        return ("program", tuple(program_tokens(folded)))
    if not re.search(r"\s", folded):
        return ("word", folded.rstrip("/").casefold() if folded != "/" else folded)
    facts = facts_of(folded)
    exact = frozenset(one.key for one in facts.facts if one.kind is not FactKind.NAME)
    return ("text", exact, facts.stems if len(facts.stems) <= 3 else None)


def _plain(value: Any) -> Any:
    """JSON within a text is what the text holds."""
    if isinstance(value, str) and value[:1] in "{[" and value[-1:] in "}]" and len(value) > 1:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _less_empty(value: Any) -> Any:
    """An object without the members that say nothing."""
    if isinstance(value, dict):
        return {key: inner for key, inner in value.items() if inner not in _EMPTY}
    return value


def _inner(place: str, key: object) -> str:
    return f"{place}.{key}" if place else str(key)


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    return excerpt(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _number(text: str) -> float | None:
    if not text or len(text) > 24 or not re.fullmatch(r"[-+]?\d+(?:\.\d+)?|[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", text):
        return None
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1] != ".":
        return None
    written = text.replace(",", "")
    return float(written) if "." in written else int(written)


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_ordered(value: list[Any]) -> bool:
    return any(isinstance(one, int | float | list) for one in value)


def _list_changes(before: list[Any], after: list[Any], place: str, kind: ChangeKind) -> list[Change]:
    if _is_ordered(before) or _is_ordered(after):
        pairs = list(zip_longest(before, after))
        found = (_value_changes(one, other, f"{place}[{at}]", kind) for at, (one, other) in enumerate(pairs))
        return [change for changes in found for change in changes]
    left, right = list(enumerate(before)), list(after)
    for at, one in list(left):  # what is equal goes first, wherever it stands
        if one in right:
            right.remove(one)
            left.remove((at, one))
    changes: list[Change] = []
    for at, one in left:
        if not right:
            changes.append(Change(kind, _shown(one), None, f"{place}[{at}]"))
            continue
        rivals = [_value_changes(one, other, f"{place}[{at}]", kind) for other in right[:50]]
        best = min(range(len(rivals)), key=lambda rival: _cost(rivals[rival]))
        changes += rivals[best]
        del right[best]
    changes += [Change(kind, None, _shown(other), place) for other in right]
    if not changes and before != after:
        changes.append(Change(kind, _shown(before), _shown(after), place, Weight.PROSE))
    return changes


def _cost(changes: list[Change]) -> int:
    return sum(10 if one.weight is Weight.DECISIVE else 1 for one in changes)


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────


def _string_changes(before: str, after: str, place: str, kind: ChangeKind) -> list[Change]:
    old, new = less_drawn(before.strip()), less_drawn(after.strip())
    if old == new:
        return []
    changed = Change(kind, excerpt(before), excerpt(after), place)
    prose = Change(kind, changed.before, changed.after, place, Weight.PROSE)
    if _number(old) is not None and _number(new) is not None:
        return [] if _number(old) == _number(new) else [changed]
    if is_command(old, place) and is_command(new, place):
        return command_changes(old, new, changed, prose)
    if is_program(old) or is_program(new):
        return program_changes(old, new, changed, prose)
    single = [re.search(r"\s", one) is None for one in (old, new)]
    if all(single):
        if canonical(old) == canonical(new):
            return []
        return [prose] if _same_word(old, new) else [changed]
    if _are_names(old, new):
        ours, theirs = set(old.casefold().split()), set(new.casefold().split())
        return [prose] if ours <= theirs or theirs <= ours else [changed]
    found = [
        Change(kind if one.kind is ChangeKind.WORDS else one.kind, one.before, one.after, place, one.weight)
        for one in text_changes(old, new, place)
    ]
    if not found and _OPERATORS.findall(old) != _OPERATORS.findall(new):
        return [changed]  # "x > 2" and "x >= 2": all words are the same
    return found or [prose]


_OPERATORS = re.compile(r"[<>=!+*%&|^~]+")


def _same_word(old: str, new: str) -> bool:
    """Two forms of one word: ``refund`` and ``refunds``."""
    return (
        old.isalpha()
        and new.isalpha()
        and len(old) > 3
        and stem(old.lower()) == stem(new.lower())
        and (old.lower()[:4] == new.lower()[:4] and abs(len(old) - len(new)) <= 3)
    )


_NAME = re.compile(
    r"(?:[A-Z][\w'’.-]*|of|the|de|la|van|von|da|del|and|&)"
    r"(?: (?:[A-Z][\w'’.-]*|of|the|de|la|van|von|da|del|and|&)){1,4}"
)


def _are_names(old: str, new: str) -> bool:
    return _NAME.fullmatch(old) is not None and _NAME.fullmatch(new) is not None


_DIGIT = re.compile(r"\d")
_CANDIDATE = re.compile(r"(?=[\w-]*\d)[A-Za-z0-9][\w-]{5,}|0x")
_DRAWN = tuple(
    kind for kind in KINDS if kind.uses.decision is Scope.FOLDED and kind.evidence in (Evidence.BOUND, Evidence.FREE)
)


@lru_cache(maxsize=4096)
def less_drawn(text: str) -> str:
    """The text without ids that a run drew for itself."""
    return _taken_apart(text)[0]


def drawn_ids(value: Any) -> frozenset[str]:
    """The ids in a JSON value that a run drew for itself."""
    try:
        return _taken_apart(value if isinstance(value, str) else json.dumps(value))[1]
    except RecursionError:
        return frozenset()


def _taken_apart(text: str) -> tuple[str, frozenset[str]]:
    """The text with a stand-in for every drawn id, and the ids."""
    if _DIGIT.search(text) is None or _CANDIDATE.search(text) is None:
        return text, frozenset()
    ids: set[str] = set()
    for kind in _DRAWN:
        for pattern in kind.patterns:
            text = pattern.sub(partial(_stand_in, kind, ids), text)
    return text, frozenset(ids)


def _stand_in(kind: TokenKind, ids: set[str], found: re.Match[str]) -> str:
    start, end = found.span("token") if "token" in found.re.groupindex else found.span()
    token = found.string[start:end]
    if (kind.is_drawn is not None and not kind.is_drawn(token)) or stands_for_something(found.string, start, end):
        return found[0]
    ids.add(token)
    return found.string[found.start() : start] + "·" + found.string[end : found.end()]
