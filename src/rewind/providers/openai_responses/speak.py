"""Answers of OpenAI Responses."""

from collections.abc import Iterator
from typing import Any

from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Asked
from rewind.providers.api import AnswerContent, Document, Speaker
from rewind.providers.openai_responses.write import call
from rewind.providers.shared.framing import events, whole
from rewind.providers.shared.json_fields import items_at, text_at
from rewind.providers.shared.speak import pieces

_NO_USAGE: Document = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}
_STATUSES = ("completed", "incomplete", "failed")


def _response_document(content: AnswerContent, model: str) -> Document:
    text: Document = {"type": "output_text", "text": content.text, "annotations": [], "logprobs": []}
    message = {
        "type": "message",
        "id": content.named("msg_"),
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    calls = [{"id": f"fc_{use.id}", **call(use), "status": "completed"} for use in content.tools]
    return {
        "id": content.named("resp_"),
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": [*([message] if content.text or not content.tools else []), *calls],
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": _NO_USAGE,
    }


def _event_documents(response: Document) -> Iterator[Document]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(items_at(response, "output")):
        yield from ({**event, "output_index": index} for event in _item_events(item))
    status = text_at(response, "status")
    yield {"type": f"response.{status if status in _STATUSES else 'completed'}", "response": response}


def _item_events(item: Any) -> Iterator[Document]:
    name = text_at(item, "id")
    match text_at(item, "type"):
        case "message":
            yield {"type": "response.output_item.added", "item": {**item, "content": [], "status": "in_progress"}}
            for place, part in enumerate(items_at(item, "content")):
                yield from ({**event, "item_id": name, "content_index": place} for event in _part_events(part))
        case "function_call":
            yield from _call_events(item, "function_call_arguments", "arguments")
        case "custom_tool_call":
            yield from _call_events(item, "custom_tool_call_input", "input")
        case _:
            yield {"type": "response.output_item.added", "item": item}
    yield {"type": "response.output_item.done", "item": item}


def _part_events(part: Any) -> Iterator[Document]:
    kind, field = ("refusal", "refusal") if text_at(part, "type") == "refusal" else ("output_text", "text")
    words = text_at(part, field)
    beside: Document = {"logprobs": []} if kind == "output_text" else {}
    empty = {**part, field: ""} if isinstance(part, dict) else part
    yield {"type": "response.content_part.added", "part": empty}
    yield from ({"type": f"response.{kind}.delta", "delta": one, **beside} for one in pieces(words))
    yield {"type": f"response.{kind}.done", field: words, **beside}
    yield {"type": "response.content_part.done", "part": part}


def _call_events(item: Any, kind: str, field: str) -> Iterator[Document]:
    name, given = text_at(item, "id"), text_at(item, field)
    yield {"type": "response.output_item.added", "item": {**item, field: "", "status": "in_progress"}}
    yield from ({"type": f"response.{kind}.delta", "item_id": name, "delta": one} for one in pieces(given))
    yield {"type": f"response.{kind}.done", "item_id": name, field: given}


def speaker_for(_request: HttpRequest, asked: Asked) -> Speaker:
    def response(document: Document) -> HttpResponse:
        if not asked.streamed or not isinstance(document.get("output"), list):
            return whole(document)
        numbered = enumerate(_event_documents(document))
        return events(({**event, "sequence_number": number} for number, event in numbered), named=True)

    return Speaker(
        form=f"openai-responses {'events' if asked.streamed else 'whole'}",
        document=lambda content: _response_document(content, asked.model or ""),
        response=response,
    )
