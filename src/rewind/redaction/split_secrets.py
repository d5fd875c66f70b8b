"""Secrets that a model says in pieces: one event ends with "sk-pr", the next goes on with "oj-…".

A stream of JSON documents, one a line (SSE or NDJSON), is read without knowing whose it is. Strings that have the
same place (see ``json_strings``) in consecutive documents are read as one text.

Of each text only the tail that could be the beginning of a secret is kept, with the bytes it came from. When the
secret is complete, its bytes are replaced in every document by their slice of one placeholder. Text is compared after
JSON's escapes are resolved, and replaced as it is written, so every line keeps its length.

While six or more characters could be a secret, the bytes from there on are held back. Shorter beginnings are not
held, as they are everywhere; should one turn out to be a secret, it is corrected afterwards (``late``).
"""

import re
from typing import NamedTuple

from rewind.redaction.scanner import Scanner
from rewind.redaction.values import placeholder
from rewind.wire.json_strings import DATA_LINE, ESCAPE_OR_PLAIN, DocumentReader, StringPlace, resolved

HELD_FROM = 6
"""So many characters of a secret in a row are never given out."""

_LONGEST_LINE = 1024 * 1024
_LONGEST_HOLD = 256 * 1024
_MOST_TRACKS = 1024

_MOST_CALM = 1024
_MOST_REPLACED = 1024
_LONGEST_CALM = 64

_LINE = re.compile(rb"([^\r\n]++)")
_LINE_END = re.compile(rb"[\r\n]")
_NO_PLACE: StringPlace = (b"",)
"""Of events that are not JSON."""


class _Piece(NamedTuple):
    """A string of one document."""

    offset: int
    """Where it is written, counted from the start of the stream."""
    raw: bytes
    text: bytes

    def written(self, start: int, end: int) -> tuple[int, int]:
        """Where these bytes of the text are written, counted from the start of the piece."""
        if self.raw == self.text:
            return start, end
        spans = _spans(self.raw)
        return spans[start][0], spans[end - 1][1]


_Pieces = tuple[tuple[int, _Piece], ...]


class _Track(NamedTuple):
    """The end of a text, which could be the beginning of a secret."""

    text: bytes
    pieces: _Pieces
    """Each with where its text begins in ``text``; the first may begin before it."""


class JoinedLines:
    """Holds back and replaces what is a secret only when strings of several documents are joined."""

    def __init__(self, scanner: Scanner, *, events: bool) -> None:
        self._scanner = scanner
        self._reader = DocumentReader()
        self._line = DATA_LINE if events else _LINE
        """Documents stand in ``data:`` lines, or every line is one."""
        self._held = b""
        self._base = 0
        """Offset of the first byte that is not given out yet."""
        self._read = 0
        """Offset up to which lines have been read."""
        self._skipping = False
        """Within a line too long to be held."""
        self._calm: set[bytes] = set()
        """Strings after which nothing is pending; most strings of a stream are the same in every document."""
        self._tracks: dict[StringPlace, _Track] = {}
        self._edits: list[tuple[int, bytes]] = []
        self._replaced: set[tuple[int, int]] = set()
        """Where the latest hits begin."""
        self.late: list[tuple[int, bytes]] = []
        """Offset and bytes of corrections to what was given out already."""
        self.hits = 0

    def feed(self, data: bytes) -> bytes:
        held = self._held + data if self._held else data
        end = self._base + len(held)
        if self._skipping:
            found = _LINE_END.search(held)
            self._read = self._base + found.end() if found else end
            self._skipping = found is None
        whole = self._base + max(held.rfind(b"\n"), held.rfind(b"\r")) + 1
        if whole > self._read:
            self._lines(held, whole)
        elif end - self._read > _LONGEST_LINE:
            self._read = end
            self._skipping = True
        return self._give(held, self._first_held())

    def finish(self) -> bytes:
        end = self._base + len(self._held)
        if self._read < end:
            self._lines(self._held, end)
        for track in self._tracks.values():
            for span in self._scanner.end(track.text):
                self._replace(track.pieces, *span)
        self._tracks.clear()
        return self._give(self._held, end)

    def _first_held(self) -> int:
        """Offset from which bytes must wait."""
        first = self._read
        for track in self._tracks.values():
            if len(track.text) < HELD_FROM:
                continue
            for begin, piece in track.pieces:
                at = piece.offset + (piece.written(-begin, 1 - begin)[0] if begin < 0 else 0)
                if at >= self._base:
                    first = min(first, at)
                    break
        return first if self._read - first <= _LONGEST_HOLD else self._read

    def _give(self, held: bytes, until: int) -> bytes:
        if self._edits:
            changed = bytearray(held)
            for offset, data in self._edits:
                at = offset - self._base
                if at < 0:
                    self.late.append((offset, data[: min(len(data), -at)]))
                    data, at = data[-at:], 0
                changed[at : at + len(data)] = data
            self._edits.clear()
            held = bytes(changed)
        size = until - self._base
        self._base = until
        if size == len(held):
            self._held = b""
            return held
        self._held = held[size:]
        return held[:size]

    def _lines(self, held: bytes, until: int) -> None:
        """Read the lines up to that offset."""
        for line in self._line.finditer(held, self._read - self._base, until - self._base):
            document = line[1]
            offset = self._base + line.start(1)
            if self._line is DATA_LINE and not document.startswith((b"{", b"[", b'"')):
                self._string(_NO_PLACE, _Piece(offset, document, document))
                continue
            places, strings, start = self._reader.strings(document)
            if not self._tracks and self._calm.issuperset(strings):
                continue
            for number, (alternatives, raw) in enumerate(zip(places, strings, strict=True), 1):
                if raw in self._calm and self._tracks.keys().isdisjoint(alternatives):
                    continue
                text = _resolved(raw) if b"\\" in raw else raw
                suspicious = text is not raw or self._scanner.pending(raw)
                piece = _Piece(offset + start(number), raw, text)
                for place in alternatives:
                    if suspicious or place in self._tracks:
                        self._string(place, piece)
                if not suspicious and len(self._calm) < _MOST_CALM and len(raw) <= _LONGEST_CALM:
                    self._calm.add(raw)
        self._read = until

    def _string(self, place: StringPlace, piece: _Piece) -> None:
        """The text at that place goes on with this piece."""
        track = self._tracks.pop(place, None)
        if track is not None and len(track.text) < 3 and self._scanner.dead(track.text, piece.text):
            track = None
        text = piece.text
        pieces: _Pieces = ((0, piece),)
        if track is not None:
            text = track.text + piece.text
            pieces = (*track.pieces, (len(track.text), piece))
        hits, settled = self._scanner.cut(text)
        for start, end in hits:
            self._replace(pieces, start, end)
        if settled < len(text):
            rest = tuple((begin - settled, piece) for begin, piece in pieces if begin + len(piece.text) > settled)
            if len(self._tracks) >= _MOST_TRACKS:
                del self._tracks[next(iter(self._tracks))]
            self._tracks[place] = _Track(text[settled:], rest)

    def _replace(self, pieces: _Pieces, start: int, end: int) -> None:
        """Put slices of one placeholder in the place of this stretch of the joined text."""
        spans: list[tuple[int, int]] = []
        for begin, piece in pieces:
            first, last = max(start - begin, 0), min(end - begin, len(piece.text))
            if first < last:
                low, high = piece.written(first, last)
                spans.append((piece.offset + low, piece.offset + high))
        if spans[0] in self._replaced:
            return  # found at the string's other place before
        if len(self._replaced) >= _MOST_REPLACED:
            self._replaced.clear()
        self._replaced.add(spans[0])
        cover = placeholder(sum(high - low for low, high in spans)).encode()
        for low, high in spans:
            self._edits.append((low, cover[: high - low]))
            cover = cover[high - low :]
        self.hits += 1


def _resolved(raw: bytes) -> bytes:
    """The text that a JSON string stands for; the bytes themselves where it is damaged."""
    text = resolved(raw)
    return raw if text is None else text.encode("utf-8", "surrogatepass")


def _spans(raw: bytes) -> list[tuple[int, int]]:
    """For each byte of the resolved text, where it is written."""
    spans: list[tuple[int, int]] = []
    for unit in ESCAPE_OR_PLAIN.finditer(raw):
        start, end = unit.span()
        if raw.startswith(b"\\", start):
            spans += [(start, end)] * len(_resolved(unit[0]))
        else:
            spans += ((at, at + 1) for at in range(start, end))
    return spans
