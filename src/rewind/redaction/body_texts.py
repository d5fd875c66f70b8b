"""The texts of a body, each with the bytes it is written in: what is looked for is looked for in what a reader reads.

JSON is read string by string, with its escapes resolved. In a stream of documents the strings that have the same place
in consecutive ones (see ``json_strings``) are one text, as a model says a key in pieces. All else is one text as it is.
The body must be plain: its content encoding taken off.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain

from rewind.dataclass import dataclass
from rewind.wire.growing_json import REQUESTS
from rewind.wire.json_strings import (
    DATA_LINE,
    ESCAPE_OR_PLAIN,
    DocumentReader,
    StringPlace,
    is_event_stream,
    is_lines,
    resolved,
)

Bytes = tuple[int, int]
"""Where some bytes of a body begin and end."""

_CONTENT = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
# One match takes a member's name with its string, another string, or a number; the last branch eats what does not pair.
_TOKEN = re.compile(rb'"(%b)"(?:\s*+:(?:\s*+"(%b)")?+)?+|(-?[0-9][0-9.eE+-]*+)|".*+' % (_CONTENT, _CONTENT), re.DOTALL)
_STEP = re.compile(rb'"(%b)"(\s*+:)?+|([{\[])|([}\]])|(,)|".*+' % _CONTENT, re.DOTALL)
_LINE = re.compile(rb"[^\r\n]++")
_DEEPEST = 400
_SAME_AGAIN = 8
"""A string this long that comes twice in a row is not part of a longer one, but a name that each document repeats."""


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A string as it is written in the body."""

    offset: int
    raw: bytes
    text: str
    escaped: bool = True
    """Whether backslashes are JSON's."""

    def written(self, start: int, end: int) -> Bytes:
        """Where these characters of the text stand in the body."""
        if len(self.raw) == len(self.text):
            return self.offset + start, self.offset + end
        if not self.escaped:
            before = len(self.text[:start].encode("utf-8", "surrogateescape"))
            inside = len(self.text[start:end].encode("utf-8", "surrogateescape"))
            return self.offset + before, self.offset + before + inside
        spans = _spans(self.raw)
        if len(spans) != len(self.text):  # neither JSON nor UTF-8 as it should be: all of it, rather than too little
            return self.offset, self.offset + len(self.raw)
        return self.offset + spans[start][0], self.offset + spans[end - 1][1]


@dataclass(frozen=True, slots=True)
class TextInBody:
    """A text of a body."""

    text: str
    pieces: tuple[TextPiece, ...]
    name: str = ""
    """Of the member that holds it."""
    joined: bool = False
    number: bool = False

    @property
    def offset(self) -> int:
        return self.pieces[0].offset

    def spans(self, start: int, end: int) -> list[Bytes]:
        """Where these characters stand in the body, piece by piece."""
        spans, begin = [], 0
        for piece in self.pieces:
            first, last = max(start - begin, 0), min(end - begin, len(piece.text))
            if first < last:
                spans.append(piece.written(first, last))
            begin += len(piece.text)
        return spans


def texts_of(plain: bytes, media: str, *, shortest: int = 0) -> Iterator[TextInBody]:
    """Every text of a plain body of that content type; never raises.

    Of one JSON document, numbers and texts of less than ``shortest`` bytes may be left out, which saves most of them.
    """
    first = plain.lstrip()[:6]
    if is_event_stream(media, first):
        yield from _events(plain)
    elif is_lines(media):
        yield from _lines(plain)
    elif _is_document(plain, first):
        yield from document_texts(plain, 0, len(plain), shortest)
    elif first[:1] == b"{" and b"\n" in plain.strip():
        # Lines of documents that nobody declared: a WebSocket's frames, and some servers' streams.
        yield from _lines(plain)
    elif plain:
        yield TextInBody(_text(plain), (TextPiece(0, plain, _text(plain), escaped=False),))


def is_one_document(plain: bytes, media: str) -> bool:
    """Whether a plain body of that content type is a JSON document, and no stream of them."""
    first = plain.lstrip()[:6]
    return not is_event_stream(media, first) and not is_lines(media) and _is_document(plain, first)


def _is_document(plain: bytes, first: bytes) -> bool:
    return first[:1] in (b"{", b"[", b'"') and _is_json(plain)


def paths_of(plain: bytes, texts: Sequence[TextInBody]) -> dict[int, str]:
    """By where each text begins, where it stands, as ``messages[2].content``; one walk through each document."""
    if not texts:
        return {}
    paths: dict[int, str] = {}
    documents: dict[int, set[int]] = {}
    whole = _is_json(plain)
    for written in texts:
        if written.joined:
            paths[written.offset] = f"{written.name} (joined)" if written.name else "(joined)"
            continue
        start = plain.rfind(b"\n", 0, written.offset) + 1
        line_is_document = plain[start : start + 5] == b"data:" or not whole
        begin = plain.find(b"{", start, written.offset) if line_is_document else 0
        if begin >= 0:
            documents.setdefault(begin, set()).add(written.offset)
    for begin, targets in documents.items():
        paths |= zip(sorted(targets), _walked(plain, begin, sorted(targets)), strict=True)
    return paths


def _walked(plain: bytes, begin: int, targets: list[int]) -> Iterator[str]:
    """The path at each of these places, which are in order."""
    path: list[str | int] = []
    left = deque(targets)
    for token in _STEP.finditer(plain, begin):
        while left and token.start() >= left[0]:
            left.popleft()
            yield _shown(path)
        if not left:
            return
        if token[3]:
            path.append("" if token[3] == b"{" else 0)
            if len(path) > _DEEPEST:
                yield from ("…" for _ in left)
                return
        elif token[4] and path:
            path.pop()
        elif token[5] and path and isinstance(path[-1], int):
            path[-1] += 1
        elif token[2] and path:
            path[-1] = _resolved(token[1])
    yield from (_shown(path) for _ in left)


def _shown(path: list[str | int]) -> str:
    shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return shown.removeprefix(".")


def _is_json(plain: bytes) -> bool:
    try:
        REQUESTS.loads(plain)
    except (ValueError, RecursionError):
        return False
    return True


def document_texts(plain: bytes, begin: int, end: int, shortest: int = 0) -> Iterator[TextInBody]:
    """The strings, names and numbers of one document; no text is longer than it is written."""
    for token in _TOKEN.finditer(plain, begin, end):
        if token[2] is not None:
            if len(token[1]) >= shortest:
                yield _single(token.start(1), token[1])
            if len(token[2]) >= shortest:
                yield _single(token.start(2), token[2], _resolved(token[1]))
        elif token[1] is not None:
            if len(token[1]) >= shortest:
                yield _single(token.start(1), token[1])
        elif token[3] is not None:
            if shortest:
                continue
            number = token[3].decode("ascii")
            yield TextInBody(number, (TextPiece(token.start(3), token[3], number),), number=True)
        else:  # a string that never ends: what came of it before the document was cut
            yield _single(token.start() + 1, token[0][1:])


def _single(offset: int, raw: bytes, name: str = "") -> TextInBody:
    text = _resolved(raw)
    return TextInBody(text, (TextPiece(offset, raw, text),), name)


def _events(plain: bytes) -> Iterator[TextInBody]:
    documents = [(match.start(1), match[1]) for match in DATA_LINE.finditer(plain)]
    yield from _joined(plain, documents)
    # Lines without data: comments and names of events may hold any text.
    known = {offset for offset, _ in documents}
    for match in _LINE.finditer(plain):
        inside = match.start() + 5
        if not {inside, inside + 1} & known:
            yield TextInBody(_text(match[0]), (TextPiece(match.start(), match[0], _text(match[0]), escaped=False),))


def _lines(plain: bytes) -> Iterator[TextInBody]:
    yield from _joined(plain, [(match.start(), match[0]) for match in _LINE.finditer(plain)])


def _joined(plain: bytes, documents: list[tuple[int, bytes]]) -> Iterator[TextInBody]:
    """Strings of the same place in order, as one text; names and numbers each for itself."""
    reader = DocumentReader()
    texts: dict[StringPlace, list[TextPiece]] = {}
    done: list[tuple[StringPlace, list[TextPiece]]] = []
    for offset, document in documents:
        if not document.lstrip().startswith((b"{", b"[", b'"')):
            places: list[StringPlace] = [(b"",)]
            pieces = [TextPiece(offset, document, _text(document), escaped=False)]
        else:
            found, strings, start = reader.strings(document)
            places = [alternatives[0] for alternatives in found]
            pieces = [TextPiece(offset + start(number), raw, _resolved(raw)) for number, raw in enumerate(strings, 1)]
            values = {piece.offset for piece in pieces}
            for written in document_texts(plain, offset, offset + len(document)):
                if written.number or written.offset not in values:
                    yield written
        for place, piece in zip(places, pieces, strict=True):
            before = texts.setdefault(place, [])
            if before and before[-1].text == piece.text and len(piece.text) >= _SAME_AGAIN:
                done.append((place, before))
                before = texts[place] = []
            before.append(piece)
    for place, pieces in chain(done, texts.items()):
        name = b".".join(part.strip(b".") for part in place[1:3] if part).decode("utf-8", "replace")
        member = name if len(pieces) > 1 else name.rpartition(".")[2]
        yield TextInBody("".join(piece.text for piece in pieces), tuple(pieces), member, joined=len(pieces) > 1)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _resolved(raw: bytes) -> str:
    """The text that a JSON string stands for; as it is written where it is damaged."""
    if b"\\" not in raw:
        return _text(raw)
    text = resolved(raw)
    return _text(raw) if text is None else text


@lru_cache(maxsize=2)  # a long text may hold many matches
def _spans(raw: bytes) -> list[Bytes]:
    """For each character of the resolved text, where it is written."""
    spans: list[Bytes] = []
    for unit in ESCAPE_OR_PLAIN.finditer(raw):
        at, end = unit.span()
        if raw.startswith(b"\\", at):
            spans += [(at, end)] * len(_resolved(unit[0]))
            continue
        for character in _text(unit[0]):
            size = len(character.encode("utf-8", "surrogateescape"))
            spans.append((at, at + size))
            at += size
    return spans
