"""Requests of Ollama: OpenAI's messages, less the ids, with arguments as objects and pictures beside the text."""

from collections.abc import Sequence

from rewind.model.http import RequestHead
from rewind.model.message import Media, Message, Part, Refusal, Role, Text, ToolResult, ToolUse
from rewind.providers.api import Document, Patcher
from rewind.providers.openai_chat.patch import ChatPatcher
from rewind.providers.shared.losses import LossLog, arguments_object, told_in
from rewind.providers.shared.patch import FieldPatcher, ParameterPlaces


def messages_for(messages: Sequence[Message], losses: LossLog) -> list[Document]:
    """The messages, each tied; one that has nothing to say is left out."""
    return [turn for message in messages for turn in _turns(message, losses)]


def _turns(message: Message, losses: LossLog) -> list[Document]:
    turns: list[Document] = []
    rest: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult) and not part.hosted:
            turns.append({"role": "tool", "tool_name": part.name, **_said(told_in(part), losses)})
        else:
            rest.append(part)
    calls = [part for part in rest if isinstance(part, ToolUse) and not part.hosted]
    said = _said([part for part in rest if part not in calls], losses)
    if said["content"] or "images" in said or calls:
        asked = {"tool_calls": [call(use, losses) for use in calls]} if calls else {}
        role = message.role.value if message.role is not Role.TOOL else "user"
        turns.append({"role": role, **said, **asked})
    return turns


def call(use: ToolUse, losses: LossLog) -> Document:
    return {"function": {"name": use.name, "arguments": arguments_object(use.arguments, losses)}}


def _said(parts: Sequence[Part], losses: LossLog) -> Document:
    words: list[str] = []
    images: list[str] = []
    for part in parts:
        match part:
            case Text(text) | Refusal(text):
                words.append(text)
            case Media(kind="image") if data := losses.data_of(part):
                images.append(data)
            case Media():
                words.append(losses.instead_of(part))
            case _:
                losses.leave_out(part)
    return {"content": "".join(words), **({"images": images} if images else {})}


_OPTIONS = ParameterPlaces(
    inside="options",
    beside=frozenset(
        {
            *("model", "messages", "tools", "format", "options", "stream", "keep_alive", "think", "prompt"),
            *("suffix", "images", "system", "template", "raw", "context", "logprobs", "top_logprobs"),
        }
    ),
)
_CHAT = ChatPatcher("ollama", write=messages_for, settings=_OPTIONS)
_GENERATE = FieldPatcher(
    "ollama-generate",
    api="Ollama's /api/generate",
    system="system",
    prompt="prompt",
    settings=_OPTIONS,
    model_in_body=True,
)


def patcher_for(head: RequestHead, _document: Document) -> Patcher:
    return _GENERATE if head.path.rstrip("/").endswith("/api/generate") else _CHAT
