"""A recorded answer on its way out again: the same bytes, the same pieces, the same ending, at the pace asked for."""

import asyncio
import selectors
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from rewind.gateway.exchange import Play
from rewind.gateway.playout import framed, play_at_once, play_paced, why_unplayable
from rewind.model.http import Chunk, Headers, HttpResponse, LongBody, RequestHead, ResponseHead
from rewind.model.step import Ending
from unit.gateway.wiring import PATIENCE, Ledger, Remembered, client, gateway, run

CHUNKED: Headers = (("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked"))


def recorded(
    *pieces: tuple[int, bytes],
    headers: Headers = CHUNKED,
    status: int = 200,
    version: str = "1.1",
    trailers: Headers = (),
) -> HttpResponse:
    """An answer whose pieces came at those microseconds."""
    return HttpResponse(
        head=ResponseHead(status=status, reason="OK", headers=headers, version=version),
        body=b"".join(data for _, data in pieces),
        chunks=tuple(Chunk(at, len(data)) for at, data in pieces),
        trailers=trailers,
    )


class Paper(asyncio.Transport):
    """A transport that keeps what is written, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[tuple[float, bytes]] = []
        self.closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if data:
            self.written.append((round(asyncio.get_running_loop().time(), 6), bytes(data)))

    def is_closing(self) -> bool:
        return self.closing


class Jumping(selectors.SelectSelector):
    """Instead of waiting, the clock jumps."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        self.now += timeout or 0.0
        return super().select(0)


class NoWaiting(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def played(play: Play, *, method: str = "POST", paced: bool = False) -> tuple[list[tuple[float, bytes]], bool]:
    """What went out, when, and whether the connection can be used again."""
    paper = Paper()

    async def go() -> bool:
        return await play_paced(paper, play, method) if paced else play_at_once(paper, play, method)

    with asyncio.Runner(loop_factory=NoWaiting) as runner:
        usable = runner.run(go())
    return paper.written, usable


def wire(response: HttpResponse, ending: Ending = Ending.COMPLETE, method: str = "POST") -> bytes:
    written, _ = played(Play(response=response, ending=ending), method=method)
    return b"".join(data for _, data in written)


def body_on(data: bytes) -> bytes:
    return data.partition(b"\r\n\r\n")[2]


def test_transfer_chunks_go_out_as_they_came_in() -> None:
    response = recorded((0, b"data: 1\n\n"), (9, b"data: 22\n\n"), trailers=(("X-Sum", "3"),))
    assert wire(response) == (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"9\r\ndata: 1\n\n\r\na\r\ndata: 22\n\n\r\n0\r\nX-Sum: 3\r\n\r\n"
    )


def test_a_counted_body_goes_out_with_its_length_as_it_was_written() -> None:
    response = recorded((0, b"he"), (1, b"llo"), headers=(("content-LENGTH", "5"),))
    assert wire(response) == b"HTTP/1.1 200 OK\r\ncontent-LENGTH: 5\r\n\r\nhello"


def test_an_empty_answer_is_an_empty_answer() -> None:
    assert wire(recorded(headers=(("Content-Length", "0"),))).endswith(b"\r\n\r\n")
    assert body_on(wire(recorded())) == b"0\r\n\r\n"


def test_bytes_that_no_chunk_claims_are_sent_at_the_end() -> None:
    response = HttpResponse(
        head=ResponseHead(status=200, reason="", headers=CHUNKED), body=b"abcdef", chunks=(Chunk(7, 2),)
    )
    _, pieces, _, _ = framed(response, "POST", Ending.COMPLETE)
    assert pieces == [(7, b"2\r\nab\r\n"), (7, b"4\r\ncdef\r\n")]


@pytest.mark.parametrize("ending", [Ending.UPSTREAM_CUT, Ending.CLIENT_CLOSED, Ending.INTERRUPTED])
def test_a_cut_answer_is_cut_at_the_same_byte_and_its_framing_is_not_completed(ending: Ending) -> None:
    assert body_on(wire(recorded((0, b"abc")), ending)) == b"3\r\nabc\r\n"
    counted = recorded((0, b"abc"), headers=(("Content-Length", "9"),))
    assert wire(counted, ending) == b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"
    for response in (recorded((0, b"abc")), counted):
        assert not played(Play(response=response, ending=ending))[1], "the connection ends here"


def test_a_body_that_was_rewritten_gets_the_length_it_has_now() -> None:
    """A compressed body with a secret inside was packed again."""
    response = recorded((0, b"shorter"), headers=(("Content-Length", "900"), ("Content-Encoding", "gzip")))
    head, _, body = wire(response).partition(b"\r\n\r\n")
    assert body == b"shorter"
    assert head.lower().count(b"content-length") == 1
    assert b"Content-Length: 7" in head
    assert b"Content-Encoding: gzip" in head


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_answers_without_a_body_keep_their_headers_and_the_connection(method: str, status: int) -> None:
    response = recorded(headers=(("Content-Length", "500"),), status=status)
    written, usable = played(Play(response=response, ending=Ending.COMPLETE), method=method)
    assert b"".join(data for _, data in written).endswith(b"Content-Length: 500\r\n\r\n")
    assert usable


@pytest.mark.parametrize(
    ("response", "usable"),
    [
        (recorded((0, b"a")), True),
        (recorded((0, b"a"), headers=(("Content-Length", "1"), ("Connection", "keep-alive"))), True),
        (recorded((0, b"a"), headers=(("Content-Length", "1"), ("Connection", "Close"))), False),
        (recorded((0, b"a"), headers=()), False),
        (recorded((0, b"a"), headers=(("Content-Length", "1"),), version="1.0"), False),
    ],
    ids=["chunked", "keep-alive", "close", "until the end", "HTTP/1.0"],
)
def test_whether_the_connection_stays(response: HttpResponse, usable: bool) -> None:
    assert played(Play(response=response, ending=Ending.COMPLETE))[1] is usable


@pytest.mark.parametrize("pace", [1.0, 0.5, 3.0])
def test_pieces_go_out_at_the_recorded_pace_times_the_factor(pace: float) -> None:
    response = recorded((200_000, b"a"), (250_000, b"b"), (1_250_000, b"c"))
    written, usable = played(Play(response=response, ending=Ending.COMPLETE, pace=pace), paced=True)
    assert usable
    bodies = [(at, data) for at, data in written if data in (b"1\r\na\r\n", b"1\r\nb\r\n", b"1\r\nc\r\n")]
    assert [at for at, _ in bodies] == pytest.approx([0.2 * pace, 0.25 * pace, 1.25 * pace], abs=0.002)
    assert written[0][0] == pytest.approx(0.2 * pace, abs=0.002), "the head comes with the first piece"


def test_at_once_means_one_write_at_once() -> None:
    response = recorded((200_000, b"a"), (900_000, b"b"))
    written, _ = played(Play(response=response, ending=Ending.COMPLETE))
    assert [at for at, _ in written] == [0.0]


def test_a_client_that_left_is_not_written_to() -> None:
    paper = Paper()
    paper.closing = True
    play = Play(response=recorded((0, b"a"), (50_000, b"b")), ending=Ending.COMPLETE, pace=1.0)
    with asyncio.Runner(loop_factory=NoWaiting) as runner:
        assert runner.run(play_paced(paper, play, "POST")) is False
    assert b"b" not in b"".join(data for _, data in paper.written)


ASKED = RequestHead(method="POST", scheme="https", host="api.openai.com", port=443, target="/v1", headers=())
SWITCHING = replace(ASKED, headers=(("Upgrade", "websocket"),))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (recorded((0, b"x"), status=0), "status is 0"),
        (recorded((0, b"x"), status=100), "status is 100"),
        (recorded((0, b"x"), status=199), "status is 199"),
        (recorded((0, b"x"), status=1000), "status is 1000"),
        (recorded((0, b"{}"), status=101), "did not ask"),
        (recorded((0, b"x"), headers=(("A", "b\r\nSet-Cookie: c"),)), "cannot be sent"),
        (recorded((0, b"x"), headers=(("A\n", "b"),)), "cannot be sent"),
        (recorded((0, b"x"), headers=(("A", "€"),)), "cannot be sent"),
        (recorded((0, b"x"), version="1.1 200 OK\r\n"), "cannot be sent"),
        (recorded((0, b"x"), trailers=(("A", "\0"),)), "cannot be sent"),
    ],
)
def test_an_answer_that_would_hang_or_mislead_its_client_is_not_played(answer: HttpResponse, why: str) -> None:
    assert why in (why_unplayable(ASKED, answer) or "")


def test_answers_that_gateways_record_are_played() -> None:
    log = b'{"from":"server","at":1,"op":"text","fin":true,"text":"hi"}\n'
    assert why_unplayable(SWITCHING, recorded((0, log), status=101)) is None
    assert "not the log" in (why_unplayable(SWITCHING, recorded((0, b"{}"), status=101)) or "")
    for status in (200, 204, 304, 404, 529, 999):
        assert why_unplayable(ASKED, recorded((0, b"x"), headers=(("A", "é"),), status=status)) is None


@pytest.mark.parametrize("lengths", [("2", "9"), ("9", "2"), ("9",), ("x",)])
def test_a_whole_body_has_one_right_length_whatever_lengths_were_recorded(lengths: tuple[str, ...]) -> None:
    headers = tuple(("Content-Length", length) for length in lengths)
    head, pieces, _, _ = framed(recorded((0, b"ok"), headers=headers), "POST", Ending.COMPLETE)
    assert head.lower().count(b"content-length") == 1
    assert b"Content-Length: 2\r\n" in head
    assert pieces == [(0, b"ok")]


def test_a_coding_that_clients_may_not_know_ends_with_the_connection() -> None:
    for coding, usable in (("chunked", True), (" Chunked", True), ("gzip, chunked", False), ("notchunked", False)):
        answer = recorded((0, b"ok"), headers=(("Transfer-Encoding", coding),))
        assert framed(answer, "POST", Ending.COMPLETE)[3] is usable


@pytest.mark.parametrize("problem", [OSError(5, "Input/output error"), RuntimeError("a bug")], ids=repr)
def test_a_long_answer_that_cannot_be_read_on_ends_its_connection(problem: Exception) -> None:
    def blocks() -> Iterator[bytes]:
        yield b"x" * 1000
        raise problem

    head = ResponseHead(status=200, reason="OK", headers=(("Content-Length", "9000000"),))
    response = HttpResponse(head=head, body=b"", chunks=(), long_body=LongBody(9_000_000, blocks))
    play = Play(response=response, ending=Ending.COMPLETE)
    ledger = Ledger(make=lambda asked: Remembered(asked, verdict=play, streams=False))

    async def ask() -> None:
        async with gateway(ledger, online=False) as port, client(port) as (reader, writer):
            writer.write(b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n")
            with suppress(ConnectionError):
                assert len(await asyncio.wait_for(reader.read(), PATIENCE)) < 9_000_000

    run(ask())
    (exchange,) = ledger.exchanges
    assert exchange.reason is not None and str(problem.args[-1]) in exchange.reason
