"""Requests of Ollama: OpenAI's messages, less the ids, with arguments as objects and pictures beside the text."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Asked, Media, Message, Part, Refusal, Role, Text, ToolResult, ToolUse
from rewind.providers.api import AnswerContent, Document, LossLog, Patcher, Speaker
from rewind.providers.openai_chat.patch import ChatPatcher
from rewind.providers.shared.framing import lines, whole
from rewind.providers.shared.json_fields import items_at, text_at, without
from rewind.providers.shared.patch import FieldPatcher, ParameterPlaces
from rewind.providers.shared.speak import pieces
from rewind.providers.shared.write import arguments_object, told_in


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


# ── answers of Ollama's own API ───────────────────────────────────────────────────────────────────────────────


class OllamaSpeaker:
    """One document, or lines of them, of which the last has the counts."""

    is_model = True

    def __init__(self, model: str, *, streamed: bool, generates: bool) -> None:
        self._model = model
        self._streamed = streamed
        self._generates = generates
        """``/api/generate`` has a text where ``/api/chat`` has a message."""

    @property
    def form(self) -> str:
        api = "ollama-generate" if self._generates else "ollama"
        return f"{api} {'lines' if self._streamed else 'whole'}"

    def document(self, content: AnswerContent) -> Document:
        if self._generates and content.tools:
            raise CannotEdit("Ollama's /api/generate calls no tools.")
        message: Document = {"role": "assistant", "content": content.text}
        if content.tools:
            message["tool_calls"] = [call(use, LossLog()) for use in content.tools]
        return {
            "model": self._model,
            "created_at": "1970-01-01T00:00:00Z",
            **({"response": content.text} if self._generates else {"message": message}),
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 0,
            "eval_count": 0,
        }

    def response(self, document: Document) -> HttpResponse:
        if not self._streamed or "done" not in document:
            return whole(document)
        about = {name: document[name] for name in ("model", "created_at") if name in document}
        sent: list[Any] = []
        if self._generates:
            sent = [
                {**about, "response": one, "done": False} for one in pieces(text_at(document, "response"))
            ]
            return lines([*sent, {**document, "response": ""}])
        message = document.get("message")
        fields = message if isinstance(message, dict) else {}
        said: list[Document] = [{"content": one} for one in pieces(text_at(fields, "content"))]
        asked = [{"content": "", "tool_calls": [one]} for one in items_at(fields, "tool_calls")]
        for piece in (*said, *asked):
            sent.append({**about, "message": {"role": "assistant", **piece}, "done": False})
        rest = {**without(fields, "tool_calls"), "content": ""}
        return lines([*sent, {**document, "message": rest}])


def speaker_for(request: HttpRequest, asked: Asked) -> Speaker:
    generates = unquote(request.head.path).rstrip("/").endswith("/api/generate")
    return OllamaSpeaker(asked.model or "", streamed=asked.streamed, generates=generates)
