"""Runs of an agent as people record them: the same small conversation in every API, with the SDKs' own objects."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anthropic.types import Message as AnthropicMessage
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from rewind import Trace
from rewind.formats.trace.lines import TraceLimits
from rewind.formats.trace.session import session_of_trace
from rewind.model.session import SessionFile
from rewind.store.trace_files import open_trace

PROMPT = "What shall I wear in Oslo?"
SYSTEM = "You dress people."
ARGUMENTS = {"city": "Oslo"}
SNOW = "4 degrees and snow"
ADVICE = "Wear a coat."


def read_trace_file(path: Path, run: str | None = None, **limits: int) -> SessionFile:
    """The session in a trace, under other limits than usual where some are given."""
    return session_of_trace(open_trace(path), run, TraceLimits(**limits))


def chat_asks() -> ChatCompletion:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": json.dumps(ARGUMENTS)}}
    return _chat({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls")


def chat_says(text: str = ADVICE) -> ChatCompletion:
    return _chat({"role": "assistant", "content": text}, "stop")


def _chat(message: dict[str, Any], finish: str) -> ChatCompletion:
    return ChatCompletion.model_validate(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_780_000_000,
            "model": "gpt-5-mini-2025-08-07",
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
            "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
        }
    )


def _response(*output: dict[str, Any]) -> Response:
    return Response.model_validate(
        {
            "id": "resp_1",
            "object": "response",
            "created_at": 1_780_000_000,
            "model": "gpt-5-mini-2025-08-07",
            "status": "completed",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": 20,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 25,
            },
        }
    )


def response_asks() -> Response:
    return _response(
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "weather",
            "arguments": json.dumps(ARGUMENTS),
            "status": "completed",
        },
    )


def response_says(text: str = ADVICE) -> Response:
    content = {"type": "output_text", "text": text, "annotations": []}
    return _response(
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [content]}
    )


def anthropic_asks() -> AnthropicMessage:
    use = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": ARGUMENTS}
    return _message([{"type": "text", "text": "Let me look."}, use], "tool_use")


def anthropic_says(text: str = ADVICE) -> AnthropicMessage:
    return _message([{"type": "text", "text": text}], "end_turn")


def _message(content: list[dict[str, Any]], stop: str) -> AnthropicMessage:
    return AnthropicMessage.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": 20, "output_tokens": 5},
        }
    )


def gemini_asks() -> GenerateContentResponse:
    call = {"name": "weather", "args": ARGUMENTS}
    return _candidate([{"functionCall": call, "thoughtSignature": b"\xff\xfesig"}])


def gemini_says(text: str = ADVICE) -> GenerateContentResponse:
    return _candidate([{"text": text}])


def _candidate(parts: list[dict[str, Any]]) -> GenerateContentResponse:
    return GenerateContentResponse.model_validate(
        {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "modelVersion": "gemini-2.5-flash",
            "responseId": "r1",
            "usageMetadata": {"promptTokenCount": 20, "candidatesTokenCount": 5, "totalTokenCount": 25},
        }
    )


ASKS: dict[str, Callable[[], Any]] = {
    "openai": chat_asks,
    "responses": response_asks,
    "anthropic": anthropic_asks,
    "gemini": gemini_asks,
}
SAYS: dict[str, Callable[..., Any]] = {
    "openai": chat_says,
    "responses": response_says,
    "anthropic": anthropic_says,
    "gemini": gemini_says,
}
IDS = {"openai": "call_1", "responses": "call_1", "anthropic": "toolu_1", "gemini": ""}
MODELS = {
    "openai": "gpt-5-mini",
    "responses": "gpt-5-mini",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
}


def record(path: Path, api: str, *, weather: str = SNOW, advice: str = ADVICE, **more: Any) -> Path:
    """A whole run: a start, two calls, a tool between them, and how it ended."""
    with Trace(path, **more) as trace:
        trace.step("start", model=MODELS[api], system=SYSTEM, prompt=PROMPT)
        trace.step("llm_call", response=ASKS[api]())
        trace.step("tool_call", name="weather", args=ARGUMENTS)
        named = {"id": IDS[api]} if IDS[api] else {"name": "weather"}
        trace.step("tool_result", **named, output=weather)
        trace.step("llm_call", response=SAYS[api](advice))
        trace.step("final", text=advice)
    return path
