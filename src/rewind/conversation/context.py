"""What the model read at a step, and how that differs from what it read at an earlier one.

Both histories are lists of entries: the system prompt, the tools, and each message; every result of a tool is an
entry of its own, since APIs put several into one message or not, as they like. Entries that are equal are matched
first, from both ends and then in the middle. What is left between two matches is paired, in order, with what is like
it. A pair is ``truncated`` when the later text is the beginning of the earlier one (a mark such as "[truncated]" may
follow), else ``changed``. What has no partner is ``dropped``, or new: ``added`` where the history grew at its end,
``injected`` where known entries still follow.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from enum import StrEnum
from functools import lru_cache
from itertools import groupby

from rewind.conversation.message_digest import Digest, json_text, message_digest
from rewind.dataclass import dataclass
from rewind.match.difference import common_beginning
from rewind.model.message import (
    Answered,
    Asked,
    Media,
    Message,
    Other,
    Part,
    Refusal,
    Role,
    Text,
    Thinking,
    ToolDefinition,
    ToolResult,
    ToolUse,
    Vectors,
)

_LONGEST_MARK = 80
"""Characters that may stand behind what was kept of a truncated text."""
_LEAST_LOST = 8
"""A text that lost less was edited, not truncated."""
_ALIKE = 0.3
"""The share, of words or at both ends, from which on two texts are one that was edited, not two."""
_WORDS_LOOKED_AT = 2000


class Fate(StrEnum):
    """What became of an entry since the earlier call."""

    SAME = "same"
    ADDED = "added"
    DROPPED = "dropped"
    CHANGED = "changed"
    TRUNCATED = "truncated"
    INJECTED = "injected"
    REORDERED = "reordered"
    """Only of histories of two runs: within one, what moved was dropped and added."""


@dataclass(frozen=True, slots=True)
class ContextPlace:
    """Where something stands among the messages."""

    index: int | None
    """Of the message in the request's own list; ``None`` where the provider keeps it and the agent did not send it."""
    part: int | None = None
    """Of the part in it; ``None`` for the whole message."""

    def __str__(self) -> str:
        message = "held by the provider" if self.index is None else f"messages[{self.index}]"
        return message if self.part is None else f"{message}.parts[{self.part}]"


@dataclass(frozen=True, slots=True)
class ContextEntry:
    """One thing the model read."""

    what: str
    """``system``, ``tools``, or the role of a message."""
    text: str
    """All of it as people read it."""
    digest: Digest
    """Equal for what says the same: thinking and the ids of tool calls do not count."""
    message: ContextPlace | None = None
    """Where it stands among the messages; ``None`` for the system prompt and the tools."""
    label: str = ""
    """For a tool's result: the tool's name, and whether it is an error."""
    held: bool = False
    """Whether the agent did not send it, because the provider keeps it."""

    @property
    def place(self) -> str:
        """Where it stands: ``system``, ``tools``, or ``messages[3]`` as ``fork --set`` takes it."""
        return self.what if self.message is None else str(self.message)

    @property
    def size(self) -> int:
        """Characters."""
        return len(self.text)


@dataclass(frozen=True, slots=True)
class ContextChange:
    """An entry, and what became of it."""

    fate: Fate
    entry: ContextEntry
    """As it is now; for what was dropped, as it was."""
    before: ContextEntry | None = None
    """For what is changed or truncated: as it was."""
    kept: int = 0
    """For what is truncated: how many characters stayed."""
    own_answer: bool = False
    """Whether it is what the model itself said at the earlier step."""

    @property
    def lost(self) -> int:
        return 0 if self.before is None else self.before.size - self.kept


def context_of(asked: Asked, held: Sequence[Message] = ()) -> tuple[ContextEntry, ...]:
    """What the model read, in order; ``held`` are messages before the others that the provider keeps."""
    entries = []
    if asked.system:
        entries.append(_entry("system", Message(Role.SYSTEM, asked.system)))
    if asked.tools:
        text = "\n".join(map(tool_text, asked.tools))
        entries.append(ContextEntry("tools", text, message_digest(Message(Role.SYSTEM, (Text(text),)))))
    for message in held:
        entries += [replace(entry, held=True) for entry in message_entries(message, None)]
    number = asked.number(0)
    for message in asked.messages:
        entries += message_entries(message, number)
        number += message.entries
    return tuple(entries)


def compare_contexts(
    old: Sequence[ContextEntry], new: Sequence[ContextEntry], answer: Answered | None = None
) -> tuple[ContextChange, ...]:
    """How the context grew, shrank or changed; ``answer`` is what the model said to the earlier one."""
    said = _said(answer)
    changes = list(_changes(old, new))
    last_known = max(
        (at for at, change in enumerate(changes) if change.fate in (Fate.SAME, Fate.CHANGED, Fate.TRUNCATED)),
        default=-1,
    )
    return tuple(
        _new(change, is_last=at > last_known, said=said) if change.fate is Fate.ADDED else change
        for at, change in enumerate(changes)
    )


def message_entries(message: Message, index: int | None) -> Iterator[ContextEntry]:
    """The message, its results apart from what else it says."""
    groups = [
        (is_result, tuple(parts))
        for is_result, parts in groupby(message.parts, key=lambda part: isinstance(part, ToolResult))
    ]
    number = 0
    whole = len(message.parts) <= 1 or groups == [(False, message.parts)]
    for is_result, parts in groups or [(False, ())]:
        for one in ((part,) for part in parts) if is_result else (parts,):
            place = ContextPlace(index, None if whole else number)
            yield (
                _result_entry(one[0], place)
                if is_result
                else _entry(message.role.value, Message(message.role, one), place)
            )
            number += len(one)


def _result_entry(result: Part, place: ContextPlace) -> ContextEntry:
    assert isinstance(result, ToolResult), "only results are entries of their own"
    label = " ".join(word for word in (result.name, "error" if result.failed else "") if word)
    digest = message_digest(Message(Role.TOOL, (result,)))
    return ContextEntry("tool", parts_text(result.parts), digest, place, label)


def _entry(what: str, message: Message, place: ContextPlace | None = None) -> ContextEntry:
    return ContextEntry(what, parts_text(message.parts), message_digest(message), place)


def _new(change: ContextChange, *, is_last: bool, said: frozenset[Digest]) -> ContextChange:
    fate = Fate.ADDED if is_last else Fate.INJECTED
    return ContextChange(fate, change.entry, own_answer=change.entry.digest in said)


def _said(answer: Answered | None) -> frozenset[Digest]:
    """The answer as the messages in which a history may bring it: whole, or one part each."""
    if answer is None:
        return frozenset()
    spoken = tuple(part for part in answer.parts if not isinstance(part, Thinking))
    messages = [answer.parts, *((part,) for part in spoken)]
    return frozenset(message_digest(Message(Role.ASSISTANT, parts)) for parts in messages)


def _changes(old: Sequence[ContextEntry], new: Sequence[ContextEntry]) -> Iterator[ContextChange]:
    """Everything new is ``ADDED`` here; whether known entries follow is seen only at the end."""
    start = 0
    while start < min(len(old), len(new)) and old[start].digest == new[start].digest:
        yield _kept(old[start], new[start])
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end].digest == new[-1 - end].digest:
        end += 1
    middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
    matcher = SequenceMatcher(None, [e.digest for e in middle_old], [e.digest for e in middle_new], autojunk=False)
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        gone, come = middle_old[old_from:old_to], middle_new[new_from:new_to]
        yield from map(_kept, gone, come) if tag == "equal" else _paired(gone, come)
    if end:
        yield from map(_kept, old[-end:], new[-end:])


def _kept(before: ContextEntry, now: ContextEntry) -> ContextChange:
    """What says the same is the same, unless thinking was left out of it or its result became an error."""
    same = before.label == now.label and before.text.split() == now.text.split()
    return ContextChange(Fate.SAME, now) if same else ContextChange(Fate.CHANGED, now, before)


def _paired(gone: Sequence[ContextEntry], come: Sequence[ContextEntry]) -> Iterator[ContextChange]:
    """What stands in place of what: of one role and alike, in order."""
    waiting = list(gone)
    for entry in come:
        at = next((at for at, one in enumerate(waiting) if _is_edit(one, entry)), None)
        if at is None:
            yield ContextChange(Fate.ADDED, entry)
            continue
        yield from (ContextChange(Fate.DROPPED, one) for one in waiting[:at])
        yield _edited(waiting[at], entry)
        del waiting[: at + 1]
    yield from (ContextChange(Fate.DROPPED, one) for one in waiting)


def _is_edit(before: ContextEntry, now: ContextEntry) -> bool:
    if before.what != now.what:
        return False
    if before.what in ("system", "tools"):
        return True
    old, new = _words(before.text), _words(now.text)
    shared = len(old & new)
    if shared and shared >= _ALIKE * min(len(old), len(new)):
        return True
    one, other = before.text, now.text
    ends = common_beginning(one, other) if one[:1] == other[:1] else 0
    ends += common_beginning(one[::-1], other[::-1]) if one[-1:] == other[-1:] else 0
    return ends >= _ALIKE * min(before.size, now.size) > 0


@lru_cache(maxsize=256)
def _words(text: str) -> frozenset[str]:
    return frozenset(text.split()[:_WORDS_LOOKED_AT])


def _edited(before: ContextEntry, now: ContextEntry) -> ContextChange:
    kept = common_beginning(before.text, now.text)
    mark = now.size - kept
    truncated = now.size < before.size and before.size - kept >= _LEAST_LOST and mark <= min(_LONGEST_MARK, kept)
    return ContextChange(Fate.TRUNCATED, now, before, kept) if truncated else ContextChange(Fate.CHANGED, now, before)


def tool_text(tool: ToolDefinition) -> str:
    """A tool's definition in one line."""
    hosted = " (hosted)" if tool.hosted else ""
    return f"{tool.name}{hosted}: {tool.description} {json_text(tool.schema)}"


def parts_text(parts: Sequence[Part]) -> str:
    """All parts of a message as people read them."""
    return "\n".join(text for part in parts if (text := part_text(part)))


def part_text(part: Part) -> str:
    match part:
        case Text(text) | Refusal(text):
            return text
        case Thinking(text, sealed):
            return f"(thinking) {text or 'sealed by the provider'}" if text or sealed else ""
        case ToolUse(_, name, arguments):
            return f"→ {name}({json_text(arguments)})"
        case ToolResult():
            sign = "✗" if part.failed else "←"
            return (
                f"{sign} {parts_text(part.parts)}" if not part.name else f"{sign} {part.name}: {parts_text(part.parts)}"
            )
        case Media():
            size = "" if part.size is None else f"{part.size:,} bytes"
            facts = (part.media_type or part.kind, part.reference, size, part.digest[:8])
            return "[" + " ".join(word for word in facts if word) + "]"
        case Vectors(count, dimensions):
            return f"[{count} vectors of {dimensions}]"
        case Other(kind, value):
            return f"[{kind}] {json_text(value)}"
