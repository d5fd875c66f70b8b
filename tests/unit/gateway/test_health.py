"""The gateway over a long time: what it holds is bounded, whatever servers and clients do."""

import asyncio
import gc
import tracemalloc

import pytest

from rewind.gateway import upstream as pools
from rewind.gateway.dial import Dialer
from rewind.gateway.exchange import Origin
from rewind.gateway.http1 import MAX_HEAD, MOST_HEADERS, BadMessage, IncomingResponse
from rewind.gateway.options import UpstreamOptions
from rewind.gateway.upstream import Pool, UpstreamConnection
from rewind.model.http import RequestHead
from rewind.model.step import Ending
from support.effort import QUICK
from support.operations import growth
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
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"


async def polite(reader: Reader, writer: Writer) -> None:
    while True:
        await request_on(reader)
        writer.write(OK)


async def silent(reader: Reader, writer: Writer) -> None:
    await reader.read()


# Heads of answers


def fed(response: IncomingResponse, data: bytes, size: int = 65536) -> int:
    """How many bytes were taken before it was refused."""
    for at in range(0, len(data), size):
        try:
            response.feed(data[at : at + size])
        except BadMessage:
            return at
    return len(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"HTTP/1.1 200 OK\r\n" + b"A: " + b"x" * 30_000_000, "its head is longer than 256 KiB"),
        (b"HTTP/1.1 200 " + b"x" * 30_000_000, "its head is longer than 256 KiB"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1_000_000, "it has more than 2,000 header lines"),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100_000, "its head is longer than 256 KiB"),
        (CHUNKED + b"T: " + b"x" * 3_000_000, "its trailers are longer than 256 KiB"),
        (CHUNKED + b"T: x\r\n" * 100_000, "it has more than 2,000 header lines"),
    ],
)
def test_a_head_without_end_is_refused(data: bytes, why: str) -> None:
    response = IncomingResponse("GET")
    assert fed(response, data) <= MAX_HEAD + 65536
    with pytest.raises(BadMessage, match=why):
        for _ in map(IncomingResponse("GET").feed, (data[at : at + 65536] for at in range(0, len(data), 65536))):
            pass


def test_a_large_head_that_ends_is_taken() -> None:
    lines = b"".join(b"X-%d: %b\r\n" % (number, b"v" * 100) for number in range(MOST_HEADERS - 1))
    data = b"HTTP/1.1 200 OK\r\n" + lines + b"Content-Length: 300000\r\n\r\n" + b"b" * 300_000
    response = IncomingResponse("GET")
    assert fed(response, data) == len(data)
    assert response.complete and response.head is not None and len(response.head.headers) == MOST_HEADERS


def test_a_long_body_in_small_pieces_is_no_head() -> None:
    response = IncomingResponse("GET")
    response.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(3):
        assert fed(response, b"100000\r\n" + b"x" * 0x100000 + b"\r\n") == 0x100000 + 10
        response.take_pieces()


def test_heads_and_trailers_are_read_in_linear_time() -> None:
    def work(count: int) -> object:
        data = CHUNKED + b"T: x\r\n" * count + b"\r\n"
        return lambda: fed(IncomingResponse("GET"), data)

    assert growth(work, 400) < 4.6  # type: ignore[arg-type]


def test_a_server_whose_head_never_ends_is_named_and_does_not_hold_the_others() -> None:
    async def endless(reader: Reader, writer: Writer) -> None:
        await request_on(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"A: " + b"x" * 65_000 + b"\r\n")
            await writer.drain()

    async def play() -> None:
        ledger = Ledger()
        async with upstream(endless) as bad, upstream(polite) as good, gateway(ledger) as port:
            async with client(port) as (reader, writer):
                writer.write(bad.request())
                async with client(port) as (other_reader, other):
                    for _ in range(20):
                        other.write(good.request())
                        assert (await answer_on(other_reader)).endswith(b"ok")
                seen = await asyncio.wait_for(reader.read(-1), PATIENCE)
            assert len(seen) < 4 * MAX_HEAD, "what came is passed on, and then it ends"
            exchange = ledger.exchanges[0]
            await eventually(lambda: exchange.ending is not None)
            assert exchange.ending is Ending.UPSTREAM_CUT
            assert exchange.reason == "the upstream's answer is not HTTP: its head is longer than 256 KiB"

    run(play())


# Idle connections


def pool_of() -> Pool:
    return Pool(Dialer(UpstreamOptions(), {}))


def test_idle_connections_are_closed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "IDLE_LIMIT", 0.05)

    async def play() -> None:
        async with upstream(silent) as server:
            pool, origin = pool_of(), Origin("http", "127.0.0.1", server.port)
            used = [await pool.fresh(origin) for _ in range(5)]
            for connection in used:
                pool.release(connection)
            elsewhere = Origin("http", "localhost", server.port)
            pool.warm(elsewhere)
            assert pool.waiting == 6
            await eventually(lambda: pool.waiting == 0)
            await eventually(lambda: all(connection.lost for connection in used))
            await eventually(lambda: all(task.done() for task in server.tasks))
            assert not (await pool.acquire(origin)).used, "a new one"
            pool.close()

    run(play())


def test_a_connection_that_was_used_again_meanwhile_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "IDLE_LIMIT", 0.2)

    async def play() -> None:
        async with upstream(silent) as server:
            pool, origin = pool_of(), Origin("http", "127.0.0.1", server.port)
            connection = await pool.fresh(origin)
            for _ in range(6):
                pool.release(connection)
                await asyncio.sleep(0.06)
                assert await pool.acquire(origin) is connection
            pool.close()

    run(play())


def test_only_so_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "MOST_IDLE", 4)

    async def play() -> None:
        async with upstream(silent) as server:
            pool = pool_of()
            names = ("127.0.0.1", "localhost")
            used: list[UpstreamConnection] = []
            for number in range(10):
                used.append(await pool.fresh(Origin("http", names[number % 2], server.port)))
                pool.release(used[-1])
            assert pool.waiting == 4
            await eventually(lambda: [connection.lost for connection in used] == [True] * 6 + [False] * 4)
            assert await pool.acquire(used[-1].origin) is used[-1], "the latest one first"
            pool.close()

    run(play())


# Memory


def test_calls_leave_nothing_behind() -> None:
    """Whether clients keep their connection, come anew for each call, leave early, or the server closes."""

    async def closing(reader: Reader, writer: Writer) -> None:
        await request_on(reader)
        writer.write(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))

    class Forgetful(Ledger):
        def begin(self, head: RequestHead) -> Remembered:
            return Remembered(head)

    async def play() -> None:
        async with upstream(polite) as keeps, upstream(closing) as closes, gateway(Forgetful()) as port:

            async def calls(count: int) -> None:
                async with client(port) as (reader, writer):
                    for _ in range(count):
                        writer.write(keeps.request(b"{}"))
                        await answer_on(reader)
                for _ in range(count // 4):
                    for server in (keeps, closes):
                        async with client(port) as (reader, writer):
                            writer.write(server.request(b"{}"))
                            await answer_on(reader)
                    async with client(port) as (_, writer):
                        writer.write(keeps.request(b"{}"))
                        await writer.drain()
                keeps.tasks -= {task for task in keeps.tasks if task.done()}
                closes.tasks -= {task for task in closes.tasks if task.done()}

            await calls(40)
            tracemalloc.start()
            try:
                await calls(40)
                await asyncio.sleep(0.1)
                gc.collect()
                before = tracemalloc.get_traced_memory()[0]
                await calls(100 if QUICK else 300)
                await asyncio.sleep(0.1)
                gc.collect()
                grown = tracemalloc.get_traced_memory()[0] - before
            finally:
                tracemalloc.stop()
            assert grown < (20_000 if QUICK else 60_000), f"{grown} bytes after all these calls"

    run(play())
