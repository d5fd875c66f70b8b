"""What runs have, or have not, that may tell good ones from bad ones.

A :class:`Feature` is one such thing, with the runs that have it: a sentence of the system prompt, the model, a field of
a tool's result, a decision. Texts of models and users never repeat, so a text counts by its sentences and its words;
what only one run has is no feature. Ids and times are taken out before anything is looked at. Nothing here knows which
run is good.
"""

import json
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from rewind.compare.cause import CauseKind
from rewind.compare.columns import MoveColumn
from rewind.compare.run import ComparedRun, Move, status_of
from rewind.compare.texts import without_noise
from rewind.compare.turn import turn_start
from rewind.conversation.context import parts_text
from rewind.conversation.sketch import settings_of
from rewind.dataclass import dataclass
from rewind.model.message import Asked, Message, Role, ToolResult, ToolUse

_SENTENCE = re.compile(r"(?<=[^\d\s][.!?;])\s+|\n+")
_WORD = re.compile(r"[^\W_](?:[\w.,:/@#%$€-]*\w)?%?")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_DROPPED = "no longer sent"
_HIDDEN = "\0"
"""Stands where an id or a time was taken out."""
_LONGEST_VALUE = 80
"""Characters up to which a text in JSON is a value; longer ones are prose."""
_LONGEST_TEXT = 100_000
_MOST_THRESHOLDS = 40
_FULL, _HALF, _LOW = 1.0, 0.5, 0.15
"""Weights: of values; of limits and sentences, of which there are more; of words, of which there are many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """Something that some runs have, and others have not."""

    kind: CauseKind | None
    """Of what was asked or given; ``None`` for what was decided."""
    place: str
    """``lookup_order``, ``temperature``; empty where there is but one; the number of the column for steps."""
    text: str
    """What those runs have: ``status is "frozen"``."""
    opposite: str = ""
    """What the others have, where that can be said."""
    first: Mapping[int, int]
    """The runs that have it, and the column where each has it first."""
    weight: float = _FULL

    @property
    def runs(self) -> frozenset[int]:
        return frozenset(self.first)

    @property
    def column(self) -> int:
        """Where most of them have it first."""
        ordered = sorted(self.first.values())
        return ordered[(len(ordered) - 1) // 2]

    @property
    def shown_place(self) -> str:
        """For people: what is said of a step is said at that step."""
        return "" if self.kind in (None, CauseKind.PATH) else self.place

    @property
    def is_prose(self) -> bool:
        """Whether it is a word, or a sentence, of a text."""
        return self.weight < _HALF


def features_of(runs: Sequence[ComparedRun], columns: Sequence[MoveColumn]) -> list[Feature]:
    """Everything that at least two runs have and at least two have not; of a few runs, all that not all have."""
    found = _Gathered(len(runs), [sum(move is not None for move in column.cells) for column in columns])
    for number, column in enumerate(columns):
        _gather_decisions(found, number, column)
    for at, run in enumerate(runs):
        cells = ((number, column.cells[at]) for number, column in enumerate(columns))
        reader = _RunReader(found, at, run)
        for number, move in sorted(((n, m) for n, m in cells if m is not None), key=lambda one: one[1].index):
            reader.read(number, move)
    return list(found.features())


class _Gathered:
    """Things, and which run has each where first."""

    def __init__(self, runs: int, there: Sequence[int]) -> None:
        """``there``: how many runs make the step of each column."""
        self._runs = runs
        self._there = there
        self._seen: dict[tuple[CauseKind | None, str, str, int | None], dict[int, int]] = {}
        self._weights: dict[tuple[CauseKind | None, str, str, int | None], float] = {}
        self._numbers: dict[tuple[CauseKind | None, str, str], dict[int, tuple[float, int]]] = {}

    def add(
        self,
        kind: CauseKind | None,
        place: str,
        text: str,
        run: int,
        column: int,
        *,
        weight: float = _FULL,
        here: bool = False,
    ) -> None:
        """``here``: it also counts that it stands in this column."""
        for where in (None, column) if here else (None,):
            key = (kind, place, text, where)
            seen = self._seen.setdefault(key, {})
            seen[run] = min(column, seen.get(run, column))
            self._weights[key] = weight

    def add_number(self, kind: CauseKind, place: str, name: str, value: float, run: int, column: int) -> None:
        seen = self._numbers.setdefault((kind, place, name), {})
        known = seen.get(run)
        seen[run] = (value, column) if known is None else (max(value, known[0]), min(column, known[1]))

    def features(self) -> Iterator[Feature]:
        fewest = 1 if self._runs < 8 else 2
        for key, seen in self._seen.items():
            kind, place, text, where = key
            if where is not None and len(seen) == self._there[where]:
                continue  # whoever makes the step has it: that tells no more than that the step is made
            if fewest <= len(seen) <= self._runs - fewest:
                yield Feature(kind=kind, place=place, text=text, first=seen, weight=self._weights[key])
        for (kind, place, name), numbers in self._numbers.items():
            yield from self._limits(kind, place, name, numbers)

    def _limits(
        self, kind: CauseKind | None, place: str, name: str, numbers: Mapping[int, tuple[float, int]]
    ) -> Iterator[Feature]:
        """A number may tell by being large, though it never repeats: every limit between two values is a feature."""
        values = sorted({value for value, _ in numbers.values()})
        if not 2 < len(values) <= _MOST_THRESHOLDS:
            return
        for below, limit in pairwise(values):
            above = {run: column for run, (value, column) in numbers.items() if value >= limit}
            yield Feature(
                kind=kind,
                place=place,
                text=f"{name} ≥ {limit:g}",
                opposite=f"{name} ≤ {below:g}" if len(numbers) == self._runs else "",
                first=above,
                weight=_HALF,
            )


# ── what is decided ──────────────────────────────────────────────────────────────────────────────────────────


def _gather_decisions(found: _Gathered, number: int, column: MoveColumn) -> None:
    for run, (move, decision, answer) in enumerate(zip(column.cells, column.decisions, column.answers, strict=True)):
        if move is None or decision is None:
            continue
        found.add(None, str(number), "makes this step", run, number)
        found.add(CauseKind.PATH, str(number), "makes this step", run, number)
        found.add(None, str(number), f"decision {answer}", run, number)


# ── what is asked and given ──────────────────────────────────────────────────────────────────────────────────


class _RunReader:
    """Reads one run, move by move, and remembers what it has read."""

    def __init__(self, found: _Gathered, number: int, run: ComparedRun) -> None:
        self._found = found
        self._number = number
        self._run = run
        self._read: set[Hashable] = set()
        self._statuses = {step.index: step for step in run.recording.steps}
        self._begun: set[int | None] = set()
        self._sent: dict[str, tuple[Message, ...]] = {}
        """By system prompt: the messages of the latest call."""

    def read(self, column: int, move: Move) -> None:
        self._read_failures(column, move)
        if move.sketch is None:
            self._read_exchange(column, move)
            return
        asked = self._run.asked(move.index)
        if move.model_asked:
            self._add(CauseKind.MODEL, "", move.model_asked, column, here=True)
        if move.model_answered and not move.failed:
            self._add(CauseKind.SNAPSHOT, "", move.model_answered, column, here=True)
        if self._is_new("system", move.sketch.system):
            self._add_text(CauseKind.SYSTEM, "", parts_text(asked.system), column)
        if self._is_new("tools", move.sketch.tools):
            for tool in asked.tools:
                self._add(CauseKind.TOOLS, tool.name, "is offered", column)
                self._add_text(CauseKind.TOOLS, tool.name, tool.description, column)
                self._add_value(CauseKind.TOOLS, tool.name, tool.schema, column)
        if self._is_new("settings", move.sketch.settings):
            for name, value in settings_of(asked, self._run.provider(move.index)).items():
                self._add_value(CauseKind.PARAMETERS, name, value, column)
        self._read_turn(column, move, asked)
        self._read_decided(column, move)

    def _is_new(self, what: str, digest: str) -> bool:
        if (what, digest) in self._read:
            return False
        self._read.add((what, digest))
        return True

    def _read_turn(self, column: int, move: Move, asked: Asked) -> None:
        start = turn_start(asked.messages)
        first = move.thread not in self._begun
        self._begun.add(move.thread)
        earlier = asked.messages[:start]
        if first:
            for message in earlier:
                self._add_text(CauseKind.HISTORY, message.role.value, parts_text(message.parts), column)
        elif earlier and self._run.goes_on_from(move) is None:
            self._add(CauseKind.HISTORY, "", "what was said before is not sent whole", column, here=True)
        self._read_dropped(column, move, asked)
        if asked.continues or asked.history:
            self._add(CauseKind.HISTORY, "", "goes on from what the provider keeps", column, here=True)
        names = _tool_names(earlier)
        for message in asked.messages[start:]:
            for part in message.parts:
                if isinstance(part, ToolResult):
                    name = names.get(part.id) or part.name or "a tool"
                    self._add_content(CauseKind.TOOL_OUTPUT, name, parts_text(part.parts), column)
                    if part.failed:
                        self._add(CauseKind.TOOL_OUTPUT, name, "failed", column, here=True)
            words = [part for part in message.parts if not isinstance(part, ToolResult)]
            kind = CauseKind.SYSTEM if message.role is Role.SYSTEM else CauseKind.INPUT
            self._add_content(kind, "", parts_text(words), column)

    def _read_dropped(self, column: int, move: Move, asked: Asked) -> None:
        """What an earlier call with the same prompt had sent, and this one, which goes on from there, has not."""
        assert move.sketch is not None, "conversations are calls to models"
        before = self._sent.get(move.sketch.system, ())
        self._sent[move.sketch.system] = asked.messages
        if self._run.goes_on_from(move) is not None:
            return
        then, now = ({parts_text(message.parts) for message in messages} for messages in (before, asked.messages))
        if then & now:
            for text in then - now:
                self._add_text(CauseKind.HISTORY, _DROPPED, text, column)

    def _read_decided(self, column: int, move: Move) -> None:
        answered = self._run.answered(move.index)
        for use in () if answered is None else answered.tool_uses:
            self._add(None, "", f"calls {use.name}", column)

    def _read_failures(self, column: int, move: Move) -> None:
        for index in move.failures:
            step = self._statuses.get(index)
            status = None if step is None else step.status
            self._add(CauseKind.ERROR, "", f"a try failed with {status or 'no answer'}", column, here=True)
        if move.failed:
            self._add(CauseKind.ERROR, "", f"failed with {status_of(move)}", column, here=True)

    def _read_exchange(self, column: int, move: Move) -> None:
        """A request that is no call to a model: where it goes, and what came back."""
        asked, answered = self._run.asked(move.index), self._run.answered(move.index)
        names = [part.name for message in asked.messages for part in message.parts if isinstance(part, ToolUse)]
        head = move.step.request.head
        place = names[0] if names else f"{head.method} {head.host}{self._run.path(move)}"
        self._add(CauseKind.PATH, place, "is asked", column)
        if answered is not None and not move.failed:
            self._add_content(CauseKind.TOOL_OUTPUT, place, parts_text(answered.parts), column)

    # ── pieces of a text or a value ──

    def _add(
        self, kind: CauseKind | None, place: str, text: str, column: int, *, weight: float = _FULL, here: bool = False
    ) -> None:
        self._found.add(kind, place, text, self._number, column, weight=weight, here=here)

    def _add_content(self, kind: CauseKind, place: str, text: str, column: int) -> None:
        """JSON by its fields, ``name: value`` by its lines, anything else as prose."""
        value = _json(text)
        if isinstance(value, dict | list):
            self._add_value(kind, place, value, column)
        else:
            self._add_text(kind, place, text, column)

    def _add_value(self, kind: CauseKind, place: str, value: Any, column: int, path: str = "") -> None:
        match value:
            case dict():
                for name, inner in value.items():
                    self._add_value(kind, place, inner, column, f"{path}.{name}" if path else str(name))
            case list():
                self._found.add_number(kind, place, f"{path} length".strip(), len(value), self._number, column)
                for inner in value:
                    self._add_value(kind, place, inner, column, f"{path}[]")
            case str() if len(value) > _LONGEST_VALUE or "\n" in value:
                self._add_text(kind, place, value, column, path)
            case _:
                self._add_scalar(kind, place, value, column, path)

    def _add_scalar(self, kind: CauseKind, place: str, value: Any, column: int, path: str) -> None:
        text = without_noise(json.dumps(value, ensure_ascii=False)).replace(_HIDDEN, "…")
        if not any(map(str.isalnum, text)):
            return
        here = kind in (CauseKind.TOOL_OUTPUT, CauseKind.INPUT)
        self._add(kind, place, f"{path} {text}".strip(), column, here=here)
        if isinstance(value, int | float) and not isinstance(value, bool):
            self._found.add_number(kind, place, path, value, self._number, column)
        elif isinstance(value, str) and " " in value:
            self._add_words(kind, place, value, column)

    def _add_text(self, kind: CauseKind, place: str, text: str, column: int, path: str = "") -> None:
        text = without_noise(text[:_LONGEST_TEXT])
        for sentence in _SENTENCE.split(text):
            plain = " ".join(sentence.replace(_HIDDEN, "…").split())
            if any(map(str.isalnum, plain)):
                self._add(kind, place, f'"{plain}"', column, weight=_HALF)
            if (counted := without_numbers(plain)) != plain and any(map(str.isalpha, plain)):
                # The same but for its numbers; these are looked at as words.
                self._add(kind, place, f'"{counted}"', column, weight=_HALF)
        self._add_words(kind, place, text, column)

    def _add_words(self, kind: CauseKind, place: str, text: str, column: int) -> None:
        for word in set(_WORD.findall(text.casefold())):
            if len(word) > 2 or word.isdigit():
                self._add(kind, place, f"the word {word}", column, weight=_LOW)


def without_numbers(text: str) -> str:
    return _NUMBER.sub("#", text)


def _tool_names(messages: Sequence[Message]) -> dict[str, str]:
    return {part.id: part.name for one in messages for part in one.parts if isinstance(part, ToolUse) and part.id}


def _json(text: str) -> Any:
    try:
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None
