"""Anthropic Messages, and what counts their tokens."""

from typing import Any

from rewind.model.http import HttpResponse
from support.exchanges import answer_with
from support.wire_examples import said
from support.wire_examples.said import Example, Stream, events, pieces, refused, to, written

SEARCH = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "weather"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srv_1",
    "content": [{"type": "web_search_result", "url": "https://weather.example", "title": "Weather", "page_age": None}],
}
CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": said.THOUGHT, "signature": "c2lnbmVk"},
    {"type": "redacted_thinking", "data": "c2VhbGVk"},
    SEARCH,
    FOUND,
    {"type": "text", "text": said.TEXT},
    *({"type": "tool_use", "id": call, "name": name, "input": given} for call, name, given in said.CALLS),
]
USAGE = {
    "input_tokens": said.READ - said.READ_FROM_CACHE - said.WRITTEN_TO_CACHE,
    "cache_read_input_tokens": said.READ_FROM_CACHE,
    "cache_creation_input_tokens": said.WRITTEN_TO_CACHE,
    "cache_creation": {"ephemeral_5m_input_tokens": said.WRITTEN_TO_CACHE, "ephemeral_1h_input_tokens": 0},
    "service_tier": "standard",
}
FINAL_USAGE = {
    "output_tokens": said.WRITTEN,
    "output_tokens_details": {"thinking_tokens": said.THOUGHT_ABOUT},
    "server_tool_use": {"web_search_requests": 1},
}


def asked(**more: Any) -> dict[str, Any]:
    """The request; Bedrock and Vertex name the model elsewhere."""
    return {
        "max_tokens": 1000,
        "temperature": 0.5,
        "system": [{"type": "text", "text": said.SYSTEM, "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": said.QUESTION},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": said.PNG}},
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": said.PDF},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": said.EARLIER_CALL[0], "name": said.TOOL, "input": said.EARLIER_CALL[2]}
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": said.EARLIER_CALL[0], "content": said.RESULT}],
            },
        ],
        "tools": [
            {"name": said.TOOL, "description": said.TOOL_SAYS, "input_schema": said.SCHEMA},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 2},
        ],
        **more,
    }


def message() -> dict[str, Any]:
    return {
        "id": said.ANSWER_ID,
        "type": "message",
        "role": "assistant",
        "model": said.ANSWERED_BY,
        "content": CONTENT,
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {**USAGE, **FINAL_USAGE},
    }


def stream_documents() -> list[dict[str, Any]]:
    """The message in events, as they come."""
    begun = {**message(), "content": [], "stop_reason": None, "usage": {**USAGE, "output_tokens": 1}}
    documents: list[dict[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(CONTENT):
        start, deltas = _in_deltas(block)
        documents.append({"type": "content_block_start", "index": index, "content_block": start})
        documents += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        documents.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": "tool_use", "stop_sequence": None}
    documents.append({"type": "message_delta", "delta": end, "usage": {**USAGE, **FINAL_USAGE}})
    return [*documents, {"type": "message_stop"}]


def _in_deltas(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        case "thinking":
            return {**block, "thinking": "", "signature": ""}, [
                *({"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])),
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case "tool_use" | "server_tool_use":
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces(written(block["input"])))
            ]
        case _:
            return block, []


def error(message: str, kind: str = "not_found_error") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def broken() -> HttpResponse:
    begun = [document for document in stream_documents() if document["type"] not in ("message_delta", "message_stop")]
    return events(*begun, error(said.BROKE_OFF, "overloaded_error"), named=True)


REQUEST = to("/v1/messages", asked(model=said.MODEL))
STREAMING = to("/v1/messages", asked(model=said.MODEL, stream=True))

EXAMPLES = (
    Example(
        api="Anthropic Messages",
        paths=(
            "/v1/messages",
            "/v1/projects/{…}/locations/{…}/publishers/anthropic/models/{…}:rawPredict",
            "/v1/projects/{…}/locations/{…}/publishers/anthropic/models/{…}:streamRawPredict",
        ),
        request=REQUEST,
        whole=answer_with(message()),
        streams=(Stream(format="SSE", request=STREAMING, response=events(*stream_documents(), named=True)),),
        broken=Stream(format="SSE", request=STREAMING, response=broken()),
        refused=refused(error(said.REFUSED)),
    ),
    Example(
        api="Anthropic token counting",
        paths=("/v1/messages/count_tokens",),
        request=to("/v1/messages/count_tokens", asked(model=said.MODEL)),
        whole=answer_with({"input_tokens": said.READ}),
        refused=refused(error(said.REFUSED)),
    ),
)
