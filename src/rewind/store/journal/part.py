"""An answer while it is coming: its bytes on disk as they arrive, so that a killed recorder keeps what the agent saw.

A part is a sequence of records: size (4), CRC-32 of time and bytes (4), time (8), bytes. Numbers are unsigned and
little-endian; the time is in microseconds since the request was complete. The first record is the head of the
answer, as JSON; every other is one piece of the body. What stands after the last whole record is an unfinished
write.
"""

import json
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import takewhile
from pathlib import Path

from rewind.dataclass import dataclass
from rewind.model.http import Chunk, ResponseHead
from rewind.store.files import GrowingFile, open_to_read, read_at, read_file, reason
from rewind.store.journal.records import response_head

SHORT_LINES = "journal.part"
"""The file of the steps that were kept and are still to be understood: lines as in a journal, in short."""
_RECORD = struct.Struct("<IIQ")
_TIME = struct.Struct("<Q")
_LARGEST = 256 * 1024 * 1024
"""No piece arrives that is larger: what claims to be is not the beginning of a record."""


def encode_record(at: int, data: bytes) -> bytes:
    return _RECORD.pack(len(data), zlib.crc32(data, zlib.crc32(_TIME.pack(at))), at) + data


class PartFile:
    """The part of one step. ``append`` and ``sync`` may run on another thread than all else; they never raise."""

    def __init__(self, path: Path, head: ResponseHead, *, broken: Callable[[str], None]) -> None:
        self.path = path
        self._broken = broken
        # Guards against a write to a descriptor that was closed, and perhaps given to another file, meanwhile.
        self._lock = threading.Lock()
        self._file: GrowingFile | None = None
        self._last = -1
        self.size = 0
        """Bytes of the body that are kept here."""
        try:
            self._file = GrowingFile(path)
            self._file.append(encode_record(0, json.dumps(asdict(head)).encode()))
        except OSError as error:
            self._fail(error)

    @classmethod
    def nowhere(cls) -> "PartFile":
        """A part that keeps nothing, for a writer that is broken already."""
        part = cls.__new__(cls)
        part.path, part._lock, part._file, part._last = Path(), threading.Lock(), None, -1
        part.size = 0
        return part

    def append(self, at: int, data: bytes) -> None:
        """Keep one piece of the body: one ``os.write``."""
        with self._lock:
            if self._file is not None and data:
                # No two have the same time: so a record that stands twice, or before an earlier one, is noticed.
                self._last = max(at, self._last + 1)
                try:
                    self._file.append(encode_record(self._last, data))
                    self.size += len(data)
                except OSError as error:
                    self._fail(error)

    def sync(self) -> None:
        """Have what came so far survive a power cut."""
        with self._lock:
            if self._file is not None:
                try:
                    self._file.sync()
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


def part_records(path: Path) -> Iterator[tuple[int, bytes]]:
    """Time and bytes of each piece of the body, one after the other; the whole may be too long to be held."""
    fd = open_to_read(path)
    try:
        start = -1
        while len(head := read_at(fd, _RECORD.size, max(start, 0))) == _RECORD.size:
            size, _, at = _RECORD.unpack(head)
            place = max(start, 0) + _RECORD.size
            if start >= 0:  # the first is the answer's head
                yield at, read_at(fd, size, place)
            start = place + size
    finally:
        os.close(fd)


def part_blocks(path: Path, size: int) -> Iterator[bytes]:
    """The body in blocks of that size; the last one may be shorter."""
    waiting = bytearray()
    for _, piece in part_records(path):
        waiting += piece
        while len(waiting) >= size:
            yield bytes(waiting[:size])
            del waiting[:size]
    if waiting:
        yield bytes(waiting)


@dataclass(frozen=True, slots=True)
class PartContents:
    """What had arrived of an answer."""

    head: ResponseHead | None
    """``None`` if not even the head is whole: then there is no body either."""
    body: bytes
    chunks: tuple[Chunk, ...]
    damage: str | None


def read_part(path: Path) -> PartContents:
    """Raises OSError."""
    return decode_part(read_file(path))


def decode_part(data: bytes) -> PartContents:
    """As far as it can be read; what follows damage is not given, since nobody could tell what is missing."""
    records, damage = _records(data)
    if not records:
        return PartContents(None, b"", (), damage)
    try:
        head = response_head(json.loads(records[0][1]))
    except (ValueError, RecursionError) as error:
        return PartContents(None, b"", (), f"its head cannot be read ({error})")
    pieces = records[1:]
    if (misplaced := _first_misplaced(records)) is not None:
        damage = "its records are not in the order in which they were written"
        pieces = list(takewhile(lambda record: record[0] < misplaced, pieces))
    chunks = tuple(Chunk(at, len(piece)) for at, piece in pieces)
    return PartContents(head, b"".join(piece for _, piece in pieces), chunks, damage)


def _records(data: bytes) -> tuple[list[tuple[int, bytes]], str | None]:
    """Time and bytes of each whole record, and what ends them before the file does."""
    records: list[tuple[int, bytes]] = []
    start = 0
    while len(data) - start >= _RECORD.size:
        size, crc, at = _RECORD.unpack_from(data, start)
        if size > _LARGEST:
            return records, f"the bytes from {start} on are damaged"
        piece = data[start + _RECORD.size : start + _RECORD.size + size]
        if len(piece) < size:
            break
        if zlib.crc32(piece, zlib.crc32(_TIME.pack(at))) != crc:
            return records, f"the bytes from {start} on are damaged"
        records.append((at, piece))
        start += _RECORD.size + size
    return records, None


def _first_misplaced(records: list[tuple[int, bytes]]) -> int | None:
    """The earliest time of a record that stands twice or behind a later one: from there on nothing is certain."""
    misplaced: list[int] = []
    latest: tuple[int, bytes] = (-1, b"")
    for record in records:
        if record[0] < latest[0] or record == latest:
            misplaced.append(record[0])
        else:
            latest = record
    return min(misplaced, default=None)
