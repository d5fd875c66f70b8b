"""How an answer stands on the wire: one document, events, lines, a growing list, or AWS's frames."""

import base64
import json
import struct
from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

from rewind.model.http import Chunk, Headers, HttpResponse, ResponseHead

EVENTS = "text/event-stream; charset=utf-8"
FRAMES = "application/vnd.amazon.eventstream"
JSON = "application/json"
_TEXT_HEADER = 7
"""The number by which a frame says that a header is a text."""


def compact(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def whole(document: Any, *, media: str = JSON, headers: Headers = ()) -> HttpResponse:
    """One JSON document."""
    return whole_body(compact(document), media=media, headers=headers)


def whole_body(body: bytes, *, media: str, headers: Headers = (), status: int = 200) -> HttpResponse:
    """Some bytes, of a known length."""
    told = (("content-type", media), ("content-length", str(len(body))), *headers)
    head = ResponseHead(status=status, reason="OK" if status == 200 else "", headers=told)
    return HttpResponse(head=head, body=body, chunks=(Chunk(0, len(body)),) if body else ())


def streamed(sent: Sequence[bytes], *, media: str, headers: Headers = ()) -> HttpResponse:
    """Pieces that come one after the other."""
    told = (("content-type", media), ("transfer-encoding", "chunked"), *headers)
    return HttpResponse(
        head=ResponseHead(status=200, reason="OK", headers=told),
        body=b"".join(sent),
        chunks=tuple(Chunk(0, len(piece)) for piece in sent),
    )


def events(documents: Iterable[Any], *, named: bool = False, end: str = "", newline: bytes = b"\n") -> HttpResponse:
    """Server-sent events, one document each; with ``named``, under the document's own type."""
    sent = [
        (b"event: " + str(document["type"]).encode() + newline if named else b"")
        + b"data: "
        + compact(document)
        + newline * 2
        for document in documents
    ]
    last = [b"data: " + end.encode() + newline * 2] if end else []
    return streamed([*sent, *last], media=EVENTS)


def lines(documents: Iterable[Any], *, media: str = "application/x-ndjson") -> HttpResponse:
    """One document a line."""
    return streamed([compact(document) + b"\n" for document in documents], media=media)


def growing_list(documents: Sequence[Any]) -> HttpResponse:
    """A JSON list whose elements come one after the other."""
    written = [compact(document) for document in documents]
    sent = [b"[" + written[0], *(b",\r\n" + one for one in written[1:]), b"]"] if written else [b"[]"]
    return streamed(sent, media="application/json; charset=UTF-8")


def named_frames(documents: Iterable[dict[str, Any]]) -> HttpResponse:
    """AWS's frames, one for each document, which has one field: the event's name, and what it tells."""
    sent = [frame(name, compact(told)) for document in documents for name, told in document.items()]
    return streamed(sent, media=FRAMES)


def wrapped_frames(documents: Iterable[Any]) -> HttpResponse:
    """AWS's frames around what a model's own maker thought of."""
    told = ({"bytes": base64.b64encode(compact(document)).decode()} for document in documents)
    sent = [frame("chunk", compact(one)) for one in told]
    return streamed(sent, media=FRAMES, headers=(("x-amzn-bedrock-content-type", JSON),))


def frame(event: str, payload: bytes) -> bytes:
    """One frame with both of its checksums (see :mod:`rewind.wire.eventstream`)."""
    named = ((":event-type", event), (":content-type", JSON), (":message-type", "event"))
    headers = b"".join(
        bytes([len(name)]) + name.encode() + bytes([_TEXT_HEADER]) + struct.pack(">H", len(value)) + value.encode()
        for name, value in named
    )
    lengths = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    sealed = lengths + struct.pack(">I", crc32(lengths)) + headers + payload
    return sealed + struct.pack(">I", crc32(sealed))
