"""A recorded answer in the names of the run that gets it.

An agent that runs in another folder must not be sent to the recorded one, and one that calls its session by another id
must be answered by that id. Ids and folders are replaced where they stand alone, in streams also where a model said
one in pieces. Binary answers (pictures, AWS event streams, WebSocket frames) and long ones stay as they are.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate

from rewind.model.http import Chunk, HttpResponse, without_headers
from rewind.wire.encoding import UndecodableBody, decode
from rewind.wire.json_strings import DATA_LINE, DocumentReader, StringPlace, is_event_stream, is_lines

_Edit = tuple[int, int, bytes]
_LINE = re.compile(rb"([^\r\n]++)")


def translated(response: HttpResponse, table: Mapping[str, str]) -> HttpResponse:
    """The answer with the left side of ``table`` replaced by the right; the same object where nothing is to be done."""
    if not table or response.long_body is not None or response.head.status == 101 or not response.body:
        return response
    encoding = response.head.header("content-encoding")
    try:
        plain = decode(response.body, encoding)
    except UndecodableBody:
        return response
    wanted = re.compile(b"|".join(rb"(?<![A-Za-z0-9])%b(?![A-Za-z0-9_])" % re.escape(old.encode()) for old in table))
    media = (response.head.header("content-type") or "").lower()
    new = {old.encode(): name.encode() for old, name in table.items()}
    if is_event_stream(media, plain[:16]):
        edits = _in_documents(plain, wanted, new, DATA_LINE)
    elif is_lines(media):
        edits = _in_documents(plain, wanted, new, _LINE)
    else:
        edits = [(found.start(), found.end(), new[found[0]]) for found in wanted.finditer(plain)]
    return _edited(response, plain, edits, is_encoded=bool(encoding)) if edits else response


def _in_documents(
    plain: bytes, wanted: re.Pattern[bytes], new: Mapping[bytes, bytes], line: re.Pattern[bytes]
) -> list[_Edit]:
    """In the strings of the documents; where one goes on in the next document, in the whole that they are."""
    texts: dict[StringPlace, list[tuple[int, bytes]]] = defaultdict(list)
    reader = DocumentReader()
    edits: list[_Edit] = []
    for document in line.finditer(plain):
        begin = document.start(1)
        if document[1][:1] not in b"{[":
            edits += _in_text([(begin, document[1])], wanted, new)
            continue
        places, strings, start = reader.strings(document[1])
        for number, (alternatives, raw) in enumerate(zip(places, strings, strict=True), 1):
            if raw:
                texts[alternatives[0]].append((begin + start(number), raw))
    for pieces in texts.values():
        if len({raw for _, raw in pieces}) == 1:  # an id that every document repeats: no text
            for piece in pieces:
                edits += _in_text([piece], wanted, new)
        else:
            edits += _in_text(pieces, wanted, new)
    return sorted(edits)


def _in_text(pieces: list[tuple[int, bytes]], wanted: re.Pattern[bytes], new: Mapping[bytes, bytes]) -> Iterator[_Edit]:
    """A name that begins in one piece and ends in a later one is said in the first, and taken out of the rest."""
    starts = [0, *accumulate(len(raw) for _, raw in pieces)]
    for found in wanted.finditer(b"".join(raw for _, raw in pieces)):
        said = new[found[0]]
        for number in range(bisect_right(starts, found.start()) - 1, bisect_right(starts, found.end() - 1)):
            offset, raw = pieces[number]
            begin = max(found.start() - starts[number], 0)
            yield offset + begin, offset + min(found.end() - starts[number], len(raw)), said
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
    """Where the pieces of the answer end now. One that ended within a name ends behind it."""
    shift, at = 0, 0
    for end in ends:
        while at < len(edits) and edits[at][0] < end:
            begin, stop, said = edits[at]
            shift += len(said) - (stop - begin)
            end = max(end, stop)
            at += 1
        yield end + shift
