"""Send a recorded answer: the same bytes in the same pieces, at once or at the recorded pace."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from enum import Enum, auto

from rewind.gateway.exchange import Play
from rewind.gateway.http1 import write_head
from rewind.model.http import Chunk, HttpResponse, RequestHead, without_headers
from rewind.model.step import Ending
from rewind.wire.frame_log import BadFrameLog, read_frame_log

Piece = tuple[int, bytes]
"""When some bytes of a body came, and the bytes."""


def framed(response: HttpResponse, method: str, ending: Ending) -> tuple[bytes, Iterable[Piece], bytes, bool]:
    """Head, body pieces with their times, tail, and whether the connection stays usable afterwards.

    The framing is the recorded one: transfer chunks where there were chunks, a length where there was a length.
    """
    head, form, tail, reusable = _framing(response, method, ending)
    if form is _BodyForm.NONE:
        return head, [], tail, reusable
    pieces = _pieces(response)
    if form is _BodyForm.CHUNKED:
        pieces = _as_chunks(pieces)
    return head, pieces if response.long_body is not None else list(pieces), tail, reusable


class _BodyForm(Enum):
    """How a body stands on the wire."""

    NONE = auto()
    PLAIN = auto()
    CHUNKED = auto()


def _framing(response: HttpResponse, method: str, ending: Ending) -> tuple[bytes, _BodyForm, bytes, bool]:
    head = response.head
    coding, connection, lengths = "", "", []
    for name, value in head.headers:
        lowered = name.lower()
        if lowered == "content-length":
            lengths.append(value)
        elif lowered == "transfer-encoding":
            coding = coding or value.lower()
        elif lowered == "connection":
            connection = connection or value.lower()
    keeps = head.version == "1.1" and "close" not in connection
    if method == "HEAD" or head.status in (204, 304) or head.status < 200:
        return write_head(head, head.headers), _BodyForm.NONE, b"", keeps
    whole = ending is Ending.COMPLETE
    if coding and coding.rpartition(",")[2].strip() == "chunked":
        trailers = "".join(f"{name}: {value}\r\n" for name, value in response.trailers)
        tail = b"0\r\n" + trailers.encode("latin-1") + b"\r\n" if whole else b""
        # Of a list of codings some clients see only that the end of the connection must be the end of the body.
        reusable = whole and keeps and coding.strip() == "chunked"
        return write_head(head, head.headers), _BodyForm.CHUNKED, tail, reusable
    if not lengths:
        return write_head(head, head.headers), _BodyForm.PLAIN, b"", False
    headers, size = head.headers, str(response.size)
    if whole and (lengths[0] != size or len(set(lengths)) > 1):
        # A compressed body was rewritten because a secret was inside; its length is not the recorded one.
        headers = (*without_headers(headers, ("content-length",)), ("Content-Length", size))
    return write_head(head, headers), _BodyForm.PLAIN, b"", whole and keeps


def _as_chunks(pieces: Iterable[Piece]) -> Iterator[Piece]:
    return ((at, b"%x\r\n%b\r\n" % (len(data), data)) for at, data in pieces if data)


def why_unplayable(asked: RequestHead, response: HttpResponse) -> str | None:
    """Why a client that was sent this answer would wait for ever, or read another one; ``None`` if all is well.

    No gateway of ours records such an answer, but a file may hold one.
    """
    head = response.head
    if head.status == 101:
        if asked.header("upgrade") is None:
            return "its status is 101, and the request did not ask for another protocol"
        try:
            read_frame_log(response.body)
        except BadFrameLog as problem:
            return f"its status is 101, and its body is not the log of a WebSocket: {problem}"
    elif not 200 <= head.status <= 999:
        return f"its status is {head.status}, which is not the end of an exchange"
    text = head.version + head.reason + "".join(map("".join, head.headers + response.trailers))
    if "\n" in text or "\r" in text or "\0" in text or (not text.isascii() and max(text) > "\u00ff"):
        return "its head holds what cannot be sent"
    return None


def _pieces(response: HttpResponse) -> Iterator[Piece]:
    if response.long_body is not None:
        yield from _pieces_of_long_body(response.chunks, response.long_body.blocks())
        return
    position = 0
    for chunk in response.chunks:
        yield chunk.at, response.body[position : position + chunk.size]
        position += chunk.size
    if position < len(response.body):
        last = response.chunks[-1].at if response.chunks else 0
        yield last, response.body[position:]


def _pieces_of_long_body(chunks: tuple[Chunk, ...], blocks: Iterator[bytes]) -> Iterator[Piece]:
    """The same pieces, of which no more than one is held; one that is longer than a block comes in several."""
    block, place, last = b"", 0, 0
    for chunk in chunks:
        left, last = chunk.size, chunk.at
        while left:
            if place == len(block):
                block, place = next(blocks, b""), 0
                if not block:
                    return
            piece = block[place : place + left]
            place, left = place + len(piece), left - len(piece)
            yield chunk.at, piece
    yield last, block[place:]
    yield from ((last, block) for block in blocks)


async def play_paced(
    transport: asyncio.Transport, play: Play, method: str, *, has_room: Callable[[], Awaitable[object]] | None = None
) -> bool:
    """Send at the recorded pace, and no faster than the client reads; True when the connection can be used again."""
    assert play.response is not None, "there is an answer to play"
    head, pieces, tail, reusable = framed(play.response, method, play.ending)
    loop = asyncio.get_running_loop()
    start = loop.time()
    for at, data in pieces:
        await _until(start, at, play.pace)
        if has_room is not None:
            await has_room()
        if transport.is_closing():
            return False
        if head:
            transport.write(head)
            head = b""
        transport.write(data)
    transport.write(head + tail)
    return reusable


def play_at_once(transport: asyncio.Transport, play: Play, method: str) -> bool:
    """Send everything now; True when the connection can be used again."""
    assert play.response is not None, "there is an answer to play"
    head, form, tail, reusable = _framing(play.response, method, play.ending)
    if form is _BodyForm.PLAIN:
        transport.write(head + play.response.body)
    elif form is _BodyForm.CHUNKED:
        transport.write(b"".join((head, *(data for _, data in _as_chunks(_pieces(play.response))), tail)))
    else:
        transport.write(head)
    return reusable


async def _until(start: float, at: int, pace: float) -> None:
    delay = start + at / 1_000_000 * pace - asyncio.get_running_loop().time()
    if delay > 0:
        await asyncio.sleep(delay)
