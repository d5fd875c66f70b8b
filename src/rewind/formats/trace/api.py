"""What a trace must know of an API: to recognise its answers, and to write the few turns that are not handed over."""

import json
from abc import ABC, abstractmethod
from dataclasses import field
from typing import Any

from rewind.dataclass import dataclass

Turn = dict[str, Any]
Counts = dict[str, int]
"""Tokens: ``input`` and ``output``, where they are known."""


@dataclass(frozen=True, slots=True)
class AskedTool:
    """A tool that a model asks for."""

    id: str
    name: str
    arguments: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a tool gave back."""

    id: str
    name: str
    output: Any
    failed: bool = False

    @property
    def text(self) -> str:
        return text_of(self.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenAnswer:
    """An answer that was recognised."""

    turns: tuple[Turn, ...]
    """As the API takes it back in the next request."""
    document: dict[str, Any]
    """As the API had given it, whole."""
    lost: tuple[str, ...] = ()
    """What cannot be sent back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSettings:
    """A request but for its turns."""

    model: str
    system: Any
    tools: list[Any]
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestForm:
    """How a request is written around its turns."""

    target: str
    before: dict[str, Any]
    turns_at: str
    first: tuple[Turn, ...] = ()
    """Turns that stand before all others: the system prompt, where it is one."""
    after: dict[str, Any]


class TraceApi(ABC):
    """One API."""

    name: str
    """``openai``, ``responses``, ``anthropic`` or ``gemini``, as ``rewind messages --as`` has them."""
    target: str
    turns_at = "messages"
    """The field of a request that holds its turns."""
    system_at: str | None = None
    """The field that holds the system prompt; ``None`` where that is the first turn."""
    system_apart = False
    """True where a message list does not hold the system prompt."""
    together: str | None = None
    """The field of a turn that holds all results that came in a row; ``None`` where each result is a turn."""
    usage_at = "usage"
    input_name, output_name = "input_tokens", "output_tokens"

    @abstractmethod
    def said(self, value: Any) -> SpokenAnswer | None:
        """The answer that this value is; ``None`` where it is surely not one of this API."""

    @abstractmethod
    def spoken(self, text: str, uses: tuple[AskedTool, ...]) -> SpokenAnswer:
        """An answer of which only the words and the calls are known."""

    @abstractmethod
    def uses(self, turn: Turn) -> list[AskedTool]:
        """The tools that a turn asks for."""

    @abstractmethod
    def brought(self, result: ToolOutput) -> Turn:
        """A turn that brings a tool's result."""

    def user(self, content: Any) -> Turn:
        """What the user says."""
        return {"role": "user", "content": content}

    def form(self, settings: RequestSettings) -> RequestForm:
        """The request around the turns."""
        system = settings.system
        first: tuple[Turn, ...] = ()
        before = only(("model", settings.model))
        if self.system_at is not None:
            before |= only((self.system_at, system))
        elif system not in (None, "", []):
            first = ({"role": "system", "content": system},)
        after = {**only(("tools", settings.tools)), **settings.parameters}
        return RequestForm(target=self.target, before=before, turns_at=self.turns_at, first=first, after=after)

    def with_usage(self, document: dict[str, Any], usage: dict[str, Any], counts: Counts) -> dict[str, Any]:
        """The answer with tokens that are told beside it: in this API's words, or else only what they come to."""
        names = {"input": self.input_name, "output": self.output_name}
        own = usage if self.input_name in usage else {names[kind]: count for kind, count in counts.items()}
        return {**document, self.usage_at: own}


def text_of(value: Any) -> str:
    """A text, or the JSON of any other value."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def objects(value: Any) -> list[dict[str, Any]]:
    """The JSON objects in a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_at(value: Any, name: str) -> str:
    text = value.get(name) if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


def without_nulls(value: dict[str, Any], *kept: str) -> dict[str, Any]:
    """SDKs write every field that says nothing as ``null``, and some servers refuse those."""
    return {name: inner for name, inner in value.items() if inner is not None or name in kept}


def json_or_text(written: Any) -> Any:
    """Arguments as JSON, where they are written as a text."""
    try:
        return json.loads(written) if isinstance(written, str) else written
    except (ValueError, RecursionError):
        return written


def only(*settings: tuple[str, Any]) -> dict[str, Any]:
    """The settings that are not empty."""
    return {name: value for name, value in settings if value not in (None, "", [], {})}
