"""Items for OpenAI Responses."""

from collections.abc import Iterable, Sequence
from typing import Any

from rewind.model.message import Media, Message, Part, Refusal, Role, Text, ToolResult, ToolUse
from rewind.providers.shared.write import Pen, arguments_text, told_in

Fields = dict[str, Any]


def written(messages: Sequence[Message], pen: Pen) -> list[Fields]:
    """The messages, each tied, as items; one that has nothing to say is left out."""
    free_form = {
        part.id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolUse) and isinstance(part.arguments, str)
    }
    return [item for message in messages for item in _items(message, free_form, pen)]


def system_item(parts: tuple[Part, ...], pen: Pen) -> Fields:
    return {"role": "system", "content": _content(parts, pen)}


def _items(message: Message, free_form: set[str], pen: Pen) -> list[Fields]:
    items: list[Fields] = []
    said: list[Part] = []

    def flush() -> None:
        if said and (content := _spoken(message.role, said, pen)):
            items.append({"role": _role(message.role), "content": content})
        said.clear()

    for part in message.parts:
        match part:
            case ToolUse(hosted=False):
                flush()
                items.append(call(part))
            case ToolResult(hosted=False):
                flush()
                items.append(_result(part, part.id in free_form, pen))
            case Text() | Refusal() | Media():
                said.append(part)
            case _:
                pen.leave_out(part)
    flush()
    return items


def _role(role: Role) -> str:
    return {Role.ASSISTANT: "assistant", Role.SYSTEM: "system"}.get(role, "user")


def _spoken(role: Role, parts: Iterable[Part], pen: Pen) -> str | list[Fields]:
    """The model's own words go back as one text: its list of parts wants ids that only the provider draws."""
    if role is not Role.ASSISTANT:
        return _content(parts, pen)
    return "".join(
        pen.instead_of(part) if isinstance(part, Media) else part.text
        for part in parts
        if isinstance(part, Text | Refusal | Media)
    )


def call(use: ToolUse) -> Fields:
    """A tool call; one that takes a text of its own is a custom one."""
    told = {"call_id": use.id, "name": use.name}
    if isinstance(use.arguments, str):
        return {"type": "custom_tool_call", **told, "input": use.arguments}
    return {"type": "function_call", **told, "arguments": arguments_text(use.arguments)}


def _result(result: ToolResult, free_form: bool, pen: Pen) -> Fields:
    kind = "custom_tool_call_output" if free_form else "function_call_output"
    return {"type": kind, "call_id": result.id, "output": _content(told_in(result), pen)}


def _content(parts: Iterable[Part], pen: Pen) -> str | list[Fields]:
    blocks: list[Fields] = []
    for part in parts:
        match part:
            case Text(text) | Refusal(text):
                blocks.append({"type": "input_text", "text": text})
            case Media():
                blocks.append(_media(part, pen) or {"type": "input_text", "text": pen.instead_of(part)})
            case _:
                pen.leave_out(part)
    if not blocks:
        return ""
    if len(blocks) == 1 and blocks[0]["type"] == "input_text":
        return str(blocks[0]["text"])
    return blocks


def _media(media: Media, pen: Pen) -> Fields | None:
    data = pen.data_of(media)
    told = media.media_type or ("image/png" if media.kind == "image" else "application/pdf")
    url = f"data:{told};base64,{data}" if data else media.reference
    linked = url.startswith(("http://", "https://"))
    match media.kind:
        case "image" if data or linked:
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case "document" | "file" if data:
            return {
                "type": "input_file",
                "filename": f"{media.kind}.{told.partition('/')[2]}",
                "file_data": url,
            }
        case "document" | "file" if linked:
            return {"type": "input_file", "file_url": url}
        case _:
            return None
