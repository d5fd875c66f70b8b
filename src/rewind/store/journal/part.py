"""An answer while it is coming: its bytes on disk as they arrive, so that a killed recorder keeps what the agent saw.

A part is a sequence of records: size (4), CRC-32 of time and bytes (4), time (8), bytes. Numbers are unsigned and
little-endian; the time is in microseconds since the request was complete. The first record is the head of the
answer, as JSON; every other is one piece of the body. What stands after the last whole record is an unfinished
write.
"""

import json
import struct
import threading
import zlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rewind.dataclass import dataclass
from rewind.model.http import Chunk, ResponseHead
from rewind.store.files import GrowingFile, read_file, reason

_RECORD = struct.Struct("<IIQ")
_TIME = struct.Struct("<Q")


def encode_record(at: int, data: bytes) -> bytes:
    return _RECORD.pack(len(data), zlib.crc32(data, zlib.crc32(_TIME.pack(at))), at) + data


class PartFile:
    """The part of one step. ``append`` may run on another thread than everything else; it never raises."""

    def __init__(self, path: Path, head: ResponseHead, *, broken: Callable[[str], None]) -> None:
        self.path = path
        self._broken = broken
        # Guards against a write to a descriptor that was closed, and perhaps given to another file, meanwhile.
        self._lock = threading.Lock()
        self._file: GrowingFile | None = None
        try:
            self._file = GrowingFile(path)
            self._file.append(encode_record(0, json.dumps(asdict(head)).encode()))
        except OSError as error:
            self._fail(error)

    @classmethod
    def nowhere(cls) -> "PartFile":
        """A part that keeps nothing, for a writer that is broken already."""
        part = cls.__new__(cls)
        part.path, part._lock, part._file = Path(), threading.Lock(), None
        return part

    def append(self, at: int, data: bytes) -> None:
        """Keep one piece of the body: one ``os.write``."""
        with self._lock:
            if self._file is not None and data:
                try:
                    self._file.append(encode_record(max(at, 0), data))
                except OSError as error:
                    self._fail(error)

    def _fail(self, error: OSError) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._broken(f"an answer could not be kept while it came: {reason(error)}")

    def discard(self) -> None:
        """Delete it: a secret turned up that cannot be removed piece by piece, so nothing of it may stay on disk."""
        self.close()
        if self.path.name:
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """What has come stays on disk until the step is written."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None


@dataclass(frozen=True, slots=True)
class PartContents:
    """What had arrived of an answer."""

    head: ResponseHead
    body: bytes
    chunks: tuple[Chunk, ...]
    damage: str | None


def read_part(path: Path) -> PartContents | None:
    """``None`` if not even the head is whole. Raises OSError."""
    return decode_part(read_file(path))


def decode_part(data: bytes) -> PartContents | None:
    pieces: list[bytes] = []
    chunks: list[Chunk] = []
    damage = None
    start = 0
    while len(data) - start >= _RECORD.size:
        size, crc, at = _RECORD.unpack_from(data, start)
        piece = data[start + _RECORD.size : start + _RECORD.size + size]
        if len(piece) < size:
            break
        if zlib.crc32(piece, zlib.crc32(_TIME.pack(at))) != crc:
            damage = f"the bytes from {start} on are damaged"
            break
        pieces.append(piece)
        chunks.append(Chunk(at, size))
        start += _RECORD.size + size
    if not pieces:
        return None
    try:
        fields = json.loads(pieces[0])
        fields["headers"] = tuple((name, value) for name, value in fields["headers"])
        head = ResponseHead(**fields)
    except (ValueError, TypeError, KeyError):
        return None
    return PartContents(head, b"".join(pieces[1:]), tuple(chunks[1:]), damage)
