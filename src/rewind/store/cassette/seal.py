"""The outside of a cassette: the manifest with its hash, the packed form, and the records as they are in the text.

A cassette may be anybody's, and a few bytes of JSON can stand for very much memory. So what the values of a record
would take is known before one of them exists, and what is kept of all records together is counted.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import zstandard

from rewind.dataclass import dataclass
from rewind.errors import BadCassette, EnvironmentProblem
from rewind.formats.recognise import BEGINNING, FileKind, kind_of
from rewind.store.cassette.fields import Fields, bad
from rewind.store.cassette.json_text import DECODER
from rewind.wire.json_weight import body_weight, is_dense, json_weight, text_weight

FORMAT = 1
MOST_TEXT = 256 * 1024 * 1024
MOST_VALUES = 16_000_000
MOST_UNPACKED = 24 * 1024 * 1024
"""A packed cassette may unpack to so much, whatever its size; a larger one ..."""
MOST_TIMES = 250
"""... to so many times its size."""
MOST_MEMORY = 384 * 1024 * 1024
"""For what is kept, and the record that is being read."""
MOST_OF_JSON = 64 * 1024 * 1024
"""Memory of the values of one JSON body: whoever reads it has to hold them."""
MOST_STREAMED = 192 * 1024 * 1024
"""The same for a body of any other form, of which a reader holds less at a time."""
MOST_DENSE = 256 * 1024 * 1024
"""Memory of the values of all JSON bodies that are little but values: they are held side by side."""
MOST_JOINED = 1024 * 1024 * 1024
_JOINED_ANYWAY = 256 * 1024 * 1024
_JOINED_A_BYTE = 1000
MOST_SPLICED = 16_000_000
"""Elements that references may add to lists, in all; and in a small file ..."""
_SPLICED_ANYWAY = 1_000_000
_SPLICED_A_BYTE = 4
"""... no more than these: a conversation of 4,000 turns comes to two for each byte."""
_UNFOLDED_ANYWAY = 64 * 1024 * 1024
_UNFOLDED_A_BYTE = 1000
_MOST_A_BYTE = 96
"""What one byte of JSON takes at most."""
_LONGEST_MANIFEST = 4096
_MOST_RECORDS = 1000
"""Of kinds that a later Rewind may add; and so a few for each step."""
_WINDOW = 8 * 1024 * 1024
_LEVEL = 12
_ZSTD = b"\x28\xb5\x2f\xfd"
_MANIFEST = re.compile(rb'(\{"rewind_cassette": [^\n]*), "sha256": "([0-9a-f]{64})"\}\n')
_NUMBER = re.compile(rb'\{"rewind_cassette": (\d{1,9})\b')
_ADDRESS = re.compile(rb'"@same"\s*:\s*"((?:request|answer) \d{1,9})')
_FIRST = re.compile(rb'\{\n? *"(?:(session|surroundings|end)":|(step|small_print)": ("session"|[1-9]\d{0,8})[,}])')
_STREAM = re.compile(rb'"(?:events|lines|text)": \[')
_CONFLICT = re.compile(rb"^(?:<{7}|={7}|>{7}|[|]{7})(?: [^\n]*)?\r?$", re.MULTILINE)
"""No line of a cassette begins so: they begin with a bracket or are set in."""
_GIT_LFS = b"version https://git-lfs.github.com/spec/"
_AGAIN = "Where the session is, write the file again: rewind export SESSION -o FILE --force"
_FROM_GIT = "If git changed its line ends, add a line to .gitattributes: *.rw -text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What the first line says."""

    steps: int
    size: int
    """Of all bodies, unpacked."""


@dataclass(frozen=True, slots=True)
class UnsealedCassette:
    """A cassette of which every byte has been checked, and no record read."""

    manifest: Manifest
    memory: "MemoryBudget"
    records: "Iterator[RawRecord]"
    referred: frozenset[str] | None
    """The bodies that something in it refers to; ``None`` in a light file, where all of them may stay."""


def seal(records: str, manifest: Manifest) -> bytes:
    """The whole file. Raises EnvironmentProblem if it would be too large to be read again."""
    body = records.encode()
    begin = f'{{"rewind_cassette": {FORMAT}, "steps": {manifest.steps}, "size": {manifest.size}'.encode()
    if len(body) > MOST_TEXT - _LONGEST_MANIFEST or body.count(b",") > MOST_VALUES:
        raise EnvironmentProblem(
            f"The session is too large for a cassette: {len(body):,} bytes of text.",
            hint="Export some of its steps: rewind export ID --steps 1..100",
        )
    if manifest.size > most_unfolded(len(body)):
        raise EnvironmentProblem(
            f"The cassette would stand for {manifest.size:,} bytes in only {len(body):,}: a file like that is not read"
            " again, since nobody could tell it from one that is made to fill the memory.",
            hint="Export some of its steps: rewind export ID --steps 1..100",
        )
    return b'%b, "sha256": "%b"}\n%b' % (begin, _digest(begin, body).encode(), body)


def unseal(data: bytes) -> UnsealedCassette:
    """The manifest and the records, once every byte has been checked. Raises BadCassette."""
    size = len(data)
    if data.startswith(_ZSTD):
        data = unpacked(data)
    if len(data) > MOST_TEXT:
        bad(f"It has {len(data):,} bytes, and a cassette has at most {MOST_TEXT:,}.")
    number = _NUMBER.match(data)
    if number is not None and int(number[1]) > FORMAT:
        raise BadCassette(
            f"It was written by a newer Rewind: its format is {int(number[1])}, and this one reads up to {FORMAT}.",
            hint="Upgrade Rewind: pip install --upgrade llm-rewind",
        )
    found = _MANIFEST.match(data, 0, _LONGEST_MANIFEST)
    if found is None or number is None or int(number[1]) != FORMAT:
        raise _unsealed(data, "It does not begin as a cassette does.")
    start = found.end()
    if _digest(found[1], memoryview(data)[start:]) != found[2].decode():
        raise _unsealed(data, "It has been changed or cut since it was written.")
    if data.count(b",", start) > MOST_VALUES:
        bad(f"It holds more than {MOST_VALUES:,} values.")
    fields = _parsed((found[1] + b"}").decode())
    steps, bodies = fields.get("steps"), fields.get("size")
    if type(steps) is not int or type(bodies) is not int:
        bad("Its first line does not say how much follows.")
    if bodies > (most := most_unfolded(len(data) - start)):
        bad(f"It claims to hold {bodies:,} bytes; one of {len(data):,} bytes holds at most {most:,}.")
    memory = MemoryBudget(light=is_light(data), size=size, text_size=len(data))
    return UnsealedCassette(
        Manifest(steps=steps, size=bodies),
        memory,
        _records(data, start, 3 * steps + _MOST_RECORDS),
        None if memory.light else frozenset(name.decode() for name in set(_ADDRESS.findall(data))),
    )


def _digest(begin: bytes, body: bytes | memoryview) -> str:
    digest = hashlib.sha256(begin)
    digest.update(body)
    return digest.hexdigest()


def _unsealed(data: bytes, otherwise: str) -> BadCassette:
    """What most often happens to files that are kept in git; or ``otherwise``."""
    if (conflict := _CONFLICT.search(data)) is not None:
        line = data.count(b"\n", 0, conflict.start()) + 1
        return BadCassette(
            f"It holds a merge conflict of git that nobody has resolved (line {line}): two recordings are mixed in it.",
            hint="Take one side as a whole: git checkout --ours FILE, or --theirs; or record it again.",
        )
    if data.startswith(_GIT_LFS):
        return BadCassette("It is only a pointer of git LFS, not the file itself.", hint="Fetch it: git lfs pull")
    kind = kind_of(data[:BEGINNING], "")
    if kind not in (None, FileKind.CASSETTE):
        return BadCassette(f"It is {kind}, not a cassette.", hint="rewind import FILE")
    otherwise = otherwise if data else "It is empty."
    return BadCassette(otherwise, hint=_FROM_GIT if b"\r\n" in data[:_LONGEST_MANIFEST] else _AGAIN)


def packed(data: bytes) -> bytes:
    """The cassette in one zstd frame that declares its size. Raises EnvironmentProblem if it shrinks beyond belief."""
    shape = zstandard.ZstdCompressionParameters.from_level(
        _LEVEL, source_size=len(data), window_log=_WINDOW.bit_length() - 1, write_content_size=True
    )
    frame = zstandard.ZstdCompressor(compression_params=shape).compress(data)
    if len(data) > _most_unpacked(len(frame)):
        raise EnvironmentProblem(
            f"The cassette would shrink from {len(data):,} bytes to {len(frame):,}: a file like that is not read again,"
            " since nobody could tell it from one that is made to fill the memory.",
            hint="Write it as it is, without .zst at the end of its name.",
        )
    return frame


def _most_unpacked(size: int) -> int:
    """To how much a packed file of that size may unpack."""
    return min(MOST_TEXT, max(MOST_UNPACKED, size * MOST_TIMES))


def unpacked(data: bytes) -> bytes:
    """The text of a packed cassette. What the frame claims is checked before anything is unpacked."""
    try:
        frame = zstandard.get_frame_parameters(data)
        claimed = frame.content_size
        if claimed in (zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR):
            bad("It does not say how large it is when unpacked.")
        if claimed > (most := _most_unpacked(len(data))):
            bad(f"It claims to unpack to {claimed:,} bytes; one of {len(data):,} bytes unpacks to at most {most:,}.")
        if frame.window_size > _WINDOW or frame.dict_id:
            bad("It is packed in a way that cassettes are not.")
        unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        return unpacker.decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise BadCassette("It cannot be unpacked: it is cut or damaged.") from error


def most_unfolded(size: int) -> int:
    """How many bytes of bodies a text of that size may stand for: a long conversation comes to half of it at most."""
    return max(_UNFOLDED_ANYWAY, size * _UNFOLDED_A_BYTE)


def most_joined(size: int) -> int:
    """How much memory the texts may take that references make up, in a file of that size.

    An agent that sends one growing text fills a small file with references to long texts; and so can anybody.
    """
    return min(MOST_JOINED, max(_JOINED_ANYWAY, size * _JOINED_A_BYTE))


def is_light(data: bytes) -> bool:
    """True if its values take little memory, whatever they are: then none of them is weighed."""
    return len(data) * _MOST_A_BYTE <= MOST_MEMORY


class MemoryBudget:
    """How much memory the values that are kept take, in all. Its methods raise BadCassette."""

    def __init__(self, *, light: bool, size: int = 0, text_size: int = MOST_TEXT) -> None:
        """``size``: of the file, packed if it is; ``text_size``: unpacked."""
        self.light = light
        self._spliced_left = min(MOST_SPLICED, max(_SPLICED_ANYWAY, text_size * _SPLICED_A_BYTE))
        self.left = MOST_MEMORY
        self._joined_left = most_joined(size)

    def keep(self, weight: int) -> None:
        """Values of that weight stay in memory."""
        self.check(weight)
        self.left -= weight

    def join(self, size: int) -> None:
        """A text of that size was made of references, and may stay."""
        self._joined_left -= size
        if self._joined_left < 0:
            bad("The texts that its references make up are too large in all.")

    def splice(self, count: int) -> None:
        """So many elements were put into a list by reference."""
        self._spliced_left -= count
        if self._spliced_left < 0:
            bad("Its references stand for too many values.")

    def check(self, weight: int) -> None:
        """Values of that weight are needed for a moment."""
        if weight > self.left:
            bad(f"Its values would take more than {MOST_MEMORY // 1024 // 1024} MiB of memory.")


class ValueBudget:
    """How many values bodies may hold: who reads the file has to hold them in memory. Its methods say what is wrong."""

    def __init__(self) -> None:
        self._left = MOST_DENSE
        self._dense: dict[str, int] = {}

    def body(self, name: str, form: str, plain: bytes, weight: int | None = None) -> str | None:
        """The next body; ``plain`` is what it is when it is unpacked. It is weighed if its weight is not known."""
        weight = body_weight(plain) if weight is None else weight
        if weight > (MOST_OF_JSON if form == "json" else MOST_STREAMED):
            return f"The body of {name} holds more values than a cassette takes."
        if form == "json" and is_dense(weight, len(plain)):
            self._dense[name] = weight
        return self.again(name)

    def again(self, name: str) -> str | None:
        """A body that is used, for the first time or once more."""
        self._left -= self._dense.get(name, 0)
        return "Its bodies hold more values, in all, than a cassette takes." if self._left < 0 else None


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One value of the stream; nothing of it is read yet."""

    data: bytes
    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start

    @property
    def marked(self) -> bool:
        """Whether it may hold lines or references."""
        return self.data.find(b'"@', self.start, self.end) >= 0

    def first(self, memory: MemoryBudget) -> tuple[str, Any]:
        """Its first member, which says what kind of record it is. Parsed only if it is written in an unusual way."""
        found = _FIRST.match(self.data, self.start, self.end)
        if found is None:
            fields, _ = self.fields(memory)
            return next(iter(fields.items()), ("", None))
        kind, counted, key = found.groups()
        if counted is None:
            return kind.decode(), None
        return counted.decode(), "session" if key == b'"session"' else int(key)

    def fields(self, memory: MemoryBudget) -> tuple[Fields, int]:
        """What it holds, and the memory that takes. Raises BadCassette."""
        if self.length * _MOST_A_BYTE > MOST_OF_JSON * 2:
            streams = _STREAM.search(self.data, self.start, self.end) is not None
            if body_weight(self.data[self.start : self.end]) > MOST_OF_JSON + (
                MOST_STREAMED if streams else MOST_OF_JSON
            ):
                bad("One of its records holds more values than a cassette takes.")
        try:
            if memory.light:
                return _parsed(self.data[self.start : self.end].decode()), 0
            piece = memoryview(self.data)[self.start : self.end]
            memory.check(text_weight(piece, memory.left))
            text = str(piece, "utf-8")
        except UnicodeDecodeError as error:
            raise BadCassette(f"One of its records is not JSON ({error}).") from error
        # The text is there as well as the values, and its characters for a second time.
        weight = json_weight(text, memory.left - self.length * 2)
        memory.check(weight + self.length * 2)
        return _parsed(text), max(weight, len(text))


def _records(data: bytes, start: int, most: int) -> Iterator[RawRecord]:
    """A record begins where a line begins with a bracket; its other lines are set in, or close it."""
    if start < len(data) and not (data.startswith(b"{", start) and data.endswith(b"\n")):
        bad("Its first line is not followed by records.")
    while start < len(data):
        if (most := most - 1) < 0:
            bad("It holds far more records than it has steps.")
        end = data.find(b"\n{", start) + 1 or len(data)
        yield RawRecord(data, start, end)
        start = end


def _parsed(text: str) -> Fields:
    try:
        fields = DECODER.decode(text)
    except RecursionError:
        raise BadCassette("It is nested too deep.") from None
    except ValueError as error:
        raise BadCassette(f"One of its records is not JSON ({error}).") from error
    if type(fields) is not dict:
        bad("A record of it is not an object.")
    return fields
