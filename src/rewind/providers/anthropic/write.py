"""Messages for Anthropic."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from rewind.model.message import Media, Message, Part, Refusal, Role, Text, ToolResult, ToolUse
from rewind.providers.shared.write import Pen, arguments_object, told_in

Fields = dict[str, Any]


def written(messages: Sequence[Message], pen: Pen) -> list[Fields]:
    """The messages, each tied; one that has nothing to say is left out.

    Results that come one after the other are one message: all that a turn asked for must come back at once.
    """
    turns: list[Fields] = []
    for role, run in groupby(messages, key=lambda message: message.role):
        each = list(run)
        grouped = [_joined(each)] if role is Role.TOOL else [message.parts for message in each]
        for parts in grouped:
            if role is Role.SYSTEM:
                pen.say_by_user()
            if content := _content(parts, pen):
                turns.append({"role": "assistant" if role is Role.ASSISTANT else "user", "content": content})
    return turns


def system(parts: tuple[Part, ...]) -> str | list[Fields] | None:
    """The system prompt, which stands beside the messages."""
    texts = [part.text for part in parts if isinstance(part, Text | Refusal)]
    if len(texts) < 2:
        return texts[0] if texts else None
    return [{"type": "text", "text": text} for text in texts]


def _joined(messages: Iterable[Message]) -> tuple[Part, ...]:
    return tuple(part for message in messages for part in message.parts)


def _content(parts: Iterable[Part], pen: Pen) -> str | list[Fields]:
    blocks = [block for part in parts if (block := _block(part, pen)) is not None]
    # A user's message must begin with the results.
    blocks.sort(key=lambda block: block["type"] != "tool_result")
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return str(blocks[0]["text"])
    return blocks


def _block(part: Part, pen: Pen) -> Fields | None:
    match part:
        case Text(text) | Refusal(text):
            return {"type": "text", "text": text}
        case ToolUse(hosted=False):
            return tool_use(part, pen)
        case ToolResult(hosted=False):
            failed = {"is_error": True} if part.failed else {}
            content = _content(told_in(part), pen)
            return {"type": "tool_result", "tool_use_id": part.id, "content": content or "", **failed}
        case Media():
            return _media(part, pen) or {"type": "text", "text": pen.instead_of(part)}
        case _:
            pen.leave_out(part)
            return None


def tool_use(use: ToolUse, pen: Pen) -> Fields:
    return {
        "type": "tool_use",
        "id": use.id,
        "name": use.name,
        "input": arguments_object(use.arguments, pen),
    }


def _media(media: Media, pen: Pen) -> Fields | None:
    data = pen.data_of(media)
    is_image = media.kind == "image"
    # Anthropic reads pictures and PDFs; other bytes would be refused.
    is_pdf = media.kind in ("document", "file") and media.media_type in ("application/pdf", "")
    if not (is_image or is_pdf):
        return None
    kind = "image" if is_image else "document"
    if data:
        told = media.media_type or ("image/png" if is_image else "application/pdf")
        return {"type": kind, "source": {"type": "base64", "media_type": told, "data": data}}
    if media.reference.startswith(("http://", "https://")):
        return {"type": kind, "source": {"type": "url", "url": media.reference}}
    return None
