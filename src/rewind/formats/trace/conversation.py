"""What a trace tells of, in nouns; and a conversation as it grows: its turns, its open tool calls, its requests."""

from collections import deque
from collections.abc import Iterable
from dataclasses import field
from itertools import takewhile
from typing import Any, Generic, TypeVar

from rewind.dataclass import dataclass
from rewind.formats.trace.api import (
    AskedTool,
    RequestForm,
    RequestSettings,
    SpokenAnswer,
    ToolOutput,
    TraceApi,
    Turn,
    text_at,
)
from rewind.formats.trace.lines import TraceLine

T = TypeVar("T")
_SCALAR = str | int | float | bool | None


# ── events ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class FirstTurns:
    """The first turns of a conversation that may have gone on since: a call holds their number, not a copy."""

    all: list[Turn]
    """Grows at its end; what a call was given never changes."""
    count: int

    def __len__(self) -> int:
        return self.count

    def since(self, start: int) -> list[Turn]:
        return self.all[start : self.count]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A call of a model."""

    line: TraceLine
    api: TraceApi
    form: RequestForm
    turns: FirstTurns
    """What it was given."""
    model: str
    said: SpokenAnswer | None
    """``None`` where the trace has no answer."""
    error: str
    usage: dict[str, Any] = field(default_factory=dict)
    """Tokens that are told beside the answer."""


@dataclass(slots=True, kw_only=True)
class TracedTool:
    """A tool's run: the line that calls it, the line that brings its result, or both."""

    use: AskedTool
    called: TraceLine | None
    returned: TraceLine | None = None
    result: ToolOutput | None = None

    @property
    def line(self) -> TraceLine:
        line = self.called or self.returned
        assert line is not None, "a line tells of every run of a tool"
        return line


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLine:
    """Any other line."""

    line: TraceLine


TraceEvent = ModelCall | TracedTool | OtherLine


# ── conversations ────────────────────────────────────────────────────────────────────────────────────────────


class OpenCalls(Generic[T]):
    """What waits for its result, in order of arrival, each under an id and a name; either may be empty.

    Finding one takes as long however many wait.
    """

    def __init__(self) -> None:
        self._all: dict[int, T] = {}
        self._count = 0
        self._order: deque[int] = deque()
        self._ids: dict[str, deque[int]] = {}
        self._names: dict[str, deque[int]] = {}

    def add(self, call: T, tool_id: str, name: str) -> None:
        self._count += 1
        self._all[self._count] = call
        self._order.append(self._count)
        self._names.setdefault(name, deque()).append(self._count)
        if tool_id:
            self._ids.setdefault(tool_id, deque()).append(self._count)

    def of_id(self, tool_id: str) -> int | None:
        """The place of the oldest one of that id."""
        return self._oldest(self._ids, tool_id)

    def of_names(self, names: Iterable[str]) -> int | None:
        """The place of the oldest one that has one of these names."""
        places = (self._oldest(self._names, name) for name in names)
        return min((place for place in places if place is not None), default=None)

    def oldest(self) -> int | None:
        return self._first(self._order)

    def at(self, place: int) -> T:
        return self._all[place]

    def take(self, place: int) -> T:
        """It waits no longer."""
        return self._all.pop(place)

    def _oldest(self, known: dict[str, deque[int]], key: str) -> int | None:
        places = known.get(key)
        if places is None:
            return None
        first = self._first(places)
        if first is None:
            del known[key]
        return first

    def _first(self, places: deque[int]) -> int | None:
        # What was taken is struck off when it comes up: each is passed once.
        while places and places[0] not in self._all:
            places.popleft()
        return places[0] if places else None


@dataclass(slots=True, kw_only=True, eq=False)
class TraceConversation:
    """What was said so far. All that is done for a line takes as long as the line is, not as all that was said."""

    api: TraceApi
    number: int = 0
    """Counts conversations, so that the newest is known."""
    system: Any = None
    model: str = ""
    turns: list[Turn] = field(default_factory=list)
    open: OpenCalls[AskedTool] = field(default_factory=OpenCalls)
    """Tools that were asked for and have given nothing yet."""
    lost: list[str] = field(default_factory=list)
    _given: int = 0
    """Turns that some call was given: those stay as they are."""
    _results: Turn | None = None
    """The last turn, where it brings results and no call was given it."""
    _prompts: set[str] | None = None
    """What the user said, once somebody asks for it."""
    _asking: RequestSettings | None = None
    _form: RequestForm | None = None

    def asked_for(self, tool_id: str, name: str) -> int | None:
        """The place of the open call of that id; without an id, of that name; without either, the oldest."""
        if tool_id:
            return self.open.of_id(tool_id)
        return self.open.of_names((name,)) if name else self.open.oldest()

    def give(self) -> FirstTurns:
        """All turns, to a call."""
        self._given = len(self.turns)
        self._results = None
        return FirstTurns(self.turns, self._given)

    def add(self, turns: Iterable[Turn]) -> None:
        begin = len(self.turns)
        self.turns.extend(turns)
        self._results = None
        if self._prompts is not None:
            self._prompts.update(self._words(self.turns[begin:]))

    def add_prompt(self, text: str) -> None:
        """What the user asks; a prompt that is repeated with every call is asked once."""
        if self._prompts is None:
            self._prompts = set(self._words(self.turns))
        if text not in self._prompts:
            self.add([self.api.user(text)])

    def replace(self, turns: list[Turn]) -> None:
        """All that was said, told anew: most often what a call was given before, and more."""
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(self.turns, turns, strict=False))
        shared = sum(1 for _ in pairs)
        if self._given and shared >= self._given:
            del self.turns[shared:]
        else:
            self.turns, self._given, shared = [], 0, 0
        self._prompts = None
        self.add(turns[shared:])

    def add_result(self, result: ToolOutput) -> None:
        """Results that come in a row belong into one message, where the API has it so."""
        turn = self.api.brought(result)
        together = self.api.together
        if together is not None and self._results is not None:
            self._results[together] += turn[together]
            return
        self.add([turn])
        self._results = turn

    def form(self, asking: RequestSettings) -> RequestForm:
        """How a request is written; the very same object as long as nothing is set anew."""
        if self._form is None or self._asking is None or not _same(self._asking, asking):
            self._asking, self._form = asking, self.api.form(asking)
        return self._form

    def _words(self, turns: list[Turn]) -> Iterable[str]:
        for turn in turns:
            parts = turn.get("parts")
            words = text_at(turn, "content") or (text_at(parts[0], "text") if isinstance(parts, list) and parts else "")
            if words and turn == self.api.user(words):
                yield words


def _same(a: RequestSettings, b: RequestSettings) -> bool:
    """True if both are made of the same values: what was told once is the same object in every call."""
    return (
        a.model == b.model
        and _is(a.system, b.system)
        and (_is(a.tools, b.tools) or not (a.tools or b.tools))
        and a.parameters.keys() == b.parameters.keys()
        and all(_is(value, b.parameters[name]) for name, value in a.parameters.items())
    )


def _is(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, _SCALAR) and type(a) is type(b) and a == b)
