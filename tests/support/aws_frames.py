"""AWS event frames, written by hand."""

import base64
import json
import struct
from collections.abc import Iterable
from typing import Any
from zlib import crc32

from rewind.model.http import Headers, HttpResponse
from support.exchanges import answer_with

MEDIA = "application/vnd.amazon.eventstream"

Header = tuple[str, int, Any]
"""Name, number of its type, value."""

_NUMBERS = {2: ">b", 3: ">h", 4: ">i", 5: ">q", 8: ">q"}


def frame(headers: Iterable[Header] = (), payload: bytes = b"") -> bytes:
    """One frame with both of its checksums."""
    return raw_frame(b"".join(map(_header, headers)), payload)


def raw_frame(headers: bytes, payload: bytes = b"") -> bytes:
    """One frame around headers that need not be good ones."""
    lengths = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    sealed = lengths + struct.pack(">I", crc32(lengths)) + headers + payload
    return sealed + struct.pack(">I", crc32(sealed))


def event(name: str, document: Any) -> bytes:
    """An event as Bedrock sends it."""
    return _message("event", ":event-type", name, document)


def exception(name: str, document: Any) -> bytes:
    """An exception told inside a stream."""
    return _message("exception", ":exception-type", name, document)


def chunk(document: Any) -> bytes:
    """A piece of what a model itself says, as InvokeModelWithResponseStream wraps it."""
    return event("chunk", {"bytes": base64.b64encode(json.dumps(document).encode()).decode(), "p": "abc"})


def framed(*frames: bytes, headers: Headers = ()) -> HttpResponse:
    """An answer that consists of these frames."""
    return answer_with(b"".join(frames), media=MEDIA, headers=headers)


def _message(kind: str, named: str, name: str, document: Any) -> bytes:
    headers = [(named, 7, name), (":content-type", 7, "application/json"), (":message-type", 7, kind)]
    return frame(headers, json.dumps(document).encode())


def _header(header: Header) -> bytes:
    name, kind, value = header
    start = struct.pack(">B", len(name.encode())) + name.encode() + bytes([kind])
    if kind in _NUMBERS:
        return start + struct.pack(_NUMBERS[kind], value)
    if kind in (6, 7):
        raw = value.encode() if isinstance(value, str) else value
        return start + struct.pack(">H", len(raw)) + raw
    return start + (value if kind == 9 else b"")
