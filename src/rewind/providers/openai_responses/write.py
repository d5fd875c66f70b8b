"""Writes a conversation as items for OpenAI Responses."""

from collections.abc import Iterable, Sequence
from typing import Any

from rewind.model.message import Media, Message, Part, Refusal, Role, Text, ToolResult, ToolUse
from rewind.providers.api import Document, LossLog, Writer
from rewind.providers.openai_responses.read import ResponseItems
from rewind.providers.shared.json_fields import objects_in, text_at, without
from rewind.providers.shared.write import arguments_text, result_parts


def items_for(messages: Sequence[Message], losses: LossLog) -> list[Document]:
    """The messages, their ids matched, as items; one that has nothing to say is left out."""
    free_form = {
        part.id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolUse) and isinstance(part.arguments, str)
    }
    return [item for message in messages for item in _items(message, free_form, losses)]


def _system_item(parts: tuple[Part, ...], losses: LossLog) -> Document:
    return {"role": "system", "content": _content(parts, losses)}


def _items(message: Message, free_form: set[str], losses: LossLog) -> list[Document]:
    items: list[Document] = []
    said: list[Part] = []

    def flush() -> None:
        if said and (content := _spoken(message.role, said, losses)):
            items.append({"role": _role(message.role), "content": content})
        said.clear()

    for part in message.parts:
        match part:
            case ToolUse(hosted=False):
                flush()
                items.append(call(part))
            case ToolResult(hosted=False):
                flush()
                items.append(_result(part, part.id in free_form, losses))
            case Text() | Refusal() | Media():
                said.append(part)
            case _:
                losses.leave_out(part)
    flush()
    return items


def _role(role: Role) -> str:
    return {Role.ASSISTANT: "assistant", Role.SYSTEM: "system"}.get(role, "user")


def _spoken(role: Role, parts: Iterable[Part], losses: LossLog) -> str | list[Document]:
    """The model's own words go back as one text: its list of parts wants ids that only the provider draws."""
    if role is not Role.ASSISTANT:
        return _content(parts, losses)
    return "".join(
        losses.instead_of(part) if isinstance(part, Media) else part.text
        for part in parts
        if isinstance(part, Text | Refusal | Media)
    )


def call(use: ToolUse) -> Document:
    """A tool call; one that takes a text of its own is a custom one."""
    told = {"call_id": use.id, "name": use.name}
    if isinstance(use.arguments, str):
        return {"type": "custom_tool_call", **told, "input": use.arguments}
    return {"type": "function_call", **told, "arguments": arguments_text(use.arguments)}


def _result(result: ToolResult, free_form: bool, losses: LossLog) -> Document:
    kind = "custom_tool_call_output" if free_form else "function_call_output"
    return {"type": kind, "call_id": result.id, "output": _content(result_parts(result), losses)}


def _content(parts: Iterable[Part], losses: LossLog) -> str | list[Document]:
    blocks: list[Document] = []
    for part in parts:
        match part:
            case Text(text) | Refusal(text):
                blocks.append({"type": "input_text", "text": text})
            case Media():
                blocks.append(_media(part, losses) or {"type": "input_text", "text": losses.instead_of(part)})
            case _:
                losses.leave_out(part)
    if not blocks:
        return ""
    if len(blocks) == 1 and blocks[0]["type"] == "input_text":
        return str(blocks[0]["text"])
    return blocks


def _media(media: Media, losses: LossLog) -> Document | None:
    data = losses.data_of(media)
    told = media.media_type or ("image/png" if media.kind == "image" else "application/pdf")
    url = f"data:{told};base64,{data}" if data else media.reference
    linked = url.startswith(("http://", "https://"))
    match media.kind:
        case "image" if data or linked:
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case "document" | "file" if data:
            return {"type": "input_file", "filename": f"{media.kind}.{told.partition('/')[2]}", "file_data": url}
        case "document" | "file" if linked:
            return {"type": "input_file", "file_url": url}
        case _:
            return None


def answer_items(documents: Iterable[Any], losses: LossLog) -> list[Document]:
    """The items of an answer, less the names under which the provider keeps them.

    Thinking that is not sealed into the item stays with the provider, and can only be referred to; a fresh call may
    not find it, so it is left out.
    """
    output = ResponseItems()
    for document in documents:
        output.take(text_at(document, "type"), document)
    items: list[Document] = []
    for item in objects_in(output.items()):
        if text_at(item, "type") == "reasoning":
            if text_at(item, "encrypted_content"):
                items.append(without(item, "status"))
            else:
                losses.counts["thinking left out: only the provider has it"] += 1
        else:
            # An id would tie the item to thinking that is perhaps left out.
            items.append(without(item, "id", "status") if "call_id" in item else without(item, "id"))
    return items


def _conversation(system: tuple[Part, ...], messages: Sequence[Message], losses: LossLog) -> tuple[Any, list[Document]]:
    first = [_system_item(system, losses)] if system else []
    return None, [*first, *items_for(messages, losses)]


def _own_system(document: Document) -> tuple[Any, list[Document]]:
    instructions = document.get("instructions")
    return None, [{"role": "system", "content": instructions}] if instructions else []


WRITER = Writer(
    conversation=_conversation,
    own_system=_own_system,
    own_answer=lambda _answered, documents, losses: answer_items(documents, losses),
)
