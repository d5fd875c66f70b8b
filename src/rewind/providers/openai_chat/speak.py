"""Answers of OpenAI Chat Completions, and of the legacy completions."""

from collections.abc import Iterator
from typing import Any

from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Asked
from rewind.providers.api import AnswerContent, Document, Speaker
from rewind.providers.openai_chat.write import call
from rewind.providers.shared.answer_stream import asked_for
from rewind.providers.shared.framing import events, whole
from rewind.providers.shared.json_fields import at, items_at, text_at, without
from rewind.providers.shared.speak import pieces
from rewind.providers.shared.write import arguments_text

NO_USAGE: Document = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


class ChatSpeaker:
    """A completion, or its chunks and ``[DONE]``."""

    is_model = True

    def __init__(self, model: str, *, streamed: bool, with_usage: bool, functions: bool = False) -> None:
        self._model = model
        self._streamed = streamed
        self._with_usage = with_usage
        self._functions = functions
        """Whether the request offers ``functions``, the older name of tools, which are called otherwise."""

    @property
    def form(self) -> str:
        return f"openai-chat {'events' if self._streamed else 'whole'}"

    def document(self, content: AnswerContent) -> Document:
        message: Document = {
            "role": "assistant",
            "content": content.text if content.text or not content.tools else None,
        }
        stop = "stop"
        if content.tools and self._functions:
            use, *others = content.tools
            if others:
                raise CannotEdit("The request offers functions, of which an answer can call only one.")
            stop = "function_call"
            message[stop] = {"name": use.name, "arguments": arguments_text(use.arguments)}
        elif content.tools:
            stop, message["tool_calls"] = "tool_calls", [call(use) for use in content.tools]
        return {
            "id": content.named("chatcmpl-"),
            "object": "chat.completion",
            "created": 0,
            "model": self._model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": stop}],
            "usage": NO_USAGE,
        }

    def response(self, document: Document) -> HttpResponse:
        if not self._streamed or not isinstance(document.get("choices"), list):
            return whole(document)
        return events(chunk_documents(document, with_usage=self._with_usage), end="[DONE]")


def chunk_documents(completion: Document, *, with_usage: bool) -> Iterator[Document]:
    """A completion in chunks, as they come."""
    about = {**without(completion, "choices", "usage"), "object": "chat.completion.chunk"}
    for place, choice in enumerate(items_at(completion, "choices")):
        index = at(choice, "index")
        number = place if index is None else index
        deltas = [*_deltas(at(choice, "message")), {}]
        for delta in deltas:
            ends = at(choice, "finish_reason") if not delta else None
            one = {"index": number, "delta": delta, "logprobs": None, "finish_reason": ends}
            yield {**about, "choices": [one]}
    if with_usage:
        yield {**about, "choices": [], "usage": completion.get("usage") or NO_USAGE}


def _deltas(message: Any) -> Iterator[Document]:
    fields = message if isinstance(message, dict) else {}
    content = fields.get("content")
    spoken = isinstance(content, str)
    yield {
        "role": "assistant",
        **without(fields, "role", "content", "tool_calls", "function_call"),
        "content": "" if spoken else content,
    }
    yield from ({"content": one} for one in (pieces(content) if isinstance(content, str) else []))
    for number, one in enumerate(items_at(fields, "tool_calls")):
        yield from ({"tool_calls": [{"index": number, **piece}]} for piece in _call_pieces(one))
    if isinstance(function := fields.get("function_call"), dict):
        yield from ({"function_call": piece} for piece in _function_pieces(function, "arguments"))


def _call_pieces(one: Any) -> Iterator[Document]:
    kind = "custom" if at(one, "custom") is not None else "function"
    first, *others = _function_pieces(at(one, kind), "input" if kind == "custom" else "arguments")
    yield {**(one if isinstance(one, dict) else {}), kind: first}
    yield from ({kind: piece} for piece in others)


def _function_pieces(function: Any, given: str) -> Iterator[Document]:
    yield {**(function if isinstance(function, dict) else {}), given: ""}
    yield from ({given: one} for one in pieces(text_at(function, given)))


class CompletionSpeaker:
    """The legacy completions: a text, and nothing else."""

    is_model = True

    def __init__(self, model: str, *, streamed: bool) -> None:
        self._model = model
        self._streamed = streamed

    @property
    def form(self) -> str:
        return f"completions {'events' if self._streamed else 'whole'}"

    def document(self, content: AnswerContent) -> Document:
        if content.tools:
            raise CannotEdit("The completions API calls no tools.")
        return {
            "id": content.named("cmpl-"),
            "object": "text_completion",
            "created": 0,
            "model": self._model,
            "choices": [{"index": 0, "text": content.text, "logprobs": None, "finish_reason": "stop"}],
            "usage": NO_USAGE,
        }

    def response(self, document: Document) -> HttpResponse:
        choices = items_at(document, "choices")
        if not self._streamed or not choices:
            return whole(document)
        about = without(document, "choices", "usage")
        sent = [
            {**about, "choices": [{**choice, "text": one, "finish_reason": None}]}
            for choice in choices
            for one in pieces(text_at(choice, "text"))
        ]
        ends = [{**about, "choices": [{**choice, "text": ""}]} for choice in choices]
        return events([*sent, *ends], end="[DONE]")


def speaker_for(request: HttpRequest, asked: Asked) -> Speaker:
    document, _ = asked_for(request)
    model = asked.model or ""
    if at(document, "messages") is None and at(document, "prompt") is not None:
        return CompletionSpeaker(model, streamed=asked.streamed)
    return ChatSpeaker(
        model,
        streamed=asked.streamed,
        with_usage=at(document, "stream_options", "include_usage") is True,
        functions=bool(items_at(document, "functions")),
    )
