"""A recorded answer in the names of the run that gets it.

An agent that runs in another folder must not be sent to the recorded one, and one that calls its session by another id
must be answered by that id. Ids and folders are replaced where they stand alone, in streams also where a model said
one in pieces. Binary answers (pictures, AWS event streams, WebSocket frames) and long ones stay as they are.
"""

import json
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate

from rewind.model.http import Chunk, HttpResponse, without_headers
from rewind.wire.encoding import UndecodableBody, decode
from rewind.wire.json_strings import DATA_LINE, DocumentReader, StringPlace, is_event_stream, is_lines

_Edit = tuple[int, int, bytes]
_LINE = re.compile(rb"([^\r\n]++)")
_RUN = re.compile(rb"\\(?:u[0-9A-Fa-f]{4}|.)|([A-Za-z0-9]++)", re.DOTALL)
"""A word; an escape of JSON is no part of one."""
_SLASH = "\\/"
"""As some writers of JSON have it."""
_OTHER_FOLDER = re.compile(rb"[.-]\w")
_TO_BE_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')


class AnswerNames:
    """What an answer has to say in place of what was recorded, found by the longest word in it."""

    def __init__(self, table: Mapping[str, str]) -> None:
        self._by_word: dict[bytes, list[tuple[int, bytes, bytes]]] = defaultdict(list)
        """Where the word stands in the name, the name, and the new one."""
        self._new: dict[bytes, bytes] = {}
        self.update(table)

    def __len__(self) -> int:
        return len(self._new)

    def __contains__(self, name: bytes) -> bool:
        return name in self._new

    def update(self, table: Mapping[str, str]) -> None:
        for old, new in table.items():
            if _TO_BE_ESCAPED.search(new.replace(_SLASH, "")):
                continue  # an answer is mostly JSON, often within JSON: no name is worth breaking that
            once = json.dumps(old)[1:-1]
            spellings = (old,) if _SLASH in new else (old, once, json.dumps(once)[1:-1])
            for name in dict.fromkeys(spellings):
                self._add(name.encode("utf-8", "surrogateescape"), new.encode("utf-8", "surrogateescape"))

    def _add(self, name: bytes, new: bytes) -> None:
        if name not in self._new:
            words = [(found.end(1) - found.start(1), found) for found in _RUN.finditer(name) if found[1]]
            if not words:
                return
            found = max(words, key=lambda word: word[0])[1]
            self._by_word[found[1]].append((found.start(1), name, new))
            self._new[name] = new

    def edits(self, text: bytes) -> list[_Edit]:
        """Where names stand alone, the longest of those that begin at one place."""
        if self._by_word.keys().isdisjoint(_RUN.findall(text)):
            return []
        found = []
        for word in _RUN.finditer(text):
            for offset, name, new in self._by_word.get(word[1], ()) if word[1] else ():
                start = word.start(1) - offset
                end = start + len(name)
                if start >= 0 and text.startswith(name, start) and _stands_alone(text, start, end):
                    found.append((start, -end, new))
        edits: list[_Edit] = []
        for start, minus_end, new in sorted(found):
            if not edits or edits[-1][1] <= start:
                edits.append((start, -minus_end, new))
        return edits


def _stands_alone(text: bytes, start: int, end: int) -> bool:
    after = text[end : end + 1]
    if after.isalnum() or after == b"_":
        return False
    if b"/" in text[start:end] and _OTHER_FOLDER.match(text, end):
        return False  # /work/a.bak and /work/a-old are other ones
    before = text[max(0, start - 6) : start]
    if not before[-1:].isalnum():
        return True
    return before[-2:-1] == b"\\" or (before[:2] == b"\\u" and len(before) == 6)


def translated(response: HttpResponse, names: AnswerNames) -> HttpResponse:
    """The answer in other names; the same object where nothing is to be done."""
    if not names or response.long_body is not None or response.head.status == 101 or not response.body:
        return response
    encoding = response.head.header("content-encoding")
    try:
        plain = decode(response.body, encoding)
    except UndecodableBody:
        return response
    media = (response.head.header("content-type") or "").lower()
    if is_event_stream(media, plain[:16]):
        edits = _in_documents(plain, names, DATA_LINE)
    elif is_lines(media):
        edits = _in_documents(plain, names, _LINE)
    else:
        edits = names.edits(plain)
    return _edited(response, plain, edits, is_encoded=bool(encoding)) if edits else response


def _in_documents(plain: bytes, names: AnswerNames, line: re.Pattern[bytes]) -> list[_Edit]:
    """In the strings of the documents; where one goes on in the next document, in the whole that they are."""
    texts: dict[StringPlace, list[tuple[int, bytes]]] = defaultdict(list)
    reader = DocumentReader()
    edits: list[_Edit] = []
    for document in line.finditer(plain):
        begin = document.start(1)
        if document[1][:1] not in b"{[":
            edits += _in_text([(begin, document[1])], names)
            continue
        places, strings, start = reader.strings(document[1])
        for number, (alternatives, raw) in enumerate(zip(places, strings, strict=True), 1):
            if raw:
                texts[alternatives[0]].append((begin + start(number), raw))
    for pieces in texts.values():
        times = Counter(raw for _, raw in pieces)
        fields = {raw for raw, count in times.items() if (count > 1 and raw in names) or count == len(pieces)}
        for piece in pieces:
            if piece[1] in fields:  # an id that documents repeat: no text
                edits += _in_text([piece], names)
        edits += _in_text([piece for piece in pieces if piece[1] not in fields], names)
    return sorted(edits)


def _in_text(pieces: list[tuple[int, bytes]], names: AnswerNames) -> Iterator[_Edit]:
    """A name that begins in one piece and ends in a later one is said in the first, and taken out of the rest."""
    starts = [0, *accumulate(len(raw) for _, raw in pieces)]
    for begun, ended, said in names.edits(b"".join(raw for _, raw in pieces)):
        for number in range(bisect_right(starts, begun) - 1, bisect_right(starts, ended - 1)):
            offset, raw = pieces[number]
            begin = max(begun - starts[number], 0)
            yield offset + begin, offset + min(ended - starts[number], len(raw)), said
            said = b""


def _edited(response: HttpResponse, plain: bytes, edits: list[_Edit], *, is_encoded: bool) -> HttpResponse:
    parts: list[bytes] = []
    at = 0
    for begin, end, said in edits:
        parts += (plain[at:begin], said)
        at = end
    body = b"".join((*parts, plain[at:]))
    head = response.head
    gone = ("content-encoding", "content-length") if is_encoded else ("content-length",)
    headers = without_headers(head.headers, gone)
    if head.header("content-length") is not None:
        headers = (*headers, ("Content-Length", str(len(body))))
    ends = list(accumulate(chunk.size for chunk in response.chunks))
    # Where a packed piece ended nobody knows: in proportion.
    ends = [end * len(body) // len(response.body) for end in ends] if is_encoded else list(_moved(ends, edits))
    ends[-1:] = [len(body)] if ends else []
    sizes = (end - start for start, end in zip([0, *ends], ends, strict=False))
    chunks = (Chunk(chunk.at, size) for chunk, size in zip(response.chunks, sizes, strict=True))
    return replace(
        response, head=replace(head, headers=headers), body=body, chunks=tuple(chunk for chunk in chunks if chunk.size)
    )


def _moved(ends: list[int], edits: list[_Edit]) -> Iterator[int]:
    """Where the pieces of the answer end now. One that ended within a name ends behind it, and so do all that did."""
    shift, at, reached = 0, 0, 0
    for end in ends:
        while at < len(edits) and edits[at][0] < end:
            begin, reached, said = edits[at]
            shift += len(said) - (reached - begin)
            at += 1
        yield max(end, reached) + shift
