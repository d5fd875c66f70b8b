"""Contents for Google Gemini."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from rewind.model.message import Media, Message, Part, Refusal, Role, Text, ToolResult, ToolUse, text_of
from rewind.providers.shared.write import Pen, arguments_object, told_in

Fields = dict[str, Any]


def written(messages: Sequence[Message], pen: Pen) -> list[Fields]:
    """The messages, each tied, as contents; one that has nothing to say is left out.

    Results that come one after the other are one content: Google wants as many as there were calls.
    """
    contents: list[Fields] = []
    for role, run in groupby(messages, key=lambda message: message.role):
        each = [message.parts for message in run]
        grouped = [tuple(part for parts in each for part in parts)] if role is Role.TOOL else each
        for parts in grouped:
            if role is Role.SYSTEM:
                pen.say_by_user()
            if blocks := _blocks(parts, pen):
                contents.append({"role": "model" if role is Role.ASSISTANT else "user", "parts": blocks})
    return contents


def system(parts: tuple[Part, ...]) -> Fields | None:
    """The system instruction, which stands beside the contents."""
    texts = [{"text": part.text} for part in parts if isinstance(part, Text | Refusal)]
    return {"parts": texts} if texts else None


def _blocks(parts: Iterable[Part], pen: Pen) -> list[Fields]:
    return [block for part in parts if (block := _block(part, pen)) is not None]


def _block(part: Part, pen: Pen) -> Fields | None:
    match part:
        case Text(text) | Refusal(text):
            return {"text": text}
        case ToolUse(hosted=False):
            return function_call(part, pen)
        case ToolResult(hosted=False):
            return _result(part, pen)
        case Media():
            return _media(part, pen) or {"text": pen.instead_of(part)}
        case _:
            pen.leave_out(part)
            return None


def function_call(use: ToolUse, pen: Pen) -> Fields:
    call = {"id": use.id, "name": use.name, "args": arguments_object(use.arguments, pen)}
    return {"functionCall": call}


def _result(result: ToolResult, pen: Pen) -> Fields:
    told = told_in(result)
    files = [part for part in told if isinstance(part, Media)]
    beside = [block for media in files if (block := _media(media, pen)) is not None]
    missing = "".join(pen.instead_of(media) for media in files if _media(media, pen) is None)
    response = {"error" if result.failed else "result": text_of(told) + missing}
    # Google knows a result by its function's name, and takes none without.
    named = {"id": result.id, "name": result.name or "unknown", "response": response}
    return {"functionResponse": {**named, "parts": beside} if beside else named}


def _media(media: Media, pen: Pen) -> Fields | None:
    if data := pen.data_of(media):
        told = media.media_type or ("image/png" if media.kind == "image" else "application/pdf")
        return {"inlineData": {"mimeType": told, "data": data}}
    if media.reference.startswith(("http://", "https://", "gs://")):
        typed = {"mimeType": media.media_type} if media.media_type else {}
        return {"fileData": {**typed, "fileUri": media.reference}}
    return None
