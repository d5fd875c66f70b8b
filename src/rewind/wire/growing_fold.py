"""What is counted or hashed of bodies of which each begins like the one before, counted and hashed once.

Comparing bytes takes a tenth of the time of hashing them. So a fold remembers the last few bodies, and what it had come
to every so many bytes; where a new body begins alike, it goes on from there.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S")

_STRIDE = 16 * 1024
"""Bytes between two states that are remembered."""
_KEPT = 16
_KEPT_SIZE = 8 * 1024 * 1024
"""Bodies that are remembered; the last one is, whatever its size."""
_ALIKE = 0.9
"""The share of a body that a later one repeats from which on it is the same conversation."""

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


class GrowingFold(Generic[S]):
    """Folds ``more`` over the bytes of bodies."""

    def __init__(self, start: S, more: More[S]) -> None:
        self._start = start
        self._more = more
        self._known: list[_Folded[S]] = []
        self._last = b"", start

    def of(self, body: bytes) -> S:
        """What the whole body comes to."""
        if body is not self._last[0]:
            self._last = body, self._folded(body)
        return self._last[1]

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
