"""Answers that nobody gave: what they say, and those of calls that no model answers."""

import hashlib
import json
from typing import Any

from rewind.errors import CannotEdit, UsageError
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Answered, Asked, ToolResult, ToolUse
from rewind.providers.api import AnswerContent, Document, Speaker
from rewind.providers.shared.framing import whole, whole_body

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_MOST_PIECES = 48
_LEAST_SIZE = 12
_FORMS = (
    'response={"tool": "NAME", "arguments": {…}} '
    'or response={"text": "…", "tools": [{"name": "NAME", "arguments": {…}}]}'
)


def content_or_document(written: str, asked: bytes, *, by_model: bool) -> AnswerContent | dict[str, Any]:
    """What ``response=VALUE`` says: words, for a model tools to call, or the API's own answer document."""
    value = _object(written)
    seed = hashlib.sha256(asked + b"\0" + written.encode("utf-8", "replace")).hexdigest()
    if value is None:
        return AnswerContent(text=written, seed=seed)
    if not by_model:
        return value
    if "tool" in value and set(value) <= {"tool", "arguments"}:
        tool = {"name": value["tool"], "arguments": value.get("arguments", {})}
        return AnswerContent(tools=(_use(tool, seed, 0),), seed=seed)
    if value and set(value) <= {"text", "tools"}:
        given, tools = value.get("text") or "", value.get("tools") or []
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        if not isinstance(tools, list):
            raise UsageError("The tools of a made-up answer must be a list.", hint=_FORMS)
        return AnswerContent(text=text, tools=tuple(_use(tool, seed, n) for n, tool in enumerate(tools)), seed=seed)
    return value


def content_of(answered: Answered, asked: bytes) -> AnswerContent:
    """What a recorded answer says: its words and its tools, not what the model thought."""
    # A tool's own answer is its result.
    text = answered.text or "".join(part.text for part in answered.parts if isinstance(part, ToolResult))
    seed = hashlib.sha256(asked + b"\0" + text.encode("utf-8", "replace")).hexdigest()
    tools = tuple(
        ToolUse(use.id or call_id(seed, number), use.name, use.arguments)
        for number, use in enumerate(answered.tool_uses)
    )
    return AnswerContent(text=text, tools=tools, seed=seed)


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
        raise UsageError("A tool of a made-up answer must have a name, and may have arguments.", hint=_FORMS)
    told = tool.get("id")
    return ToolUse(told if isinstance(told, str) and told else call_id(seed, number), name, tool.get("arguments", {}))


# ── calls that no model answers ──────────────────────────────────────────────────────────────────────────────

_WORDS = ""
"""Under this name, which no document has, a text waits to be sent as it is."""


def plain_speaker(_request: HttpRequest, _asked: Asked) -> Speaker:
    """Any other call: the text itself."""

    def response(document: Document) -> HttpResponse:
        if set(document) != {_WORDS}:
            return whole(document)
        return whole_body(str(document[_WORDS]).encode(errors="replace"), media="text/plain; charset=utf-8")

    return Speaker(form="http", is_model=False, document=lambda content: {_WORDS: content.text}, response=response)


def vector_speaker(_request: HttpRequest, _asked: Asked) -> Speaker:
    return _document_speaker("vectors")


def token_count_speaker(_request: HttpRequest, _asked: Asked) -> Speaker:
    return _document_speaker("a count of tokens")


def unwritten_speaker(_request: HttpRequest, _asked: Asked) -> Speaker:
    return _document_speaker("an answer of an API that Rewind reads and does not write", is_model=True)


def _document_speaker(what: str, *, is_model: bool = False) -> Speaker:
    """Nobody can make these up from words; the whole document is taken."""

    def document(_content: AnswerContent) -> Document:
        raise CannotEdit(
            f"The call asks for {what}, which cannot be made from a text.",
            hint='give the answer whole: response={"…": …}',
        )

    return Speaker(form=what, is_model=is_model, document=document, response=whole)
