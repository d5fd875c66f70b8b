"""Writes a conversation as messages for Anthropic."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from rewind.model.message import Media, Message, Part, Refusal, Role, Text, ToolResult, ToolUse
from rewind.providers.api import Document, LossLog, Writer
from rewind.providers.shared.answer_draft import json_or_text
from rewind.providers.shared.json_fields import at, count_at, items_at, objects_in, text_at
from rewind.providers.shared.write import arguments_object, result_parts


def messages_for(messages: Sequence[Message], losses: LossLog) -> list[Document]:
    """The messages, their ids matched; one that has nothing to say is left out.

    Results that come one after the other are one message: all that a turn asked for must come back at once.
    """
    turns: list[Document] = []
    for role, run in groupby(messages, key=lambda message: message.role):
        each = list(run)
        grouped = [_joined(each)] if role is Role.TOOL else [message.parts for message in each]
        for parts in grouped:
            if role is Role.SYSTEM:
                losses.written_as_users()
            if content := _content(parts, losses):
                turns.append({"role": "assistant" if role is Role.ASSISTANT else "user", "content": content})
    return turns


def _system(parts: tuple[Part, ...]) -> str | list[Document] | None:
    """The system prompt, which stands beside the messages."""
    texts = [part.text for part in parts if isinstance(part, Text | Refusal)]
    if len(texts) < 2:
        return texts[0] if texts else None
    return [{"type": "text", "text": text} for text in texts]


def _joined(messages: Iterable[Message]) -> tuple[Part, ...]:
    return tuple(part for message in messages for part in message.parts)


def _content(parts: Iterable[Part], losses: LossLog) -> str | list[Document]:
    blocks = [block for part in parts if (block := _block(part, losses)) is not None]
    # A user's message must begin with the results.
    blocks.sort(key=lambda block: block["type"] != "tool_result")
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return str(blocks[0]["text"])
    return blocks


def _block(part: Part, losses: LossLog) -> Document | None:
    match part:
        case Text(text) | Refusal(text):
            return {"type": "text", "text": text}
        case ToolUse(hosted=False):
            return tool_use(part, losses)
        case ToolResult(hosted=False):
            failed = {"is_error": True} if part.failed else {}
            content = _content(result_parts(part), losses)
            return {"type": "tool_result", "tool_use_id": part.id, "content": content or "", **failed}
        case Media():
            return _media(part, losses) or {"type": "text", "text": losses.instead_of(part)}
        case _:
            losses.leave_out(part)
            return None


def tool_use(use: ToolUse, losses: LossLog) -> Document:
    return {"type": "tool_use", "id": use.id, "name": use.name, "input": arguments_object(use.arguments, losses)}


def _media(media: Media, losses: LossLog) -> Document | None:
    data = losses.data_of(media)
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


def _own_answer(documents: Iterable[Any]) -> list[Document]:
    """All blocks, put together from their events where they came in a stream."""
    blocks: dict[int | None, Document] = {}
    inputs: dict[int | None, str] = {}
    for document in documents:
        place = count_at(document, "index")
        match text_at(document, "type"):
            case "message":
                blocks |= dict(enumerate(objects_in(items_at(document, "content"))))
            case "content_block_start" if isinstance(block := at(document, "content_block"), dict):
                blocks[place] = dict(block)
            case "content_block_delta" if place in blocks:
                if text_at(document, "delta", "type") == "input_json_delta":
                    inputs[place] = inputs.get(place, "") + text_at(document, "delta", "partial_json")
                else:
                    _add(blocks[place], at(document, "delta"))
    for place, written in inputs.items():
        given = json_or_text(written) if written else {}
        blocks[place]["input"] = given if isinstance(given, dict) else {}
    content = [block for block in blocks.values() if block.get("type") != "text" or block.get("text")]
    return [{"role": "assistant", "content": content}] if content else []


def _add(block: Document, delta: Any) -> None:
    for kind, field in (("text_delta", "text"), ("thinking_delta", "thinking"), ("signature_delta", "signature")):
        if text_at(delta, "type") == kind:
            block[field] = text_at(block, field) + text_at(delta, field)
    if text_at(delta, "type") == "citations_delta":
        block["citations"] = [*items_at(block, "citations"), at(delta, "citation")]


WRITER = Writer(
    conversation=lambda system, messages, losses: (_system(system), messages_for(messages, losses)),
    own_system=lambda document: (document.get("system") or None, []),
    own_answer=lambda _answered, documents, _losses: _own_answer(documents),
)
