"""Whose API an answer speaks."""

import json
from typing import Any

from rewind.formats.trace.apis.anthropic import Anthropic
from rewind.formats.trace.apis.base import Api, Said, objects, text_at
from rewind.formats.trace.apis.chat import Chat
from rewind.formats.trace.apis.gemini import Gemini
from rewind.formats.trace.apis.responses import Responses

APIS: dict[str, Api] = {api.name: api for api in (Chat(), Responses(), Anthropic(), Gemini())}
"""In the order in which they are asked."""

_MODELS = (("claude", "anthropic"), ("gemini", "gemini"))


def recognised(value: Any) -> tuple[Api, Said] | None:
    """The API of an answer, and the answer; ``None`` for words that any of them could have given."""
    if isinstance(value, str):
        value = _json_in(value)
    return next(((api, said) for api in APIS.values() if (said := api.said(value)) is not None), None)


def _json_in(text: str) -> Any:
    """An answer that was handed over as JSON already: ``response.model_dump_json()``."""
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def words_of(value: Any) -> str | None:
    """A plain text, or a message that holds nothing but one."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and value.get("role", "assistant") in ("assistant", "model", "ai"):
        content = value.get("content")
        return content if isinstance(content, str) else None
    return None


def likely_api(fields: dict[str, Any]) -> Api | None:
    """By the request where the answer does not tell: the names of its fields, its messages, or the model."""
    if "contents" in fields or "system_instruction" in fields:
        return APIS["gemini"]
    if "instructions" in fields or "previous_response_id" in fields:
        return APIS["responses"]
    for turn in objects(fields.get("messages") or fields.get("input")):
        if found := _by_turn(turn):
            return APIS[found]
    model = text_at(fields, "model").lower().rpartition("/")[2]
    return next((APIS[api] for begins, api in _MODELS if model.startswith(begins)), None)


def _by_turn(turn: dict[str, Any]) -> str | None:
    kinds = {text_at(block, "type") for block in objects(turn.get("content"))}
    if turn.get("role") == "tool" or "tool_calls" in turn:
        return "openai"
    if "parts" in turn:
        return "gemini"
    if kinds & {"tool_use", "tool_result", "thinking"}:
        return "anthropic"
    if "type" in turn or kinds & {"input_text", "output_text"}:
        return "responses"
    return None
