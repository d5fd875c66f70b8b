"""One exchange between a client and its origin, over real sockets: who may leave when, and what is kept."""

import asyncio
import socket
import struct
import time

import pytest

from rewind.gateway import dial
from rewind.model.http import RequestHead
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
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def polite(reader: Reader, writer: Writer) -> None:
    """Answers every request."""
    while True:
        await request_on(reader)
        writer.write(OK)


async def until(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), PATIENCE)


async def until_begun(ledger: Ledger) -> None:
    """The first request has arrived whole."""
    await eventually(lambda: bool(ledger.exchanges) and ledger.exchanges[0].body is not None)


def reset(writer: Writer) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()


# Keeping connections


def test_another_client_gets_the_connection_that_is_already_there() -> None:
    async def play() -> None:
        ledger = Ledger()
        async with upstream(polite) as server, gateway(ledger) as port:
            for _ in range(3):
                async with client(port) as (reader, writer):
                    writer.write(server.request(b"hi"))
                    assert await answer_on(reader) == OK
            assert server.connections == 1
        assert [exchange.ending for exchange in ledger.exchanges] == [Ending.COMPLETE] * 3

    run(play())


@pytest.mark.parametrize("split", [False, True], ids=["whole request", "head first"])
def test_a_kept_connection_that_turns_out_to_be_dead_costs_nobody_an_answer(split: bool) -> None:
    requests: list[bytes] = []

    async def dies_on_the_second(reader: Reader, writer: Writer) -> None:
        requests.append(await request_on(reader))
        writer.write(OK)
        if len(requests) == 1:
            await reader.readexactly(1)
            reset(writer)
        else:
            await reader.read()

    async def play() -> None:
        ledger = Ledger()
        async with upstream(dies_on_the_second) as server, gateway(ledger) as port, client(port) as (reader, writer):
            writer.write(server.request(b"one"))
            assert await answer_on(reader) == OK
            second = server.request(b"two")
            if split:
                writer.write(second[:-3])
                await eventually(lambda: server.connections == 2)  # the dead one was noticed before the body came
                writer.write(b"two")
            else:
                writer.write(second)
            assert await answer_on(reader) == OK
            assert requests == [server.request(b"one"), server.request(b"two")]
            assert server.connections == 2
        assert [exchange.ending for exchange in ledger.exchanges] == [Ending.COMPLETE] * 2

    run(play())


def test_once_a_byte_of_an_answer_came_nothing_is_sent_twice() -> None:
    requests: list[bytes] = []

    async def breaks_off(reader: Reader, writer: Writer) -> None:
        while True:
            requests.append(await request_on(reader))
            if len(requests) == 2:
                writer.write(b"HTTP/1.1 2")
                return
            writer.write(OK)

    async def play() -> None:
        ledger = Ledger()
        async with upstream(breaks_off) as server, gateway(ledger) as port, client(port) as (reader, writer):
            writer.write(server.request(b"one"))
            assert await answer_on(reader) == OK
            writer.write(server.request(b"two"))
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b"HTTP/1.1 2"
        assert len(requests) == 2
        assert [exchange.ending for exchange in ledger.exchanges] == [Ending.COMPLETE, Ending.NO_ANSWER]

    run(play())


def test_a_new_connection_that_is_closed_without_a_word_is_no_answer_and_not_tried_again() -> None:
    async def hangs_up(reader: Reader, writer: Writer) -> None:
        await request_on(reader)

    async def play() -> None:
        ledger = Ledger()
        async with upstream(hangs_up) as server, gateway(ledger) as port, client(port) as (reader, writer):
            writer.write(server.request(b"hi"))
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
            assert server.connections == 1
        assert ledger.exchanges[0].ending is Ending.NO_ANSWER
        assert ledger.exchanges[0].reason is not None and "without an answer" in ledger.exchanges[0].reason

    run(play())


def test_a_connection_with_bytes_nobody_asked_for_is_not_used_again() -> None:
    async def talkative(reader: Reader, writer: Writer) -> None:
        await request_on(reader)
        writer.write(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong")
        await reader.read()

    async def play() -> None:
        ledger = Ledger()
        async with upstream(talkative) as server, gateway(ledger) as port:
            for _ in range(2):
                async with client(port) as (reader, writer):
                    writer.write(server.request(b"hi"))
                    assert await answer_on(reader) == OK
            assert server.connections == 2
        assert [exchange.pieces for exchange in ledger.exchanges] == [[b"ok"], [b"ok"]]

    run(play())


# Clients that leave


def test_a_client_that_leaves_before_an_answer_ends_the_exchange_and_the_question() -> None:
    upstream_felt_it = asyncio.Event()

    async def thinks(reader: Reader, writer: Writer) -> None:
        await request_on(reader)
        assert await reader.read() == b""
        upstream_felt_it.set()

    async def play() -> None:
        ledger = Ledger()
        async with upstream(thinks) as server, gateway(ledger) as port:
            async with client(port) as (_, writer):
                writer.write(server.request(b"hi"))
                await until_begun(ledger)
            await until(ledger.exchanges[0].ended)
            await until(upstream_felt_it)
        assert ledger.exchanges[0].ending is Ending.CLIENT_CLOSED

    run(play())


@pytest.mark.parametrize(
    ("rest", "ending"),
    [([b"3\r\nend\r\n", b"0\r\n\r\n"], Ending.CLIENT_CLOSED), ([b"0\r\n\r\n"], Ending.COMPLETE)],
    ids=["mid-stream", "at the last event"],
)
def test_after_a_client_left_the_answer_is_read_to_its_end_and_the_connection_is_kept(
    rest: list[bytes], ending: Ending
) -> None:
    client_left = asyncio.Event()

    async def streams(reader: Reader, writer: Writer) -> None:
        while True:
            await request_on(reader)
            writer.write(STREAM + b"5\r\nstart\r\n")
            await until(client_left)
            for piece in rest:
                writer.write(piece)
                await writer.drain()

    async def play() -> None:
        ledger = Ledger()
        async with upstream(streams) as server, gateway(ledger) as port:
            async with client(port) as (reader, writer):
                writer.write(server.request(b"hi"))
                await asyncio.wait_for(reader.readuntil(b"start\r\n"), PATIENCE)
            await asyncio.sleep(0)  # let the gateway see it
            while not reader.at_eof():
                await reader.read()
            client_left.set()
            await until(ledger.exchanges[0].ended)
            async with client(port) as (reader, writer):
                writer.write(server.request(b"hi"))
                await asyncio.wait_for(reader.readuntil(b"start\r\n"), PATIENCE)
            assert server.connections == 1
        first = ledger.exchanges[0]
        assert b"".join(first.pieces) == b"start" + b"".join(p[3:6] for p in rest[:-1])
        assert first.ending is ending

    run(play())


def test_a_run_that_ends_while_an_answer_is_read_on_still_has_its_step() -> None:
    """The agent's last act was to leave at [DONE]; the provider had not ended the stream yet."""

    async def never_ends(reader: Reader, writer: Writer) -> None:
        await request_on(reader)
        writer.write(STREAM + b"5\r\nstart\r\n")
        await reader.read()

    async def play() -> None:
        ledger = Ledger()
        async with upstream(never_ends) as server:
            async with gateway(ledger) as port:
                async with client(port) as (reader, writer):
                    writer.write(server.request(b"hi"))
                    await asyncio.wait_for(reader.readuntil(b"start\r\n"), PATIENCE)
                await asyncio.sleep(0.05)  # the gateway has seen the client leave; either way must work
            assert ledger.exchanges[0].ended.is_set(), "told before the gateway ended"
        assert ledger.exchanges[0].ending is Ending.CLIENT_CLOSED

    run(play())


def test_the_run_does_not_wait_for_a_provider_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dial, "DIAL_TIMEOUT", PATIENCE)
    asked = asyncio.Event()

    async def play() -> None:
        ledger = Ledger()
        async with gateway(ledger) as port:
            loop = asyncio.get_running_loop()

            async def never(*_: object, **__: object) -> None:
                asked.set()
                await asyncio.sleep(PATIENCE)

            loop.create_connection, real = never, loop.create_connection  # type: ignore[method-assign, assignment]
            sock = socket.create_connection(("127.0.0.1", port))
            with sock:
                sock.sendall(b"POST / HTTP/1.1\r\nHost: far.example\r\nContent-Length: 0\r\n\r\n")
                await until(asked)
                began = time.monotonic()
                loop.create_connection = real  # type: ignore[method-assign]
                # leaving the block stops the gateway
                sock.setblocking(False)
        assert time.monotonic() - began < 2, "the run's end waited for the dialling"
        assert ledger.exchanges[0].ending is Ending.CLIENT_CLOSED

    run(play())


# Upstreams that break off


@pytest.mark.parametrize(
    ("head", "part", "how"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", b"part", "fin"),
        (STREAM, b"4\r\npart\r\n", "fin"),
        (STREAM, b"4\r\npart\r\n", "rst"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"part", "rst"),
    ],
)
def test_an_answer_that_breaks_off_is_passed_on_so_far_and_marked(head: bytes, part: bytes, how: str) -> None:
    seen = asyncio.Event()

    async def breaks_off(reader: Reader, writer: Writer) -> None:
        await request_on(reader)
        writer.write(head + part)
        await until(seen)
        if how == "rst":
            reset(writer)

    async def play() -> None:
        ledger = Ledger()
        async with upstream(breaks_off) as server, gateway(ledger) as port, client(port) as (reader, writer):
            writer.write(server.request(b"hi"))
            assert await asyncio.wait_for(reader.readexactly(len(head + part)), PATIENCE) == head + part
            seen.set()
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
        exchange = ledger.exchanges[0]
        assert (exchange.ending, b"".join(exchange.pieces)) == (Ending.UPSTREAM_CUT, b"part")

    run(play())


def test_an_answer_that_ends_with_its_connection_is_complete() -> None:
    async def old_fashioned(reader: Reader, writer: Writer) -> None:
        await request_on(reader)
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nall of it")

    async def play() -> None:
        ledger = Ledger()
        async with upstream(old_fashioned) as server, gateway(ledger) as port, client(port) as (reader, writer):
            writer.write(server.request(b"hi"))
            assert (await asyncio.wait_for(reader.read(), PATIENCE)).endswith(b"\r\n\r\nall of it")
        assert ledger.exchanges[0].ending is Ending.COMPLETE

    run(play())


def test_what_is_not_http_is_passed_on_and_marked() -> None:
    async def speaks_ssh(reader: Reader, writer: Writer) -> None:
        writer.write(b"SSH-2.0-Example\r\n")
        await reader.read()

    async def play() -> None:
        ledger = Ledger()
        async with upstream(speaks_ssh) as server, gateway(ledger) as port, client(port) as (reader, writer):
            writer.write(server.request(b"hi"))
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b"SSH-2.0-Example\r\n"
        assert ledger.exchanges[0].ending is Ending.UPSTREAM_CUT

    run(play())


# The last read


def test_the_last_read_waits_until_it_is_written_down_and_others_do_not_wait_for_it() -> None:
    may_end = asyncio.Event()

    def make(head: RequestHead) -> Remembered:
        return Remembered(head, may_end=may_end if head.header("x-slow") else None)

    async def in_two(reader: Reader, writer: Writer) -> None:
        while True:
            await request_on(reader)
            writer.write(STREAM + b"5\r\nfirst\r\n")
            await writer.drain()
            await asyncio.sleep(0.02)
            writer.write(b"4\r\nlast\r\n0\r\n\r\n")

    async def play() -> None:
        ledger = Ledger(make)
        async with upstream(in_two) as server, gateway(ledger) as port, client(port) as (reader, writer):
            writer.write(server.request(b"hi", more="X-Slow: 1\r\n"))
            await asyncio.wait_for(reader.readuntil(b"first\r\n"), PATIENCE)
            await until(ledger.exchanges[0].ending_asked)
            async with client(port) as (other, asking):
                asking.write(server.request(b"hi"))
                await asyncio.wait_for(other.readuntil(b"0\r\n\r\n"), PATIENCE)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.05)
            may_end.set()
            assert await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), PATIENCE) == b"4\r\nlast\r\n0\r\n\r\n"

    run(play())


def test_a_client_that_leaves_while_the_end_is_written_down_does_no_harm() -> None:
    may_end = asyncio.Event()

    async def play() -> None:
        ledger = Ledger(lambda head: Remembered(head, may_end=may_end))
        async with upstream(polite) as server, gateway(ledger) as port:
            async with client(port) as (reader, writer):
                writer.write(server.request(b"hi"))
                await until_begun(ledger)
                await until(ledger.exchanges[0].ending_asked)
            may_end.set()
            await until(ledger.exchanges[0].ended)
            async with client(port) as (reader, writer):
                writer.write(server.request(b"hi"))
                assert await answer_on(reader) == OK
            assert server.connections == 1, "the answer was whole: its connection is kept"
        assert ledger.exchanges[0].ending is Ending.COMPLETE

    run(play())
