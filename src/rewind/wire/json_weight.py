"""What a JSON text would take in memory, estimated before it is read: three bytes of it can stand for a hundred."""

from typing import Any, NamedTuple

_OBJECT, _LIST, _STRING, _MORE, _NAME = 184, 88, 56, 64, 48
"""Bytes that CPython takes for a small object, a small list, a text besides its characters, one more element; and
what its JSON reader takes for a name."""
_WEIGHTS = (("{", _OBJECT), ("[", _LIST), (",", _MORE), (":", _NAME))
_MEMBER = _MORE + _NAME + _STRING
_EVENT_LINE = 256
"""What a line of an event stream takes, whatever it says: an event is an object of its own."""
_DENSE = 8
_CHUNK = 256 * 1024


def json_weight(text: str, enough: int, start: int = 0, end: int | None = None) -> int:
    """About how many bytes its values take besides their characters.

    Brackets and commas are counted first, also those within strings, which takes next to no time. Only where that
    comes to more than is well enough are the strings left out.
    """
    stop = len(text) if end is None else end
    weight = _signs(text, start, stop) + text.count('"', start, stop) // 2 * _STRING
    return weight if weight <= enough else _without_strings(text, start, stop)


def _without_strings(text: str | bytes, start: int, stop: int) -> int:
    weight, inside = 0, 0
    while start < stop:
        end = min(start + _CHUNK, stop)
        if end < stop and _part(text, end - 1, end) == "\\":  # what is escaped is not parted from its backslash
            while end < stop and _part(text, end, end + 1) == "\\":
                end += 1
            end = min(end + 1, stop)
        parts = _part(text, start, end).replace("\\\\", "").replace('\\"', "").split('"')
        bare = "".join(parts[inside::2])
        strings = len(parts) - 1
        weight += _signs(bare, 0, len(bare)) + strings * _STRING // 2
        inside = (inside + strings) % 2
        start = end
    return weight


def _signs(text: str, start: int, stop: int) -> int:
    return sum(text.count(sign, start, stop) * size for sign, size in _WEIGHTS)


def _part(text: str | bytes, start: int, end: int) -> str:
    """Of bytes, a part in which every byte is one character: signs and quotes are what they are."""
    part = text[start:end]
    return part if isinstance(part, str) else part.decode("latin-1")


def text_weight(data: bytes | memoryview, enough: int) -> int:
    """The most that these bytes take as a text: one sign from beyond the usual ones makes all of them wide."""
    size = len(data)
    if size * 4 <= enough:
        return size * 4
    whole = bytes(data)
    if whole.isascii():
        return size
    return size * (4 if any(bytes([lead]) in whole for lead in range(0xF0, 0xF5)) else 2)


def body_weight(body: bytes) -> int:
    """About how many bytes the values of a body would take, JSON or a stream of it; the quick way, never far too few.

    Most bodies are texts with a few brackets: then three looks tell enough. Only what seems to be full of values is
    weighed as :func:`json_weight` does.
    """
    events = body.count(b"\n") * _EVENT_LINE if body[:1] in b":deir" else 0
    return JsonSigns().more(body, 0, len(body)).weight(body, events)


def quick_weight(body: bytes) -> int:
    """The same where brackets and commas within strings count as well."""
    return JsonSigns().more(body, 0, len(body)).quick_weight


class JsonSigns(NamedTuple):
    """How often those signs stand in a body that tell of values."""

    commas: int = 0
    objects: int = 0
    lists: int = 0

    def more(self, body: bytes, start: int, end: int) -> "JsonSigns":
        """With those of that part."""
        return JsonSigns(
            self.commas + body.count(b",", start, end),
            self.objects + body.count(b"{", start, end),
            self.lists + body.count(b"[", start, end),
        )

    @property
    def quick_weight(self) -> int:
        return self.commas * _MEMBER + self.objects * _OBJECT + self.lists * _LIST

    def weight(self, body: bytes, events: int = 0) -> int:
        """What the values of that body take, of which these are the signs; and its events besides."""
        weight = self.quick_weight + events
        return weight if weight <= len(body) * _DENSE else _without_strings(body, 0, len(body)) + events


def is_dense(weight: int, size: int) -> bool:
    """Whether values of that weight are far more than the text of that size that they are written in."""
    return weight > size * _DENSE


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
