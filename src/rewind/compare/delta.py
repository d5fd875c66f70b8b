"""The difference of two moves that belong together, piece by piece.

A :class:`Difference` is one thing that is not the same: the model, a word of the prompt, the result of a tool. What is
new at a step (its turn) is taken apart from what stood there before (its history): a tool's result that came back
different is one thing, a result that was sent whole and later cut short is another.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import Any

from rewind.compare.noise import Noise, only_noise
from rewind.conversation.context import Fate, parts_text, tool_text
from rewind.conversation.message_digest import written
from rewind.match.difference import ABSENT, differences
from rewind.match.paths import written as written_path
from rewind.model.message import Answered, Asked, Part, Thinking, ToolDefinition, ToolUse


class Aspect(StrEnum):
    """What differs. The order is that of the evidence: what is asked for first, what comes back last."""

    MODEL = "model"
    SNAPSHOT = "snapshot"
    """The model that answered, where the same one was asked for."""
    SYSTEM = "system"
    TOOLS = "tools"
    PARAMETERS = "parameters"
    INPUT = "input"
    """What a user said, new at this step."""
    TOOL_OUTPUT = "tool output"
    HISTORY = "history"
    """What stood in the conversation before this step."""
    STATUS = "status"
    CALLS = "tool calls"
    """The tools that the answer asks for."""
    ANSWER = "answer"
    """The words of the answer."""


REQUEST = frozenset(
    {
        Aspect.MODEL,
        Aspect.SYSTEM,
        Aspect.TOOLS,
        Aspect.PARAMETERS,
        Aspect.INPUT,
        Aspect.TOOL_OUTPUT,
        Aspect.HISTORY,
    }
)
"""What the agent did; the others are what it got."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that is not the same."""

    aspect: Aspect
    place: str
    """``system``, ``tools.refund``, ``temperature``, ``messages[3]``, ``answer`` …"""
    fate: Fate = Fate.CHANGED
    before: str | None = None
    """``None`` where only the second run has it."""
    after: str | None = None
    about: str = ""
    """For a tool's result: the call that it answers."""
    noise: Noise | None = None
    """Set where nothing but ids and times differ."""


def model_differences(old: str | None, new: str | None) -> Iterator[Difference]:
    if old != new:
        yield Difference(aspect=Aspect.MODEL, place="model", before=old, after=new)


def system_differences(old: Asked, new: Asked) -> Iterator[Difference]:
    yield from text_differences(Aspect.SYSTEM, "system", parts_text(old.system), parts_text(new.system))


def answer_differences(old: Answered | None, new: Answered | None) -> Iterator[Difference]:
    """How two answers differ; ids and thinking do not count."""
    if old is None or new is None:
        if (old is None) != (new is None):
            before, after = ("an answer" if one is not None else None for one in (old, new))
            yield Difference(aspect=Aspect.STATUS, place="answer", before=before, after=after)
        return
    if (old.error or "") != (new.error or ""):
        yield from text_differences(Aspect.STATUS, "error", old.error or "", new.error or "")
    yield from _call_differences(old.tool_uses, new.tool_uses)
    yield from text_differences(Aspect.ANSWER, "answer", _words(old.parts), _words(new.parts))
    for number, (one, other) in enumerate(zip_longest(old.alternatives, new.alternatives, fillvalue=()), 2):
        yield from text_differences(Aspect.ANSWER, f"choice {number}", parts_text(one), parts_text(other))


# ── what each call says anew ─────────────────────────────────────────────────────────────────────────


def tool_differences(old: Sequence[ToolDefinition], new: Sequence[ToolDefinition]) -> Iterator[Difference]:
    """By name; the order in which tools are given does not count."""
    before, after = ({tool.name: tool for tool in tools} for tools in (old, new))
    for name in dict.fromkeys([*before, *after]):
        one, other = before.get(name), after.get(name)
        place = f"tools.{name}"
        if one is None or other is None:
            yield one_sided(Aspect.TOOLS, place, one and tool_text(one), other and tool_text(other))
            continue
        yield from text_differences(Aspect.TOOLS, f"{place}.description", one.description, other.description)
        yield from value_differences(Aspect.TOOLS, f"{place}.schema", one.schema, other.schema)


def parameter_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    yield from value_differences(Aspect.PARAMETERS, "", dict(old), dict(new))


# ── the answer ───────────────────────────────────────────────────────────────────────────────────────────────


def _words(parts: Sequence[Part]) -> str:
    """Everything that was said, less thinking and what has a place of its own."""
    told = [part for part in parts if not isinstance(part, Thinking) and not _asks(part)]
    return parts_text(told).strip()


def _asks(part: Part) -> bool:
    return isinstance(part, ToolUse) and not part.hosted


def _call_differences(old: Sequence[ToolUse], new: Sequence[ToolUse]) -> Iterator[Difference]:
    """Calls to one tool are compared in order, argument by argument."""
    before, after = _numbered(old), _numbered(new)
    for key in dict.fromkeys([*before, *after]):
        one, other = before.get(key), after.get(key)
        name, number = key
        place = f"calls {name}" + (f" ({number})" if number > 1 else "")
        if one is not None and other is not None:
            yield from value_differences(Aspect.CALLS, place, one.arguments, other.arguments)
            continue
        yield one_sided(Aspect.CALLS, place, one and call_text(one), other and call_text(other))


def call_text(use: ToolUse) -> str:
    return f"{use.name}({written(use.arguments)})"


def _numbered(uses: Sequence[ToolUse]) -> dict[tuple[str, int], ToolUse]:
    counted: Counter[str] = Counter()
    numbered = {}
    for use in uses:
        counted[use.name] += 1
        numbered[use.name, counted[use.name]] = use
    return numbered


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────


def text_differences(aspect: Aspect, place: str, old: str, new: str, about: str = "") -> Iterator[Difference]:
    """White space at the ends, and how much of it there is between words, do not count."""
    if old.split() != new.split():
        yield Difference(
            aspect=aspect,
            place=place,
            before=old or None,
            after=new or None,
            fate=Fate.CHANGED if old and new else Fate.ADDED if new else Fate.DROPPED,
            about=about,
            noise=_noise(aspect, old, new) if old and new else None,
        )


def one_sided(aspect: Aspect, place: str, before: object, after: object, about: str = "") -> Difference:
    """What one run has and the other has not."""
    old, new = (one if isinstance(one, str) else None for one in (before, after))
    fate = Fate.ADDED if old is None else Fate.DROPPED
    return Difference(aspect=aspect, place=place, fate=fate, before=old, after=new, about=about)


def value_differences(aspect: Aspect, place: str, old: Any, new: Any) -> Iterator[Difference]:
    """JSON values, field by field."""
    for found in differences(old, new):
        inner = written_path(found.path)
        where = (
            ".".join(word for word in (place, inner) if word) if not inner.startswith("[") else place + inner
        )
        before, after = (None if one is ABSENT else written(one) for one in (found.recorded, found.asked))
        yield Difference(
            aspect=aspect,
            place=where or "parameters",
            before=before,
            after=after,
            fate=Fate.CHANGED
            if None not in (before, after)
            else Fate.ADDED
            if before is None
            else Fate.DROPPED,
            noise=_noise(aspect, before, after) if before is not None and after is not None else None,
        )


def _noise(aspect: Aspect, before: str, after: str) -> Noise | None:
    noise = only_noise(before, after)
    answers = aspect in (Aspect.ANSWER, Aspect.CALLS)
    return None if noise is not None and answers and noise.may_be_fact else noise
