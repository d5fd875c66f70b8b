"""An answer as the JSON documents it consists of, whether one object, a list, lines or an event stream.

A provider then reads a whole answer and a streamed one with the same few lines.
"""

import json
from typing import Any

from rewind.dataclass import dataclass
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Answered, Text
from rewind.providers.shared.json_fields import at, count_at, start_of, text_at
from rewind.text import plural
from rewind.wire.encoding import SHOWN_LIMIT, UndecodableBody, decode, decode_as_far_as_possible
from rewind.wire.growing_json import REQUESTS
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


def read_answer(response: HttpResponse) -> Answer:
    """The answer, as far as it came. Never raises."""
    body, trouble = decode_as_far_as_possible(
        response.body, response.head.header("content-encoding"), limit=SHOWN_LIMIT
    )
    media = (response.head.header("content-type") or "").lower()
    if not body:
        return Answer(note=trouble)
    start = body[:64].lstrip(b"\xef\xbb\xbf \t\r\n")
    # Errors come as JSON also under the type of the stream that was asked for.
    is_json = start.startswith((b"{", b"["))
    if start.startswith((b"data:", b"event:", b": ")) or ("event-stream" in media and not is_json):
        return _events(body, trouble)
    if b"\0" in body[:1024] or not (is_json or _may_be_text(media)):
        return Answer(shown=f"{len(body):,} bytes of {media.partition(';')[0] or 'data'}", note=trouble)
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        documents, whole_lines = _sequence(text)
        damaged = ("json" in media or documents) and not whole_lines
        return Answer(documents=documents, shown=text, note=trouble or ("damaged or cut JSON" if damaged else None))
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
    rest = body[events[-1].end :] if events else body
    note = trouble
    if damaged:
        note = note or plural(damaged, "damaged event")
    elif _is_cut(rest):
        note = note or "the stream is cut inside an event"
    return Answer(documents=tuple(documents), shown=events[0].data if events else "", note=note)


def _is_cut(rest: bytes) -> bool:
    """Whether data came that no empty line ended; comments and the mark of the end need none."""
    *whole, last = rest.splitlines(keepends=True) or [b""]
    begun = [line.strip() for line in whole if line.startswith(b"data")]
    if not last.endswith((b"\n", b"\r")):
        begun += [last.strip()] if last.strip() and not last.startswith((b":", b"id", b"retry")) else []
    elif last.startswith(b"data"):
        begun.append(last.strip())
    return any(line.removeprefix(b"data:").strip() != b"[DONE]" for line in begun)


def _sequence(text: str) -> tuple[tuple[Any, ...], bool]:
    """JSON documents one after the other, lines or the elements of a cut list, and whether they fill the text."""
    documents: list[Any] = []
    position = len(text) - len(text.lstrip())
    is_list = text.startswith("[", position)
    position += is_list
    while True:
        while position < len(text) and text[position] in _SEPARATORS:
            position += 1
        # Only objects: a text such as "12 items" must not be taken for a number.
        if not text.startswith("{", position):
            return tuple(documents), position == len(text) and not is_list
        try:
            document, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return tuple(documents), False
        documents.append(document)


def error_of(response: HttpResponse, answer: Answer) -> str | None:
    """The error the provider told, by its status or inside an answer that began well."""
    told = (_told(document).strip() for document in answer.documents)
    message = next(filter(None, told), "")
    if response.head.status >= 400 and not message:
        loose = (_loose(document).strip() for document in answer.documents)
        message = next(filter(None, loose), "") or answer.shown.strip() or response.head.reason.strip()
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
    if not isinstance(error, dict):
        return ""
    for key in ("message", "Message", "detail", "msg", "error_description", "error"):
        if found := text_at(error, key):
            return found
    listed = text_at(error, "detail", 0, "msg") or text_at(error, "errors", 0, "message")
    return listed or text_at(error, "type")


def request_json(request: HttpRequest) -> tuple[Any, str | None]:
    """The JSON that a request carries, or ``None`` and why there is none. Never raises.

    The document is shared with whoever reads the same request, or the next of its conversation: nobody changes it.
    """
    if not request.body:
        return None, None
    try:
        return REQUESTS.loads(decode(request.body, request.head.header("content-encoding"))), None
    except UndecodableBody as problem:
        return None, f"the request cannot be decoded: {problem}"
    except (ValueError, RecursionError):
        return None, "the request is damaged or not JSON"


def counted_tokens(response: HttpResponse, field: str) -> Answered:
    """The answer of an API that only counts: a text to show, and no usage of anybody's."""
    answer = read_answer(response)
    counts = (count_at(document, field) for document in answer.documents)
    counted = next((count for count in counts if count is not None), None)
    return Answered(
        parts=() if counted is None else (Text(f"{counted:,} tokens"),),
        error=error_of(response, answer),
        note=answer.note,
    )
