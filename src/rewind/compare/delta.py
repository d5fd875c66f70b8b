"""The difference of two moves that belong together, piece by piece.

A :class:`Difference` is one thing that is not the same: the model, a word of the prompt, the result of a tool. What is
new at a step (its turn) is taken apart from what stood there before (its history): a tool's result that came back
different is one thing, a result that was sent whole and later cut short is another.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import zip_longest
from typing import Any, TypeGuard

from rewind.compare.texts import Noise, only_noise
from rewind.compare.tool_results import ResultChange, result_change
from rewind.conversation.context import ContextPlace, Fate, parts_text, tool_text
from rewind.conversation.message_digest import json_text
from rewind.dataclass import dataclass
from rewind.match.difference import ABSENT, differences
from rewind.match.paths import path_text
from rewind.model.message import Answered, Part, Thinking, ToolDefinition, ToolUse


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


REQUEST = frozenset(Aspect) - {Aspect.SNAPSHOT, Aspect.STATUS, Aspect.CALLS, Aspect.ANSWER}
"""What the agent did; the others are what it got."""
LASTING = frozenset({Aspect.MODEL, Aspect.SNAPSHOT, Aspect.SYSTEM, Aspect.TOOLS, Aspect.PARAMETERS})
"""What each call says anew: once changed, it is changed in every later step. The rest is said once and stays in the
history."""


ValuePath = tuple[str | int, ...]
"""The keys and positions that lead to a field of a JSON value."""


class NamedPlace(StrEnum):
    """A place that has a name and nothing inside."""

    MODEL = "model"
    SNAPSHOT = "model that answered"
    SYSTEM = "system"
    REQUEST = "request"
    REQUEST_BODY = "request body"
    STATUS = "status"
    ERROR = "error"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class FieldPlace:
    """A field of the parameters, or of another JSON value."""

    path: ValuePath

    def __str__(self) -> str:
        return path_text(self.path) or "parameters"

    @property
    def name(self) -> str:
        """The parameter that it belongs to."""
        return str(self.path[0]) if self.path else ""


@dataclass(frozen=True, slots=True)
class ToolPlace:
    """A tool's definition, or a field of it: ``tools.refund.schema.properties.amount``."""

    name: str
    path: ValuePath = ()

    def __str__(self) -> str:
        return f"tools.{self.name}" + (f".{self.inner}" if self.path else "")

    @property
    def inner(self) -> str:
        """``description``, ``schema.properties.amount``; empty for the whole tool."""
        return path_text(self.path)


@dataclass(frozen=True, slots=True)
class CallPlace:
    """A call that an answer asks for, or an argument of it: ``calls refund (2).amount``."""

    name: str
    number: int
    """Which call to that tool it is, from 1."""
    path: ValuePath = ()

    def __str__(self) -> str:
        return f"calls {self.label}"

    @property
    def label(self) -> str:
        """``refund (2).amount``"""
        call = self.name + (f" ({self.number})" if self.number > 1 else "")
        inner = path_text(self.path)
        return f"{call}.{inner}" if inner and not inner.startswith("[") else call + inner


@dataclass(frozen=True, slots=True)
class ChoicePlace:
    """One of several answers to one request, from 2."""

    number: int

    def __str__(self) -> str:
        return f"choice {self.number}"


DifferencePlace = NamedPlace | FieldPlace | ToolPlace | CallPlace | ChoicePlace | ContextPlace
"""Where something differs; ``str()`` gives the label that people and ``--json`` see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing that is not the same."""

    aspect: Aspect
    place: DifferencePlace
    fate: Fate = Fate.CHANGED
    before: str | None = None
    """``None`` where only the second run has it."""
    after: str | None = None
    about: str = ""
    """For a tool's result: the call that it answers."""
    tool: str = ""
    """For a tool's result: the name of the tool."""
    noise: Noise | None = None
    """Set where nothing but ids and times differ."""


def answer_differences(old: Answered | None, new: Answered | None) -> Iterator[Difference]:
    """How two answers differ; ids and thinking do not count."""
    if old is None or new is None:
        if (old is None) != (new is None):
            before, after = ("an answer" if one is not None else None for one in (old, new))
            yield Difference(aspect=Aspect.STATUS, place=NamedPlace.ANSWER, before=before, after=after)
        return
    if (old.error or "") != (new.error or ""):
        yield from text_differences(Aspect.STATUS, NamedPlace.ERROR, old.error or "", new.error or "")
    yield from _call_differences(old.tool_uses, new.tool_uses)
    yield from text_differences(Aspect.ANSWER, NamedPlace.ANSWER, answer_words(old.parts), answer_words(new.parts))
    for number, (one, other) in enumerate(zip_longest(old.alternatives, new.alternatives, fillvalue=()), 2):
        yield from text_differences(Aspect.ANSWER, ChoicePlace(number), parts_text(one), parts_text(other))


# ── what each call says anew ─────────────────────────────────────────────────────────────────────────


def tool_differences(old: Sequence[ToolDefinition], new: Sequence[ToolDefinition]) -> Iterator[Difference]:
    """By name; the order in which tools are given does not count."""
    before, after = ({tool.name: tool for tool in tools} for tools in (old, new))
    for name in dict.fromkeys([*before, *after]):
        one, other = before.get(name), after.get(name)
        if one is None or other is None:
            yield one_sided(Aspect.TOOLS, ToolPlace(name), one and tool_text(one), other and tool_text(other))
            continue
        described = ToolPlace(name, ("description",))
        yield from text_differences(Aspect.TOOLS, described, one.description, other.description)
        for path, before_it, after_it in _fields(one.schema, other.schema):
            yield field_difference(Aspect.TOOLS, ToolPlace(name, ("schema", *path)), before_it, after_it)


# ── the answer ───────────────────────────────────────────────────────────────────────────────────────────────


def answer_words(parts: Sequence[Part]) -> str:
    """Everything that was said, less thinking and the tools that are asked for."""
    said = [part for part in parts if not isinstance(part, Thinking) and not asks_for_tool(part)]
    return parts_text(said).strip()


def asks_for_tool(part: Part) -> TypeGuard[ToolUse]:
    """Whether the agent is asked to run a tool; hosted ones run at the provider."""
    return isinstance(part, ToolUse) and not part.hosted


def _call_differences(old: Sequence[ToolUse], new: Sequence[ToolUse]) -> Iterator[Difference]:
    """Calls to one tool are compared in order, argument by argument."""
    before, after = _numbered(old), _numbered(new)
    for key in dict.fromkeys([*before, *after]):
        one, other = before.get(key), after.get(key)
        if one is not None and other is not None:
            for path, argument, other_argument in _fields(one.arguments, other.arguments):
                yield field_difference(Aspect.CALLS, CallPlace(*key, path), argument, other_argument)
            continue
        yield one_sided(Aspect.CALLS, CallPlace(*key), one and call_text(one), other and call_text(other))


def call_text(use: ToolUse) -> str:
    return f"{use.name}({json_text(use.arguments)})"


def _numbered(uses: Sequence[ToolUse]) -> dict[tuple[str, int], ToolUse]:
    counted: Counter[str] = Counter()
    numbered = {}
    for use in uses:
        counted[use.name] += 1
        numbered[use.name, counted[use.name]] = use
    return numbered


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────


def text_differences(
    aspect: Aspect, place: DifferencePlace, old: str, new: str, *, about: str = "", tool: str = ""
) -> Iterator[Difference]:
    """White space at the ends, and how much of it there is between words, do not count."""
    if old.split() != new.split():
        yield Difference(
            aspect=aspect,
            place=place,
            before=old or None,
            after=new or None,
            fate=_fate(old or None, new or None),
            about=about,
            tool=tool,
            noise=noise_of(aspect, old, new) if old and new else None,
        )


def one_sided(
    aspect: Aspect, place: DifferencePlace, before: object, after: object, *, about: str = "", tool: str = ""
) -> Difference:
    """What one run has and the other has not."""
    old, new = (one if isinstance(one, str) else None for one in (before, after))
    fate = Fate.ADDED if old is None else Fate.DROPPED
    return Difference(aspect=aspect, place=place, fate=fate, before=old, after=new, about=about, tool=tool)


def value_differences(aspect: Aspect, old: Any, new: Any) -> Iterator[Difference]:
    """JSON values, field by field."""
    for path, before, after in _fields(old, new):
        yield field_difference(aspect, FieldPlace(path), before, after)


def field_difference(aspect: Aspect, place: DifferencePlace, before: str | None, after: str | None) -> Difference:
    """One field of a JSON value; ``None`` where a run does not have it."""
    name = f'"{place.path[-1]}": ' if isinstance(place, FieldPlace) and place.path else ""
    return Difference(
        aspect=aspect,
        place=place,
        before=before,
        after=after,
        fate=_fate(before, after),
        noise=noise_of(aspect, name + before, name + after) if before is not None and after is not None else None,
    )


def _fields(old: Any, new: Any) -> Iterator[tuple[ValuePath, str | None, str | None]]:
    """The fields in which two JSON values differ, with both values as text."""
    for found in differences(old, new):
        before, after = (None if one is ABSENT else json_text(one) for one in (found.recorded, found.asked))
        yield found.path, before, after


def _fate(before: str | None, after: str | None) -> Fate:
    if before is not None and after is not None:
        return Fate.CHANGED
    return Fate.ADDED if before is None else Fate.DROPPED


def noise_of(aspect: Aspect, before: str, after: str) -> Noise | None:
    """What alone two texts differ in, if that means nothing; a day means something in an answer."""
    results = aspect is Aspect.TOOL_OUTPUT
    noise = only_noise(before, after, results=results)
    if noise is None and results and result_change(before, after) is ResultChange.NOISE:
        return Noise(("the order of its parts or a score",), may_be_fact=False)
    answers = aspect in (Aspect.ANSWER, Aspect.CALLS)
    return None if noise is not None and answers and noise.may_be_fact else noise
