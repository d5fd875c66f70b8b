"""A real gateway between real loopback sockets, with a handler that only remembers."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from rewind.gateway.dial import Dialer
from rewind.gateway.exchange import Pass, Route, Verdict
from rewind.gateway.listener import listen
from rewind.gateway.options import UpstreamOptions
from rewind.gateway.server import Gateway
from rewind.gateway.upstream import Pool
from rewind.model.http import Headers, RequestHead, ResponseHead
from rewind.model.step import Ending

PATIENCE = 10.0
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Remembered:
    """An exchange that keeps what it was told."""

    head: RequestHead
    verdict: Verdict = field(default_factory=Pass)
    streams: bool = True
    """The request may go out before its body is complete."""
    may_end: asyncio.Event | None = None
    """The end is written down when this is set."""
    body: bytes | None = None
    answer: ResponseHead | None = None
    pieces: list[bytes] = field(default_factory=list)
    trailers: Headers = ()
    ending: Ending | None = None
    reason: str | None = None
    ending_asked: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def early(self) -> bool:
        return self.streams

    def arrived(self, body: bytes | None) -> Verdict:
        self.body = body
        return self.verdict

    def answer_began(self, head: ResponseHead) -> None:
        self.answer = head

    def answer_piece(self, data: bytes, *, ends_chunk: bool) -> None:
        self.pieces.append(data)

    def about_to_show(self) -> None: ...

    async def answer_ended(self, ending: Ending, *, trailers: Headers = (), reason: str | None = None) -> None:
        assert self.ending is None, "an exchange ends once"
        self.ending, self.trailers, self.reason = ending, trailers, reason
        self.ending_asked.set()
        if self.may_end is not None:
            await self.may_end.wait()
        self.ended.set()

    def frame_agrees(self, recorded: str, sent: str) -> bool:
        return recorded == sent

    def missed(self, reason: str) -> None:
        self.reason = reason


@dataclass(slots=True)
class Ledger:
    """A handler: every exchange, in order of arrival."""

    make: Callable[[RequestHead], Remembered] = Remembered
    exchanges: list[Remembered] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    way: Route = Route.TUNNEL
    forwards_everything: bool = True

    def route(self, host: str, port: int) -> Route:
        return self.way

    def begin(self, head: RequestHead) -> Remembered:
        self.exchanges.append(self.make(head))
        return self.exchanges[-1]

    def remark(self, subject: str, text: str) -> None:
        self.remarks.append(f"{subject}: {text}")


class NoCertificates:
    """These tests speak plain HTTP."""

    def server_context(self, host: str) -> ssl.SSLContext:
        raise AssertionError("nobody speaks TLS here")

    def sni_context(self, unknown: Callable[[str], None]) -> ssl.SSLContext:
        raise AssertionError("nobody speaks TLS here")


@dataclass(slots=True)
class Upstream:
    """A server whose every connection is a coroutine of the test's."""

    port: int = 0
    connections: int = 0
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    def request(self, body: bytes = b"", *, more: str = "") -> bytes:
        """A request that the gateway will bring here."""
        head = f"POST /v1/x HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{more}Content-Length: {len(body)}\r\n\r\n"
        return head.encode() + body


@asynccontextmanager
async def upstream(serve: Serve, **options: Any) -> AsyncIterator[Upstream]:
    """A server that runs ``serve`` for every connection; whatever it raises fails the test."""
    found = Upstream()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.connections += 1
        task = asyncio.current_task()
        assert task is not None
        found.tasks.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await serve(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, **options)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        await server.wait_closed()
        for task in found.tasks:
            task.cancel()
        for outcome in await asyncio.gather(*found.tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome


@asynccontextmanager
async def gateway(ledger: Ledger, *, online: bool = True) -> AsyncIterator[int]:
    """The port of a gateway; when it is left, everything under way has settled and nothing went wrong unseen."""
    loop = asyncio.get_running_loop()
    wrong: list[str] = []
    loop.set_exception_handler(lambda _, context: wrong.append(f"{context['message']} {context.get('exception')!r}"))
    listener, stop = listen(0), asyncio.Event()
    pool = Pool(Dialer(UpstreamOptions(), {})) if online else None
    before = asyncio.all_tasks()
    running = loop.create_task(Gateway(listener, ledger, NoCertificates(), pool).run(stop))
    try:
        yield listener.getsockname()[1]
    finally:
        stop.set()
        await asyncio.wait_for(running, PATIENCE)
    # As the runner of an event loop does: what has not settled by now is lost.
    left = [task for task in asyncio.all_tasks() - before if "rewind" in str(task.get_stack())]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    assert not wrong, wrong


@asynccontextmanager
async def client(port: int, **options: Any) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, **options)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def answer_on(reader: asyncio.StreamReader) -> bytes:
    """One answer with a length, head and body."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return head + await asyncio.wait_for(reader.readexactly(length), PATIENCE)


async def request_on(reader: asyncio.StreamReader) -> bytes:
    """One request with a length, head and body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return head + await reader.readexactly(length)


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait for something that nobody announces."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110  there is nobody to set an event
            await asyncio.sleep(0.002)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 3 * PATIENCE))
