"""Where to cut a body so that what a later request repeats is stored once.

A growing conversation repeats its earlier messages verbatim, but not its bytes: a cache marker moves, an id
changes, and every offset after it shifts. Long JSON strings survive all that, so a body is cut at their borders.
The stretches between them ("glue": keys, brackets, short strings) are cut before the first string that opens past
``GLUE`` bytes, counted from the cut before; so a conversation of short messages, too, only changes at its end.

Linear on any input: once escapes are masked (two left-to-right replacements), every quote left is a real delimiter
and the strings fall out of one split. Only what parses as JSON is cut this way.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TypeVar

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


def cut_body(body: bytes) -> list[bytes]:
    """Pieces, none empty, whose concatenation is the body."""
    if len(body) < LONG:
        return [body] if body else []
    cuts = _json_cuts(body) if _is_json(body) else None
    if cuts is None or len(cuts) > MOST:
        cuts = list(range(BLIND, len(body), BLIND))
    return [body[start:end] for start, end in pairwise((0, *_capped(cuts, len(body)), len(body))) if end > start]


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body.decode())
    except (ValueError, RecursionError):  # too deep is RecursionError, too many digits ValueError
        return False
    return True


def _json_cuts(body: bytes) -> list[int]:
    """Where to cut a valid JSON text, in ascending order."""
    masked = body.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    # Odd segments are the contents of strings, even ones what lies between; ends[i] is just past segment i's delimiter.
    lengths = list(map(len, masked.split(b'"')))
    ends = list(accumulate(length + 1 for length in lengths))
    openings = [end - 1 for end in ends[0:-1:2]]
    cuts: list[int] = []
    last = 0

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
            cuts += (ends[i - 1], last)
    cut_glue(len(body))
    return cuts


def _capped(cuts: Iterable[int], size: int) -> list[int]:
    """The same cuts, and more where a piece would be larger than ``LARGEST``."""
    capped: list[int] = []
    last = 0
    for cut in (*cuts, size):
        capped.extend(range(last + LARGEST, cut, LARGEST))
        capped.append(cut)
        last = cut
    return capped[:-1]


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
