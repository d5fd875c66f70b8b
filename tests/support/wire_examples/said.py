"""One conversation, told by every example in its own API's words, as far as that API has them.

What is planted here is looked for in what our codecs read, so a row of ``docs/providers.md`` says what was found.
"""

import base64
import json
from dataclasses import dataclass
from typing import Any

from rewind.model.http import Headers, HttpRequest, HttpResponse
from support.exchanges import answer_with, request_of

MODEL = "model-x"
ANSWERED_BY = "model-x-2026-01-01"
ANSWER_ID = "answer_1"
EARLIER_ID = "answer_0"
SYSTEM = "Answer in one line."
QUESTION = "How warm is it there?"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n a very small picture").decode()
PDF = base64.b64encode(b"%PDF-1.7 a very short document").decode()
TOOL = "weather"
TOOL_SAYS = "The weather of a city."
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
EARLIER_CALL = ("call_0", TOOL, {"city": "Oslo"})
RESULT = "4 degrees"
THOUGHT = "Two cities, so two calls. — ✓"
TEXT = "I look at both: “Rome” and Bergen."
OTHER_TEXT = "It is warm."
CALLS = (("call_1", TOOL, {"city": "Rome"}), ("call_2", TOOL, {"city": "Bergen", "unit": "°C"}))
READ, READ_FROM_CACHE, WRITTEN_TO_CACHE, WRITTEN, THOUGHT_ABOUT = 1200, 1000, 100, 60, 20
"""Tokens by our own rule: all input, of which cached, of which written to a cache; all output, of which thinking."""
REFUSED = "There is no such model."
BROKE_OFF = "Overloaded, come back later."
VECTORS = [[0.25, 0.5, 0.75, 1.0], [1.0, 0.75, 0.5, 0.25]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The same answer in pieces."""

    format: str
    request: HttpRequest
    response: HttpResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One API telling the conversation."""

    api: str
    paths: tuple[str, ...]
    """Where it is spoken; ``{…}`` stands for any name."""
    request: HttpRequest
    whole: HttpResponse
    streams: tuple[Stream, ...] = ()
    broken: Stream | None = None
    """A stream that begins well and then tells ``BROKE_OFF``."""
    refused: HttpResponse
    """An answer of status 404 that says ``REFUSED``."""


def pieces(text: str, size: int = 7) -> list[str]:
    """A text in pieces that end where no word does."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def written(arguments: Any) -> str:
    """Arguments as models write them."""
    return json.dumps(arguments, ensure_ascii=False)


def events(*documents: Any, named: bool = False, end: bytes = b"", headers: Headers = ()) -> HttpResponse:
    """Server-sent events, one document each; with ``named``, under the document's own type."""
    body = b"".join(
        (b"event: " + document["type"].encode() + b"\n" if named else b"")
        + b"data: "
        + json.dumps(document, ensure_ascii=False).encode()
        + b"\n\n"
        for document in documents
    )
    return answer_with(body + end, media="text/event-stream; charset=utf-8", headers=headers)


def lines(*documents: Any) -> HttpResponse:
    """One document a line."""
    body = b"".join(json.dumps(document).encode() + b"\n" for document in documents)
    return answer_with(body, media="application/x-ndjson")


def to(target: str, body: Any, *, host: str = "llm.example", headers: Headers = ()) -> HttpRequest:
    return request_of(body, target=target, host=host, headers=headers)


def refused(document: Any) -> HttpResponse:
    return answer_with(document, status=404)
