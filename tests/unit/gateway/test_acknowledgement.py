"""A client that writes head and body apart, with Nagle's algorithm on, does not wait for a delayed acknowledgement."""

import asyncio
import socket
import time

import pytest

from rewind.gateway.acknowledgement import acknowledge
from rewind.gateway.exchange import Route
from unit.gateway.wiring import Ledger, answer_on, client, gateway, request_on, run, upstream

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux can be asked to acknowledge")
CALLS = 12
"""A new connection acknowledges at once by itself; after a few messages it begins to wait."""
DELAYED = 0.035
"""The system's own delay is 40 ms."""


async def echoes(reader: Reader, writer: Writer) -> None:
    while True:
        body = (await request_on(reader)).partition(b"\r\n\r\n")[2]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


async def in_two_writes(reader: Reader, writer: Writer, head: bytes, body: bytes) -> float:
    """Seconds of a call whose head and body go out one after the other."""
    began = time.perf_counter()
    writer.write(head)
    await asyncio.sleep(0.001)  # the head alone is in a packet now, and Nagle holds the body until it is acknowledged
    writer.write(body)
    assert (await answer_on(reader)).endswith(body)
    return time.perf_counter() - began


@pytest.mark.parametrize("entry", ["recorded", "tunnelled"])
def test_a_request_in_two_writes_is_not_held_up(entry: str) -> None:
    body = b"x" * 3000

    async def play() -> None:
        ledger = Ledger(way=Route.TUNNEL)
        async with upstream(echoes) as server, gateway(ledger) as port, client(port) as (reader, writer):
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
            head = server.request(body).partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
            if entry == "tunnelled":
                head = head.replace(b"POST", b"SEND")  # not a method: the gateway carries bytes and reads nothing
                writer.write(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: x\r\n\r\n" % server.port)
                await reader.readuntil(b"\r\n\r\n")
            took = [await in_two_writes(reader, writer, head, body) for _ in range(CALLS)]
        # A busy machine makes some calls slow, a delayed acknowledgement nearly all.
        assert sorted(took)[CALLS // 4] < DELAYED, took

    run(play())


def test_a_connection_that_has_gone_is_left_alone() -> None:
    async def play() -> None:
        async with gateway(Ledger()) as port, client(port) as (_, writer):
            writer.transport.abort()
            acknowledge(writer.transport)
            await asyncio.sleep(0)
            acknowledge(writer.transport)

    run(play())
    acknowledge(asyncio.BaseTransport())
