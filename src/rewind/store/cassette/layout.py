"""How a cassette is laid out: for people who review it, and so that what was shown once is not shown again.

A value that fits on a line stays on one line, wherever it stands; any other is broken by its members. A long string
is shown as its lines. What an earlier body has shown already is shown by reference to it: a value by its address, a run
of elements or of lines by address and count. Only what has an address refers to others.

Values are first noted, from the leaves up. What fits on a line becomes its own text; anything larger becomes a number
that stands for this very value. So equal values are found by a look into a table, and 1, 1.0 and true stay three.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from json.encoder import encode_basestring as quoted
from operator import add
from sys import getsizeof
from typing import Any

from rewind.store.cassette.text import MOST_LINES, WIDTH, lines_of, pieces_of, visible

_NUMBERS = frozenset("-0123456789")
_WORDS = {True: "true", False: "false", None: "null"}
_TOO_MUCH = WIDTH + 1
_LONG_LINE = 1000
"""Parts of a line that is longer may be shown by reference."""

Node = str | int
"""The text of a value that fits on a line, or the number of a larger one."""


@dataclass(frozen=True, slots=True)
class Addressed:
    """A value that later ones may refer to, by this name."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class _Place:
    """A list or a text that has been shown, and can be referred to in parts."""

    address: str
    parts: Any
    """The elements, the lines, or the text itself."""


_NO_RUN: tuple[_Place | None, int, int] = (None, 0, 0)


class Layout:
    """Writes one record after the other."""

    def __init__(self) -> None:
        self.joined = 0
        """Memory of the texts that a reader makes of references."""
        self._out: list[str] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._keys: list[tuple[Any, ...]] = []
        """Of each number: what it stands for. The first element says what that is."""
        self._addresses: dict[int, str] = {}
        self._elements: dict[Node, tuple[_Place, int]] = {}
        """Where an element of a list was seen last."""
        self._lines: dict[str, tuple[_Place, int]] = {}
        self._pieces: dict[str, tuple[_Place, int]] = {}
        """The same for lines of texts, and for pieces of long lines."""
        self._members: dict[str, str] = {}
        self._tokens: dict[str, str] = {}
        """Names of members as they stand in the text, and in addresses."""
        self._fresh: list[tuple[int, str]] = []

    def add(self, record: dict[str, Any]) -> None:
        """What the record holds may be referred to from the next record on."""
        self._write(self._note(record), "\n", None)
        self._out.append("\n")
        for number, address in self._fresh:
            if number not in self._addresses:
                self._addresses[number] = address
                self._remember(number, address)
        self._fresh.clear()

    def text(self) -> str:
        return visible("".join(self._out))

    def _note(self, value: Any) -> Node:
        kind = type(value)
        if kind is str:
            return quoted(value) if len(value) <= WIDTH else self._number(("text", value))
        if kind is dict:
            return self._note_members(value)
        if kind is list or kind is tuple:
            return self._note_elements(value)
        if kind is Addressed:
            node = self._note(value.value)
            return node if isinstance(node, str) else self._number(("@", value.name, node))
        return _literal(value)

    def _note_members(self, value: dict[str, Any]) -> Node:
        key: list[Any] = ["{"]
        room = WIDTH
        for name, inner in value.items():
            member = self._members.get(name) or self._member(name)
            node = self._note(inner)
            key += (member, node)
            room -= len(member) + len(node) + 2 if isinstance(node, str) else _TOO_MUCH
        if room < 0:
            return self._number(tuple(key))
        return "{" + ", ".join(map(add, key[1::2], key[2::2])) + "}"

    def _note_elements(self, value: Iterable[Any]) -> Node:
        nodes = [self._note(inner) for inner in value]
        texts = [node for node in nodes if isinstance(node, str)]
        if len(texts) < len(nodes):
            return self._number(("[", *nodes))
        flat = ", ".join(texts)
        if len(flat) <= WIDTH:
            return f"[{flat}]"
        return self._number(("#" if all(text[0] in _NUMBERS for text in texts) else "[", *texts))

    def _member(self, name: str) -> str:
        """Names that begin with ``@`` are ours; what is so named in a body gets one more."""
        text = self._members[name] = quoted("@" + name if name.startswith("@") else name) + ": "
        self._tokens[text] = name.replace("~", "~0").replace("/", "~1")
        return text

    def _number(self, key: tuple[Any, ...]) -> int:
        number = self._numbers.setdefault(key, len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
        return number

    def _write(self, node: Node, newline: str, address: str | None) -> None:
        """``newline`` begins a line of the same depth; ``address`` is that of the value, where it has one."""
        if isinstance(node, str):
            self._out.append(node)
            return
        key = self._keys[node]
        if address is not None:
            if (known := self._addresses.get(node)) is not None:
                self._out.append(f'{{"@same": {quoted(known)}}}')
                return
            self._fresh.append((node, address))
        match key[0]:
            case "{":
                self._write_members(key, newline, address)
            case "[":
                self._write_elements(key[1:], newline, address)
            case "#":
                self._out += ("[", *_filled(key[1:], newline + "  "), newline, "]")
            case "text":
                self._write_text(key[1], newline, address)
            case "@":
                self._write(key[2], newline, key[1])

    def _write_members(self, key: tuple[Any, ...], newline: str, address: str | None) -> None:
        inner = newline + "  "
        opening = "{"
        for at in range(1, len(key), 2):
            self._out += (opening, inner, key[at])
            node = key[at + 1]
            if node.__class__ is str:
                self._out.append(node)
            else:
                self._write(node, inner, None if address is None else _below(address, self._tokens[key[at]]))
            opening = ","
        self._out += (newline, "}")

    def _write_elements(self, nodes: tuple[Node, ...], newline: str, address: str | None) -> None:
        inner = newline + "  "
        opening, at = "[", 0
        while at < len(nodes):
            self._out += (opening, inner)
            place, start, count = self._run(nodes, at) if address is not None else _NO_RUN
            if place is not None:
                self._out.append(_span(place.address, start, count))
                at += count
            else:
                self._write(nodes[at], inner, None if address is None else _below(address, at))
                at += 1
            opening = ","
        self._out += (newline, "]")

    def _run(self, nodes: tuple[Node, ...], at: int) -> tuple[_Place | None, int, int]:
        """From where on, and how far, an earlier list has the same elements; long enough to be worth it."""
        found = self._elements.get(nodes[at])
        if found is None:
            return _NO_RUN
        place, start = found
        count = _common(nodes, at, place.parts, start)
        size = 0
        for node in nodes[at : at + count] if count < WIDTH else ():
            size += len(node) if isinstance(node, str) else _TOO_MUCH
        worth = count >= WIDTH or (count > 1 and size > WIDTH)
        return (place, start, count) if worth else _NO_RUN

    def _write_text(self, text: str, newline: str, address: str | None) -> None:
        parts = [quoted(one) for one in pieces_of(text)] if address is None else list(self._shown_lines(text))
        if len(parts) == 1 and parts[0][0] == '"':
            self._out.append(parts[0])
            return
        self.joined += getsizeof(text) if any(part[0] == "{" for part in parts) else 0
        inner = newline + "  "
        self._out.append('{"@lines": [')
        self._out.append(inner)
        self._out.append(("," + inner).join(parts))
        self._out += (newline, "]}")

    def _shown_lines(self, text: str) -> Iterator[str]:
        """Pieces, and spans of lines that an earlier text has as well."""
        lines = lines_of(text)
        fresh: list[str] = []
        at = 0
        while at < len(lines):
            place, start = self._lines.get(lines[at], (None, 0))
            count = _common(lines, at, place.parts, start) if place is not None else 0
            if place is not None and count > 1 and sum(map(len, lines[at : at + count])) > WIDTH:
                yield from self._shown_pieces("".join(fresh))
                fresh = []
                yield _span(place.address, start, count)
                at += count
            else:
                fresh.append(lines[at])
                at += 1
        yield from self._shown_pieces("".join(fresh))

    def _shown_pieces(self, text: str) -> Iterator[str]:
        """The same within a long line, where there are no lines to refer to."""
        pieces = pieces_of(text)
        at = 0
        while at < len(pieces):
            place, start = self._pieces.get(pieces[at], (None, 0))
            taken, size = 0, 0
            while place is not None and at + taken < len(pieces):
                if not place.parts.startswith(pieces[at + taken], start + size):
                    break
                size += len(pieces[at + taken])
                taken += 1
            if place is not None and size > _LONG_LINE:
                yield f'{{"@same": {quoted(place.address)}, "characters": [{start}, {size}]}}'
                at += taken
            else:
                yield quoted(pieces[at])
                at += 1

    def _remember(self, number: int, address: str) -> None:
        """What is there twice is found at its first place: from there on, more may follow that is the same."""
        key = self._keys[number]
        if key[0] == "[":
            place = _Place(address, key[1:])
            self._elements.update((key[at], (place, at - 1)) for at in range(len(key) - 1, 0, -1))
        elif key[0] == "text":
            lines = lines_of(key[1])
            if 2 < len(lines) <= MOST_LINES:
                place = _Place(address, lines)
                self._lines.update((lines[at], (place, at)) for at in range(len(lines) - 1, -1, -1))
            if max(map(len, lines)) > _LONG_LINE:
                place = _Place(address, key[1])
                ends = list(accumulate(map(len, pieces := pieces_of(key[1]))))
                found = zip(reversed(pieces), reversed((0, *ends[:-1])), strict=True)
                self._pieces.update((piece, (place, start)) for piece, start in found)


def _literal(value: Any) -> str:
    if value is True or value is False or value is None:
        return _WORDS[value]
    if type(value) is int or type(value) is float:
        return repr(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _below(address: str, token: str | int) -> str:
    """The address of a member or an element, as RFC 6901 writes it."""
    return f"{address}{'' if ' /' in address else ' '}/{token}"


def _common(ours: Sequence[Any], at: int, theirs: Sequence[Any], start: int) -> int:
    """How many elements are the same from there on."""
    most = min(len(ours) - at, len(theirs) - start)
    count = 0
    while count < most and ours[at + count] == theirs[start + count]:
        count += 1
    return count


def _span(address: str, start: int, count: int) -> str:
    begin = f', "from": {start}' if start else ""
    return f'{{"@same": {quoted(address)}{begin}, "count": {count}}}'


def _filled(numbers: Iterable[str], inner: str) -> Iterator[str]:
    """As many on a line as fit."""
    line: list[str] = []
    size = 0
    for number in numbers:
        size += len(number) + 2
        if size > WIDTH and line:
            yield inner + ", ".join(line) + ","
            line, size = [], len(number) + 2
        line.append(number)
    yield inner + ", ".join(line)
