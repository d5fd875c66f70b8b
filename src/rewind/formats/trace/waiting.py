"""What waits for its result: found by its id, or else the oldest of its name, however many wait."""

from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Waiting(Generic[T]):
    """Things in the order in which they came, each under an id and a name; either may be empty."""

    def __init__(self) -> None:
        self._all: dict[int, tuple[T, str, str]] = {}
        self._came = 0
        self._order: deque[int] = deque()
        self._ids: dict[str, deque[int]] = {}
        self._names: dict[str, deque[int]] = {}

    def add(self, one: T, tool_id: str, name: str) -> None:
        self._came += 1
        self._all[self._came] = one, tool_id, name
        self._order.append(self._came)
        self._names.setdefault(name, deque()).append(self._came)
        if tool_id:
            self._ids.setdefault(tool_id, deque()).append(self._came)

    def of_id(self, tool_id: str) -> int | None:
        """The place of the oldest one of that id."""
        return self._oldest(self._ids, tool_id)

    def of_names(self, names: Iterable[str]) -> int | None:
        """The place of the oldest one that has one of these names."""
        found = (self._oldest(self._names, name) for name in names)
        return min((place for place in found if place is not None), default=None)

    def oldest(self) -> int | None:
        return self._first(self._order)

    def at(self, place: int) -> T:
        return self._all[place][0]

    def take(self, place: int) -> T:
        """It waits no longer."""
        return self._all.pop(place)[0]

    def _oldest(self, known: dict[str, deque[int]], key: str) -> int | None:
        places = known.get(key)
        if places is None:
            return None
        found = self._first(places)
        if found is None:
            del known[key]
        return found

    def _first(self, places: deque[int]) -> int | None:
        # What was taken is struck off when it comes up: each is passed once.
        while places and places[0] not in self._all:
            places.popleft()
        return places[0] if places else None
