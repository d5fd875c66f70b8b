"""Event streams as the WHATWG describes them.

Offsets count bytes of the whole stream, so an event can be found again in the recorded body.
"""

import re

from rewind.dataclass import dataclass

_BOM = b"\xef\xbb\xbf"
_LINE = re.compile(rb"([^\r\n]*+)(?:\r\n|\r|\n)")
"""A line that has its end."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One dispatched event."""

    event: str
    """``message`` where the stream names none."""
    data: str
    start: int
    """Offset of its first line."""
    end: int
    """Offset after the blank line that dispatched it."""


def parse_events(body: bytes) -> list[SseEvent]:
    """The events of a whole stream. Never raises. An event without its blank line is not one, as the standard says."""
    events: list[SseEvent] = []
    name, data, start = "", list[str](), None
    last = max(body.rfind(b"\n"), body.rfind(b"\r")) + 1  # a long line without its end would be tried at every byte
    for found in _LINE.finditer(body, 0, last):
        line = found[1] if found.start() else found[1].removeprefix(_BOM)
        if not line:
            if data and start is not None:
                events.append(SseEvent(name or "message", "\n".join(data), start, found.end()))
            name, data, start = "", [], None
            continue
        start = found.start() if start is None else start
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
        elif field == b"event":
            name = value.removeprefix(b" ").decode("utf-8", "replace")
    return events
