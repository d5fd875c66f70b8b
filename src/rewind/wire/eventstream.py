"""AWS event streams (``application/vnd.amazon.eventstream``): binary frames, each sealed by two checksums.

A frame is a prelude (its length, the length of its headers, a CRC-32 of the two), the headers, a payload, and a CRC-32
of all that. A prelude that fits its checksum can be believed, so after a damaged stretch the next frame is found again.
"""

import re
import struct
from collections.abc import Mapping
from zlib import crc32

from rewind.dataclass import dataclass

HeaderValue = bool | int | str | bytes
"""A timestamp is a whole number (milliseconds since 1970), a UUID its 16 bytes."""

_PRELUDE = struct.Struct(">III")
_SEAL = struct.Struct(">I")
_SMALLEST = _PRELUDE.size + _SEAL.size
_MOST_HEADERS = 128 * 1024
_MOST_PAYLOAD = 24 * 1024 * 1024
"""The limits of AWS's own clients."""
_SEARCHED = 2**18
"""How many bytes of one stream are searched for the next frame after damage."""
_MAYBE_PRELUDE = re.compile(rb"(?=[\x00\x01][\x00-\xff]{3}\x00[\x00-\x02])")
"""Within the limits above, this is how the two lengths begin."""

_NUMBERS = {2: ">b", 3: ">h", 4: ">i", 5: ">q", 8: ">q"}
_TRUE, _FALSE, _BYTES, _STRING, _UUID = 0, 1, 6, 7, 9


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame that came whole."""

    headers: Mapping[str, HeaderValue]
    payload: bytes
    intact: bool = True
    """Whether it fits its checksum and every header could be read. One that does not may still be worth a look."""

    def header(self, name: str) -> str:
        """The text of that header, or an empty one."""
        value = self.headers.get(name)
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """What a stream of frames comes to."""

    frames: tuple[Frame, ...] = ()
    lost: int = 0
    """Stretches of bytes in which no frame could be made out."""
    cut: bool = False
    """Whether the stream ends inside a frame."""


def read_frames(body: bytes) -> Frames:
    """The frames of a whole stream, as far as it came. Never raises."""
    frames: list[Frame] = []
    position, lost, to_search = 0, 0, _SEARCHED
    while position < len(body):
        prelude = _prelude(body, position)
        if prelude is None:
            if len(body) - position < _PRELUDE.size:
                return Frames(frames=tuple(frames), lost=lost, cut=True)
            lost += 1
            found = _next_prelude(body, position + 1, position + to_search)
            to_search -= found - position
            position = found
            continue
        size, headers_size = prelude
        if position + size > len(body):
            return Frames(frames=tuple(frames), lost=lost, cut=True)
        frames.append(_frame(body[position : position + size], headers_size))
        position += size
    return Frames(frames=tuple(frames), lost=lost)


def begins_with_a_frame(body: bytes) -> bool:
    """Whether these are frames, whatever a content type says; a checksum seldom fits by chance."""
    return _prelude(body, 0) is not None


def _prelude(body: bytes, position: int) -> tuple[int, int] | None:
    """The lengths of the frame and of its headers, if a believable prelude stands there."""
    if len(body) - position < _PRELUDE.size:
        return None
    size, headers_size, checksum = _PRELUDE.unpack_from(body, position)
    payload_size = size - headers_size - _SMALLEST
    if headers_size > _MOST_HEADERS or not 0 <= payload_size <= _MOST_PAYLOAD:
        return None
    return (size, headers_size) if crc32(body[position : position + 8]) == checksum else None


def _next_prelude(body: bytes, start: int, end: int) -> int:
    """Where the next frame begins; the end of the body where none is found."""
    for candidate in _MAYBE_PRELUDE.finditer(body, start, max(start, min(end, len(body)))):
        if _prelude(body, candidate.start()) is not None:
            return candidate.start()
    return len(body)


def _frame(raw: bytes, headers_size: int) -> Frame:
    headers_end = _PRELUDE.size + headers_size
    headers, readable = _headers(raw[_PRELUDE.size : headers_end])
    (checksum,) = _SEAL.unpack(raw[-_SEAL.size :])
    sealed = crc32(raw[: -_SEAL.size]) == checksum
    return Frame(headers, raw[headers_end : -_SEAL.size], intact=sealed and readable)


def _headers(data: bytes) -> tuple[dict[str, HeaderValue], bool]:
    """The headers, and whether all of them could be read: none twice, none cut, none of an unknown type."""
    headers: dict[str, HeaderValue] = {}
    position = 0
    while position < len(data):
        name_end = position + 1 + data[position]
        if name_end >= len(data):
            return headers, False
        name = data[position + 1 : name_end].decode("utf-8", "replace")
        value, position = _value(data, data[name_end], name_end + 1)
        if value is None or name in headers:
            return headers, False
        headers[name] = value
    return headers, True


def _value(data: bytes, kind: int, start: int) -> tuple[HeaderValue | None, int]:
    """The value that begins there, and where it ends; ``None`` for one that is cut or of an unknown type."""
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, start
    if kind in _NUMBERS:
        end = start + struct.calcsize(_NUMBERS[kind])
        return (struct.unpack(_NUMBERS[kind], data[start:end])[0] if end <= len(data) else None), end
    if kind in (_BYTES, _STRING):
        size = int.from_bytes(data[start : start + 2], "big")
        start += 2
    elif kind == _UUID:
        size = 16
    else:
        return None, start
    raw = data[start : start + size]
    if start + size > len(data):
        return None, start
    return (raw.decode("utf-8", "replace") if kind == _STRING else raw), start + size
