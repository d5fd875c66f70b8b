"""Messages for Ollama's own API: OpenAI's, less the ids, with arguments as objects and pictures beside the text."""

from collections.abc import Sequence
from typing import Any

from rewind.model.message import Media, Message, Part, Refusal, Role, Text, ToolResult, ToolUse
from rewind.providers.shared.write import Pen, arguments_object, told_in

Fields = dict[str, Any]


def written(messages: Sequence[Message], pen: Pen) -> list[Fields]:
    """The messages, each tied; one that has nothing to say is left out."""
    return [turn for message in messages for turn in _turns(message, pen)]


def _turns(message: Message, pen: Pen) -> list[Fields]:
    turns: list[Fields] = []
    rest: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult) and not part.hosted:
            turns.append({"role": "tool", "tool_name": part.name, **_said(told_in(part), pen)})
        else:
            rest.append(part)
    calls = [part for part in rest if isinstance(part, ToolUse) and not part.hosted]
    said = _said([part for part in rest if part not in calls], pen)
    if said["content"] or "images" in said or calls:
        asked = {"tool_calls": [call(use, pen) for use in calls]} if calls else {}
        role = message.role.value if message.role is not Role.TOOL else "user"
        turns.append({"role": role, **said, **asked})
    return turns


def call(use: ToolUse, pen: Pen) -> Fields:
    return {"function": {"name": use.name, "arguments": arguments_object(use.arguments, pen)}}


def _said(parts: Sequence[Part], pen: Pen) -> Fields:
    words: list[str] = []
    images: list[str] = []
    for part in parts:
        match part:
            case Text(text) | Refusal(text):
                words.append(text)
            case Media(kind="image") if data := pen.data_of(part):
                images.append(data)
            case Media():
                words.append(pen.instead_of(part))
            case _:
                pen.leave_out(part)
    return {"content": "".join(words), **({"images": images} if images else {})}
