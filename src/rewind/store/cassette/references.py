"""How records are laid out for people who review them, and how the values come back.

A value that fits on a line stays on one line, wherever it stands; any other is broken by its members. A long string
is shown as its lines. What an earlier body has shown already is shown by reference to it: a value by its address, a run
of elements or of lines by address and count. Only what has an address refers to others.

To write, values are first noted, from the leaves up. What fits on a line becomes its own text; anything larger becomes
a number that stands for this very value. So equal values are found in a table, and 1, 1.0 and true stay three.

To read, lines are joined and references followed. They share what they refer to, so they cost no memory; but a few of
them can stand for gigabytes, and a cassette may be anybody's. So each one is weighed before it is followed, and no
record may come to more than it says it holds.
"""

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from json.encoder import encode_basestring as quoted
from operator import add
from sys import getsizeof
from typing import Any

from rewind.dataclass import dataclass
from rewind.store.cassette.fields import bad
from rewind.store.cassette.json_text import (
    MOST_LINES,
    WIDTH,
    filled,
    line_begins,
    lines_of,
    literal,
    pieces_of,
    visible,
)
from rewind.store.cassette.seal import MemoryBudget
from rewind.store.cassette.shared_values import SharedMeasures
from rewind.wire.growing_json import GrownList

DEEPEST = 120  # a body of the greatest depth, and the record around it
_SAME, _LINES, _CHARACTERS = "@same", "@lines", "characters"
_NUMBERS = frozenset("-0123456789")
_TOO_MUCH = WIDTH + 1
_LONG_LINE = 1000  # parts of a line that is longer may be shown by reference

Node = str | int
"""The text of a value that fits on a line, or the number of a larger one."""


@dataclass(frozen=True, slots=True)
class Addressed:
    """A value that later ones may refer to, by this name."""

    name: str
    value: Any


_Place = tuple[str, Any, int]
"""The address of a list or text that has been shown; its elements, its lines or the text itself; an index in them."""


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
        self._elements: dict[Node, _Place] = {}
        self._lines: dict[str, _Place] = {}
        self._pieces: dict[str, _Place] = {}
        """Where an element of a list, a line of a text, a piece of a long line was seen last."""
        self._members: dict[str, str] = {}
        self._tokens: dict[str, str] = {}
        """Names of members as they stand in the text, and in addresses."""
        self._fresh: list[tuple[int, str]] = []

    def add(self, record: dict[str, Any]) -> None:
        """Add a record. Later records may refer to what it holds."""
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
            return self._note_elements([self._note(inner) for inner in value])
        if kind is GrownList:  # the nodes of items that an earlier list had as well are known
            return self._note_elements(value.each(self._note))
        if kind is Addressed:
            node = self._note(value.value)
            return node if isinstance(node, str) else self._number(("@", value.name, node))
        return literal(value)

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

    def _note_elements(self, nodes: Sequence[Node]) -> Node:
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
                self._out += ("[", *filled(key[1:], newline + "  "), newline, "]")
            case "text":
                self._write_text(key[1], newline, address)
            case "@":
                self._write(key[2], newline, key[1])

    def _write_members(self, key: tuple[Any, ...], newline: str, address: str | None) -> None:
        inner, opening = newline + "  ", "{"
        for at in range(1, len(key), 2):
            self._out += (opening, inner, key[at])
            below = None if address is None else _below(address, self._tokens[key[at]])
            self._write(key[at + 1], inner, below)
            opening = ","
        self._out += (newline, "}")

    def _write_elements(self, nodes: tuple[Node, ...], newline: str, address: str | None) -> None:
        inner, opening, at = newline + "  ", "[", 0
        while at < len(nodes):
            self._out += (opening, inner)
            count = self._run(nodes, at) if address is not None else 0
            if count:
                self._out.append(_span(self._elements[nodes[at]], count))
                at += count
            else:
                self._write(nodes[at], inner, None if address is None else _below(address, at))
                at += 1
            opening = ","
        self._out += (newline, "]")

    def _run(self, nodes: tuple[Node, ...], at: int) -> int:
        """How many elements an earlier list shares from there on; 0 if a reference would not be shorter."""
        count = _common(nodes, at, self._elements.get(nodes[at]))
        size = 0
        for node in nodes[at : at + count] if count < WIDTH else ():
            size += len(node) if isinstance(node, str) else _TOO_MUCH
        return count if count >= WIDTH or (count > 1 and size > WIDTH) else 0

    def _write_text(self, text: str, newline: str, address: str | None) -> None:
        parts = [quoted(piece) for piece in pieces_of(text)] if address is None else list(self._shown_lines(text))
        if len(parts) == 1 and parts[0][0] == '"':
            self._out.append(parts[0])
            return
        self.joined += getsizeof(text) if any(part[0] == "{" for part in parts) else 0
        inner = newline + "  "
        self._out += ('{"@lines": [', inner, ("," + inner).join(parts), newline, "]}")

    def _shown_lines(self, text: str) -> Iterator[str]:
        """Pieces, and spans of lines that an earlier text has as well."""
        lines = lines_of(text)
        fresh: list[str] = []
        at = 0
        while at < len(lines):
            place = self._lines.get(lines[at])
            count = _common(lines, at, place)
            if place is not None and count > 1 and sum(map(len, lines[at : at + count])) > WIDTH:
                yield from self._shown_pieces("".join(fresh))
                fresh = []
                yield _span(place, count)
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
            address, text, start = self._pieces.get(pieces[at], ("", "", 0))
            after, size = at, 0
            while after < len(pieces) and text.startswith(pieces[after], start + size):
                size += len(pieces[after])
                after += 1
            if size > _LONG_LINE:
                yield f'{{"@same": {quoted(address)}, "characters": [{start}, {size}]}}'
                at = after
            else:
                yield quoted(pieces[at])
                at += 1

    def _remember(self, number: int, address: str) -> None:
        """What is there twice is found at its first place: from there on, more may follow that is the same."""
        key = self._keys[number]
        if key[0] == "[":
            nodes = key[1:]
            self._elements.update((nodes[at], (address, nodes, at)) for at in range(len(nodes) - 1, -1, -1))
        elif key[0] == "text":
            lines = lines_of(key[1])
            if 2 < len(lines) <= MOST_LINES:
                self._lines.update((lines[at], (address, lines, at)) for at in range(len(lines) - 1, -1, -1))
            if max(map(len, lines)) > _LONG_LINE:
                ends = list(accumulate(map(len, pieces := pieces_of(key[1]))))
                found = zip(reversed(pieces), reversed((0, *ends[:-1])), strict=True)
                self._pieces.update((piece, (address, key[1], start)) for piece, start in found)


def _below(address: str, token: str | int) -> str:
    """The address of a member or an element, as RFC 6901 writes it."""
    return f"{address}{'' if ' /' in address else ' '}/{token}"


def _common(ours: Sequence[Any], at: int, place: _Place | None) -> int:
    """How many elements are the same from there on."""
    _, theirs, start = place or ("", (), 0)
    most = min(len(ours) - at, len(theirs) - start)
    count = 0
    while count < most and ours[at + count] == theirs[start + count]:
        count += 1
    return count


def _span(place: _Place, count: int) -> str:
    address, _, start = place
    begin = f', "from": {start}' if start else ""
    return f'{{"@same": {quoted(address)}{begin}, "count": {count}}}'


class References:
    """What has been shown so far, by name; and the records that refer to it."""

    def __init__(self, memory: MemoryBudget) -> None:
        self._memory = memory
        self._roots: dict[str, Any] = {}
        self.measures = SharedMeasures()
        self._lines: dict[int, array[int]] = {}
        """By identity as well: where the lines of a text begin, and where the last one ends."""
        self._room = 0

    def name(self, name: str, root: Any) -> None:
        """From now on records can refer to this value by name."""
        self._roots[name] = root

    def restored(self, value: Any, room: int) -> Any:
        """The value itself, changed in place. Its references may stand for so many bytes. Raises BadCassette."""
        self._room = room
        return self._restore(value, DEEPEST)

    def _restore(self, value: Any, depth: int) -> Any:
        if depth == 0:
            bad("It is nested too deep.")
        if type(value) is dict:
            return self._members(value, depth - 1)
        if type(value) is list:
            return self._elements(value, depth - 1)
        return value

    def _members(self, value: dict[str, Any], depth: int) -> Any:
        if len(value) == 1:
            if _LINES in value:
                return self._joined(value[_LINES])
            if _SAME in value:
                target = self._target(value[_SAME])
                self._take(self.measures.of(target), depth + 1)
                return target
        marked = False
        for name, inner in value.items():
            if type(inner) is dict or type(inner) is list:
                value[name] = self._restore(inner, depth)
            marked = marked or name[:1] == "@"
        return {_unmarked(name): inner for name, inner in value.items()} if marked else value

    def _elements(self, value: list[Any], depth: int) -> list[Any]:
        spans: set[int] = set()
        for at, inner in enumerate(value):
            if type(inner) is dict and "count" in inner and _SAME in inner:
                spans.add(at)
            elif type(inner) is dict or type(inner) is list:
                value[at] = self._restore(inner, depth)
        if not spans:
            return value
        whole: list[Any] = []
        for at, inner in enumerate(value):
            whole += self._spliced_elements(inner, depth) if at in spans else (inner,)
        if 0 in spans and not value[0].get("from"):
            self.measures.begins_with(whole, self._target(value[0][_SAME]), value[0]["count"])
        return whole

    def _spliced_elements(self, span: dict[str, Any], depth: int) -> list[Any]:
        target = self._target(span[_SAME])
        if type(target) is not list:
            bad("A reference to elements does not name a list.")
        start, count = _bounds(span, len(target))
        self._memory.splice(count)
        elements: list[Any] = target[start : start + count]
        if start:
            for element in elements:
                self._take(self.measures.of(element), depth)
        else:
            self._take(self.measures.of_first(target, count), depth)
        return elements

    def _joined(self, parts: Any) -> str:
        if type(parts) is not list:
            bad("The lines of a text are not a list.")
        whole = "".join([part if type(part) is str else self._span(part) for part in parts])
        if any(type(part) is not str for part in parts):
            self._memory.join(getsizeof(whole))
        return whole

    def _span(self, part: Any) -> str:
        if type(part) is dict and "count" in part and _SAME in part:
            return self._span_of_lines(part)
        if type(part) is dict and part.keys() == {_SAME, _CHARACTERS}:
            return self._span_of_characters(part)
        return bad("A line of a text is not a string.")

    def _span_of_lines(self, span: dict[str, Any]) -> str:
        target = self._text(span)
        begins = self._lines.get(id(target))
        if begins is None:
            if (newlines := target.count("\n")) > MOST_LINES:
                bad("It refers to lines of a text that has too many of them.")
            self._memory.keep(newlines * 4)
            begins = self._lines[id(target)] = line_begins(target)
        start, count = _bounds(span, len(begins) - 1)
        self._spend(begins[start + count] - begins[start])
        return target[begins[start] : begins[start + count]]

    def _span_of_characters(self, span: dict[str, Any]) -> str:
        target, bounds = self._text(span), span[_CHARACTERS]
        if type(bounds) is not list or len(bounds) != 2:
            bad("A reference does not say from where to where.")
        start, count = _bounds({"from": bounds[0], "count": bounds[1]}, len(target))
        self._spend(count)
        return target[start : start + count]

    def _text(self, span: dict[str, Any]) -> str:
        target = self._target(span[_SAME])
        return target if type(target) is str else bad("A reference to a part of a text does not name a text.")

    def _target(self, address: Any) -> Any:
        """What stands at that address in an earlier body."""
        name, _, path = (address if type(address) is str else bad("A reference is not a string.")).partition(" /")
        try:
            value = self._roots[name]
            for token in path.split("/") if _ else ():
                if type(value) is dict:
                    value = value[token.replace("~1", "/").replace("~0", "~")]
                elif type(value) is list and token.isascii() and token.isdecimal():
                    value = value[int(token)]
                else:
                    raise KeyError(token)
        except (KeyError, IndexError, ValueError):
            bad(f"It refers to {address[:80]!r}, which is not there.")
        return value

    def _take(self, measure: tuple[int, int], depth: int) -> None:
        """What is referred to, and measured so, becomes a part of this record."""
        weight, height = measure
        if height > depth:
            bad("It is nested too deep.")
        self._spend(weight)

    def _spend(self, weight: int) -> None:
        self._room -= weight
        if self._room < 0:
            bad("Its references stand for more than it says it holds.")


def _unmarked(name: str) -> str:
    """A name that begins with ``@`` was given one more."""
    if name[:1] != "@":
        return name
    if name[:2] != "@@":
        bad(f"It has a mark that this Rewind does not know: {name[:40]!r}.")
    return name[1:]


def _bounds(span: dict[str, Any], size: int) -> tuple[int, int]:
    start, count = span.get("from", 0), span["count"]
    sound = span.keys() <= {_SAME, "from", "count"} and type(start) is type(count) is int
    if not sound or start < 0 or count < 1 or start + count > size:
        bad("A reference reaches beyond what it refers to.")
    return start, count
