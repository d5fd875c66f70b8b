"""Writes a conversation as messages for OpenAI Chat Completions, and for all who speak it."""

from collections.abc import Iterable, Sequence
from typing import Any

from rewind.model.message import Answered, Media, Message, Part, Refusal, Role, Text, ToolResult, ToolUse, text_of
from rewind.providers.api import Document, LossLog, Writer
from rewind.providers.shared.write import arguments_text, result_parts, with_matched_ids


def messages_for(messages: Sequence[Message], losses: LossLog) -> list[Document]:
    """The messages, their ids matched (``with_matched_ids``); one that has nothing to say is left out."""
    return [turn for message in messages for turn in _turns(message, losses)]


def _system_message(parts: tuple[Part, ...], losses: LossLog) -> Document:
    return {"role": "system", "content": _content(parts, losses)}


def _turns(message: Message, losses: LossLog) -> list[Document]:
    # Results first: they must follow the calls at once, whatever else the user says with them.
    results = [part for part in message.parts if isinstance(part, ToolResult) and not part.hosted]
    turns = [_result(result, losses) for result in results]
    rest = tuple(part for part in message.parts if part not in results)
    if not rest:
        return turns
    if message.role is Role.ASSISTANT:
        said = _assistant(rest, losses)
    else:
        role = "system" if message.role is Role.SYSTEM else "user"
        content = _content(rest, losses)
        said = {"role": role, "content": content} if content else {}
    if said and message.name:
        said["name"] = message.name
    return [*turns, said] if said else turns


def _assistant(parts: Iterable[Part], losses: LossLog) -> Document:
    words: list[str] = []
    refusal: list[str] = []
    calls: list[Document] = []
    for part in parts:
        match part:
            case Text(text):
                words.append(text)
            case Refusal(text):
                refusal.append(text)
            case ToolUse(hosted=False):
                calls.append(call(part))
            case Media():
                words.append(losses.instead_of(part))
            case _:
                losses.leave_out(part)
    if not (words or refusal or calls):
        return {}
    turn: Document = {"role": "assistant", "content": "".join(words) if words else None}
    if refusal:
        turn["refusal"] = "".join(refusal)
    if calls:
        turn["tool_calls"] = calls
    return turn


def call(use: ToolUse) -> Document:
    """A tool call; one that takes a text of its own is a custom one."""
    if isinstance(use.arguments, str):
        return {"id": use.id, "type": "custom", "custom": {"name": use.name, "input": use.arguments}}
    function = {"name": use.name, "arguments": arguments_text(use.arguments)}
    return {"id": use.id, "type": "function", "function": function}


def _result(result: ToolResult, losses: LossLog) -> Document:
    texts = [losses.instead_of(part) if isinstance(part, Media) else text_of((part,)) for part in result_parts(result)]
    content = "".join(texts) if len(texts) < 2 else [{"type": "text", "text": text} for text in texts]
    return {"role": "tool", "tool_call_id": result.id, "content": content}


def _content(parts: Iterable[Part], losses: LossLog) -> str | list[Document]:
    blocks: list[Document] = []
    for part in parts:
        match part:
            case Text(text) | Refusal(text):
                blocks.append({"type": "text", "text": text})
            case Media():
                blocks.append(_media(part, losses) or {"type": "text", "text": losses.instead_of(part)})
            case _:
                losses.leave_out(part)
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return str(blocks[0]["text"])
    return blocks


def _media(media: Media, losses: LossLog) -> Document | None:
    data = losses.data_of(media)
    url = f"data:{media.media_type or _USUAL.get(media.kind, '')};base64,{data}" if data else media.reference
    match media.kind:
        case "image" if data or url.startswith(("http://", "https://")):
            return {"type": "image_url", "image_url": {"url": url}}
        case "audio" if data:
            form = media.media_type.partition("/")[2] or "wav"
            return {"type": "input_audio", "input_audio": {"data": data, "format": _FORMATS.get(form, form)}}
        case "document" | "file" if data:
            name = f"{media.kind}.{media.media_type.partition('/')[2] or 'bin'}"
            return {"type": "file", "file": {"filename": name, "file_data": url}}
        case _:
            return None


_USUAL = {"image": "image/png", "document": "application/pdf", "file": "application/pdf"}
"""Some APIs take data without its type."""
_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav"}


def _conversation(system: tuple[Part, ...], messages: Sequence[Message], losses: LossLog) -> tuple[Any, list[Document]]:
    first = [_system_message(system, losses)] if system else []
    return None, [*first, *messages_for(messages, losses)]


def _own_answer(answered: Answered, _documents: Sequence[Any], losses: LossLog) -> list[Document]:
    """Its words and its calls; what the model thought, no such API takes back."""
    message = Message(Role.ASSISTANT, answered.parts)
    named = all(use.id for use in answered.tool_uses)
    return messages_for([message] if named else with_matched_ids([message]), losses)


WRITER = Writer(conversation=_conversation, own_system=lambda _document: (None, []), own_answer=_own_answer)
