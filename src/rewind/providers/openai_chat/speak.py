"""Answers of OpenAI Chat Completions, and of the legacy completions."""

from collections.abc import Callable, Iterator
from typing import Any

from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Asked
from rewind.providers.api import AnswerContent, Document, Speaker
from rewind.providers.openai_chat.write import call
from rewind.providers.shared.answer_stream import request_json
from rewind.providers.shared.framing import events, whole
from rewind.providers.shared.json_fields import at, items_at, text_at, without
from rewind.providers.shared.speak import pieces
from rewind.providers.shared.write import arguments_text

NO_USAGE: Document = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def completion_document(content: AnswerContent, model: str, *, functions: bool = False) -> Document:
    """A completion. ``functions``: the request offers these, the older name of tools, which are called otherwise."""
    spoken = content.text if content.text or not content.tools else None
    message: Document = {"role": "assistant", "content": spoken}
    stop = "stop"
    if content.tools and functions:
        use, *others = content.tools
        if others:
            raise CannotEdit("The request offers functions, of which an answer can call only one.")
        stop = "function_call"
        message[stop] = {"name": use.name, "arguments": arguments_text(use.arguments)}
    elif content.tools:
        stop, message["tool_calls"] = "tool_calls", [call(use) for use in content.tools]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": stop}
    return _completion(content.named("chatcmpl-"), "chat.completion", model, choice)


def _completion(name: str, kind: str, model: str, choice: Document) -> Document:
    return {"id": name, "object": kind, "created": 0, "model": model, "choices": [choice], "usage": NO_USAGE}


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


def _text_document(content: AnswerContent, model: str) -> Document:
    if content.tools:
        raise CannotEdit("The completions API cannot call tools.")
    choice = {"index": 0, "text": content.text, "logprobs": None, "finish_reason": "stop"}
    return _completion(content.named("cmpl-"), "text_completion", model, choice)


def _text_documents(document: Document) -> Iterator[Document]:
    about, choices = without(document, "choices", "usage"), items_at(document, "choices")
    for choice in choices:
        for piece in pieces(text_at(choice, "text")):
            yield {**about, "choices": [{**choice, "text": piece, "finish_reason": None}]}
    yield from ({**about, "choices": [{**choice, "text": ""}]} for choice in choices)


def speaker_for(request: HttpRequest, asked: Asked) -> Speaker:
    document, _ = request_json(request)
    model, form = asked.model or "", "events" if asked.streamed else "whole"

    def spoken(chunks: Callable[[Document], Iterator[Document]]) -> Callable[[Document], HttpResponse]:
        def response(answer: Document) -> HttpResponse:
            sent = list(chunks(answer)) if asked.streamed and items_at(answer, "choices") else []
            return events(sent, end="[DONE]") if sent else whole(answer)

        return response

    if at(document, "messages") is None and at(document, "prompt") is not None:
        return Speaker(
            form=f"completions {form}",
            document=lambda content: _text_document(content, model),
            response=spoken(_text_documents),
        )
    functions = bool(items_at(document, "functions"))
    with_usage = at(document, "stream_options", "include_usage") is True
    return Speaker(
        form=f"openai-chat {form}",
        document=lambda content: completion_document(content, model, functions=functions),
        response=spoken(lambda answer: chunk_documents(answer, with_usage=with_usage)),
    )
