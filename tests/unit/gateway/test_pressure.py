"""Slow readers, large bodies and impatient clients: nothing piles up in the gateway, and nobody is left hanging."""

import asyncio
import gc
import socket
import warnings

import pytest

from rewind.gateway import dial
from rewind.gateway.dial import Dialer
from rewind.gateway.exchange import Play, Reply
from rewind.gateway.options import UpstreamOptions
from rewind.gateway.relay import Relay
from rewind.gateway.upstream import Pool, UpstreamConnection
from rewind.model.http import Chunk, HttpResponse, RequestHead, ResponseHead
from rewind.model.step import Ending
from unit.gateway.wiring import (
    PATIENCE,
    Ledger,
    Remembered,
    answer_on,
    client,
    eventually,
    gateway,
    request_on,
    run,
    upstream,
)

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
MEGABYTE = b"x" * (1024 * 1024)
ROOM = 16 * len(MEGABYTE)
"""Far more than the buffers of two sockets and two transports hold, far less than what is sent."""


async def slow_client(port: int) -> tuple[Reader, Writer]:
    """A client that reads nothing until it is asked to, with little room of its own."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 * 1024)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    return await asyncio.open_connection(sock=sock, limit=1024)


class Flood:
    """Answers with fifty megabytes and counts what it got rid of."""

    def __init__(self) -> None:
        self.sent = 0
        self.moved = asyncio.Event()

    async def __call__(self, reader: Reader, writer: Writer) -> None:
        while True:
            await request_on(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (50 * len(MEGABYTE)))
            for _ in range(50):
                writer.write(MEGABYTE)
                await writer.drain()
                self.sent += len(MEGABYTE)
                self.moved.set()

    async def stalled(self) -> int:
        """What was sent by the time nothing moves any more."""
        while True:
            self.moved.clear()
            try:
                await asyncio.wait_for(self.moved.wait(), 0.2)
            except TimeoutError:
                return self.sent


def test_a_client_that_does_not_read_holds_the_provider_back() -> None:
    async def play() -> None:
        ledger, flood = Ledger(), Flood()
        async with upstream(flood) as server, gateway(ledger) as port:
            reader, writer = await slow_client(port)
            writer.write(server.request(b"hi"))
            assert await flood.stalled() < ROOM
            rest = 0
            while rest < 50 * len(MEGABYTE):
                data = await asyncio.wait_for(reader.read(1 << 20), PATIENCE)
                assert data
                rest += len(data)
            await asyncio.wait_for(ledger.exchanges[0].ended.wait(), PATIENCE)
            writer.close()
        assert ledger.exchanges[0].ending is Ending.COMPLETE

    run(play())


class FullClient:
    """A client's side whose buffer is full as soon as anything is written to it."""

    def __init__(self) -> None:
        self.relay: Relay | None = None
        self.shown = b""
        self.over = asyncio.Event()

    def write(self, data: bytes) -> None:
        assert self.relay is not None, "there is a relay"
        self.shown += data
        self.relay.client_full(True)

    def hold_reading(self, held: bool) -> None: ...

    def answered(self, *, keep_alive: bool) -> None:
        assert keep_alive
        self.over.set()

    def drop(self, *, at_once: bool) -> None:
        raise AssertionError("nothing breaks off here")

    def upgraded(self, relay: Relay, connection: UpstreamConnection, first: bytes) -> None:
        raise AssertionError("nothing is switched here")


def test_a_client_that_is_full_at_the_last_read_does_not_pause_the_connection_for_the_next() -> None:
    """By then the connection is already kept for somebody else, who would wait for ever."""

    async def answers(reader: Reader, writer: Writer) -> None:
        while True:
            await request_on(reader)
            writer.write(OK)

    async def play() -> None:
        async with upstream(answers) as server:
            pool = Pool(Dialer(UpstreamOptions(), {}))
            for _ in range(2):
                full = FullClient()
                head = RequestHead(
                    method="POST", scheme="http", host="127.0.0.1", port=server.port, target="/", headers=()
                )
                full.relay = Relay(full, Remembered(head), head, pool)
                full.relay.send(server.request(b"hi"))
                full.relay.request_complete(keep_alive=True)
                await asyncio.wait_for(full.over.wait(), PATIENCE)
                assert full.shown == OK
            assert server.connections == 1
            pool.close()

    run(play())


def test_a_client_that_was_full_before_the_exchange_began_is_still_full() -> None:
    """A client that pipelines and does not read: the second answer must wait as the first did."""

    async def play() -> None:
        flood = Flood()
        async with upstream(flood) as server:
            pool, full = Pool(Dialer(UpstreamOptions(), {})), FullClient()
            head = RequestHead(method="POST", scheme="http", host="127.0.0.1", port=server.port, target="/", headers=())
            full.relay = Relay(full, Remembered(head), head, pool)
            full.relay.client_full(True)
            full.relay.send(server.request(b"hi"))
            full.relay.request_complete(keep_alive=True)
            await eventually(lambda: flood.moved.is_set() or server.connections == 1)
            assert await flood.stalled() < ROOM
            assert full.shown == b""
            full.relay.client_lost()
            await asyncio.wait_for(full.relay.task, PATIENCE)
            pool.close()

    run(play())


# Uploads


def test_a_provider_that_does_not_read_holds_the_client_back() -> None:
    may_read = asyncio.Event()
    got = 0

    async def slow(reader: Reader, writer: Writer) -> None:
        nonlocal got
        await reader.readuntil(b"\r\n\r\n")
        await may_read.wait()
        while got < 50 * len(MEGABYTE):
            got += len(await reader.read(1 << 20))
        writer.write(OK)
        await reader.read()

    async def play() -> None:
        ledger = Ledger()
        async with upstream(slow, limit=1024) as server, gateway(ledger) as port, client(port) as (reader, writer):
            writer.write(server.request(b"x" * 10).replace(b"Content-Length: 10", b"Content-Length: 52428800")[:-10])
            sent = 0
            for _ in range(50):
                writer.write(MEGABYTE)
                try:
                    await asyncio.wait_for(writer.drain(), 0.3)
                except TimeoutError:
                    break
                sent += len(MEGABYTE)
            assert sent < ROOM
            may_read.set()
            for _ in range(50 - sent // len(MEGABYTE) - 1):
                writer.write(MEGABYTE)
                await asyncio.wait_for(writer.drain(), PATIENCE)
            assert await answer_on(reader) == OK

    run(play())


def test_an_upload_waits_while_its_provider_is_still_being_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    async def swallows(reader: Reader, writer: Writer) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"52428800" in head
        await reader.readexactly(50 * len(MEGABYTE))
        writer.write(OK)
        await reader.read()

    async def play() -> None:
        ledger, may_dial = Ledger(), asyncio.Event()
        real = dial.Dialer.open

        async def patient(self: dial.Dialer, *args: object, **options: object) -> object:
            await may_dial.wait()
            return await real(self, *args, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(dial.Dialer, "open", patient)
        async with upstream(swallows) as server, gateway(ledger) as port, client(port) as (reader, writer):
            writer.write(server.request(b"x" * 10).replace(b"Content-Length: 10", b"Content-Length: 52428800")[:-10])
            sent = 0
            for _ in range(50):
                writer.write(MEGABYTE)
                try:
                    await asyncio.wait_for(writer.drain(), 0.3)
                except TimeoutError:
                    break
                sent += len(MEGABYTE)
            assert sent < ROOM
            may_dial.set()
            for _ in range(50 - sent // len(MEGABYTE) - 1):
                writer.write(MEGABYTE)
                await asyncio.wait_for(writer.drain(), PATIENCE)
            assert await answer_on(reader) == OK

    run(play())


def test_an_answer_that_comes_before_the_upload_is_over_reaches_the_client() -> None:
    """As when a provider says 413 at the sight of the length."""
    refusal = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nno!\n"

    async def refuses(reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(refusal)
        await reader.read()

    async def play() -> None:
        ledger = Ledger()
        async with upstream(refuses) as server, gateway(ledger) as port, client(port) as (reader, writer):
            writer.write(server.request(b"x" * 10).replace(b"Content-Length: 10", b"Content-Length: 52428800")[:-10])
            for _ in range(20):  # never mind the answer: a plain client sends on until it has sent all
                writer.write(MEGABYTE)
                await asyncio.wait_for(writer.drain(), PATIENCE)
            assert await answer_on(reader) == refusal
        assert ledger.exchanges[0].ending is Ending.COMPLETE
        assert ledger.exchanges[0].body is None, "the request never arrived whole"

    run(play())


# Clients that do not speak well


def test_broken_chunks_in_mid_upload_end_the_exchange_too() -> None:
    felt = asyncio.Event()

    async def waits(reader: Reader, writer: Writer) -> None:
        await reader.read()
        felt.set()

    async def play() -> None:
        ledger = Ledger()
        async with upstream(waits) as server, gateway(ledger) as port, client(port) as (reader, writer):
            head = server.request().replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
            writer.write(head + b"3\r\nabc\r\n")
            await eventually(lambda: server.connections == 1)
            writer.write(b"no size\r\n")
            assert (await asyncio.wait_for(reader.read(), PATIENCE)).startswith(b"HTTP/1.1 400 Bad Request\r\n")
            await asyncio.wait_for(ledger.exchanges[0].ended.wait(), PATIENCE)
            await asyncio.wait_for(felt.wait(), PATIENCE)
        assert ledger.exchanges[0].ending is Ending.CLIENT_CLOSED

    run(play())


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\n\n", b"400"),
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET http://[::1/x HTTP/1.1\r\nHost: h\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
        (b"GET /nowhere HTTP/1.1\r\nHost: localhost:%d\r\n\r\n", b"404"),
        (b"x" * 300_000, b"400"),
    ],
)
def test_what_cannot_be_read_is_answered_and_closed(sent: bytes, status: bytes) -> None:
    async def play() -> None:
        ledger = Ledger()
        async with gateway(ledger) as port, client(port) as (reader, writer):
            writer.write(sent.replace(b"%d", b"%d" % port))
            answer = await asyncio.wait_for(reader.read(), PATIENCE)
            assert answer.startswith(b"HTTP/1.1 " + status + b" ")
            assert b"\r\n\r\nrewind: " in answer
        assert ledger.exchanges == []

    run(play())


# Answers given at once


def playing(head: RequestHead) -> Remembered:
    name = head.target.encode()
    response = HttpResponse(
        head=ResponseHead(status=200, reason="OK", headers=(("Content-Length", str(len(name))),)),
        body=name,
        chunks=(Chunk(0, len(name)),),
    )
    return Remembered(head, Play(response=response, ending=Ending.COMPLETE), streams=False)


def test_a_thousand_pipelined_requests_are_answered_in_order() -> None:
    async def play() -> None:
        ledger = Ledger(playing)
        async with gateway(ledger, online=False) as port, client(port) as (reader, writer):
            for number in range(1000):
                writer.write(b"GET /%d HTTP/1.1\r\nHost: h.example\r\n\r\n" % number)
            for number in range(1000):
                assert (await answer_on(reader)).endswith(b"\r\n\r\n/%d" % number)
        assert len(ledger.exchanges) == 1000

    run(play())


def test_a_refusal_keeps_the_connection_usable() -> None:
    def refusing(head: RequestHead) -> Remembered:
        verdict = Reply(status=424, reason="Rewind Miss", headers=(("x-rewind-miss", "why"),), body=b"{}")
        return Remembered(head, verdict, streams=False)

    async def play() -> None:
        ledger = Ledger(refusing)
        async with gateway(ledger, online=False) as port, client(port) as (reader, writer):
            for _ in range(2):
                writer.write(b"POST / HTTP/1.1\r\nHost: h.example\r\nContent-Length: 3\r\n\r\nabc")
                assert await answer_on(reader) == (
                    b"HTTP/1.1 424 Rewind Miss\r\nx-rewind-miss: why\r\nContent-Length: 2\r\n\r\n{}"
                )
        assert [exchange.body for exchange in ledger.exchanges] == [b"abc", b"abc"]

    run(play())


def test_a_client_that_wants_the_connection_closed_sees_it_closed() -> None:
    async def play() -> None:
        ledger = Ledger(playing)
        async with gateway(ledger, online=False) as port, client(port) as (reader, writer):
            writer.write(b"GET /x HTTP/1.1\r\nHost: h.example\r\nConnection: close\r\n\r\n")
            assert (await asyncio.wait_for(reader.read(), PATIENCE)).endswith(b"/x")

    run(play())


def test_clients_that_said_nothing_are_let_go_when_the_gateway_ends() -> None:
    async def scene() -> None:
        async with gateway(Ledger()) as port:
            connected = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
            # One more whose connection is taken in the moment of the end: its task has not begun.
            late = socket.create_connection(("127.0.0.1", port))
        for reader, writer in connected:
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
            writer.close()
        late.close()

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ResourceWarning)
        run(scene())
        gc.collect()
    assert [str(warning.message) for warning in seen if "socket.socket" in str(warning.message)] == []
