"""Writes a conversation as contents for Google Gemini."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from rewind.model.message import Media, Message, Part, Refusal, Role, Text, ToolResult, ToolUse, text_of
from rewind.providers.api import Document, LossLog, Writer
from rewind.providers.gemini.parts import field, listed
from rewind.providers.shared.answer_draft import inner
from rewind.providers.shared.json_fields import at, objects_in
from rewind.providers.shared.write import arguments_object, result_parts


def contents_for(messages: Sequence[Message], losses: LossLog) -> list[Document]:
    """The messages, their ids matched, as contents; one that has nothing to say is left out.

    Results that come one after the other are one content: Google wants as many as there were calls.
    """
    contents: list[Document] = []
    for role, run in groupby(messages, key=lambda message: message.role):
        each = [message.parts for message in run]
        grouped = [tuple(part for parts in each for part in parts)] if role is Role.TOOL else each
        for parts in grouped:
            if role is Role.SYSTEM:
                losses.written_as_users()
            if blocks := _blocks(parts, losses):
                contents.append({"role": "model" if role is Role.ASSISTANT else "user", "parts": blocks})
    return contents


def _system(parts: tuple[Part, ...]) -> Document | None:
    """The system instruction, which stands beside the contents."""
    texts = [{"text": part.text} for part in parts if isinstance(part, Text | Refusal)]
    return {"parts": texts} if texts else None


def _blocks(parts: Iterable[Part], losses: LossLog) -> list[Document]:
    return [block for part in parts if (block := _block(part, losses)) is not None]


def _block(part: Part, losses: LossLog) -> Document | None:
    match part:
        case Text(text) | Refusal(text):
            return {"text": text}
        case ToolUse(hosted=False):
            return function_call(part, losses)
        case ToolResult(hosted=False):
            return _result(part, losses)
        case Media():
            return _media(part, losses) or {"text": losses.instead_of(part)}
        case _:
            losses.leave_out(part)
            return None


def function_call(use: ToolUse, losses: LossLog) -> Document:
    call = {"id": use.id, "name": use.name, "args": arguments_object(use.arguments, losses)}
    return {"functionCall": call}


def _result(result: ToolResult, losses: LossLog) -> Document:
    told = result_parts(result)
    files = [part for part in told if isinstance(part, Media)]
    beside = [block for media in files if (block := _media(media, losses)) is not None]
    missing = "".join(losses.instead_of(media) for media in files if _media(media, losses) is None)
    response = {"error" if result.failed else "result": text_of(told) + missing}
    # Google knows a result by its function's name, and takes none without.
    named = {"id": result.id, "name": result.name or "unknown", "response": response}
    return {"functionResponse": {**named, "parts": beside} if beside else named}


def _media(media: Media, losses: LossLog) -> Document | None:
    if data := losses.data_of(media):
        told = media.media_type or ("image/png" if media.kind == "image" else "application/pdf")
        return {"inlineData": {"mimeType": told, "data": data}}
    if media.reference.startswith(("http://", "https://", "gs://")):
        typed = {"mimeType": media.media_type} if media.media_type else {}
        return {"fileData": {**typed, "fileUri": media.reference}}
    return None


def _own_answer(documents: Iterable[Any]) -> list[Document] | None:
    """The parts of the first candidate; ``None`` where calls came in pieces that only a codec joins."""
    parts: list[Document] = []
    for document in documents:
        content = at(inner(document, "response"), "candidates", 0, "content")
        for part in objects_in(listed(at(content, "parts"))):
            call = part.get("functionCall")
            if isinstance(call, dict) and ({"willContinue", "partialArgs"} & set(call) or not call):
                return None
            if parts and _is_plain(part) and _is_plain(parts[-1]) and _kind(part) == _kind(parts[-1]):
                parts[-1] = {**parts[-1], "text": parts[-1]["text"] + part["text"]}
            elif part != {"text": ""}:
                parts.append(part)
    return [{"role": "model", "parts": parts}] if parts else []


def _is_plain(part: Document) -> bool:
    """Whether it is words and nothing else: a signature belongs to the very part that it came with."""
    return isinstance(part.get("text"), str) and set(part) <= {"text", "thought"}


def _kind(part: Document) -> bool:
    return part.get("thought") is True


WRITER = Writer(
    conversation=lambda system, messages, losses: (_system(system), contents_for(messages, losses)),
    own_system=lambda document: (field(inner(document, "request"), "systemInstruction") or None, []),
    own_answer=lambda _answered, documents, _losses: _own_answer(documents),
)
