"""What a fork needs of Cohere: how requests are changed, and answers made up.

``/v2/chat`` is written like OpenAI's, the older ``/v1/chat`` has a prompt and settings.
"""

from collections.abc import Iterator
from typing import Any

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Asked
from rewind.providers.api import AnswerContent, Document, LossLog, Patcher, Speaker
from rewind.providers.openai_chat.patch import ChatPatcher
from rewind.providers.openai_chat.write import call
from rewind.providers.shared.answer_stream import request_json
from rewind.providers.shared.framing import events, lines, whole
from rewind.providers.shared.json_fields import at, items_at, text_at
from rewind.providers.shared.parameters import FLAG, INTEGER, LIST, NUMBER, OBJECT, TEXT, ParameterTable, named
from rewind.providers.shared.patch import FieldPatcher
from rewind.providers.shared.speak import pieces
from rewind.providers.shared.write import arguments_object

PARAMETERS: ParameterTable = {
    **named("temperature", NUMBER.between(0)),
    **named("frequency_penalty presence_penalty p", NUMBER.between(0, 1)),
    **named("k max_input_tokens max_tokens priority seed", INTEGER.between(0)),
    **named("force_single_step logprobs raw_prompting return_prompt search_queries_only stream strict_tools", FLAG),
    **named("citation_quality conversation_id message model preamble prompt_truncation safety_mode", TEXT),
    **named("tool_choice", TEXT),
    **named("chat_history connectors documents messages stop_sequences tool_results tools", LIST),
    **named("citation_options response_format thinking", OBJECT),
}
_CHAT = ChatPatcher("cohere")
_OLDER_CHAT = FieldPatcher("cohere-v1", api="Cohere's /v1/chat", system="preamble")


def patcher_for(_head: RequestHead, document: Document) -> Patcher:
    return _CHAT if "messages" in document else _OLDER_CHAT


# ── making up an answer ───────────────────────────────────────────────────────────────────────────────────────

_NO_USAGE: Document = {
    "billed_units": {"input_tokens": 0, "output_tokens": 0},
    "tokens": {"input_tokens": 0, "output_tokens": 0},
}


def _document(content: AnswerContent) -> Document:
    message: Document = {"role": "assistant"}
    if content.text or not content.tools:
        message["content"] = [{"type": "text", "text": content.text}]
    if content.tools:
        message["tool_calls"] = [call(use) for use in content.tools]
    stop = "TOOL_CALL" if content.tools else "COMPLETE"
    return {"id": content.named(""), "message": message, "finish_reason": stop, "usage": _NO_USAGE}


def _event_documents(document: Document) -> Iterator[Document]:
    name = text_at(document, "id")
    empty = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    yield {"type": "message-start", "id": name, "delta": {"message": empty}}
    for index, block in enumerate(items_at(document, "message", "content")):
        kind = text_at(block, "type") or "text"
        yield _event("content-start", index, content={"type": kind, kind: ""})
        for one in pieces(text_at(block, kind)):
            yield _event("content-delta", index, content={kind: one})
        yield {"type": "content-end", "index": index}
    for index, one in enumerate(items_at(document, "message", "tool_calls")):
        function = at(one, "function")
        begun = {**one, "function": {"name": text_at(function, "name"), "arguments": ""}}
        yield _event("tool-call-start", index, tool_calls=begun)
        for piece in pieces(text_at(function, "arguments")):
            yield _event("tool-call-delta", index, tool_calls={"function": {"arguments": piece}})
        yield {"type": "tool-call-end", "index": index}
    told = {name: document[name] for name in ("finish_reason", "usage") if name in document}
    yield {"type": "message-end", "id": name, "delta": told}


def _event(kind: str, index: int, **message: Any) -> Document:
    return {"type": kind, "index": index, "delta": {"message": message}}


def older_document(content: AnswerContent) -> Document:
    """An answer in the older form. Command R on Bedrock has it too."""
    calls = [{"name": use.name, "parameters": arguments_object(use.arguments, LossLog())} for use in content.tools]
    return {
        "response_id": content.named(""),
        "generation_id": content.named("g"),
        "text": content.text,
        "finish_reason": "COMPLETE",
        **({"tool_calls": calls} if calls else {}),
        "meta": _NO_USAGE,
    }


def older_documents(document: Document) -> Iterator[Document]:
    """The same in events."""
    name, text = text_at(document, "generation_id"), text_at(document, "text")
    yield {"event_type": "stream-start", "generation_id": name, "is_finished": False}
    for one in pieces(text):
        yield {"event_type": "text-generation", "text": one, "is_finished": False}
    if calls := items_at(document, "tool_calls"):
        yield {"event_type": "tool-calls-generation", "text": text, "tool_calls": calls, "is_finished": False}
    yield {
        "event_type": "stream-end",
        "finish_reason": text_at(document, "finish_reason") or "COMPLETE",
        "response": document,
        "is_finished": True,
    }


def speaker_for(request: HttpRequest, asked: Asked) -> Speaker:
    """``/v2/chat``: an object, or typed events; ``/v1/chat``: an object, or lines of events whose last repeats it."""

    def response(document: Document) -> HttpResponse:
        if not asked.streamed or not isinstance(document.get("message"), dict):
            return whole(document)
        return events(_event_documents(document), named=True)

    def older_response(document: Document) -> HttpResponse:
        if not asked.streamed or "text" not in document:
            return whole(document)
        return lines(older_documents(document), media="application/stream+json")

    if at(request_json(request)[0], "messages") is None:
        form = f"cohere-v1 {'lines' if asked.streamed else 'whole'}"
        return Speaker(form=form, document=older_document, response=older_response)
    form = f"cohere {'events' if asked.streamed else 'whole'}"
    return Speaker(form=form, document=_document, response=response)
