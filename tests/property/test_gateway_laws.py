"""Laws of the gateway: how bytes are cut never matters, and what was recorded is what is played."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rewind.gateway.http1 import BadMessage, IncomingRequest, IncomingResponse, find_head_end, rewrite_head
from rewind.gateway.playout import framed
from rewind.gateway.targets import HOP_HEADERS
from rewind.model.http import HttpResponse
from rewind.model.step import Ending
from rewind.runs.step_writer import ChunkDraft

TOKEN = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ-", min_size=1, max_size=12)
VALUE = st.text(st.characters(min_codepoint=33, max_codepoint=255, exclude_characters="\x7f"), max_size=20).map(
    str.strip
)
FIELDS = st.lists(st.tuples(TOKEN.map(lambda name: f"X-{name}"), VALUE), max_size=6)
CHUNKS = st.lists(st.binary(min_size=1, max_size=40), max_size=6)
CUTS = st.lists(st.integers(min_value=0, max_value=2000), max_size=12)


def cut(wire: bytes, places: list[int]) -> list[bytes]:
    borders = sorted({0, len(wire), *(place % (len(wire) + 1) for place in places)})
    return [wire[start:end] for start, end in pairwise(borders)]


def lines(fields: list[tuple[str, str]]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in fields).encode("latin-1")


def chunked(chunks: list[bytes], trailers: list[tuple[str, str]]) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in chunks) + b"0\r\n" + lines(trailers) + b"\r\n"


@st.composite
def request_wires(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A request on the wire, and its entity."""
    fields, chunks = draw(FIELDS), draw(CHUNKS)
    head = b"POST /v1/x HTTP/1.1\r\nHost: h\r\n" + lines(fields)
    body = b"".join(chunks)
    if draw(st.booleans()):
        return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(chunks, draw(FIELDS)), body
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body, body


@given(wires=st.lists(request_wires(), min_size=1, max_size=3), places=CUTS)
def test_pipelined_requests_are_the_same_requests_however_they_are_cut(
    wires: list[tuple[bytes, bytes]], places: list[int]
) -> None:
    wire = b"".join(raw for raw, _ in wires)
    buffer, found = bytearray(), []
    current: IncomingRequest | None = None
    raw = b""
    for piece in cut(wire, places):
        buffer += piece
        while buffer:
            if current is None:
                end = find_head_end(buffer)
                if end < 0:
                    break
                current, raw = IncomingRequest(bytes(buffer[:end])), bytes(buffer[:end])
                del buffer[:end]
            if not current.complete and buffer:
                taken = current.consume(bytes(buffer))
                raw += bytes(buffer[:taken])
                del buffer[:taken]
            if current.complete:
                found.append((raw, current.take_body()))
                current = None
    assert found == wires


@given(
    fields=FIELDS, chunks=CHUNKS, trailers=FIELDS, places=CUTS, framing=st.sampled_from(["length", "chunked", "close"])
)
def test_an_answer_is_the_same_answer_however_it_is_cut_and_is_played_as_it_came(
    fields: list[tuple[str, str]], chunks: list[bytes], trailers: list[tuple[str, str]], places: list[int], framing: str
) -> None:
    body = b"".join(chunks)
    head = b"HTTP/1.1 200 Fine\r\n" + lines(fields)
    match framing:
        case "length":
            wire = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        case "chunked":
            wire = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(chunks, trailers)
        case _:
            wire = head + b"Connection: close\r\n\r\n" + body
    response, draft, entity = IncomingResponse("POST"), ChunkDraft(), b""
    for at, piece in enumerate(cut(wire, places)):
        response.feed(piece)
        for data, ends_chunk in response.take_pieces():
            draft.piece(at, len(data), ends_chunk=ends_chunk)
            entity += data
    assert response.complete is (framing != "close")
    assert response.ends_with_connection() is (framing == "close")
    assert entity == body
    assert response.head is not None
    sizes = [chunk.size for chunk in draft.finish(0)]
    assert sum(sizes) == draft.size == len(body)
    if framing == "chunked":
        assert sizes == [len(chunk) for chunk in chunks], "transfer chunks do not depend on the reads"
    recorded = HttpResponse(head=response.head, body=body, chunks=tuple(draft.chunks), trailers=response.trailers)
    start, pieces, tail, _ = framed(recorded, "POST", Ending.COMPLETE)
    assert start + b"".join(data for _, data in pieces) + tail == wire


@given(fields=FIELDS, target=st.text("abc/?=&%1", max_size=20))
def test_a_rewritten_head_differs_in_its_request_line_only(fields: list[tuple[str, str]], target: str) -> None:
    raw = b"GET http://h/old HTTP/1.1\r\nHost: h\r\n" + lines(fields) + b"\r\n"
    rewritten = rewrite_head(raw, "/" + target, drop=HOP_HEADERS)
    assert rewritten.split(b"\r\n")[0] == b"GET /" + target.encode() + b" HTTP/1.1"
    assert rewritten.split(b"\r\n")[1:] == raw.split(b"\r\n")[1:]


@given(head=st.binary(max_size=200), reads=st.lists(st.binary(max_size=60), max_size=4))
def test_no_bytes_at_all_make_the_readers_stumble(head: bytes, reads: list[bytes]) -> None:
    """Whatever a client or an upstream sends, it is a message or a BadMessage."""
    try:
        request = IncomingRequest(head + b"\r\n\r\n")
        for data in reads:
            assert 0 <= request.consume(data) <= len(data)
    except BadMessage:
        pass
    response = IncomingResponse("POST")
    try:
        for data in (head, *reads):
            response.feed(data)
    except BadMessage:
        pass
