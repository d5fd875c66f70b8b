"""What a message holds in the shape that OpenAI gave it: texts, thinking, pictures, sounds, files."""

from typing import Any

from rewind.model.message import Other, Part, Refusal, Text, Thinking
from rewind.providers.shared.json_fields import items_at, text_at, words_at, writable
from rewind.providers.shared.media import inline, referred


def parts_of(content: Any) -> tuple[Part, ...]:
    """The content of a message: a text, or a list of parts."""
    return tuple(part for block in blocks_of(content) if (part := part_of(block)) is not None)


def blocks_of(content: Any) -> list[Any]:
    """The content as a list, however it came."""
    if content is None:
        return []
    return content if isinstance(content, list) else [content]


def part_of(block: Any) -> Part | None:
    """One part of the content; an empty text is none."""
    if isinstance(block, str):
        return Text(writable(block)) if block else None
    match kind := text_at(block, "type"):
        case "text":
            return Text(words_at(block, "text")) if text_at(block, "text") else None
        case "refusal":
            return Refusal(words_at(block, "refusal"))
        case "thinking":
            text = writable(thought_in(block))
            return Thinking(text, sealed=not text)
        case "image_url" | "video_url" | "audio_url" | "document_url":
            url = text_at(block, kind, "url") or text_at(block, kind)
            return referred(url, kind=kind.removesuffix("_url"))
        case "input_audio":
            return _sound(block)
        case "file":
            return _file(block)
        case "document" if data := text_at(block, "document", "data"):
            return Text(writable(data))
        case _:
            return Other(writable(kind), block)


def _sound(block: Any) -> Part:
    data = text_at(block, "input_audio", "data") or text_at(block, "input_audio")
    if data.startswith(("data:", "http://", "https://")):
        return referred(data, kind="audio")
    told = text_at(block, "input_audio", "format")
    return inline(data, f"audio/{told}" if told else "", "audio")


def _file(block: Any) -> Part:
    if data := text_at(block, "file", "file_data"):
        return referred(data) if data.startswith("data:") else inline(data, "", "file")
    return referred(text_at(block, "file", "file_id") or text_at(block, "file_id"), kind="file")


def images_of(turn: Any) -> tuple[Part, ...]:
    """Ollama takes pictures beside the text, in base64; OpenRouter gives drawn ones back there, as parts."""
    told = (
        inline(image, "", "image") if isinstance(image, str) else part_of(image)
        for image in items_at(turn, "images")
    )
    return tuple(image for image in told if image is not None)


def thought_in(block: Any) -> str:
    """Mistral writes its thinking as a list of texts."""
    pieces = items_at(block, "thinking")
    return "".join(text_at(piece, "text") for piece in pieces) if pieces else text_at(block, "thinking")
