"""An LLM call in the neutral shape: what the model was given, and what it gave back.

Codecs in :mod:`rewind.providers` make these values from recorded bytes, so every view, comparison and count reads
one shape. A stream and the whole answer that says the same are equal values.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from rewind.dataclass import dataclass
from rewind.model.usage import NO_USAGE, Usage


class Role(StrEnum):
    """Who speaks. ``developer`` messages are the system's; a tool's results are the tool's."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """What the model thought before it spoke."""

    text: str
    sealed: bool = False
    """Whether the provider keeps it, or part of it, to itself: encrypted, redacted or left out."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Words by which the model declines, where the API tells them from others."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call that the model asks for."""

    id: str
    """Ties the result to it; empty where the API has none."""
    name: str
    arguments: Any
    """The JSON value; the text as it came where it is not JSON (cut off, or a free-form tool)."""
    hosted: bool = False
    """Run by the provider within the answer: the agent has nothing to do."""


@dataclass(frozen=True, slots=True)
class Media:
    """An image, sound, document or file, by what is known of it. Its bytes stay in the recorded body."""

    kind: str
    """``image``, ``audio``, ``video``, ``document`` or ``file``."""
    media_type: str = ""
    reference: str = ""
    """The URL or file id; empty where the bytes were sent inline."""
    digest: str = ""
    """Of inline data, so that two pictures can be told apart."""
    size: int | None = None
    """Bytes of inline data."""


@dataclass(frozen=True, slots=True)
class Vectors:
    """What an embedding model answers with."""

    count: int
    dimensions: int | None = None


@dataclass(frozen=True, slots=True)
class Other:
    """A part that no row of the codec reads: kept whole rather than dropped."""

    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back."""

    id: str
    parts: tuple["Part", ...]
    name: str = ""
    """Known where the API repeats it."""
    failed: bool = False
    """Only where the API has a word for it; a text that says "error" is a text."""
    hosted: bool = False

    @property
    def text(self) -> str:
        return text_of(self.parts)


Part = Text | Thinking | Refusal | ToolUse | ToolResult | Media | Vectors | Other


@dataclass(frozen=True, slots=True)
class Message:
    """One turn."""

    role: Role
    parts: tuple[Part, ...]
    name: str = ""
    """The speaker's name, where the API has one."""
    entries: int = field(default=1, compare=False)
    """How many entries of the request's list it was read from: some APIs list what a model says in pieces."""

    @property
    def text(self) -> str:
        return text_of(self.parts)


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool the model may ask for."""

    name: str
    description: str = ""
    schema: Any = None
    """Of its arguments; for a hosted tool its settings."""
    hosted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the model was given."""

    model: str | None = None
    system: tuple[Part, ...] = ()
    """The instructions that stand before the conversation."""
    messages: tuple[Message, ...] = ()
    listed: int | None = field(default=None, compare=False)
    """How many entries the request's own list has; ``None`` where that is one for each message."""
    tools: tuple[ToolDefinition, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """All else that was set: temperature, limits, formats, tool choice; names as the API has them."""
    streamed: bool = False
    continues: str | None = None
    """The id of an earlier answer that the provider was told to go on from."""
    history: str | None = None
    """The id of a conversation that the provider keeps, and adds this call to."""
    embeds: bool = False
    """Whether vectors are asked for: such a call belongs to no conversation."""
    note: str | None = None
    """What could not be read."""

    def number(self, at: int) -> int:
        """Where the message stands in the request's own list, from 0: the i of ``messages[i]`` everywhere."""
        if self.listed is None:
            return at
        # Counted from the end: what is asked for is mostly new, and instructions stand before all others.
        return self.listed - sum(message.entries for message in self.messages[at:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came back, as far as it came."""

    id: str = ""
    model: str | None = None
    """As the answer names it; often a dated snapshot behind the alias that was asked for."""
    parts: tuple[Part, ...] = ()
    alternatives: tuple[tuple[Part, ...], ...] = ()
    """The other choices, where several were asked for."""
    stop: str = ""
    """Why the model stopped, in the provider's own word."""
    usage: Usage = NO_USAGE
    error: str | None = None
    """The provider's message, by status or inside an answer that began well."""
    note: str | None = None
    """What could not be read, and why."""

    @property
    def text(self) -> str:
        return text_of(self.parts)

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The tools that the agent is asked to run."""
        return tuple(part for part in self.parts if isinstance(part, ToolUse) and not part.hosted)


def text_of(parts: tuple[Part, ...]) -> str:
    """The words of the parts, in order; thinking and results of tools are not what was said."""
    return "".join(part.text for part in parts if isinstance(part, Text | Refusal))


def results_in(messages: tuple[Message, ...]) -> Iterator[ToolResult]:
    """The results that the agent gives back, in order."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResult) and not part.hosted:
                yield part
