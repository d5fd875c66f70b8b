"""What was made of a text, remembered for a while: a conversation sends its texts again with every request."""

from typing import Generic, TypeVar

V = TypeVar("V")

_MOST = 8 * 1024 * 1024
"""Characters of the texts that are remembered at a time."""


class TextMemory(Generic[V]):
    """Forgets all when it is full: a conversation is soon known again."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._made: dict[object, V] = {}
        self._size = 0

    def get(self, *texts: str) -> V | None:
        return self._made.get(texts)

    def put(self, made: V, *texts: str) -> None:
        self._size += sum(map(len, texts))
        if self._size > self._most:
            self._made.clear()
            self._size = 0
        self._made[texts] = made
