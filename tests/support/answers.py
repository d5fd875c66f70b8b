"""Answers as the real APIs write them: OpenAI, Anthropic and Gemini, whole and streamed, with tool calls."""

import json
from collections.abc import Sequence
from typing import Any

from support.script import Answer, Headers, Request

Tool = tuple[str, dict[str, Any]]
"""Name and arguments of a tool the model asks for."""

JSON: Headers = (("content-type", "application/json"),)
STREAM: Headers = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _marked(headers: Headers, request: Request) -> Headers:
    return (*headers, ("x-request-id", f"req_{request.hit:08x}"), ("x-provider-hit", str(request.hit)))


def json_answer(request: Request, value: Any, *, status: int = 200, headers: Headers = ()) -> Answer:
    return Answer(status=status, headers=(*_marked(JSON, request), *headers), pieces=(_dump(value),))


def stream_answer(request: Request, events: Sequence[bytes], **more: Any) -> Answer:
    """Server-sent events, one transfer chunk each."""
    return Answer(headers=_marked(STREAM, request), pieces=tuple(events), framing="chunked", **more)


def _data(value: Any) -> bytes:
    return b"data: " + _dump(value) + b"\n\n"


def _named(value: dict[str, Any]) -> bytes:
    return b"event: " + value["type"].encode() + b"\n" + _data(value)


# OpenAI


def openai_error(request: Request, status: int, message: str, *, headers: Headers = ()) -> Answer:
    value = {"error": {"message": message, "type": "requests", "param": None, "code": "rate_limit_exceeded"}}
    return json_answer(request, value, status=status, headers=headers)


def _openai_tool_calls(request: Request, tools: Sequence[Tool]) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{request.hit:04x}{number:02x}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for number, (name, arguments) in enumerate(tools)
    ]


def openai_chat(request: Request, text: str | None, tools: Sequence[Tool] = ()) -> Answer:
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
    if tools:
        message["tool_calls"] = _openai_tool_calls(request, tools)
    return json_answer(
        request,
        {
            "id": f"chatcmpl-{request.hit:08x}",
            "object": "chat.completion",
            "created": 1762000000 + request.hit,
            "model": "gpt-4o-mini-2024-07-18",
            "choices": [
                {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls" if tools else "stop"}
            ],
            "usage": {"prompt_tokens": 21, "completion_tokens": 8, "total_tokens": 29},
            "system_fingerprint": "fp_0000000000",
        },
    )


def openai_chunk(request: Request, delta: dict[str, Any], finish: str | None = None) -> bytes:
    """One event of a streamed chat completion."""
    return _data(
        {
            "id": f"chatcmpl-{request.hit:08x}",
            "object": "chat.completion.chunk",
            "created": 1762000000 + request.hit,
            "model": "gpt-4o-mini-2024-07-18",
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
        }
    )


DONE = b"data: [DONE]\n\n"


def openai_events(request: Request, texts: Sequence[str]) -> list[bytes]:
    """A first chunk with the role, one per text, a last with the reason, and ``[DONE]``."""
    return [
        openai_chunk(request, {"role": "assistant", "content": ""}),
        *(openai_chunk(request, {"content": text}) for text in texts),
        openai_chunk(request, {}, "stop"),
        DONE,
    ]


def openai_stream(request: Request, texts: Sequence[str], **more: Any) -> Answer:
    return stream_answer(request, openai_events(request, texts), **more)


def openai_response(request: Request, text: str) -> Answer:
    """The Responses API."""
    return json_answer(
        request,
        {
            "id": f"resp_{request.hit:08x}",
            "object": "response",
            "created_at": 1762000000 + request.hit,
            "status": "completed",
            "model": "gpt-4o-mini-2024-07-18",
            "output": [
                {
                    "type": "message",
                    "id": f"msg_{request.hit:08x}",
                    "status": "completed",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": text, "annotations": []}],
                }
            ],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": 12,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 17,
            },
        },
    )


def openai_embeddings(request: Request) -> Answer:
    asked = request.json()["input"]
    texts = [asked] if isinstance(asked, str) else asked
    rows = [
        {"object": "embedding", "index": at, "embedding": [request.hit / 7, len(text) / 3, -0.0125]}
        for at, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 4, "total_tokens": 4}
    value = {"object": "list", "data": rows, "model": "text-embedding-3-small", "usage": usage}
    return json_answer(request, value)


# Anthropic


def anthropic_message(request: Request, text: str, tools: Sequence[Tool] = ()) -> Answer:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    blocks += [
        {"type": "tool_use", "id": f"toolu_{request.hit:04x}{number:02x}", "name": name, "input": arguments}
        for number, (name, arguments) in enumerate(tools)
    ]
    return json_answer(
        request,
        {
            "id": f"msg_{request.hit:08x}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5-5",
            "content": blocks,
            "stop_reason": "tool_use" if tools else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 14, "output_tokens": 9},
        },
    )


def anthropic_events(request: Request, texts: Sequence[str]) -> list[bytes]:
    """Message and block frames around the texts, with the ``ping`` that the real API sends."""
    start: dict[str, Any] = {
        "id": f"msg_{request.hit:08x}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 14, "output_tokens": 1},
    }
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    return [
        _named({"type": "message_start", "message": start}),
        _named({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        _named({"type": "ping"}),
        *(
            _named({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
            for text in texts
        ),
        _named({"type": "content_block_stop", "index": 0}),
        _named({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}),
        _named({"type": "message_stop"}),
    ]


def anthropic_stream(request: Request, texts: Sequence[str], **more: Any) -> Answer:
    return stream_answer(request, anthropic_events(request, texts), **more)


def anthropic_error_event(message: str) -> bytes:
    """The error that comes inside a stream that began well."""
    return _named({"type": "error", "error": {"type": "overloaded_error", "message": message}})


# Gemini


def _gemini_value(request: Request, parts: list[dict[str, Any]], *, last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if last:
        candidate["finishReason"] = "STOP"
    return {
        "candidates": [candidate],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12},
        "modelVersion": "gemini-2.5-flash",
        "responseId": f"r{request.hit:08x}",
    }


def gemini_content(request: Request, text: str, tools: Sequence[Tool] = ()) -> Answer:
    parts: list[dict[str, Any]] = [{"text": text}] if text else []
    parts += [{"functionCall": {"name": name, "args": arguments}} for name, arguments in tools]
    return json_answer(request, _gemini_value(request, parts, last=True))


def gemini_stream(request: Request, texts: Sequence[str], **more: Any) -> Answer:
    """``alt=sse``: events, otherwise the pieces of one JSON array."""
    values = [
        _gemini_value(request, [{"text": text}], last=number == len(texts) - 1) for number, text in enumerate(texts)
    ]
    if "alt=sse" in request.target:
        return stream_answer(request, [_data(value).replace(b"\n\n", b"\r\n\r\n") for value in values], **more)
    pieces = [(b"[" if number == 0 else b",\r\n") + _dump(value) for number, value in enumerate(values)]
    headers = _marked(JSON, request)
    return Answer(headers=headers, pieces=(*pieces, b"]"), framing="chunked", **more)
