"""What a JSON text would take in memory, estimated before it is read: three bytes of it can stand for a hundred."""

import re
from typing import Any

_OBJECT, _LIST, _STRING, _MORE, _NAME = 184, 88, 56, 64, 48
"""Bytes that CPython takes for a small object, a small list, a text besides its characters, one more element; and
what its JSON reader takes for a name."""
_WEIGHTS = (("{", _OBJECT), ("[", _LIST), (",", _MORE), (":", _NAME))
_CHUNK = 256 * 1024
_BACKSLASHES = re.compile(r"\\*")


def json_weight(text: str, enough: int, start: int = 0, end: int | None = None) -> int:
    """About how many bytes its values take besides their characters.

    Brackets and commas are counted first, also those within strings, which takes next to no time. Only where that
    comes to more than is well enough are the strings left out.
    """
    stop = len(text) if end is None else end
    weight = _signs(text, start, stop) + text.count('"', start, stop) // 2 * _STRING
    return weight if weight <= enough else _without_strings(text, start, stop)


def _without_strings(text: str, start: int, stop: int) -> int:
    weight, inside = 0, 0
    while start < stop:
        end = min(start + _CHUNK, stop)
        if end < stop and text[end - 1] == "\\":  # what is escaped is not parted from its backslash
            end = min(_after_backslashes(text, end), stop)
        parts = text[start:end].replace("\\\\", "").replace('\\"', "").split('"')
        bare = "".join(parts[inside::2])
        strings = len(parts) - 1
        weight += _signs(bare, 0, len(bare)) + strings * _STRING // 2
        inside = (inside + strings) % 2
        start = end
    return weight


def _signs(text: str, start: int, stop: int) -> int:
    return sum(text.count(sign, start, stop) * size for sign, size in _WEIGHTS)


def _after_backslashes(text: str, at: int) -> int:
    found = _BACKSLASHES.match(text, at)
    return (at if found is None else found.end()) + 1


def text_weight(data: bytes | memoryview, enough: int) -> int:
    """The most that these bytes take as a text: one sign from beyond the usual ones makes all of them wide."""
    size = len(data)
    if size * 4 <= enough:
        return size * 4
    whole = bytes(data)
    if whole.isascii():
        return size
    return size * (4 if any(bytes([lead]) in whole for lead in range(0xF0, 0xF5)) else 2)


def value_weight(value: Any) -> tuple[int, int]:
    """The same of a value that is there already: besides its characters, and its characters."""
    weight, characters, waiting = 0, 0, [value]
    while waiting:
        inner = waiting.pop()
        kind = type(inner)
        if kind is str:
            weight += _STRING
            characters += len(inner)
        elif kind is dict:
            weight += _OBJECT + len(inner) * (_MORE + _STRING)
            characters += sum(map(len, inner))
            waiting.extend(inner.values())
        elif kind is list:
            weight += _LIST + len(inner) * _MORE
            waiting.extend(inner)
    return weight, characters
