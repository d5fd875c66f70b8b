"""What an exchange says: in short, for tables and journal lines, and all its words, for a search."""

import json
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import unquote, unquote_plus

from rewind.model.http import Headers, HttpRequest, HttpResponse, RequestHead, header
from rewind.model.message import (
    Answered,
    Asked,
    Media,
    Message,
    Other,
    Part,
    Refusal,
    Role,
    Text,
    Thinking,
    ToolDefinition,
    ToolResult,
    ToolUse,
    Vectors,
)
from rewind.model.step import Reading
from rewind.providers.api import Api
from rewind.providers.http import API as HTTP
from rewind.providers.shared.json_fields import asked_tool, start_of, writable
from rewind.text import plural
from rewind.wire.encoding import SHOWN_LIMIT, decode_as_far_as_possible

READ_LIMIT = 4 * 1024 * 1024
"""A longer answer is kept whole, but its meaning is worked out when somebody looks at it."""
LONG_ANSWER = Reading(note="a long answer; read when it is looked at")


def read(provider: Api, request: HttpRequest, response: HttpResponse) -> Reading:
    """What can be told of an exchange in a line. Never raises."""
    return short(provider.reader.asked(request), provider.reader.answered(request, response))


def short(asked: Asked, answered: Answered) -> Reading:
    model = answered.model or asked.model
    return Reading(
        model=writable(model)[:200] if model else None,
        text=start_of(_run_tool(asked, answered) or said(answered) or _told(asked)),
        usage=answered.usage,
        error=start_of(answered.error, 500) if answered.error else None,
        note=answered.note,
    )


def said(answered: Answered) -> str:
    """What an answer comes to: the tools it asks for, or else its text."""
    tools = [asked_tool(use.name, use.arguments) for use in answered.tool_uses]
    vectors = [vectors_shown(part) for part in answered.parts if isinstance(part, Vectors)]
    # A hosted tool is worth a line only where nothing else was said.
    hosted = [
        asked_tool(part.name, part.arguments) for part in answered.parts if isinstance(part, ToolUse) and part.hosted
    ]
    return " ".join(tools or vectors) or answered.text or " ".join(hosted) or unsaid(answered)


def unsaid(answered: Answered) -> str:
    """Why an answer is empty, in the provider's own word: ``(empty: content_filter)``; nothing where it is not."""
    if answered.parts or answered.error or not answered.stop:
        return ""
    return f"(empty: {answered.stop})"


def _run_tool(asked: Asked, answered: Answered) -> str:
    """Where the exchange itself is a tool's run, as over MCP: the call and what it gave."""
    uses = [part for message in asked.messages[-1:] for part in message.parts if isinstance(part, ToolUse)]
    results = [part.text for part in answered.parts if isinstance(part, ToolResult) and not part.hosted]
    if asked.model or not uses or not (results or answered.error):
        return ""
    return f"{asked_tool(uses[0].name, uses[0].arguments)} ← {' '.join(results)}".rstrip(" ←")


def _told(asked: Asked) -> str:
    """What was said to somebody who need not answer: a notification."""
    return "" if asked.model or len(asked.messages) != 1 else asked.messages[0].text


def vectors_shown(vectors: Vectors) -> str:
    """``3 vectors of 1,536``."""
    size = f" of {vectors.dimensions:,}" if vectors.dimensions else ""
    return f"{plural(vectors.count, 'vector')}{size}"


# ── all the words of an exchange, each with who said it: what a search looks through ──────────────────────────

_BINARY = ("image/", "audio/", "video/", "font/", "application/octet-stream", "application/pdf")
_DATA = re.compile(r"[A-Za-z0-9+/=_-]{256,}", re.ASCII)
"""Base64, signatures, sealed thinking: nobody's words."""
_NUMBERS = 16
"""A list of more numbers than these is a vector."""
_LONGEST_PATH = 120


class TextKind(StrEnum):
    """Whose words a text is. Those about tools begin alike."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    THINKING = "thinking"
    TOOL_DEFINITION = "tool_definition"
    TOOL_USE = "tool_use"
    TOOL_RESULT = "tool_result"
    ERROR = "error"
    HTTP = "http"
    """Bodies that no codec reads, and the URLs of such calls."""


_SPEAKERS = {
    Role.SYSTEM: TextKind.SYSTEM,
    Role.USER: TextKind.USER,
    Role.ASSISTANT: TextKind.ASSISTANT,
    Role.TOOL: TextKind.TOOL_RESULT,
}


class Passage(NamedTuple):
    """Some words, never none, and whose they are."""

    kind: TextKind
    text: str


def asked_texts(
    provider: Api, request: HttpRequest, known: Callable[[tuple[Message, ...]], int] = lambda _messages: 0
) -> Iterator[Passage]:
    """All that was asked, in order, less the first messages as far as they are ``known``. Never raises."""
    if provider is HTTP:
        return _passages(
            (TextKind.HTTP, _named(request.head)), (TextKind.HTTP, _body(request.body, request.head.headers))
        )
    asked = provider.reader.asked(request)
    found = [
        *_of_parts(TextKind.SYSTEM, asked.system),
        *((TextKind.TOOL_DEFINITION, _definition(tool)) for tool in asked.tools),
        *(
            said
            for message in asked.messages[known(asked.messages) :]
            for said in _of_parts(_SPEAKERS[message.role], message.parts)
        ),
    ]
    if asked.note and not found:
        found = [(TextKind.HTTP, _body(request.body, request.head.headers))]
    return _passages(*found)


def answered_texts(provider: Api, request: HttpRequest, response: HttpResponse) -> Iterator[Passage]:
    """All that was answered, in order. Never raises."""
    answered = provider.reader.answered(request, response)
    error = (TextKind.ERROR, answered.error or "")
    if provider is HTTP:
        return _passages(error, (TextKind.HTTP, _body(response.body, response.head.headers)))
    found = [
        said for parts in (answered.parts, *answered.alternatives) for said in _of_parts(TextKind.ASSISTANT, parts)
    ]
    if answered.note and not found:
        found = [(TextKind.HTTP, _body(response.body, response.head.headers))]
    return _passages(*found, error)


def _passages(*found: tuple[TextKind, str]) -> Iterator[Passage]:
    return (Passage(kind, writable(text)) for kind, text in found if text.strip())


def _of_parts(speaker: TextKind, parts: tuple[Part, ...]) -> Iterator[tuple[TextKind, str]]:
    for part in parts:
        kind = speaker
        match part:
            case Thinking():
                kind = TextKind.THINKING
            case ToolUse():
                kind = TextKind.TOOL_USE
            case ToolResult():
                kind = TextKind.TOOL_RESULT
        yield kind, _words(part)


def _words(part: Part) -> str:
    match part:
        case Text(text) | Thinking(text) | Refusal(text):
            return text
        case ToolUse(name=name, arguments=str() as free_form):
            return f"{name}\n{free_form}"
        case ToolUse(name=name, arguments=arguments):
            return "\n".join((name, *_leaves(arguments)))
        case ToolResult(name=name, parts=parts):
            return "\n".join(filter(None, (name, *map(_words, parts))))
        case Media(reference=reference):
            return reference
        case Other(value=value):
            return "\n".join(_leaves(value))
        case Vectors():
            return ""


def _definition(tool: ToolDefinition) -> str:
    """What it says of itself and of its arguments; their types are nobody's words."""
    arguments = (leaf for leaf in _leaves(tool.schema) if "description: " in leaf)
    return "\n".join(filter(None, (tool.name, tool.description, *arguments)))


def _leaves(document: Any) -> Iterator[str]:
    """The values of a JSON document with the path to each. Its strings as they read, without quotes and escapes."""
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        path, value = waiting.pop()
        match value:
            case dict():
                inner = [(f"{path}.{key}"[-_LONGEST_PATH:] if path else str(key), value[key]) for key in value]
                waiting += reversed(inner)
            case list() if len(value) > _NUMBERS and all(isinstance(one, int | float) for one in value):
                continue
            case list():
                waiting += [(path, one) for one in reversed(value)]
            case str() if _DATA.fullmatch(value):
                continue
            case str():
                yield f"{path}: {value}" if path else value
            case None:
                continue
            case _:
                yield f"{path}: {json.dumps(value)}" if path else json.dumps(value)


def _named(head: RequestHead) -> str:
    """The call itself, its URL as people read it."""
    query = f"?{unquote_plus(head.query)}" if head.query else ""
    return f"{head.method} {head.origin}{unquote(head.path)}{query}"


def _body(body: bytes, headers: Headers) -> str:
    """The words of a body that nobody understands better: one JSON document, lines of them, events, or any text."""
    plain, _ = decode_as_far_as_possible(body, header(headers, "content-encoding"), limit=SHOWN_LIMIT)
    if b"\0" in plain[:1024] or (header(headers, "content-type") or "").lower().startswith(_BINARY):
        return ""
    text = plain.decode("utf-8", "replace").removeprefix("\ufeff")
    whole = _json(text)
    if whole is not None:
        return "\n".join(_leaves(whole))
    return "\n".join(map(_line, text.split("\n")))


def _line(line: str) -> str:
    document = _json(line.removeprefix("data:"))
    return line if document is None else "\n".join(_leaves(document))


def _json(text: str) -> Any:
    """The object or list that the text is; ``None`` for any other text."""
    if text[:64].lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
