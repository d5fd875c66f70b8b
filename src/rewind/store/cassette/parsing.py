"""The records of a cassette: each is weighed first, and read only when it is its turn.

A cassette may be anybody's, and a few bytes of JSON can stand for very much memory. What the values of a record would
take is therefore known before one of them exists, and what is kept of all records together is counted.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rewind.errors import BadCassette
from rewind.store.cassette.checks import Fields, bad
from rewind.wire.json_weight import json_weight, text_weight

MOST_MEMORY = 384 * 1024 * 1024
"""For what is kept, and the record that is being read."""
MOST_JOINED = 1024 * 1024 * 1024
_JOINED_ANYWAY = 256 * 1024 * 1024
_JOINED_A_BYTE = 1000
_MOST_A_BYTE = 96
"""What one byte of JSON takes at most."""
_WEIGHED_ROUGHLY = 16 * 1024
_FIRST = re.compile(
    rb'\{\n? *"(?:(session|surroundings|end)":|(step|small_print)": ("session"|[1-9]\d{0,8})[,}])'
)
_OPEN = re.compile(r"[ \t\r\n]*\{[ \t\r\n]*")
_COLON = re.compile(r"[ \t\r\n]*:[ \t\r\n]*")
_NEXT = re.compile(r'[ \t\r\n]*(?:,[ \t\r\n]*(?=")|\}[ \t\r\n]*\Z)')


def most_joined(size: int) -> int:
    """How much memory the texts may take that references make up, in a file of that size.

    An agent that sends one growing text fills a small file with references to long texts; and so can anybody.
    """
    return min(MOST_JOINED, max(_JOINED_ANYWAY, size * _JOINED_A_BYTE))


def is_light(data: bytes) -> bool:
    """Whether its values are little, whatever they are; then none of them need be weighed."""
    return len(data) * _MOST_A_BYTE <= MOST_MEMORY


class Memory:
    """How much the values that are kept take, in all."""

    def __init__(self, *, light: bool, size: int = 0) -> None:
        """``size``: of the file, packed if it is."""
        self.light = light
        self._kept = 0
        self._joined_left = most_joined(size)

    @property
    def left(self) -> int:
        return MOST_MEMORY - self._kept

    def keep(self, weight: int) -> None:
        """So much stays. Raises BadCassette."""
        self.check(weight)
        self._kept += weight

    def join(self, size: int) -> None:
        """A text of that size was made of references, and may stay. Raises BadCassette."""
        self._joined_left -= size
        if self._joined_left < 0:
            bad("The texts that its references make up are too large in all.")

    def check(self, weight: int) -> None:
        """So much is needed for a moment. Raises BadCassette."""
        if weight > self.left:
            bad(f"Its values would take more than {MOST_MEMORY // 1024 // 1024} MiB of memory.")


@dataclass(frozen=True, slots=True)
class Source:
    """The text that a member of a record stands in: all of it, where it need not be weighed."""

    text: str
    start: int
    end: int
    light: bool

    @property
    def length(self) -> int:
        return self.end - self.start

    def weight(self) -> int:
        """What its values take. Long texts are in pieces here, and will be joined: they count as what they are then."""
        if self.light:
            return 0
        enough = max(self.length, _WEIGHED_ROUGHLY)
        return max(json_weight(self.text, enough, self.start, self.end), self.length)


class Sources:
    """Where the members of a record stand."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.places: dict[str, tuple[int, int]] | None = None
        """``None`` in a light record."""

    def of(self, name: str) -> Source:
        if self.places is None:
            return Source(self._text, 0, len(self._text), light=True)
        if name not in self.places:
            bad(f"The member {name!r} is not called so in the text.")
        return Source(self._text, *self.places[name], light=False)


@dataclass(frozen=True, slots=True)
class Record:
    """One value of the stream; nothing of it is read yet."""

    data: bytes
    start: int
    end: int

    @property
    def marked(self) -> bool:
        """Whether it may hold lines or references."""
        return self.data.find(b'"@', self.start, self.end) >= 0

    def first(self, memory: Memory) -> tuple[str, Any]:
        """Its first member, which says what it is. One that does not say it plainly is read for that."""
        found = _FIRST.match(self.data, self.start, self.end)
        if found is None:
            fields, _ = self.fields(memory)
            return next(iter(fields.items()), ("", None))
        kind, counted, key = found.groups()
        if counted is None:
            return kind.decode(), None
        return counted.decode(), "session" if key == b'"session"' else int(key)

    def fields(self, memory: Memory) -> tuple[Fields, int]:
        """What it holds, and what that takes. Raises BadCassette."""
        text = self._text(memory)
        weight = 0 if memory.light else max(self._weight(text, memory), len(text))
        return parsed(text), weight

    def members(self, memory: Memory) -> tuple[Fields, Sources]:
        """What it holds, and where each member stands. Raises BadCassette."""
        text = self._text(memory)
        sources = Sources(text)
        if memory.light:
            return parsed(text), sources
        self._weight(text, memory)
        fields: Fields = {}
        sources.places = {}
        try:
            for name, value, start, end in _members(text):
                fields[name] = value
                sources.places[name] = start, end
        except RecursionError:
            raise BadCassette("It is nested too deep.") from None
        except ValueError as error:
            raise BadCassette(f"A record of it is no JSON ({error}).") from error
        return fields, sources

    def _text(self, memory: Memory) -> str:
        try:
            if memory.light:
                return self.data[self.start : self.end].decode()
            piece = memoryview(self.data)[self.start : self.end]
            memory.check(text_weight(piece, memory.left))
            return str(piece, "utf-8")
        except UnicodeDecodeError as error:
            raise BadCassette(f"A record of it is no JSON ({error}).") from error

    def _weight(self, text: str, memory: Memory) -> int:
        """Of its values. The text is there as well, and its characters for a second time."""
        room = memory.left - (self.end - self.start) * 2
        weight = json_weight(text, room)
        memory.check(weight + (self.end - self.start) * 2)
        return weight


def records(data: bytes, start: int, most: int) -> Iterator[Record]:
    """A record begins where a line begins with a bracket; its other lines are set in, or close it."""
    if start < len(data) and not (data.startswith(b"{", start) and data.endswith(b"\n")):
        raise BadCassette("What follows its first line are no records.")
    while start < len(data):
        if (most := most - 1) < 0:
            raise BadCassette("It holds far more records than it has steps.")
        end = data.find(b"\n{", start) + 1 or len(data)
        yield Record(data, start, end)
        start = end


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def parsed(text: str) -> Fields:
    try:
        fields = _DECODER.decode(text)
    except RecursionError:
        raise BadCassette("It is nested too deep.") from None
    except ValueError as error:
        raise BadCassette(f"A record of it is no JSON ({error}).") from error
    if type(fields) is not dict:
        raise BadCassette("A record of it is no object.")
    return fields


def _members(text: str) -> Iterator[tuple[str, Any, int, int]]:
    """Name, value, and from where to where the value stands. Raises ValueError."""
    at = _after(_OPEN, text, 0)
    while at < len(text):
        name, end = _DECODER.raw_decode(text, at)
        if type(name) is not str:
            raise ValueError("the name of a member is no text")
        at = _after(_COLON, text, end)
        value, end = _DECODER.raw_decode(text, at)
        yield name, value, at, end
        at = _after(_NEXT, text, end)


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    if found is None:
        raise ValueError(f"something is missing at character {at}")
    return found.end()
