"""What a fork needs of Ollama's own API: how requests are changed, and answers made up.

Messages are OpenAI's, less the ids, with arguments as objects and pictures beside the text.
"""

from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest, RequestHead
from rewind.model.message import Asked, Media, Message, Part, Refusal, Role, Text, ToolResult, ToolUse
from rewind.providers.api import AnswerContent, Document, LossLog, Patcher, Speaker
from rewind.providers.openai_chat.patch import ChatPatcher
from rewind.providers.shared.framing import lines, whole
from rewind.providers.shared.json_fields import items_at, text_at, without
from rewind.providers.shared.parameters import (
    ANYTHING,
    FLAG,
    INTEGER,
    LIST,
    NUMBER,
    OBJECT,
    TEXT,
    Allowed,
    ParameterTable,
    named,
)
from rewind.providers.shared.patch import FieldPatcher, ParameterPlaces
from rewind.providers.shared.speak import pieces
from rewind.providers.shared.write import arguments_object, result_parts


def messages_for(messages: Sequence[Message], losses: LossLog) -> list[Document]:
    """The messages, their ids matched; one that has nothing to say is left out."""
    return [turn for message in messages for turn in _turns(message, losses)]


def _turns(message: Message, losses: LossLog) -> list[Document]:
    turns: list[Document] = []
    rest: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult) and not part.hosted:
            turns.append({"role": "tool", "tool_name": part.name, **_said(result_parts(part), losses)})
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


def _option(names: str, allowed: Allowed) -> ParameterTable:
    return {f"options.{name}": allowed for name in names.split()}


PARAMETERS: ParameterTable = {
    **_option("temperature", NUMBER.between(0)),
    **_option("min_p top_p", NUMBER.between(0, 1)),
    **_option("frequency_penalty mirostat_eta mirostat_tau presence_penalty repeat_penalty tfs_z typical_p", NUMBER),
    **_option("mirostat num_batch num_ctx num_gpu num_keep num_predict num_thread repeat_last_n seed top_k", INTEGER),
    **_option("low_vram numa penalize_newline use_mlock use_mmap vocab_only", FLAG),
    **_option("main_gpu", INTEGER),
    "options.stop": TEXT | LIST,
    **named("logprobs raw stream", FLAG),
    **named("top_logprobs", INTEGER),
    **named("model prompt suffix system template", TEXT),
    **named("images messages tools", LIST),
    **named("options", OBJECT),
    **named("context format input keep_alive think", ANYTHING),
}
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


# ── making up an answer ───────────────────────────────────────────────────────────────────────────────────────


def speaker_for(request: HttpRequest, asked: Asked) -> Speaker:
    """One document, or lines of them, of which the last has the counts."""
    # Where /api/chat has a message, this has a text.
    generates = unquote(request.head.path).rstrip("/").endswith("/api/generate")
    in_lines = _generated_lines if generates else _chat_lines

    def document(content: AnswerContent) -> Document:
        if generates and content.tools:
            raise CannotEdit("Ollama's /api/generate cannot call tools.")
        message: Document = {"role": "assistant", "content": content.text}
        if content.tools:
            message["tool_calls"] = [call(use, LossLog()) for use in content.tools]
        return {
            "model": asked.model or "",
            "created_at": "1970-01-01T00:00:00Z",
            **({"response": content.text} if generates else {"message": message}),
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 0,
            "eval_count": 0,
        }

    return Speaker(
        form=f"{'ollama-generate' if generates else 'ollama'} {'lines' if asked.streamed else 'whole'}",
        document=document,
        response=lambda answer: lines(in_lines(answer)) if asked.streamed and "done" in answer else whole(answer),
    )


def _about(document: Document) -> Document:
    return {name: document[name] for name in ("model", "created_at") if name in document}


def _generated_lines(document: Document) -> Iterator[Document]:
    for piece in pieces(text_at(document, "response")):
        yield {**_about(document), "response": piece, "done": False}
    yield {**document, "response": ""}


def _chat_lines(document: Document) -> Iterator[Document]:
    message = document.get("message")
    fields = message if isinstance(message, dict) else {}
    spoken: list[Document] = [{"content": piece} for piece in pieces(text_at(fields, "content"))]
    asked = [{"content": "", "tool_calls": [use]} for use in items_at(fields, "tool_calls")]
    for piece in (*spoken, *asked):
        yield {**_about(document), "message": {"role": "assistant", **piece}, "done": False}
    yield {**document, "message": {**without(fields, "tool_calls"), "content": ""}}
