"""Event streams as the WHATWG describes them, read from bytes cut anywhere.

Offsets count bytes of the whole stream, so an event can be found again in the recorded body.
"""

from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"


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


class SseParser:
    """Feed it bytes in any pieces; the events are the same. Never raises."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._searched = 0
        """How much of ``_pending`` is known to hold no line end, so that a long line is scanned once."""
        self._offset = 0
        self._first = True
        self._after_cr = False
        self._start: int | None = None
        self._event = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that these bytes complete."""
        self._pending += data
        events: list[SseEvent] = []
        view = self._pending
        position = 0
        while True:
            if self._after_cr and position < len(view):
                # The second half of a CRLF whose CR already ended the line. It belongs to what CR ended.
                self._after_cr = False
                if view[position] == 0x0A:
                    position += 1
                    self._searched = max(self._searched, position)
            end = _line_end(view, max(position, self._searched))
            if end < 0:
                break
            line_start = self._offset + position
            line = bytes(view[position:end])
            self._after_cr = view[end] == 0x0D
            position = end + 1
            self._searched = position
            event = self._line(line, line_start, self._offset + position)
            if event is not None:
                events.append(event)
        self._searched = len(view) - position
        self._offset += position
        del view[:position]
        return events

    def finish(self) -> list[SseEvent]:
        """The stream ended. An event without its blank line is not dispatched, as the standard says."""
        self._pending.clear()
        self._searched = 0
        self._data.clear()
        self._event = ""
        self._start = None
        return []

    def _line(self, line: bytes, start: int, end: int) -> SseEvent | None:
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch(end)
        if self._start is None:
            self._start = start
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value.decode("utf-8", "replace"))
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        return None

    def _dispatch(self, end: int) -> SseEvent | None:
        event = None
        if self._data and self._start is not None:
            event = SseEvent(self._event or "message", "\n".join(self._data), self._start, end)
        self._start = None
        self._event = ""
        self._data = []
        return event


def _line_end(view: bytearray, start: int) -> int:
    """Where the next CR or LF is, or -1."""
    newline = view.find(b"\n", start)
    carriage = view.find(b"\r", start, newline if newline >= 0 else len(view))
    return carriage if carriage >= 0 else newline


def parse_events(body: bytes) -> list[SseEvent]:
    """The events of a whole stream."""
    parser = SseParser()
    return parser.feed(body) + parser.finish()
