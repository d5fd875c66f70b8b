"""The documents in AWS's binary event streams as lines, and frames rebuilt around changed lines of the same lengths.

A frame's payload is a JSON document, or one that holds such a document in base64. Lengths stay, so nothing of a frame
moves; only its last four bytes, the checksum, are made anew.
"""

import base64
import binascii
import re
import struct
from collections.abc import Iterator
from zlib import crc32

from rewind.wire.eventstream import begins_with_a_frame, read_frames

_LENGTHS = struct.Struct(">II")
_PRELUDE_SIZE = 12
_SEAL = struct.Struct(">I")
_SIZE_OF_TEXT = struct.Struct(">H")
_INNER = re.compile(rb'"bytes"\s*:\s*"([A-Za-z0-9+/]*={0,2})"')
_TEXTS = (6, 7)
"""The types of a header's value that are bytes or a text; those of all others have a fixed size."""
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


def whole_frames(body: bytes) -> bytes:
    """The frames that came whole and fit their checksums, up to the first bytes that are not a frame."""
    kept, position = [], 0
    for begin, _, end in _payloads(body):
        raw = body[begin : end + _SEAL.size]
        if not begins_with_a_frame(raw[:_PRELUDE_SIZE]):
            break
        if all(frame.intact for frame in read_frames(raw).frames):
            kept.append(raw)
        position = end + _SEAL.size
    return body if position == len(body) == sum(map(len, kept)) else b"".join(kept)


def lines_read(body: bytes) -> bytes:
    """All that can be made out of a stream, damaged or not, as lines: to be looked through."""
    found = read_frames(body)
    lines = [_inner(frame.payload)[0] for frame in found.frames]
    lines += [frame.payload for frame in found.frames if _inner(frame.payload)[1] is not None]
    lines += [str(value).encode() for frame in found.frames for value in frame.headers.values()]
    if found.lost or found.cut:
        lines.append(body)
    return b"\n".join(lines)


def inner_lines(body: bytes) -> bytes:
    """The document of each of these whole frames, a line each."""
    return b"\n".join(_inner(body[low:high])[0] for _, low, high in _payloads(body))


def with_inner_lines(body: bytes, lines: bytes) -> bytes:
    """The same frames around these lines, each as long as before."""
    changed = bytearray(body)
    at = 0
    for _, low, high in _payloads(body):
        inner, place = _inner(body[low:high])
        line = lines[at : at + len(inner)]
        at += len(inner) + 1
        if line == inner:
            continue
        if place is None:
            changed[low:high] = line
        else:
            changed[low + place[0] : low + place[1]] = base64.b64encode(line)
    return sealed(changed)


def other_texts(body: bytes) -> Iterator[tuple[int, int]]:
    """Where texts of whole frames stand besides those documents: in headers, and around the base64."""
    for begin, low, high in _payloads(body):
        place = _inner(body[low:high])[1]
        if place is not None:
            yield from ((low, low + place[0]), (low + place[1], high))
        at = begin + _PRELUDE_SIZE
        while at < low:
            kind_at = at + 1 + body[at]
            if kind_at + 1 > low:
                break
            kind, at = body[kind_at], kind_at + 1
            if kind in _SIZES:
                at += _SIZES[kind]
                continue
            if kind not in _TEXTS or at + _SIZE_OF_TEXT.size > low:
                break
            (size,) = _SIZE_OF_TEXT.unpack_from(body, at)
            at += _SIZE_OF_TEXT.size
            yield at, min(at + size, low)
            at += size


def sealed(body: bytes | bytearray) -> bytes:
    """Whole frames with checksums that fit what they hold."""
    changed = bytearray(body)
    for begin, _, high in _payloads(bytes(body)):
        changed[high : high + _SEAL.size] = _SEAL.pack(crc32(bytes(changed[begin:high])))
    return bytes(changed)


def _payloads(body: bytes) -> Iterator[tuple[int, int, int]]:
    """Where each frame begins, and where its payload begins and ends."""
    position = 0
    while position + _PRELUDE_SIZE <= len(body):
        size, headers = _LENGTHS.unpack_from(body, position)
        if position + size > len(body) or size < _PRELUDE_SIZE + headers + _SEAL.size:
            return  # the stream was cut inside this frame
        yield position, position + _PRELUDE_SIZE + headers, position + size - _SEAL.size
        position += size


def _inner(payload: bytes) -> tuple[bytes, tuple[int, int] | None]:
    """The document itself, and where its base64 stands."""
    found = _INNER.search(payload)
    if found is None:
        return payload, None
    try:
        return base64.b64decode(found[1], validate=True), found.span(1)
    except binascii.Error:  # a member of that name that means something else
        return payload, None
