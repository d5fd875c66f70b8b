"""Where to cut a body so that what a later request repeats is stored once.

A growing conversation repeats its earlier messages verbatim, but not its bytes: a cache marker moves, an id
changes, and every offset after it shifts. Long JSON strings survive all that, so a body is cut at their borders.
The stretches between them ("glue": keys, brackets, short strings) are cut before the first string that opens past
``GLUE`` bytes, counted from the cut before; so a conversation of short messages, too, only changes at its end.

Linear on any input: once escapes are masked (two left-to-right replacements), every quote left is a real delimiter
and the strings fall out of one split. Only what parses as JSON is cut this way.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import accumulate, pairwise
from typing import TypeVar

from rewind.dataclass import dataclass
from rewind.wire.growing_json import REQUESTS, loads

T = TypeVar("T")

LONG = 256
"""A string of this many bytes becomes a piece of its own."""
GLUE = 1024
"""The stretches between long strings are cut at about this size."""
BLIND = 64 * 1024
"""What is not JSON is cut every so many bytes."""
LARGEST = 1024 * 1024
"""No piece is larger, whatever it is; readers may rely on it."""
MOST = 2**20
"""A body that would fall into more pieces is cut blindly: naming them would cost more than it saves."""


_SMALL = 16 * 1024
"""Bytes of a body that is read anew in less time than it takes to find out what it shares with others."""
_KEPT = 8
_KEPT_BYTES = 8 * 1024 * 1024
"""Bodies that are remembered, so that what goes on from one of them is not cut again; the last one always is."""


@dataclass(slots=True)
class CutBody:
    """A body, and where it is cut."""

    body: bytes
    ends: list[int]
    """Of its pieces, none of them empty; the last is the end of the body."""
    marks: list[tuple[int, int]]
    """Places from which a body that begins alike can be cut on: behind a long string, and how many pieces end there."""
    known: "CutBody | None" = None
    """One that begins with the same pieces."""
    shared: int = 0
    """How many of them."""
    names: list[bytes] = field(default_factory=list)
    """For whoever stores the pieces: what each is called."""

    def pieces(self, first: int = 0) -> list[bytes]:
        start = self.ends[first - 1] if first else 0
        return [self.body[begin:end] for begin, end in pairwise((start, *self.ends[first:]))]


class BodyCutter:
    """Cuts bodies of which many repeat what an earlier one began with."""

    def __init__(self) -> None:
        self._known: list[CutBody] = []

    def cut(self, body: bytes) -> CutBody:
        if len(body) < LONG or not _is_json(body):
            return CutBody(body, _capped(range(BLIND, len(body), BLIND) if len(body) >= LONG else (), 0, len(body)), [])
        known, shared = None, 0
        for one in self._known:
            if len(one.body) > shared and body.startswith(memoryview(one.body)[: shared + 1]):
                known, shared = one, common_run(one.body, 0, body, 0)
        count = 0 if known is None else bisect_left(known.marks, (shared, 0))
        found = CutBody(body, [], [])
        if known is not None and count:
            place, found.shared = known.marks[count - 1]
            found.known, found.ends, found.marks = known, known.ends[: found.shared], known.marks[:count]
            _cut_json(found, place)
        else:
            _cut_json(found, -1)
        if len(found.ends) > MOST:
            return CutBody(body, _capped(range(BLIND, len(body), BLIND), 0, len(body)), [])
        if found.marks:
            self._remember(found)
        return found

    def _remember(self, found: CutBody) -> None:
        kept, size = [found], len(found.body)
        for one in self._known:
            size += len(one.body)
            if one is not found.known and size <= _KEPT_BYTES and len(kept) < _KEPT:
                kept.append(one)
            one.known = None  # or each would keep all before it
        self._known = kept


def cut_body(body: bytes) -> list[bytes]:
    """Pieces, none empty, whose concatenation is the body."""
    return BodyCutter().cut(body).pieces()


def _is_json(body: bytes) -> bool:
    try:
        loads(body) if len(body) < _SMALL else REQUESTS.loads(body)
    except (ValueError, RecursionError):  # too deep is RecursionError, too many digits ValueError
        return False
    return True


def _cut_json(found: CutBody, behind: int) -> None:
    """Cut a valid JSON text from the closing quote of a long string on; from its beginning if that is -1."""
    body, start = found.body, behind + 1
    rest = body[start:] if start else body
    # One character is looked for many times faster than two.
    masked = rest.replace(b"\\\\", b"__").replace(b'\\"', b"__") if b"\\" in rest else rest
    # Odd segments are the contents of strings, even ones what lies between; ends[i] is just past segment i's delimiter.
    lengths = list(map(len, masked.split(b'"')))
    ends = list(accumulate((length + 1 for length in lengths), initial=start))[1:]
    openings = [end - 1 for end in ends[0:-1:2]]
    cuts: list[int] = []
    last = max(behind, 0)

    def cut_glue(until: int) -> None:
        nonlocal last
        while until - last > GLUE:
            nth = bisect_left(openings, last + GLUE)
            if nth == len(openings) or openings[nth] >= until - 1:
                return
            last = openings[nth]
            cuts.append(last)

    for i in range(1, len(lengths), 2):
        if lengths[i] >= LONG:
            cut_glue(ends[i - 1])
            last = ends[i] - 1
            found.ends += _capped((*cuts, ends[i - 1]), found.ends[-1] if found.ends else 0, last)
            found.marks.append((last, len(found.ends)))
            cuts.clear()
    cut_glue(len(body))
    found.ends += _capped(cuts, found.ends[-1] if found.ends else 0, len(body))


def _capped(cuts: Iterable[int], last: int, end: int) -> list[int]:
    """Where pieces end behind ``last``: at these cuts, at the end, and in between where one would be too large."""
    capped: list[int] = []
    for cut in (*cuts, end):
        if cut > last:
            capped.extend(range(last + LARGEST, cut, LARGEST))
            capped.append(cut)
            last = cut
    return capped


def common_run(one: Sequence[T], start: int, other: Sequence[T], begin: int) -> int:
    """How many items are equal from there on. Doubling and halving keep the comparing in C, and linear."""
    most = min(len(one) - start, len(other) - begin)
    run, step = 0, 1
    while run < most:
        step = min(step, most - run)
        low, low_other = start + run, begin + run
        if one[low : low + step] == other[low_other : low_other + step]:
            run, step = run + step, step * 2
        elif step == 1:
            break
        else:
            step //= 2
            most = min(most, run + step * 2)
    return run
