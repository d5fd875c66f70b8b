"""An answer while its documents go by, whole or in deltas; made into an ``Answered`` once, at the end.

Providers put pieces in by the place the API gives them (a block's index, a choice's tool number). Pieces of one
place are joined, so a stream and its whole twin end as the same parts.
"""

import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import field
from typing import Any

from rewind.dataclass import dataclass
from rewind.model.http import HttpResponse
from rewind.model.message import Answered, Part, Refusal, Text, Thinking, ToolUse
from rewind.model.usage import Usage
from rewind.providers.shared.answer_stream import Answer, error_of
from rewind.providers.shared.json_fields import at, count_at, start_of, text_at, total, writable

BlockPlace = Hashable


@dataclass(slots=True)
class WordsDraft:
    """Words of one kind, in pieces."""

    kind: type[Text] | type[Refusal]
    pieces: list[str] = field(default_factory=list)

    def part(self) -> Part | None:
        text = writable("".join(self.pieces))
        return self.kind(text) if text else None


@dataclass(slots=True)
class ThinkingDraft:
    """Thinking, in pieces."""

    pieces: list[str] = field(default_factory=list)
    sealed: bool = False
    signed: bool = False
    """Whether the provider vouches for it; a signature without words stands for words that are kept back."""

    def part(self) -> Part | None:
        text = writable("".join(self.pieces))
        sealed = self.sealed or (self.signed and not text)
        return Thinking(text, sealed) if text or sealed else None


@dataclass(slots=True)
class ToolDraft:
    """A tool call whose arguments come as a value, or as JSON in pieces."""

    id: str = ""
    name: str = ""
    arguments: Any = None
    pieces: list[str] = field(default_factory=list)
    hosted: bool = False
    free_form: bool = False
    """Whether the pieces are a text of the tool's own, not JSON."""

    def part(self) -> Part | None:
        written = "".join(self.pieces)
        arguments = self.arguments
        if written:
            arguments = writable(written) if self.free_form else json_or_text(written)
        return ToolUse(writable(self.id), writable(self.name), arguments, self.hosted)


@dataclass(slots=True)
class WholePart:
    """A part that came in one piece."""

    value: Part

    def part(self) -> Part | None:
        return self.value


PartDraft = WordsDraft | ThinkingDraft | ToolDraft | WholePart


@dataclass(slots=True)
class AnswerDraft:
    """Filled by a provider, document by document, and read once at the end."""

    id: str = ""
    model: str = ""
    stop: str = ""
    tier: str = ""
    told: dict[str, Any] = field(default_factory=dict)
    """The usage in the API's own words; in a stream it comes in several, and the last word on each field holds."""
    error: str | None = None
    """Told in a place of the API's own; the usual ones are looked at anyway."""
    note: str | None = None
    choices: dict[int, dict[BlockPlace, PartDraft]] = field(default_factory=dict)

    def named(self, document: Any, *, id_at: str = "id", model_at: str = "model") -> None:
        """Who answers, and under which id; the last one told holds."""
        self.id = text_at(document, id_at) or self.id
        self.model = text_at(document, model_at) or self.model

    def stopped(self, reason: str) -> None:
        self.stop = reason or self.stop

    def count(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self.told.update({name: value for name, value in usage.items() if value is not None})

    def say(self, place: BlockPlace, piece: str, *, kind: type[Text] | type[Refusal] = Text, choice: int = 0) -> None:
        if piece:
            block = self._at(place, choice)
            if not isinstance(block, WordsDraft) or block.kind is not kind:
                block = self._put(place, WordsDraft(kind), choice)
            block.pieces.append(piece)

    def think(
        self, place: BlockPlace, piece: str, *, sealed: bool = False, signed: bool = False, choice: int = 0
    ) -> None:
        if piece or sealed or signed:
            block = self._at(place, choice)
            if not isinstance(block, ThinkingDraft):
                block = self._put(place, ThinkingDraft(), choice)
            block.pieces.append(piece)
            block.sealed = block.sealed or sealed
            block.signed = block.signed or signed

    def tool(self, place: BlockPlace, *, choice: int = 0) -> ToolDraft:
        """The tool call at that place, new or known."""
        block = self._at(place, choice)
        return block if isinstance(block, ToolDraft) else self._put(place, ToolDraft(), choice)

    def put(self, place: BlockPlace, part: Part, *, choice: int = 0) -> None:
        self._put(place, WholePart(part), choice)

    def has(self, place: BlockPlace, *, choice: int = 0) -> bool:
        return place in self.choices.get(choice, {})

    def last(self, *, choice: int = 0) -> BlockPlace | None:
        """The place that was begun last: for APIs whose pieces name none."""
        return next(reversed(self.choices.get(choice, {})), None)

    def free(self, *, choice: int = 0) -> int:
        """A place that nothing has yet."""
        return len(self.choices.get(choice, {}))

    def _at(self, place: BlockPlace, choice: int) -> PartDraft | None:
        return self.choices.get(choice, {}).get(place)

    def _put(self, place: BlockPlace, block: Any, choice: int) -> Any:
        self.choices.setdefault(choice, {})[place] = block
        return block

    def parts(self, choice: int = 0) -> tuple[Part, ...]:
        blocks = self.choices.get(choice, {}).values()
        return tuple(part for block in blocks if (part := block.part()) is not None)

    def answered(self, response: HttpResponse, answer: Answer, table: "UsageTable") -> Answered:
        first, *others = [self.parts(choice) for choice in sorted(self.choices)] or [()]
        return Answered(
            id=writable(self.id),
            model=writable(self.model) or None,
            parts=first,
            alternatives=tuple(others),
            stop=writable(self.stop),
            usage=table.read(self.told, self.tier),
            error=error_of(response, answer) or self.error,
            note=answer.note or self.note or _unread(response, answer),
        )


def _unread(response: HttpResponse, answer: Answer) -> str | None:
    """Why nothing is shown of an answer that does not speak the API at all: a gateway's page, or a wrong label."""
    if answer.documents or not answer.shown or response.head.status >= 400:
        return None
    return f"not JSON: {start_of(answer.shown, 80)}"


UsagePath = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTable:
    """Where an API tells its tokens. Several paths in a row are summed: kinds that it counts apart."""

    input: tuple[UsagePath, ...]
    output: tuple[UsagePath, ...] = ()
    cache_read: tuple[UsagePath, ...] = ()
    cache_write: tuple[UsagePath, ...] = ()
    reasoning: tuple[UsagePath, ...] = ()
    more: Mapping[str, tuple[UsagePath, ...]] = field(default_factory=dict)

    def read(self, told: Any, tier: str = "") -> Usage:
        """The usage in that object."""
        return Usage(
            input=_sum(told, self.input),
            output=_sum(told, self.output),
            cache_read=_sum(told, self.cache_read),
            cache_write=_sum(told, self.cache_write),
            reasoning=_sum(told, self.reasoning),
            more={name: count for name, paths in self.more.items() if (count := _sum(told, paths))},
            tier="" if tier in _USUAL_TIERS else writable(tier)[:40],
        )


_USUAL_TIERS = frozenset({"", "auto", "default", "standard", "on_demand", "STANDARD", "ON_DEMAND"})


def _sum(told: Any, paths: Iterable[UsagePath]) -> int | None:
    return total(*[count for path in paths if (count := count_at(told, *path)) is not None])


def json_or_text(written: str) -> Any:
    """The JSON value, or the text itself where it is none."""
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return writable(written)


def parameters_of(document: Any, known: Iterable[str]) -> dict[str, Any]:
    """All that was set besides the named fields, which the codec reads itself."""
    if not isinstance(document, dict):
        return {}
    read = frozenset(known)
    return {name: value for name, value in document.items() if name not in read and value is not None}


def inner(document: Any, *path: str | int) -> Any:
    """The object at that place, or the document itself where there is none."""
    found = at(document, *path)
    return found if isinstance(found, dict) else document


# ── strings that come in pieces ──────────────────────────────────────────────────────────────────────────────

JsonPath = tuple[str | int, ...]

_DEEPEST = 32
"""No API nests deeper; a damaged path must not build a value that nothing can walk."""


@dataclass(frozen=True, slots=True)
class _WholeValue:
    value: Any


_Branch = dict[str | int, Any]
"""By the next step: another branch, a list of pieces, or what was told whole."""


@dataclass(slots=True)
class PartialJson:
    """What is known of a value so far, by path."""

    root: _Branch = field(default_factory=dict)

    def append(self, path: JsonPath, piece: str) -> None:
        """The next piece of the text at that place."""
        branch, step = self._place(path)
        if not isinstance(branch.get(step), list):
            branch[step] = []
        branch[step].append(piece)

    def put(self, path: JsonPath, value: Any) -> None:
        """The whole value at that place, instead of what came in pieces."""
        branch, step = self._place(path)
        branch[step] = _WholeValue(value)

    def into(self, value: Any) -> Any:
        """The value with all pieces in their places."""
        return _filled(value, self.root) if self.root else value

    def _place(self, path: JsonPath) -> tuple[_Branch, str | int]:
        branch = self.root
        *way, last = path[:_DEEPEST] or ("",)
        for step in way:
            if not isinstance(branch.get(step), dict):
                branch[step] = {}
            branch = branch[step]
        return branch, last


def _filled(value: Any, known: Any) -> Any:
    if isinstance(known, _WholeValue):
        return known.value
    if isinstance(known, list):
        return "".join(known)
    if named := {step: inside for step, inside in known.items() if isinstance(step, str)}:
        fields = value if isinstance(value, dict) else {}
        return {**fields, **{step: _filled(fields.get(step), inside) for step, inside in named.items()}}
    elements = list(value) if isinstance(value, list) else []
    for step, inside in sorted(known.items()):
        # A damaged index must not make a list of that length: what lies beyond the end comes next.
        if step < len(elements):
            elements[step] = _filled(elements[step], inside)
        else:
            elements.append(_filled(None, inside))
    return elements
