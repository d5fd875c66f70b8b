"""What a made-up answer says: a text, tools to call, or both."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from rewind.errors import UsageError
from rewind.model.message import Answered, ToolResult, ToolUse

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_MOST_PIECES = 48
_LEAST_SIZE = 12
_FORMS = (
    'response={"tool": "NAME", "arguments": {…}} '
    'or response={"text": "…", "tools": [{"name": "NAME", "arguments": {…}}]}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An answer without accent."""

    text: str = ""
    tools: tuple[ToolUse, ...] = ()
    seed: str = ""
    """From which its ids are made: another call gets others, the same call the same."""

    def named(self, prefix: str) -> str:
        """An id for the answer itself."""
        return f"{prefix}rewind{self.seed[:18]}"


def said_or_document(written: str, asked: bytes, *, by_model: bool) -> Said | dict[str, Any]:
    """What ``response=VALUE`` says: words, for a model tools to call, or the API's own answer document."""
    value = _object(written)
    seed = hashlib.sha256(asked + b"\0" + written.encode("utf-8", "replace")).hexdigest()
    if value is None:
        return Said(text=written, seed=seed)
    if not by_model:
        return value
    if "tool" in value and set(value) <= {"tool", "arguments"}:
        tool = {"name": value["tool"], "arguments": value.get("arguments", {})}
        return Said(tools=(_use(tool, seed, 0),), seed=seed)
    if value and set(value) <= {"text", "tools"}:
        given, tools = value.get("text") or "", value.get("tools") or []
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        if not isinstance(tools, list):
            raise UsageError("The tools of a made-up answer are a list.", hint=_FORMS)
        return Said(text=text, tools=tuple(_use(tool, seed, n) for n, tool in enumerate(tools)), seed=seed)
    return value


def said_in(answered: Answered, asked: bytes) -> Said:
    """What a recorded answer says: its words and its tools, not what the model thought."""
    # A tool's own answer is its result.
    text = answered.text or "".join(part.text for part in answered.parts if isinstance(part, ToolResult))
    seed = hashlib.sha256(asked + b"\0" + text.encode("utf-8", "replace")).hexdigest()
    tools = tuple(
        ToolUse(use.id or call_id(seed, number), use.name, use.arguments)
        for number, use in enumerate(answered.tool_uses)
    )
    return Said(text=text, tools=tools, seed=seed)


def call_id(seed: str, number: int) -> str:
    """Nine letters and digits: the only form that Mistral takes, and all others do as well."""
    drawn = int(seed[:12], 16) + number * 7919
    letters = ""
    for _ in range(5):
        drawn, place = divmod(drawn, len(_LETTERS))
        letters += _LETTERS[place]
    return f"call{letters}"


def pieces(text: str) -> list[str]:
    """A text as it comes in a stream; a long one in larger pieces."""
    size = max(_LEAST_SIZE, -(-len(text) // _MOST_PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _object(written: str) -> dict[str, Any] | None:
    try:
        value = json.loads(written)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _use(tool: Any, seed: str, number: int) -> ToolUse:
    name = tool.get("name") if isinstance(tool, dict) else None
    if not isinstance(name, str) or not name or not set(tool) <= {"name", "arguments", "id"}:
        raise UsageError("A tool of a made-up answer has a name and arguments.", hint=_FORMS)
    told = tool.get("id")
    return ToolUse(
        told if isinstance(told, str) and told else call_id(seed, number), name, tool.get("arguments", {})
    )
