"""The strings of a JSON document and their places, found quickly in streams where each document is like the last.

A place is made of the names on the way to a string and the ``type`` of the document. Where documents count something
(``index``), a string has two places: one with every index on the way that is not zero, as parallel answers come
interleaved; and one without, as an answer goes on in its next block. Positions in arrays are not part of a place:
tokens listed in an array are one text, and a part may be the second of one event and the first of the next.

Reading a document name by name costs more than all the rest of redaction. So the second time a document of some shape
comes, an expression is made of it, with a group for each string; the documents of a stream have few shapes.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from rewind.dataclass import dataclass

StringPlace = tuple[bytes, ...]
Strings = tuple[Sequence[tuple[StringPlace, ...]], Sequence[bytes], Callable[[int], int]]
"""The places of each, what is written between the quotes, and where each (counted from 1) begins."""

_DEEPEST = 64
"""What is nested deeper counts as one place, or hostile nesting would cost a walk for every string."""
_MOST_SHAPES = 8
_LONGEST_SHAPE = 4096
_MOST_SEEN = 64

_CONTENT = rb'([^"\\]*+(?:\\.[^"\\]*+)*+)'
_NUMBER = rb"-?[0-9][0-9.eE+-]*+"
# One match takes a name with its string, a name with the bracket it opens, or one of these alone. The last branch eats
# the rest of a line whose quotes do not pair, or the search would begin again at each quote.
_TOKEN = re.compile(
    rb'"%b"(?:(\s*+:\s*+)(?:"%b"|([{\[])|(%b))?+)?+|([{\[])|([}\]]++)|".*+' % (_CONTENT, _CONTENT, _NUMBER), re.DOTALL
)
_GAP = re.compile(rb"\0([SN])")

# The byte before the first line may be the last of a byte order mark.
DATA_LINE = re.compile(rb"(?<![^\r\n\xbf])data: ?+([^\r\n]++)")
"""Where the documents of an event stream stand."""
ESCAPE_OR_PLAIN = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|[^\\]++", re.DOTALL)
"""Takes a JSON string apart: one escape (two for a surrogate pair), or what stands between escapes."""
_LINE_TYPES = ("ndjson", "jsonl", "json-lines", "json-seq", "stream+json", "jsonlines")


def is_event_stream(media: str, beginning: bytes) -> bool:
    """Whether a body is server-sent events, by its content type or by how it begins."""
    return "event-stream" in media or beginning.startswith((b"data:", b"event:"))


def is_lines(media: str) -> bool:
    """Whether a content type says that every line is a document."""
    return any(name in media for name in _LINE_TYPES)


def resolved(raw: bytes) -> str | None:
    """The text that a JSON string stands for; ``None`` where it is damaged."""
    try:
        text: str = json.loads(b'"' + raw + b'"', strict=False)
    except ValueError:
        return None
    return text


@dataclass(slots=True)
class _Frame:
    """An open object or array."""

    path: bytes
    outer: "_Frame | None"
    depth: int
    index: bytes = b""


@dataclass(frozen=True, slots=True)
class _Shape:
    expression: re.Pattern[bytes]
    places: tuple[tuple[StringPlace, ...], ...]


class DocumentReader:
    """Reads the documents of one stream; what is not JSON gives some strings or none, and never an error."""

    def __init__(self) -> None:
        self._shapes: list[_Shape] = []
        self._seen: set[bytes] = set()

    def strings(self, document: bytes) -> Strings:
        """Every string that is a value."""
        for number, shape in enumerate(self._shapes):
            found = shape.expression.fullmatch(document)
            if found:
                if number:
                    self._shapes.insert(0, self._shapes.pop(number))
                return shape.places, found.groups(), found.start
        return self._read(document)

    def _read(self, document: bytes) -> Strings:
        root = frame = _Frame(b"", None, 0)
        deeper = 0
        kind = b""
        indexed = False
        strings: list[tuple[_Frame, bytes]] = []
        written: list[bytes] = []
        starts = [0]
        outline: list[bytes] = []
        drawn = 0
        for token in _TOKEN.finditer(document):
            gap, mark = 0, b"\0S"
            match token.lastindex:
                case 3:
                    if token[1] == b"type" and frame.outer is root:
                        kind = token[3]
                    else:
                        strings.append((frame, token[1]))
                        written.append(token[3])
                        starts.append(token.start(3))
                        gap = 3
                case 1:
                    strings.append((frame, b""))
                    written.append(token[1])
                    starts.append(token.start(1))
                    gap = 1
                case 4 if frame.depth < _DEEPEST:
                    frame = _Frame(frame.path + b"." + token[1], frame, frame.depth + 1)
                case 6 if frame.depth < _DEEPEST:
                    frame = _Frame(frame.path, frame, frame.depth + 1)
                case 4 | 6:
                    deeper += 1
                case 5:
                    if not token[1].endswith(b"index"):
                        gap, mark = 5, b"\0N"
                    else:
                        indexed = True
                        frame.index = token[5] if token[5] != b"0" else b""
                case 7:
                    for _ in token[7]:
                        if deeper:
                            deeper -= 1
                        else:
                            frame = frame.outer or frame
            if gap:
                outline += (document[drawn : token.start(gap)], mark)
                drawn = token.end(gap)
        places = tuple(_places((kind, frame.path, name), frame, indexed) for frame, name in strings)
        outline.append(document[drawn:])
        self._remember(document, b"".join(outline), places)
        return places, written, starts.__getitem__

    def _remember(self, document: bytes, outline: bytes, places: tuple[tuple[StringPlace, ...], ...]) -> None:
        if len(outline) > _LONGEST_SHAPE or b"\0" in document:
            return
        if outline in self._seen:
            self._shapes.insert(0, _Shape(_expression(outline), places))
            del self._shapes[_MOST_SHAPES:]
        elif len(self._seen) < _MOST_SEEN:
            self._seen.add(outline)


def _places(place: StringPlace, frame: _Frame | None, indexed: bool) -> tuple[StringPlace, ...]:
    if not indexed:
        return (place,)
    exact = list(place)
    while frame is not None:
        if frame.index:
            exact.append(frame.path + b"#" + frame.index)
        frame = frame.outer
    return tuple(exact), (*place, b"*")


@lru_cache(maxsize=256)
def _expression(outline: bytes) -> re.Pattern[bytes]:
    """Shared by all streams: an API has few shapes, and making an expression takes a millisecond."""
    # Constants and the letters of the gaps between them take turns.
    pieces = _GAP.split(outline)
    return re.compile(
        b"".join(
            re.escape(piece) if number % 2 == 0 else _CONTENT if piece == b"S" else _NUMBER
            for number, piece in enumerate(pieces)
        ),
        re.DOTALL,
    )
