"""What was said to the model: what is new at a step, and what stood in the conversation before it."""

import json
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile

from rewind.compare.delta import Aspect, Difference, call_text, one_sided, text_differences
from rewind.compare.texts import only_noise
from rewind.conversation.context import (
    ContextChange,
    ContextEntry,
    ContextPlace,
    Fate,
    compare_contexts,
    message_entries,
    parts_text,
)
from rewind.conversation.message_digest import digests, json_text
from rewind.dataclass import dataclass
from rewind.model.message import Asked, Message, Part, Role, Thinking, ToolResult, ToolUse
from rewind.wire.chunks import common_run

Held = Sequence[Message]
"""What the provider keeps of a conversation, and the agent does not send."""


# ── the turn ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class _Heard:
    """One thing that is new at a step."""

    aspect: Aspect
    place: ContextPlace
    text: str
    digest: bytes
    about: str = ""
    tool: str = ""


_Which = tuple[str, int]
"""A tool, or a role; and which call of that tool, or which message."""


def turn_start(messages: Sequence[Message]) -> int:
    """Where the messages begin that the model has not answered yet."""
    spoken = (at for at in range(len(messages) - 1, -1, -1) if messages[at].role is Role.ASSISTANT)
    return next(spoken, -1) + 1


def turn_differences(old: Asked, new: Asked, held_old: Held = (), held_new: Held = ()) -> Iterator[Difference]:
    """Results are compared with the result of the same call, words with the words in the same place."""
    before, after = _turn(old, held_old), _turn(new, held_new)
    after = _renumbered(before, after)
    for key in dict.fromkeys([*before, *after]):
        one, other = before.get(key), after.get(key)
        if one is not None and other is not None:
            if one.digest != other.digest:
                yield from text_differences(
                    one.aspect, other.place, one.text, other.text, about=one.about, tool=one.tool
                )
            continue
        only = one or other
        assert only is not None, "a key belongs to something"
        texts = one and one.text, other and other.text
        yield one_sided(only.aspect, only.place, *texts, about=only.about, tool=only.tool)


def turn_texts(asked: Asked, held: Held = ()) -> dict[Hashable, str]:
    """What is new at a step, by a name that it has in any run: a tool or a role, and the how-manyth."""
    return {which: heard.text for which, heard in _turn(asked, held).items()}


def _renumbered(before: Mapping[_Which, _Heard], after: Mapping[_Which, _Heard]) -> dict[_Which, _Heard]:
    """Results of one tool belong together by their calls, in whatever order those were made."""
    found: dict[_Which, _Heard] = {}
    left = dict(after)
    free = [key for key, one in before.items() if one.about]
    for wanted in (_same_call, _same_values, _same_tool):
        for key in [*free]:
            partner = next((mine for mine, one in left.items() if wanted(before[key], one)), None)
            if partner is not None:
                found[key] = left.pop(partner)
                free.remove(key)
    numbers = Counter(name for name, _ in before)
    for (name, number), one in left.items():
        if one.about:
            numbers[name] += 1
        found[(name, numbers[name]) if one.about else (name, number)] = one
    return found


def _same_call(one: _Heard, other: _Heard) -> bool:
    return bool(other.about) and one.about == other.about


def _same_values(one: _Heard, other: _Heard) -> bool:
    """Whether the calls share all that is no sentence: a path, an id, a name, a number."""
    return one.tool == other.tool != "" and _values_of(one.about) == _values_of(other.about) != frozenset()


@lru_cache(maxsize=256)
def _values_of(call: str) -> frozenset[str]:
    with suppress(ValueError, RecursionError):
        arguments = json.loads(call[call.index("(") + 1 : -1])
        if isinstance(arguments, dict):
            plain = ((name, json_text(value)) for name, value in arguments.items())
            return frozenset(f"{name}={text}" for name, text in plain if " " not in text)
    return frozenset()


def _same_tool(one: _Heard, other: _Heard) -> bool:
    return bool(other.about) and one.tool == other.tool


def _turn(asked: Asked, held: Held) -> dict[_Which, _Heard]:
    start = turn_start(asked.messages)
    calls = _calls_answered((*held, *asked.messages[:start]))
    heard: dict[_Which, _Heard] = {}
    counted: Counter[str] = Counter()

    def hear(which: _Which, aspect: Aspect, at: int, parts: Sequence[Part], about: str = "") -> None:
        # What says nothing (an empty text beside a result) is nothing that could differ.
        if found := digests(parts):
            text, digest = parts_text(parts), b"".join(found)
            heard[which] = _Heard(
                aspect, ContextPlace(asked.number(at)), text, digest, about, which[0] if about else ""
            )

    def next_of(what: str) -> _Which:
        counted[what] += 1
        return what, counted[what]

    for at in range(start, len(asked.messages)):
        message = asked.messages[at]
        for result in (part for part in message.parts if isinstance(part, ToolResult)):
            which, use = calls.get(result.id) or (next_of(result.name or "a tool"), None)
            about = call_text(use) if use is not None else which[0]
            hear(which, Aspect.TOOL_OUTPUT, at, result.parts, about)
        words = [part for part in message.parts if not isinstance(part, ToolResult)]
        aspect = Aspect.SYSTEM if message.role is Role.SYSTEM else Aspect.INPUT
        if words:
            hear(next_of(message.role.value), aspect, at, words)
    return heard


def _calls_answered(messages: Sequence[Message]) -> Mapping[str, tuple[_Which, ToolUse]]:
    """Id → the call of that id in the model's last word, and the how-manyth of its tool it is there."""
    last = list(takewhile(lambda message: message.role is Role.ASSISTANT, reversed(messages)))
    counted: Counter[str] = Counter()
    calls = {}
    for use in (part for message in reversed(last) for part in message.parts if isinstance(part, ToolUse)):
        counted[use.name] += 1
        if use.id:
            calls[use.id] = (use.name, counted[use.name]), use
    return calls


# ── the history ──────────────────────────────────────────────────────────────────────────────────────────────


def history_differences(old: Asked, new: Asked, held_old: Held = (), held_new: Held = ()) -> Iterator[Difference]:
    """What was added to, dropped from or changed in what was said before."""
    return GrowingHistories().differences(old, new, held_old, held_new)


class GrowingHistories:
    """The histories of two conversations, compared at one step after the other.

    Each repeats the one before, so what belongs together is carried along: only what is new since the last step is
    compared, together with the last few entries before it that had found no partner yet.
    """

    def __init__(self) -> None:
        self._old = _GrowingHistory()
        self._new = _GrowingHistory()

    def differences(self, old: Asked, new: Asked, held_old: Held = (), held_new: Held = ()) -> Iterator[Difference]:
        """What differs, less what differed at the steps before."""
        if not (self._old.goes_on(old, held_old) and self._new.goes_on(new, held_new)):
            self._old, self._new = _GrowingHistory(), _GrowingHistory()
        changes = compare_contexts(self._old.grown(old, held_old), self._new.grown(new, held_new))
        gone = self._old.lost | {change.entry.digest for change in changes if change.fate is Fate.DROPPED}
        come = self._new.lost | {change.entry.digest for change in changes if change.fate in _NEW}
        known = max((at for at, change in enumerate(changes) if change.fate in _KNOWN), default=-1) + 1
        self._old.settle([change.entry for change in changes[known:] if change.fate is Fate.DROPPED], gone)
        self._new.settle([change.entry for change in changes[known:] if change.fate in _NEW], come)
        return _differences(changes, gone & come)


_NEW = (Fate.ADDED, Fate.INJECTED)
_KNOWN = (Fate.SAME, Fate.CHANGED, Fate.TRUNCATED)
_OPEN = 4
"""Entries without a partner that may still find one among those of the next step."""


class _GrowingHistory:
    """One of the two: what was compared, and what of it is still without a partner."""

    def __init__(self) -> None:
        self._messages: tuple[Message, ...] = ()
        self._open: list[ContextEntry] = []
        self.lost: frozenset[bytes] = frozenset()
        """Digests of all that found no partner."""

    def goes_on(self, asked: Asked, held: Held) -> bool:
        return common_run(self._messages, 0, _said_before(asked, held), 0) == len(self._messages)

    def grown(self, asked: Asked, held: Held) -> list[ContextEntry]:
        """What is to be compared now: what is open, and what is new."""
        messages, known = _said_before(asked, held), len(self._messages)
        self._messages = messages
        for at in range(known, len(messages)):
            message, sent = _without_thinking(messages[at]), at - len(held)
            entries = message_entries(message, asked.number(sent) if sent >= 0 else None)
            self._open += entries if sent >= 0 else (replace(entry, held=True) for entry in entries)
        return self._open

    def settle(self, left: Sequence[ContextEntry], lost: frozenset[bytes]) -> None:
        self._open, self.lost = list(left[-_OPEN:]), lost


def _said_before(asked: Asked, held: Held) -> tuple[Message, ...]:
    return (*held, *asked.messages[: turn_start(asked.messages)])


def _differences(changes: Sequence[ContextChange], moved_digests: frozenset[bytes]) -> Iterator[Difference]:
    for change in changes:
        if change.fate is Fate.SAME or not _says_something(change):
            continue
        moved = change.entry.digest in moved_digests
        if moved and (change.fate is Fate.DROPPED or change.entry.what == "tool"):
            continue  # shown once, where it stands now; tools that ran side by side may answer in any order
        before, after = _sides(change)
        assert change.entry.message is not None, "a history is made of messages"
        both = before is not None and after is not None and not moved
        yield Difference(
            aspect=Aspect.HISTORY,
            place=change.entry.message,
            fate=Fate.REORDERED if moved else change.fate,
            before=before,
            after=after,
            about=" ".join(word for word in (change.entry.what, change.entry.label) if word),
            noise=only_noise(before or "", after or "", results=change.entry.what == "tool") if both else None,
        )


def _without_thinking(message: Message) -> Message:
    """Agents send thinking back or leave it out as they like."""
    parts = tuple(part for part in message.parts if not isinstance(part, Thinking))
    return Message(message.role, parts, message.name)


def _says_something(change: ContextChange) -> bool:
    """An entry that is empty may come and go."""
    return change.before is not None or bool(change.entry.text.strip())


def _sides(change: ContextChange) -> tuple[str | None, str | None]:
    match change.fate:
        case Fate.DROPPED:
            return change.entry.text, None
        case Fate.ADDED | Fate.INJECTED:
            return None, change.entry.text
    return (change.before.text if change.before is not None else None), change.entry.text
