"""What a trace must know of an API: to recognise its answers, and to write the few turns that are not handed over."""

import json
from dataclasses import dataclass, field
from typing import Any, Protocol

Turn = dict[str, Any]
Counts = dict[str, int]
"""Tokens: ``input`` and ``output``, where they are known."""


@dataclass(frozen=True, slots=True)
class Use:
    """A tool that a model asks for."""

    id: str
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a tool gave back."""

    id: str
    name: str
    output: Any
    failed: bool = False

    @property
    def text(self) -> str:
        return text_of(self.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An answer that was recognised."""

    turns: tuple[Turn, ...]
    """As the API takes it back in the next request."""
    document: dict[str, Any]
    """As the API had given it, whole."""
    lost: tuple[str, ...] = ()
    """What cannot be sent back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A request but for its turns."""

    model: str
    system: Any
    tools: list[Any]
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a request is written around its turns."""

    target: str
    before: dict[str, Any]
    turns_at: str
    first: tuple[Turn, ...]
    """Turns that stand before all others: the system prompt, where it is one."""
    after: dict[str, Any]


class Api(Protocol):
    """One API."""

    @property
    def name(self) -> str:
        """``openai``, ``responses``, ``anthropic`` or ``gemini``, as ``rewind messages --as`` has them."""
        ...

    def said(self, value: Any) -> Said | None:
        """The answer that this value is; ``None`` where it is surely none of this API's."""
        ...

    def spoken(self, text: str, uses: tuple[Use, ...]) -> Said:
        """An answer of which only the words and the calls are known."""
        ...

    def user(self, content: Any) -> Turn:
        """What the user says."""
        ...

    def uses(self, turn: Turn) -> list[Use]:
        """The tools that a turn asks for."""
        ...

    @property
    def together(self) -> str | None:
        """Where a turn holds all results of tools that came in a row; ``None`` where each is a turn."""
        ...

    @property
    def system_apart(self) -> bool:
        """Whether the system prompt stands beside the list of messages."""
        ...

    def brought(self, result: Result) -> Turn:
        """A turn that brings a tool's result."""
        ...

    def form(self, asking: Asking) -> Form:
        """The request around the turns."""
        ...

    def with_usage(self, document: dict[str, Any], usage: dict[str, Any], counts: Counts) -> dict[str, Any]:
        """The answer with tokens that were told beside it: in this API's words, or else only what they come to."""
        ...


def text_of(value: Any) -> str:
    """A text, or the JSON of what is none."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def objects(value: Any) -> list[dict[str, Any]]:
    """The JSON objects in a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_at(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def told(value: dict[str, Any], *kept: str) -> dict[str, Any]:
    """The fields that say something. SDKs write all the others as ``null``, and some servers refuse those."""
    return {name: one for name, one in value.items() if one is not None or name in kept}


def json_or_text(written: Any) -> Any:
    """Arguments as JSON, where they are written as a text."""
    if not isinstance(written, str):
        return written
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return written


def only(*settings: tuple[str, Any]) -> dict[str, Any]:
    """The settings that there are."""
    return {name: value for name, value in settings if value not in (None, "", [], {})}
