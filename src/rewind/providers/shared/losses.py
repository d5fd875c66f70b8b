"""What all writers share: the bytes of pictures and files, and the list of what could not be written."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rewind.model.message import Media, Message, Other, Part, Refusal, Text, Thinking, ToolResult, ToolUse
from rewind.providers.shared.media import inline


@dataclass(slots=True)
class LossLog:
    """What one conversation lost on its way to another API, and the bytes that its files consist of."""

    data: Mapping[str, str] = field(default_factory=dict)
    """Digest → base64, of what the conversation holds inline."""
    counts: Counter[str] = field(default_factory=Counter)
    """What was left out or written otherwise, and how often."""

    def data_of(self, media: Media) -> str:
        """The base64 of inline data; empty where it is only referred to, or the bytes are not at hand."""
        return self.data.get(media.digest, "") if media.digest else ""

    def instead_of(self, media: Media) -> str:
        """The words that stand for a picture or file that this API cannot be given."""
        self.counts[f"{media.kind}: only its place is marked"] += 1
        told = ", ".join(filter(None, (media.media_type, media.reference)))
        return f"[{media.kind} left out{': ' * bool(told)}{told}]"

    def leave_out(self, part: Part) -> None:
        match part:
            case Thinking():
                self.counts["thinking left out: only the API that wrote it can read it"] += 1
            case ToolUse():
                self.counts["call of a hosted tool left out: the provider ran it itself"] += 1
            case ToolResult(hosted=True):
                pass  # goes with its call
            case Other(kind, _):
                self.counts[f"{kind or 'part'} left out: no other API has it"] += 1
            case _:
                self.counts["part left out"] += 1

    def written_as_users(self) -> None:
        self.counts["system message inside the conversation written as the user's"] += 1

    def remarks(self) -> list[str]:
        """Each loss in words, with how often it happened."""
        return [f"{what} ({count}×)" if count > 1 else what for what, count in self.counts.items()]


def told_in(result: ToolResult) -> tuple[Part, ...]:
    """What a tool gave back, in texts and media: a value that is no text is written as JSON."""
    return tuple(
        Text(json_text(part.value)) if isinstance(part, Other) else part
        for part in result.parts
        if isinstance(part, Text | Refusal | Media | Other)
    )


def json_text(value: Any) -> str:
    """A JSON value as text; a text is its own."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        return ""


def arguments_text(arguments: Any) -> str:
    """Arguments as the JSON text in which OpenAI's APIs carry them; a text that is no JSON is itself."""
    return "{}" if arguments is None else json_text(arguments)


def arguments_object(arguments: Any, losses: LossLog) -> dict[str, Any]:
    """Arguments as the object that Anthropic and Google insist on."""
    if arguments is None:
        return {}
    if isinstance(arguments, dict):
        return arguments
    losses.counts['arguments that are no object written as {"input": …}'] += 1
    return {"input": arguments}


def media_in(documents: Iterable[Any], messages: Iterable[Message]) -> dict[str, str]:
    """Digest → base64 of what the messages hold inline, found again in the documents that they were read from."""
    wanted = {media.digest for message in messages for media in _media(message.parts) if media.digest}
    found: dict[str, str] = {}
    waiting = list(documents) if wanted else []
    while waiting and wanted:
        match waiting.pop():
            case dict() as fields:
                waiting += fields.values()
            case list() as items:
                waiting += items
            case str() as text:
                data = text.partition(",")[2] if text.startswith("data:") else text
                if (digest := inline(data, "").digest) in wanted:
                    found[digest] = data
                    wanted.discard(digest)
    return found


def _media(parts: Iterable[Part]) -> Iterator[Media]:
    for part in parts:
        if isinstance(part, Media):
            yield part
        elif isinstance(part, ToolResult):
            yield from _media(part.parts)
