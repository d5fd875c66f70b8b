"""An answer as the JSON documents it consists of, whether one object, a list, lines or an event stream.

A provider then reads a whole answer and a streamed one with the same few lines.
"""

import json
from dataclasses import dataclass
from typing import Any

from rewind.model.http import HttpRequest, HttpResponse
from rewind.providers.fields import at, start_of, text_at, writable
from rewind.wire.encoding import UndecodableBody, decode, decode_as_far_as_possible
from rewind.wire.sse import parse_events

_DECODER = json.JSONDecoder()
_SEPARATORS = " \t\r\n,"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What could be read of a response body."""

    documents: tuple[Any, ...] = ()
    shown: str = ""
    """The body as text, where it is text; for exchanges that nobody understands better."""
    note: str | None = None
    """What could not be read."""


def answer_of(response: HttpResponse) -> Answer:
    """The answer, as far as it came. Never raises."""
    body, trouble = decode_as_far_as_possible(response.body, response.head.header("content-encoding"))
    media = (response.head.header("content-type") or "").lower()
    if not body:
        return Answer(note=trouble)
    if "event-stream" in media or body.lstrip(b"\xef\xbb\xbf \r\n").startswith((b"data:", b"event:")):
        return _events(body, trouble)
    if b"\0" in body[:1024] or not _may_be_text(media):
        return Answer(shown=f"{len(body):,} bytes of {media.partition(';')[0] or 'data'}", note=trouble)
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        documents, whole_lines = _sequence(text)
        damaged = ("json" in media or documents) and not whole_lines
        return Answer(
            documents=documents, shown=text, note=trouble or ("damaged or cut JSON" if damaged else None)
        )
    return Answer(documents=tuple(whole) if isinstance(whole, list) else (whole,), shown=text, note=trouble)


def _may_be_text(media: str) -> bool:
    return not media.startswith(("image/", "audio/", "video/", "font/", "application/octet-stream"))


def _events(body: bytes, trouble: str | None) -> Answer:
    documents = []
    damaged = 0
    events = parse_events(body)
    for event in events:
        if not event.data.strip() or event.data.strip() == "[DONE]":
            continue
        try:
            documents.append(json.loads(event.data))
        except (ValueError, RecursionError):
            damaged += 1
    note = trouble or (f"{damaged} damaged event{'s' * (damaged > 1)}" if damaged else None)
    return Answer(documents=tuple(documents), shown=events[0].data if events else "", note=note)


def _sequence(text: str) -> tuple[tuple[Any, ...], bool]:
    """JSON documents one after the other, lines or the elements of a cut list, and whether they fill the text."""
    documents: list[Any] = []
    position = len(text) - len(text.lstrip())
    if text.startswith("[", position):
        position += 1
    while True:
        while position < len(text) and text[position] in _SEPARATORS:
            position += 1
        # Only objects: a text such as "12 items" must not be taken for a number.
        if not text.startswith("{", position):
            return tuple(documents), position == len(text)
        try:
            document, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return tuple(documents), False
        documents.append(document)


def error_of(response: HttpResponse, answer: Answer) -> str | None:
    """The error the provider told, by its status or inside an answer that began well."""
    told = (_told(document) for document in answer.documents)
    message = next((text for text in told if text), None)
    if response.head.status >= 400 and not message:
        loose = (_loose(document) for document in answer.documents)
        message = next((text for text in loose if text), None) or answer.shown or response.head.reason
        message = message or f"HTTP {response.head.status}"
    return start_of(message, 500) if message else None


def _told(document: Any) -> str:
    """The message of a document that says it is an error."""
    for error in (at(document, "error"), at(document, "response", "error")):
        if isinstance(error, str):
            return error
        if message := _loose(error):
            return message
    return text_at(document, "message") if text_at(document, "type") == "error" else ""


def _loose(error: Any) -> str:
    """The message in the many shapes that gateways and clouds give it."""
    for key in ("message", "Message", "detail", "msg", "error_description", "error"):
        if found := text_at(error, key):
            return found
    return text_at(error, "detail", 0, "msg") or text_at(error, "type")


def asked_for(request: HttpRequest) -> Any:
    """The JSON that a request carries, or ``None``. Never raises."""
    try:
        return json.loads(decode(request.body, request.head.header("content-encoding")))
    except (UndecodableBody, ValueError, RecursionError):
        return None


def asked_model(request: HttpRequest) -> str | None:
    """The ``model`` of a JSON request."""
    return writable(text_at(asked_for(request), "model"))[:200] or None
