"""The fake provider: TLS on 127.0.0.1, prebuilt answers, as little work per request as Python allows.

``python -m bench.upstream CERTIFICATE`` prints its port and serves until its standard input closes, so it cannot
outlive the process that started it.
"""

import asyncio
import contextlib
import ssl
import sys
import threading
import time
from collections.abc import Callable
from typing import cast

from bench import traffic


class Provider(asyncio.Protocol):
    """One connection. Requests come one at a time: the load client does not pipeline."""

    def __init__(self) -> None:
        self._read = bytearray()
        self._wanted = 0
        """How long the request is with its head; 0 while the head is incomplete."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its bases

    def data_received(self, data: bytes) -> None:
        read = self._read
        read += data
        if not self._wanted:
            end = read.find(b"\r\n\r\n")
            if end < 0:
                return
            self._wanted = end + 4 + header(read, end, b"content-length:")
        if len(read) < self._wanted:
            return
        self._wanted = 0
        end = read.find(b"\r\n\r\n")
        gap, think = header(read, end, b"x-bench-gap:", absent=-1), header(read, end, b"x-bench-think:")
        at = read.rfind(traffic.MARK) + len(traffic.MARK)
        number = int(read[at : at + 8])
        read.clear()
        if think:
            asyncio.get_running_loop().call_later(think / 1000, self._transport.write, traffic.answer(number))
        elif gap < 0:
            self._transport.write(traffic.answer(number))
        else:
            self._transport.write(traffic.STREAM_HEAD)
            self._next_event(0, gap / 1000)

    def _next_event(self, place: int, gap: float) -> None:
        """Each event is a write of its own; slow streams have fewer, or a round would take minutes."""
        if self._transport.is_closing():
            return
        if place == (traffic.EVENTS if gap == 0 else traffic.SLOW_EVENTS):
            self._transport.write(traffic.STREAM_END)
            return
        self._transport.write(traffic.event(place, time.monotonic_ns()))
        asyncio.get_running_loop().call_later(gap, self._next_event, place + 1, gap)


def header(read: bytearray, end: int, name: bytes, absent: int = 0) -> int:
    head = read[:end].lower()
    at = head.find(name)
    return absent if at < 0 else int(head[at + len(name) :].split(b"\r\n", 1)[0])


async def serve(factory: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None = None) -> None:
    """Print the port, and serve until whoever started this process has gone."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(factory, "127.0.0.1", 0, ssl=tls, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    orphaned = asyncio.Event()

    def watch() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(orphaned.set)

    threading.Thread(target=watch, daemon=True).start()
    await orphaned.wait()
    server.close()


def server_context(certificate: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def main() -> None:
    factory = None
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(serve(Provider, server_context(sys.argv[1])))


if __name__ == "__main__":
    main()
