"""Undoes what the layout did: joins lines, follows references, takes one ``@`` off names.

A cassette may be anybody's. References share what they refer to, so they cost no memory; but a few of them can stand
for gigabytes. What each one stands for is therefore weighed before it is followed, and no record may come to more than
it says it holds.
"""

from array import array
from itertools import accumulate
from sys import getsizeof
from typing import Any, NoReturn

from rewind.errors import BadCassette
from rewind.store.cassette.parsing import Memory
from rewind.store.cassette.text import MOST_LINES

DEEPEST = 120
"""A body of the greatest depth, and the record around it."""
MOST_SPLICED = 16_000_000
"""Elements that references may add to lists, in all."""
_SAME, _LINES, _CHARACTERS = "@same", "@lines", "characters"


class References:
    """What has been shown so far, by name; and the records that refer to it."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._roots: dict[str, Any] = {}
        self._measures: dict[int, tuple[int, int]] = {}
        """By identity: what is measured here lives as long as its root does."""
        self._lines: dict[int, array[int]] = {}
        """By identity as well: where the lines of a text begin, and where the last one ends."""
        self._spliced = 0
        self._room = 0

    def name(self, name: str, root: Any) -> None:
        """From now on this can be referred to."""
        self._roots[name] = root

    def restored(self, value: Any, room: int) -> Any:
        """The value itself, changed in place. Its references may stand for so many bytes. Raises BadCassette."""
        self._room = room
        return self._restore(value, DEEPEST)

    def _restore(self, value: Any, depth: int) -> Any:
        if depth == 0:
            _bad("It is nested too deep.")
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
                self._take(target, depth + 1)
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
            if at in spans:
                self._splice(whole, inner, depth)
            else:
                whole.append(inner)
        return whole

    def _splice(self, whole: list[Any], span: dict[str, Any], depth: int) -> None:
        target = self._target(span[_SAME])
        if type(target) is not list:
            _bad("A reference to elements names something that has none.")
        start, count = _bounds(span, len(target))
        self._spliced += count
        if self._spliced > MOST_SPLICED:
            _bad("Its references stand for too many values.")
        elements = target[start : start + count]
        for one in elements:
            self._take(one, depth)
        whole += elements

    def _joined(self, parts: Any) -> str:
        if type(parts) is not list:
            _bad("The lines of a text are no list.")
        texts: list[str] = []
        refers = False
        for part in parts:
            if type(part) is str:
                texts.append(part)
                continue
            refers = True
            if type(part) is dict and "count" in part and _SAME in part:
                texts.append(self._span_of_lines(part))
            elif type(part) is dict and part.keys() == {_SAME, _CHARACTERS}:
                texts.append(self._span_of_characters(part))
            else:
                _bad("A line of a text is no text.")
        whole = "".join(texts)
        if refers:
            self._memory.join(getsizeof(whole))
        return whole

    def _span_of_lines(self, span: dict[str, Any]) -> str:
        target = self._text(span)
        begins = self._lines.get(id(target))
        if begins is None:
            begins = self._lines[id(target)] = self._line_begins(target)
        start, count = _bounds(span, len(begins) - 1)
        self._spend(begins[start + count] - begins[start])
        return target[begins[start] : begins[start + count]]

    def _line_begins(self, text: str) -> "array[int]":
        newlines = text.count("\n")
        if newlines > MOST_LINES:
            _bad("It refers to lines of a text that has too many of them.")
        begins = array("I", (0,))
        self._memory.keep(newlines * begins.itemsize)
        begins.extend(accumulate(len(line) + 1 for line in text.split("\n")[:-1]))
        if begins[-1] < len(text):
            begins.append(len(text))
        return begins

    def _span_of_characters(self, span: dict[str, Any]) -> str:
        target, bounds = self._text(span), span[_CHARACTERS]
        if type(bounds) is not list or len(bounds) != 2:
            _bad("A reference does not say from where to where.")
        start, count = _bounds({"from": bounds[0], "count": bounds[1]}, len(target))
        self._spend(count)
        return target[start : start + count]

    def _text(self, span: dict[str, Any]) -> str:
        target = self._target(span[_SAME])
        if type(target) is not str:
            _bad("A reference to a part of a text names something else.")
        return target

    def _target(self, address: Any) -> Any:
        """What stands at that address in an earlier body."""
        if type(address) is not str:
            _bad("A reference is no text.")
        name, _, path = address.partition(" /")
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
            _bad(f"It refers to {address[:80]!r}, which is not there.")
        return value

    def _take(self, value: Any, depth: int) -> None:
        """A value that is referred to becomes a part of this record."""
        weight, height = self._measured(value)
        if height > depth:
            _bad("It is nested too deep.")
        self._spend(weight)

    def _spend(self, weight: int) -> None:
        self._room -= weight
        if self._room < 0:
            _bad("Its references stand for more than it says it holds.")

    def _measured(self, value: Any) -> tuple[int, int]:
        """A lower bound of how many bytes the value has when it is written, and how deep it is."""
        kind = type(value)
        if kind is str:
            return len(value), 0
        if kind is not dict and kind is not list:
            return 1, 0
        known = self._measures.get(id(value))
        if known is None:
            weight, height = 1, 0
            for inner in value.values() if kind is dict else value:
                more, higher = self._measured(inner)
                weight += more
                height = max(height, higher)
            known = weight + (sum(map(len, value)) if kind is dict else 0), height + 1
            self._measures[id(value)] = known
        return known


def _unmarked(name: str) -> str:
    """A name that begins with ``@`` was given one more."""
    if name[:1] != "@":
        return name
    if name[:2] != "@@":
        _bad(f"It has a mark that this Rewind does not know: {name[:40]!r}.")
    return name[1:]


def _bounds(span: dict[str, Any], size: int) -> tuple[int, int]:
    start, count = span.get("from", 0), span["count"]
    sound = span.keys() <= {_SAME, "from", "count"} and type(start) is type(count) is int
    if not sound or start < 0 or count < 1 or start + count > size:
        _bad("A reference reaches beyond what it refers to.")
    return start, count


def _bad(why: str) -> NoReturn:
    raise BadCassette(why)
