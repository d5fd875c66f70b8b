"""OpenAI Responses: items, and the many events in which they come."""

from typing import Any

from rewind.model.http import HttpResponse
from support.exchanges import answer_with
from support.wire_examples import said
from support.wire_examples.openai_chat import error
from support.wire_examples.said import Example, Stream, events, pieces, refused, to, written

Fields = dict[str, Any]

REASONING: Fields = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": said.THOUGHT}],
    "encrypted_content": "c2VhbGVk",
}
SEARCH: Fields = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "weather"},
}
MESSAGE: Fields = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": said.TEXT, "annotations": [], "logprobs": []}],
}
CALLS: list[Fields] = [
    {
        "type": "function_call",
        "id": f"fc_{call}",
        "call_id": call,
        "name": name,
        "arguments": written(given),
        "status": "completed",
    }
    for call, name, given in said.CALLS
]
OUTPUT: list[Fields] = [REASONING, SEARCH, MESSAGE, *CALLS]
USAGE: Fields = {
    "input_tokens": said.READ,
    "input_tokens_details": {"cached_tokens": said.READ_FROM_CACHE, "cache_write_tokens": said.WRITTEN_TO_CACHE},
    "output_tokens": said.WRITTEN,
    "output_tokens_details": {"reasoning_tokens": said.THOUGHT_ABOUT},
    "total_tokens": said.READ + said.WRITTEN,
}


def asked(**more: Any) -> Fields:
    call, name, given = said.EARLIER_CALL
    return {
        "model": said.MODEL,
        "temperature": 0.5,
        "instructions": said.SYSTEM,
        "previous_response_id": said.EARLIER_ID,
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": said.QUESTION},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{said.PNG}"},
                    {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{said.PDF}"},
                ],
            },
            {"type": "function_call", "call_id": call, "name": name, "arguments": written(given)},
            {"type": "function_call_output", "call_id": call, "output": said.RESULT},
        ],
        "tools": [
            {
                "type": "function",
                "name": said.TOOL,
                "description": said.TOOL_SAYS,
                "parameters": said.SCHEMA,
                "strict": True,
            },
            {"type": "web_search"},
        ],
        **more,
    }


def response(**more: Any) -> Fields:
    return {
        "id": said.ANSWER_ID,
        "object": "response",
        "created_at": 1767225600,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": said.ANSWERED_BY,
        "output": OUTPUT,
        "service_tier": "default",
        "usage": USAGE,
        **more,
    }


def stream_documents() -> list[Fields]:
    begun = response(status="in_progress", output=[], usage=None)
    documents: list[Fields] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(OUTPUT):
        documents += [{"output_index": index, **document} for document in _item_events(item)]
    documents.append({"type": "response.completed", "response": response()})
    return [{**document, "sequence_number": number} for number, document in enumerate(documents)]


def _item_events(item: Fields) -> list[Fields]:
    empty: Fields
    match item["type"]:
        case "reasoning":
            empty, inside = {"summary": []}, _reasoning_events(item["id"])
        case "message":
            empty, inside = {"content": [], "status": "in_progress"}, _message_events(item["id"])
        case "function_call":
            empty, inside = {"arguments": "", "status": "in_progress"}, _arguments_events(item)
        case _:
            empty, inside = {"status": "in_progress"}, _search_events(item["id"])
    return [
        {"type": "response.output_item.added", "item": {**item, **empty}},
        *inside,
        {"type": "response.output_item.done", "item": item},
    ]


def _reasoning_events(item: str) -> list[Fields]:
    where = {"item_id": item, "summary_index": 0}
    part = {"type": "summary_text", "text": said.THOUGHT}
    return [
        {"type": "response.reasoning_summary_part.added", **where, "part": {**part, "text": ""}},
        *({"type": "response.reasoning_summary_text.delta", **where, "delta": piece} for piece in pieces(said.THOUGHT)),
        {"type": "response.reasoning_summary_text.done", **where, "text": said.THOUGHT},
        {"type": "response.reasoning_summary_part.done", **where, "part": part},
    ]


def _message_events(item: str) -> list[Fields]:
    where = {"item_id": item, "content_index": 0}
    part = MESSAGE["content"][0]
    return [
        {"type": "response.content_part.added", **where, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **where, "delta": piece} for piece in pieces(said.TEXT)),
        {"type": "response.output_text.done", **where, "text": said.TEXT},
        {"type": "response.content_part.done", **where, "part": part},
    ]


def _arguments_events(item: Fields) -> list[Fields]:
    where = {"item_id": item["id"]}
    return [
        *(
            {"type": "response.function_call_arguments.delta", **where, "delta": piece}
            for piece in pieces(item["arguments"])
        ),
        {"type": "response.function_call_arguments.done", **where, "arguments": item["arguments"]},
    ]


def _search_events(item: str) -> list[Fields]:
    return [
        {"type": f"response.web_search_call.{state}", "item_id": item}
        for state in ("in_progress", "searching", "completed")
    ]


def broken() -> HttpResponse:
    failed = response(status="failed", usage=None, error={"code": "server_error", "message": said.BROKE_OFF})
    return events(*stream_documents()[:-1], {"type": "response.failed", "response": failed}, named=True)


REQUEST = to("/v1/responses", asked())
STREAMING = to("/v1/responses", asked(stream=True))

EXAMPLES = (
    Example(
        api="OpenAI Responses",
        paths=("/v1/responses", "/responses", "/openai/v1/responses"),
        request=REQUEST,
        whole=answer_with(response()),
        streams=(Stream(format="SSE", request=STREAMING, response=events(*stream_documents(), named=True)),),
        broken=Stream(format="SSE", request=STREAMING, response=broken()),
        refused=refused(error(said.REFUSED)),
    ),
)
