"""JSON bodies of which each repeats the one before, read once.

An agent sends its whole conversation again with every request, and adds to its end. So a reader remembers the last few
bodies. Where a new one begins with the same bytes, the items of its lists that end within them are not read again: they
are the very same objects, and what was made of them (see :class:`GrownList`) is there too. Only the rest is parsed.

What is given out is shared: a document is a value, and nobody may change one.
"""

import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import groupby, takewhile
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

S = TypeVar("S")
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

_SMALL = 2048
"""Bytes of a body that is read anew in less time than it takes to look it up."""
_KEPT = 16
"""Bodies that are remembered: the last one of so many conversations side by side."""
_KEPT_SIZE = 8 * 1024 * 1024
"""Bytes of the bodies that are remembered; the last one is, whatever its size."""
_ALIKE = 0.9
"""The share of a body that a later one repeats from which on it is the same conversation."""
_LONG = 256
"""Characters of a list or an object that is looked up before it is read."""
_MANY, _LITTLE = 4096, 64
"""Items of a list, and bytes of each: tokens, or vectors, and no conversation."""
_DEEPEST = 2
"""Objects within objects whose lists are looked at: some APIs wrap the request."""

_STRIDE = 16 * 1024
"""Bytes between two states of a fold that are remembered."""

_scan = json.JSONDecoder().raw_decode
_blank = re.compile(r"[ \t\n\r]*").match


class GrownList(list[Any]):
    """A list of a document, with what readers made of its items, so that they need not read them again."""

    __slots__ = ("_carried", "_each", "_runs")

    def __init__(self, shared: "GrownList | None" = None, count: int = 0) -> None:
        """Begins with the first ``count`` items of ``shared``, and what was made of them."""
        super().__init__(() if shared is None else shared[:count])
        self._each: dict[Callable[[Any], Any], tuple[Any, ...]] = {}
        self._runs: dict[Callable[..., Any], tuple[int, tuple[Any, ...]]] = {}
        self._carried: _Carried | None = None
        if shared is not None:
            self._each = {read: made[:count] for read, made in shared._each.items()}
            # The run that was the last one may go on, or be another one now.
            self._runs = {read: (start, made) for read, (start, made) in shared._runs.items() if start < count}
            self._carried = shared._carried and shared._carried.first(count)

    def each(self, read: Callable[[Any], T]) -> tuple[T, ...]:
        known = self._each.get(read, ())
        if len(known) < len(self):
            known = self._each[read] = (*known, *map(read, self[len(known) :]))
        return known

    def runs(self, key: Callable[[Any], K], read: Callable[[K, list[Any]], Iterable[T]]) -> tuple[T, ...]:
        start, known = self._runs.get(read, (0, ()))
        last: tuple[T, ...] = ()
        at = start
        for role, run in groupby(self[start:], key=key):
            known, start = known + last, at
            items = list(run)
            last, at = tuple(read(role, items)), at + len(items)
        self._runs[read] = start, known
        return known + last

    def carried(self, key: object, names: dict[str, str], read: Callable[[Any], Any]) -> "GrownList":
        """``read`` of every item, which may add to ``names``, and by ``key`` gives the same for the same names."""
        known = self._carried
        if known is None or known.key is not key or known.before != tuple(names.items()):
            known = _Carried(key, tuple(names.items()), GrownList(), [], ())
        names.update(known.names[len(names) :])
        if len(known.made) == len(self):
            return known.made
        made, counts = GrownList(known.made, len(known.made)), list(known.counts)
        for item in self[len(made) :]:
            made.append(read(item))
            counts.append(len(names))
        self._carried = _Carried(key, known.before, made, counts, tuple(names.items()))
        return made


class _Carried(NamedTuple):
    """What was made of the items of a list one after the other, with names that were given on the way."""

    key: object
    before: tuple[tuple[str, str], ...]
    made: GrownList
    counts: list[int]
    """How many names there were behind each item."""
    names: tuple[tuple[str, str], ...]

    def first(self, count: int) -> "_Carried":
        """Of so many items."""
        counts = self.counts[:count]
        names = self.names[: counts[-1] if counts else len(self.before)]
        return _Carried(self.key, self.before, GrownList(self.made, count), counts, names)


def read_each(read: Callable[[Any], T], items: Iterable[Any]) -> tuple[T, ...]:
    """``read`` of every item; a function of a module, since what it gave is remembered by it."""
    return items.each(read) if isinstance(items, GrownList) else tuple(map(read, items))


def read_runs(
    key: Callable[[Any], K], read: Callable[[K, list[Any]], Iterable[T]], items: Iterable[Any]
) -> tuple[T, ...]:
    """What ``read`` gives for every run of items of one ``key``; both are functions of a module."""
    if isinstance(items, GrownList):
        return items.runs(key, read)
    return tuple(one for role, run in groupby(items, key=key) for one in read(role, list(run)))


class Mark(NamedTuple):
    """A place just behind an item of a list, from which a later body can be read on."""

    end: int
    """Bytes up to there."""
    path: tuple[str, ...]
    """The list."""
    items: int
    """Of the list, up to there."""


def places_shared(known: bytes, body: bytes, places: int, end: Callable[[int], int]) -> int:
    """How many of the places in the known body stand within what both begin with; ``end`` of a count says where.

    Nearly all do, or next to none; and comparing is quick, but copying is not.
    """
    view = memoryview(known)
    least, most, back = places, places, 1
    while least and not body.startswith(view[: end(least)]):
        least, most, back = max(0, least - back), least - 1, back * 2
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if body.startswith(view[: end(middle)]) else (least, middle - 1)
    return least


class _Known(NamedTuple):
    """A body that was read."""

    body: bytes
    document: dict[str, Any]
    marks: list[Mark]
    """Of its longest list, which is the one that grows."""
    written: dict[str, tuple[str, Any]]
    """Lists and objects by their name, each with its text: what stands behind the list that grows is the same again."""
    notes: dict[str, Any]

    def shared(self, body: bytes, more_than: int) -> int:
        """How many of the marks stand within what both begin with; 0 if not more than that."""
        if len(self.marks) <= more_than or not body.startswith(memoryview(self.body)[: self.marks[more_than].end]):
            return 0
        return places_shared(self.body, body, len(self.marks), lambda count: self.marks[count - 1].end)


class GrownDocument(NamedTuple):
    """A document, and how much of it an earlier one had."""

    document: Any
    mark: Mark | None = None
    """Up to there the bytes are those of an earlier body, and the items are its objects."""
    before: Mapping[str, Any] = MappingProxyType({})
    """What a reader noted of that body."""
    notes: dict[str, Any] | None = None
    """For what it wants to note of this one; ``None`` where the body is not remembered."""


class _UnusualJson(ValueError):
    """Text not worth the trouble: damaged, with a name twice in an object, or with a list of many small items."""


class GrowingJson:
    """Reads bodies, each as ``json.loads`` reads it. Raises what that raises."""

    def __init__(self) -> None:
        # Replaced as a whole and never changed: two threads that read at once lose a memory at most.
        self._known: tuple[_Known, ...] = ()
        self._last: tuple[bytes, Any] = b"", None

    def loads(self, body: bytes) -> Any:
        return loads(body) if len(body) < _SMALL else self.read(body).document

    def read(self, body: bytes) -> GrownDocument:
        """The same, for a reader who keeps notes on what it read."""
        if len(body) < _SMALL:
            return GrownDocument(loads(body))
        last, document = self._last
        if body is last or body == last:
            return GrownDocument(document)
        grown = self._grown(body)
        self._last = body, grown.document
        return grown

    def _grown(self, body: bytes) -> GrownDocument:
        if not _is_object(body):
            return GrownDocument(loads(body))
        known, shared = None, 0
        for one in self._known:
            if marks := one.shared(body, shared):
                known, shared = one, marks
                if shared == len(known.marks):
                    break
        try:
            written = known or (self._known[0] if self._known else None)
            found = _Parse(body, known, shared, {} if written is None else written.written).read()
        except (ValueError, IndexError, RecursionError):
            return GrownDocument(loads(body))
        if not found.marks:
            return GrownDocument(found.document)
        self._remember(found, known if known is not None and shared > _ALIKE * len(known.marks) else None)
        if known is None:
            return GrownDocument(found.document, notes=found.notes)
        return GrownDocument(found.document, known.marks[shared - 1], known.notes, found.notes)

    def _remember(self, found: _Known, gone_on_from: _Known | None) -> None:
        """The latest first. What it goes on from is no longer needed: its beginning is the same."""
        kept, size = [found], len(found.body)
        for one in self._known:
            if one is gone_on_from:
                continue
            size += len(one.body)
            if size <= _KEPT_SIZE and len(kept) < _KEPT:
                kept.append(one)
        self._known = tuple(kept)


class _Parse:
    """One body, from its beginning or from where a known one is left."""

    def __init__(self, body: bytes, known: _Known | None, shared: int, written: dict[str, tuple[str, Any]]) -> None:
        self._body = body
        self._marks: dict[tuple[str, ...], list[Mark]] = {}
        self._before = written
        self._written: dict[str, tuple[str, Any]] = {}
        self._path: list[str] = []
        self._objects: list[dict[str, Any]] = [{}]
        self._items: GrownList | None = None
        start = 0
        if known is not None:
            start, path, count = known.marks[shared - 1]
            self._marks[path] = known.marks[:shared]
            self._go_on(known.document, path, count)
        self._start = start
        self._text = (body[start:] if start else body).decode()
        self._is_ascii = len(self._text) == len(body) - start
        self._marked = (0, start)
        """A place in the text, and the same in the body."""

    def _go_on(self, document: dict[str, Any], path: tuple[str, ...], count: int) -> None:
        """The objects as far as they stand before the list of that path, and the list as far as its items count."""
        self._objects = []
        value: Any = document
        for name in path:
            self._objects.append({key: value[key] for key in takewhile(name.__ne__, value)})
            value = value[name]
        for outer, name, inner in zip(self._objects, path, self._objects[1:], strict=False):
            outer[name] = inner
        self._items = self._objects[-1][path[-1]] = GrownList(value, count)
        self._path = list(path)

    def read(self) -> _Known:
        text = self._text
        if self._items is None:
            at = self._object(1, self._objects[0], 1)
        else:
            at = self._list(0, self._items)
            self._path.pop()
            for depth in range(len(self._objects), 0, -1):
                at = self._object(at, self._objects[depth - 1], depth)
                if self._path:
                    self._path.pop()
        if _end(text, at) != len(text):
            raise _UnusualJson("more than one document")
        return _Known(self._body, self._objects[0], self._longest(), self._written, {})

    def _longest(self) -> list[Mark]:
        """The marks of the list that takes the most."""
        return max(self._marks.values(), key=lambda marks: marks[-1].end - marks[0].end, default=[])

    def _object(self, at: int, members: dict[str, Any], depth: int) -> int:
        """From behind the bracket or a member on; gives the place behind the object."""
        text = self._text
        while True:
            at = _end(text, at)
            if text[at] == "}":
                return at + 1
            if members:
                at = _end(text, _expected(text, at, ","))
            _expected(text, at, '"')
            name, at = _scan(text, at)
            if name in members:
                raise _UnusualJson("a name stands twice in an object")
            at = _end(text, _expected(text, _end(text, at), ":"))
            members[name], at = self._value(at, name, depth)

    def _value(self, at: int, name: str, depth: int) -> tuple[Any, int]:
        """The value that begins there, and the place behind it."""
        text, begin = self._text, at
        is_list = text[at] == "["
        if not is_list and (text[at] != "{" or depth == _DEEPEST):
            return _scan(text, at)
        written, value = self._before.get(name, ("", None))
        if written and text.startswith(written, at):
            at += len(written)
        else:
            self._path.append(name)
            if is_list:
                value = GrownList()
                at = self._list(at + 1, value)
            else:
                value = {}
                at = self._object(at + 1, value, depth + 1)
            self._path.pop()
        if depth == 1 and at - begin >= _LONG:
            self._written[name] = (text[begin:at], value)
        return value, at

    def _list(self, at: int, items: GrownList) -> int:
        """From behind the bracket or an item on; gives the place behind the list."""
        text, path = self._text, tuple(self._path)
        marks = self._marks.get(path, [])
        while True:
            at = _end(text, at)
            if text[at] == "]":
                if marks:
                    self._marks[path] = marks
                return at + 1
            if items:
                at = _end(text, _expected(text, at, ","))
            value, at = _scan(text, at)
            items.append(value)
            if not len(items) % _MANY and self._start + at < _LITTLE * len(items):
                raise _UnusualJson("a mark for each item would take more than the items")
            if text[at - 1] in '}]"':  # a number might go on
                marks.append(Mark(self._in_body(at), path, len(items)))

    def _in_body(self, at: int) -> int:
        if self._is_ascii:
            return self._start + at
        before, place = self._marked
        self._marked = at, place + len(self._text[before:at].encode())
        return self._marked[1]


def _expected(text: str, at: int, sign: str) -> int:
    if text[at] != sign:
        raise _UnusualJson(f"no {sign} at {at}")
    return at + 1


def _end(text: str, at: int) -> int:
    """Behind the blanks that stand there."""
    if text[at : at + 1] > " ":
        return at
    found = _blank(text, at)
    return at if found is None else found.end()


def _is_object(body: bytes) -> bool:
    """Whether it seems to be a JSON object in UTF-8; of UTF-16 the second byte would be zero."""
    return body[:1] == b"{" and body[1:2] != b"\0"


def loads(body: bytes) -> Any:
    """As ``json.loads``, which takes more than twice the time for bytes."""
    if body[:1] in (b"{", b"[") and body[1:2] != b"\0":
        try:
            text = body.decode()
        except UnicodeDecodeError:
            return json.loads(body)  # it lets half a surrogate pair pass
        return json.loads(text)
    return json.loads(body)


REQUESTS = GrowingJson()
"""For the bodies of requests: whoever asks what a request says, it is read once."""


More = Callable[[S, bytes, int, int], S]
"""What a state becomes with the bytes of a body between two places. It must not change the state it is given."""


class _Folded(NamedTuple, Generic[S]):
    """A body, and the state before each stride."""

    body: bytes
    states: list[S]

    @property
    def strides(self) -> int:
        return len(self.states) - 1

    def shared(self, body: bytes) -> int:
        """How many whole strides both begin with."""
        return places_shared(self.body, body, self.strides, lambda count: count * _STRIDE)


class GrowingFold(Generic[S]):
    """Counts or hashes bodies; one that begins like an earlier one from there on. To compare takes a tenth of that."""

    def __init__(self, start: S, more: More[S]) -> None:
        self._start = start
        self._more = more
        self._known: list[_Folded[S]] = []
        self._last = b"", start

    def of(self, body: bytes) -> S:
        """What the whole body comes to."""
        last, state = self._last
        if body is not last:
            state = self._folded(body)
            self._last = body, state
        return state

    def _folded(self, body: bytes) -> S:
        if len(body) < _STRIDE:
            return self._more(self._start, body, 0, len(body))
        known, shared = None, 0
        for one in self._known:
            if (strides := one.shared(body)) > shared:
                known, shared = one, strides
            if known is not None and shared > _ALIKE * known.strides:
                break
        states = [self._start] if known is None else known.states[: shared + 1]
        for at in range((len(states) - 1) * _STRIDE, len(body) - _STRIDE + 1, _STRIDE):
            states.append(self._more(states[-1], body, at, at + _STRIDE))
        goes_on = known is not None and shared > _ALIKE * known.strides
        self._remember(_Folded(body, states), known if goes_on else None)
        return self._more(states[-1], body, (len(states) - 1) * _STRIDE, len(body))

    def _remember(self, new: _Folded[S], gone_on_from: _Folded[S] | None) -> None:
        kept, size = [new], len(new.body)
        for one in self._known:
            if one is not gone_on_from:
                size += len(one.body)
                if size <= _KEPT_SIZE and len(kept) < _KEPT:
                    kept.append(one)
        self._known = kept
