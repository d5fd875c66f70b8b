"""The outside of a cassette: the manifest with its hash, the records behind it, and the packed form of it all."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rewind.errors import BadCassette, EnvironmentProblem
from rewind.store.cassette.parsing import Memory, Record, is_light, parsed, records

FORMAT = 1
MOST_TEXT = 256 * 1024 * 1024
MOST_VALUES = 16_000_000
MOST_UNPACKED = 24 * 1024 * 1024
"""A packed cassette may unpack to so much, whatever its size; a larger one ..."""
MOST_TIMES = 250
"""... to so many times its size."""
_LONGEST_MANIFEST = 4096
_MOST_RECORDS = 1000
"""Of kinds that a later Rewind may add; and so a few for each step."""
_WINDOW = 8 * 1024 * 1024
_LEVEL = 12
_ZSTD = b"\x28\xb5\x2f\xfd"
_MANIFEST = re.compile(rb'(\{"rewind_cassette": [^\n]*), "sha256": "([0-9a-f]{64})"\}\n')
_NUMBER = re.compile(rb'\{"rewind_cassette": (\d{1,9})\b')
_ADDRESS = re.compile(rb'"@same"\s*:\s*"((?:request|answer) \d{1,9})')
_FROM_GIT = "If git changed its line ends, add a line to .gitattributes: *.rw -text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What the first line says."""

    steps: int
    size: int
    """Of all bodies, unpacked."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A cassette of which every byte has been checked, and no record read."""

    manifest: Manifest
    memory: Memory
    records: Iterator[Record]
    referred: frozenset[str] | None
    """The bodies that something in it refers to; ``None`` in a light file, where all of them may stay."""


def seal(records: str, manifest: Manifest) -> bytes:
    """The whole file. Raises EnvironmentProblem where it would be too large to be read again."""
    body = records.encode()
    begin = f'{{"rewind_cassette": {FORMAT}, "steps": {manifest.steps}, "size": {manifest.size}'.encode()
    if len(body) > MOST_TEXT - _LONGEST_MANIFEST or body.count(b",") > MOST_VALUES:
        raise EnvironmentProblem(
            f"The session is too large for a cassette: {len(body):,} bytes of text.",
            hint="Export some of its steps: rewind export ID --steps 1..100",
        )
    return b'%b, "sha256": "%b"}\n%b' % (begin, _digest(begin, body).encode(), body)


def unseal(data: bytes) -> Opened:
    """The manifest and the records, once every byte has been checked. Raises BadCassette."""
    size = len(data)
    if data.startswith(_ZSTD):
        data = unpacked(data)
    if len(data) > MOST_TEXT:
        raise BadCassette(f"It has {len(data):,} bytes, and a cassette has at most {MOST_TEXT:,}.")
    number = _NUMBER.match(data)
    if number is not None and int(number[1]) > FORMAT:
        raise BadCassette(
            f"It was written by a newer Rewind: its format is {int(number[1])}, and this one reads up to {FORMAT}.",
            hint="Upgrade Rewind: pip install --upgrade llm-rewind",
        )
    found = _MANIFEST.match(data, 0, _LONGEST_MANIFEST)
    if found is None or number is None or int(number[1]) != FORMAT:
        raise BadCassette("It does not begin as a cassette does.", hint=_why(data))
    start = found.end()
    if _digest(found[1], memoryview(data)[start:]) != found[2].decode():
        raise BadCassette("It has been changed or cut since it was written.", hint=_why(data))
    if data.count(b",", start) > MOST_VALUES:
        raise BadCassette(f"It holds more than {MOST_VALUES:,} values.")
    manifest = _manifest_in(found[1] + b"}")
    most = 3 * manifest.steps + _MOST_RECORDS
    memory = Memory(light=is_light(data), size=size)
    return Opened(manifest, memory, records(data, start, most), None if memory.light else _referred(data))


def _digest(begin: bytes, body: bytes | memoryview) -> str:
    digest = hashlib.sha256(begin)
    digest.update(body)
    return digest.hexdigest()


def _why(data: bytes) -> str | None:
    """What most often happens to files that are kept in git."""
    if b"\n<<<<<<< " in data:
        return "It holds an unresolved merge conflict. Take one side, or record it again."
    if b"\r\n" in data[:_LONGEST_MANIFEST]:
        return _FROM_GIT
    return None


def _referred(data: bytes) -> frozenset[str]:
    return frozenset(found.decode() for found in set(_ADDRESS.findall(data)))


def _manifest_in(line: bytes) -> Manifest:
    fields = parsed(line.decode())
    steps, size = fields.get("steps"), fields.get("size")
    if type(steps) is not int or type(size) is not int:
        raise BadCassette("Its first line does not say how much follows.")
    return Manifest(steps=steps, size=size)


def packed(data: bytes) -> bytes:
    """The same in one zstd frame that declares its size. Raises EnvironmentProblem where it shrinks beyond belief."""
    import zstandard  # lazily: most cassettes are plain text

    shape = zstandard.ZstdCompressionParameters.from_level(
        _LEVEL, source_size=len(data), window_log=_WINDOW.bit_length() - 1, write_content_size=True
    )
    frame = zstandard.ZstdCompressor(compression_params=shape).compress(data)
    if len(data) > _most_of(len(frame)):
        raise EnvironmentProblem(
            f"The cassette would shrink from {len(data):,} bytes to {len(frame):,}: a file like that is not read again,"
            " since nobody could tell it from one that is made to fill the memory.",
            hint="Write it as it is, without .zst at the end of its name.",
        )
    return frame


def _most_of(size: int) -> int:
    """To how much a packed file of that size may unpack."""
    return min(MOST_TEXT, max(MOST_UNPACKED, size * MOST_TIMES))


def unpacked(data: bytes) -> bytes:
    """The text of a packed cassette. What the frame claims is checked before anything is unpacked."""
    import zstandard

    try:
        frame = zstandard.get_frame_parameters(data)
        claimed = frame.content_size
        if claimed in (zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR):
            raise BadCassette("It does not say how large it is when unpacked.")
        if claimed > (most := _most_of(len(data))):
            raise BadCassette(
                f"It claims to unpack to {claimed:,} bytes; one of {len(data):,} bytes unpacks to at most {most:,}."
            )
        if frame.window_size > _WINDOW or frame.dict_id:
            raise BadCassette("It is packed in a way that cassettes are not.")
        unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        return unpacker.decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise BadCassette("It cannot be unpacked: it is cut or damaged.") from error
