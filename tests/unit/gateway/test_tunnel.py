"""Untouched tunnels: whoever speaks first, whoever stops first, every byte arrives."""

import asyncio

import pytest

from rewind.gateway.exchange import Route
from rewind.gateway.server import TunnelEnd
from unit.gateway.wiring import PATIENCE, Ledger, client, gateway, run, upstream

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


async def opened(reader: Reader, writer: Writer, port: int) -> None:
    writer.write(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: x\r\n\r\n" % port)
    assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE) == ESTABLISHED


def test_a_server_that_speaks_first_is_heard() -> None:
    async def banner(reader: Reader, writer: Writer) -> None:
        writer.write(b"220 ready\r\n")
        assert await reader.readuntil(b"\n") == b"HELO\n"
        writer.write(b"250 hello\r\n")
        await reader.read()

    async def play() -> None:
        async with upstream(banner) as server, gateway(Ledger()) as port, client(port) as (reader, writer):
            await opened(reader, writer, server.port)
            assert await asyncio.wait_for(reader.readuntil(b"\n"), PATIENCE) == b"220 ready\r\n"
            writer.write(b"HELO\n")
            assert await asyncio.wait_for(reader.readuntil(b"\n"), PATIENCE) == b"250 hello\r\n"

    run(play())


def test_a_client_that_has_said_all_still_hears_the_answer() -> None:
    async def counts(reader: Reader, writer: Writer) -> None:
        writer.write(b"%d bytes" % len(await reader.read()))

    async def play() -> None:
        async with upstream(counts) as server, gateway(Ledger()) as port, client(port) as (reader, writer):
            await opened(reader, writer, server.port)
            writer.write(b"\x00" * 100_000)
            writer.write_eof()
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b"100000 bytes"

    run(play())


def test_a_server_that_hangs_up_is_felt() -> None:
    async def brief(reader: Reader, writer: Writer) -> None:
        writer.write(b"bye")

    async def play() -> None:
        async with upstream(brief) as server, gateway(Ledger()) as port, client(port) as (reader, writer):
            await opened(reader, writer, server.port)
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b"bye"

    run(play())


def test_a_client_that_hangs_up_is_felt() -> None:
    felt = asyncio.Event()

    async def waits(reader: Reader, writer: Writer) -> None:
        await reader.read()
        felt.set()

    async def play() -> None:
        async with upstream(waits) as server, gateway(Ledger()) as port:
            async with client(port) as (reader, writer):
                await opened(reader, writer, server.port)
            await asyncio.wait_for(felt.wait(), PATIENCE)

    run(play())


def test_bytes_that_come_before_the_other_end_is_there_wait_for_it() -> None:
    near, far = TunnelEnd(), TunnelEnd()
    near.join(far)
    far.data_received(b"early")
    far.connection_lost(None)

    class Wire(asyncio.Transport):
        def __init__(self) -> None:
            super().__init__()
            self.did: list[object] = []

        def write(self, data: bytes | bytearray | memoryview) -> None:
            self.did.append(bytes(data))

        def close(self) -> None:
            self.did.append("closed")

    wire = Wire()
    near.connection_made(wire)
    assert wire.did == [b"early", "closed"]


@pytest.mark.parametrize(("way", "status"), [(Route.REFUSE, b"403 Forbidden"), (Route.TUNNEL, b"502 Bad Gateway")])
def test_a_tunnel_that_is_refused_or_leads_nowhere_is_answered(way: Route, status: bytes) -> None:
    async def play() -> None:
        async with gateway(Ledger(way=way)) as port, client(port) as (reader, writer):
            # Port 443 of a loopback address that nobody has.
            writer.write(b"CONNECT 127.255.255.254:443 HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = await asyncio.wait_for(reader.read(), PATIENCE)
            assert answer.startswith(b"HTTP/1.1 " + status + b"\r\n")

    run(play())


def test_the_gateway_does_not_tunnel_to_itself() -> None:
    async def play() -> None:
        async with gateway(Ledger()) as port, client(port) as (reader, writer):
            writer.write(b"CONNECT localhost:%d HTTP/1.1\r\nHost: x\r\n\r\n" % port)
            assert (await asyncio.wait_for(reader.read(), PATIENCE)).startswith(b"HTTP/1.1 508 ")

    run(play())


@pytest.mark.parametrize(
    "sent", [b"CONNECT  HTTP/1.1\r\n\r\n", b"CONNECT h:port HTTP/1.1\r\n\r\n", b"CONNECT \r\n\r\n"]
)
def test_a_connect_to_nowhere_is_remarked_on_and_closed(sent: bytes) -> None:
    async def play() -> None:
        ledger = Ledger()
        async with gateway(ledger) as port, client(port) as (reader, writer):
            writer.write(sent)
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
        assert any("did not speak HTTP" in remark for remark in ledger.remarks)

    run(play())
