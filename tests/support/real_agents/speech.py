"""What a model says, in the words of each API, with ids that are drawn anew for every answer."""

import json
import secrets
import string
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from support.script import Answer, Headers

JSON: Headers = (("content-type", "application/json"),)
STREAM: Headers = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))

_LETTERS = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool call that the model asks for."""

    name: str
    arguments: dict[str, Any]
    source: str = ""
    """For a tool that takes free text: what it is given instead of arguments."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One turn of the model: words, or tool calls."""

    text: str = ""
    tools: tuple[ToolUse, ...] = ()
    cut: bool = False
    """True if the limit of tokens ended the words."""

    @property
    def words(self) -> Iterator[str]:
        """The text in the pieces a stream brings it in."""
        for at in range(0, len(self.text), 12):
            yield self.text[at : at + 12]


def drawn(prefix: str, size: int = 24) -> str:
    """An id as providers draw them."""
    return prefix + "".join(secrets.choice(_LETTERS) for _ in range(size))


def json_answer(value: Any, *, status: int = 200) -> Answer:
    return Answer(status=status, headers=(*JSON, ("x-request-id", drawn("req_"))), pieces=(_dump(value),))


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _data(value: Any) -> bytes:
    return b"data: " + _dump(value) + b"\n\n"


def _stream(events: list[bytes]) -> Answer:
    headers = (*STREAM, ("x-request-id", drawn("req_")))
    return Answer(headers=headers, pieces=tuple(events), framing="chunked")


def _named_stream(values: list[dict[str, Any]]) -> Answer:
    return _stream([b"event: " + value["type"].encode() + b"\n" + _data(value) for value in values])


def anthropic(asked: dict[str, Any], reply: Reply) -> Answer:
    """Messages, streamed or not."""
    blocks: list[dict[str, Any]] = [
        {"type": "tool_use", "id": drawn("toolu_01", 22), "name": tool.name, "input": tool.arguments}
        for tool in reply.tools
    ] or [{"type": "text", "text": reply.text}]
    message: dict[str, Any] = {
        "id": drawn("msg_01", 22),
        "type": "message",
        "role": "assistant",
        "model": asked["model"],
        "content": blocks,
        "stop_reason": "tool_use" if reply.tools else "max_tokens" if reply.cut else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 210, "output_tokens": 24},
    }
    if not asked.get("stream"):
        return json_answer(message)
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message | {"content": [], "stop_reason": None}}
    ]
    for index, block in enumerate(blocks):
        if reply.tools:
            opened = block | {"input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        else:
            opened = block | {"text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in reply.words]
        events.append({"type": "content_block_start", "index": index, "content_block": opened})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 24}})
    return _named_stream([*events, {"type": "message_stop"}])


def chat(asked: dict[str, Any], reply: Reply) -> Answer:
    """Chat Completions, streamed or not."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    calls = [
        {
            "id": drawn("call_"),
            "type": "function",
            "function": {"name": tool.name, "arguments": json.dumps(tool.arguments)},
        }
        for tool in reply.tools
    ]
    if calls:
        message["tool_calls"] = calls
    finish = "tool_calls" if calls else "length" if reply.cut else "stop"
    frame = {"id": drawn("chatcmpl-", 29), "created": int(time.time()), "model": asked["model"]}
    usage = {"prompt_tokens": 210, "completion_tokens": 24, "total_tokens": 234}
    if not asked.get("stream"):
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        return json_answer({**frame, "object": "chat.completion", "choices": [choice], "usage": usage})
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(calls)]
    deltas += [{"content": piece} for piece in reply.words]
    chunk = {**frame, "object": "chat.completion.chunk"}
    events = [_data({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for delta in deltas]
    events.append(_data({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
    if (asked.get("stream_options") or {}).get("include_usage"):
        events.append(_data({**chunk, "choices": [], "usage": usage}))
    return _stream([*events, b"data: [DONE]\n\n"])


def responses(asked: dict[str, Any], reply: Reply) -> Answer:
    """The Responses API, streamed or not."""
    items = [_call_item(tool) for tool in reply.tools] or [_message_item(reply)]
    response: dict[str, Any] = {
        "id": drawn("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if reply.cut else "completed",
        "model": asked["model"],
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if reply.cut else None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": {
            "input_tokens": 210,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 24,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 234,
        },
    }
    if not asked.get("stream"):
        return json_answer(response)
    begun = response | {"status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(items):
        at = {"output_index": index, "item_id": item["id"]}
        events += _message_events(item, at, reply) if item["type"] == "message" else _call_events(item, at)
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{response['status']}", "response": response})
    return _named_stream([{**event, "sequence_number": number} for number, event in enumerate(events)])


def _call_item(tool: ToolUse) -> dict[str, Any]:
    item = {"call_id": drawn("call_"), "name": tool.name, "status": "completed"}
    if tool.source:
        return {"type": "custom_tool_call", "id": drawn("ctc_"), "input": tool.source, **item}
    return {"type": "function_call", "id": drawn("fc_"), "arguments": json.dumps(tool.arguments), **item}


def _call_events(item: dict[str, Any], at: dict[str, Any]) -> list[dict[str, Any]]:
    given, kind = ("input", "custom_tool_call_input") if "input" in item else ("arguments", "function_call_arguments")
    opened = item | {given: "", "status": "in_progress"}
    return [
        {"type": "response.output_item.added", "output_index": at["output_index"], "item": opened},
        {"type": f"response.{kind}.delta", **at, "delta": item[given]},
        {"type": f"response.{kind}.done", **at, given: item[given]},
    ]


def _message_item(reply: Reply) -> dict[str, Any]:
    part = {"type": "output_text", "text": reply.text, "annotations": []}
    return {"type": "message", "id": drawn("msg_"), "role": "assistant", "status": "completed", "content": [part]}


def _message_events(item: dict[str, Any], at: dict[str, Any], reply: Reply) -> list[dict[str, Any]]:
    place, part = {**at, "content_index": 0}, item["content"][0]
    opened = item | {"content": [], "status": "in_progress"}
    return [
        {"type": "response.output_item.added", "output_index": at["output_index"], "item": opened},
        {"type": "response.content_part.added", **place, "part": part | {"text": ""}},
        *({"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []} for piece in reply.words),
        {"type": "response.output_text.done", **place, "text": reply.text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
    ]


def gemini(target: str, reply: Reply) -> Answer:
    """generateContent, or streamGenerateContent as events."""
    calls = [{"functionCall": {"name": tool.name, "args": tool.arguments}} for tool in reply.tools]
    parts: list[dict[str, Any]] = calls or [{"text": reply.text}]
    value = {
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 210, "candidatesTokenCount": 24, "totalTokenCount": 234},
        "modelVersion": target.partition("/models/")[2].partition(":")[0],
        "responseId": drawn("", 22),
    }
    return _stream([_data(value)]) if ":stream" in target else json_answer(value)
