"""The gateway: one loopback port with three entries, told apart by a connection's first bytes.

``CONNECT`` is for proxied connections (TLS is intercepted for recorded hosts, others get an untouched tunnel); a TLS
greeting is for clients whose hooks send them here directly; anything else is plain HTTP: a
proxied URL, a base URL, or a redirected request that names its host.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Protocol, cast

from rewind.gateway.acknowledgement import acknowledge
from rewind.gateway.client import Callers, ClientConnection, Peer, RunContext
from rewind.gateway.dial import UpstreamFailed
from rewind.gateway.exchange import Origin, RequestHandler, Route
from rewind.gateway.http1 import MAX_HEAD, BadMessage
from rewind.gateway.targets import UNKNOWN_PORT, origin_of
from rewind.gateway.upstream import Pool

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
TLS_GREETING = b"\x16"
HTTP_METHODS = (b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS")
FIRST_WORD_SECONDS = 0.3
HANDSHAKE_SECONDS = 30.0
LINGER_SECONDS = 1.2
"""How long exchanges under way may take to settle when the run is over."""


class TunnelEnd(asyncio.Protocol):
    """One end of a tunnel; what comes in here goes out at the other."""

    def __init__(self, over: Callable[[], None] | None = None) -> None:
        """``over`` is called when its connection has ended."""
        self._when_over = over
        self._transport: asyncio.Transport | None = None
        self._other: TunnelEnd | None = None
        self._early: list[bytes] = []
        self._finished = False
        self._over = False

    def join(self, other: "TunnelEnd") -> None:
        """Make these two the ends of one tunnel."""
        self._other, other._other = other, self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are not subclasses
        for data in self._early:
            self._transport.write(data)
        if self._over:
            self._transport.close()
        elif self._finished:
            self._transport.write_eof()

    def data_received(self, data: bytes) -> None:
        assert self._other is not None, "joined before it is read"
        self._other.send(data)
        if self._transport is not None:
            acknowledge(self._transport)

    def send(self, data: bytes) -> None:
        if self._transport is None:
            self._early.append(data)
        else:
            self._transport.write(data)

    def eof_received(self) -> bool:
        """This side has said all; it may still be listening."""
        assert self._other is not None, "joined before it is read"
        self._other.finish()
        return True

    def finish(self) -> None:
        """Nothing more will be sent from here."""
        self._finished = True
        if self._transport is None:
            return
        if self._other is not None and self._other._finished:
            self.close()
            self._other.close()
        else:
            self._transport.write_eof()

    def close(self) -> None:
        self._over = True
        if self._transport is not None:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._when_over is not None:
            self._when_over()
        if self._other is not None:
            self._other.close()

    def pause_writing(self) -> None:
        if self._other is not None and self._other._transport is not None:
            self._other._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._other is not None and self._other._transport is not None:
            self._other._transport.resume_reading()


class Certificates(Protocol):
    """Whoever can show a certificate for a host."""

    def server_context(self, host: str) -> ssl.SSLContext: ...

    def sni_context(self, unknown: Callable[[str], None]) -> ssl.SSLContext: ...


class Gateway:
    """Accepts connections until it is stopped."""

    def __init__(
        self,
        listener: socket.socket,
        handler: RequestHandler,
        certificates: Certificates,
        pool: Pool | None,
        callers: Callers | None = None,
    ) -> None:
        """With ``callers``, ``handler`` and ``pool`` serve only what no run has a part in."""
        listener.setblocking(False)
        self._listener = listener
        self._handler = handler
        self._certificates = certificates
        self._pool = pool
        self._context = RunContext(handler, pool, listener.getsockname()[1], callers=callers)
        self._tasks: dict[asyncio.Task[None], socket.socket] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until ``stop`` is set, then let what is under way settle."""
        loop, number = asyncio.get_running_loop(), self._listener.fileno()
        loop.add_reader(number, self._accept)
        await stop.wait()
        loop.remove_reader(number)
        self._listener.close()
        await self._settle()

    def _accept(self) -> None:
        """Take the connection that waits. A callback, and not a task: a cancelled task would lose its connection."""
        loop = asyncio.get_running_loop()
        try:
            sock, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # it went away meanwhile
            return
        except OSError as error:
            # Out of file descriptors, most likely: say so, and give others time to close.
            self._handler.remark("connections", f"could not be accepted: {error}")
            loop.remove_reader(self._listener.fileno())
            loop.call_later(0.05, self._accept_again)
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = loop.create_task(self._welcome(sock))
        self._tasks[task] = sock
        task.add_done_callback(self._welcomed)

    def _accept_again(self) -> None:
        if self._listener.fileno() >= 0:  # else it was stopped meanwhile
            asyncio.get_running_loop().add_reader(self._listener.fileno(), self._accept)

    def _welcomed(self, task: asyncio.Task[None]) -> None:
        sock = self._tasks.pop(task)
        if task.cancelled():  # it was not handed on
            sock.close()

    async def _settle(self) -> None:
        """Answers whose clients ended with the run are read for a moment longer; what came is recorded."""
        if self._context.relays:
            await asyncio.wait([relay.task for relay in self._context.relays], timeout=LINGER_SECONDS)
        while self._context.relays:
            for relay in self._context.relays:
                relay.stop()
            await asyncio.wait([relay.task for relay in self._context.relays])
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._pool is not None:
            self._pool.close()

    async def _welcome(self, sock: socket.socket) -> None:
        """Find out which entry it is for, and hand the connection on."""
        callers, peer, taken = self._context.callers, _peer(sock), False
        try:
            taken = await self._handed_on(sock)
        except (BadMessage, ValueError) as problem:  # ValueError: a host name that no certificate could carry
            self._handler.remark("a client", f"did not speak HTTP: {problem}")
            sock.close()
        except (ConnectionError, TimeoutError, BrokenPipeError):
            sock.close()  # the client went away before it said anything
        finally:
            if callers is not None and not taken:
                callers.left(peer)

    async def _handed_on(self, sock: socket.socket) -> bool:
        """Whether it was handed on to something that reports its end."""
        first = await _peek(sock)
        if first.startswith(TLS_GREETING):
            return await self._secure(sock, None)
        if first.startswith(b"CONNECT "):
            return await self._connect(sock)
        if first:
            return await self._plain(sock, None)
        sock.close()
        return False

    async def _connect(self, sock: socket.socket) -> bool:
        loop = asyncio.get_running_loop()
        head = await _read_head(sock)
        authority = head.split(b" ", 2)[1].decode("latin-1")
        origin = origin_of(authority, "https")
        if origin.port == self._context.port and origin.host in ("127.0.0.1", "localhost", "::1"):
            await _turn_away(sock, "508 Loop Detected", "the gateway was asked to connect to itself")
            return False
        context = self._context
        if context.callers is not None:
            context = context.callers.context_of(_peer(sock))
        match context.handler.route(origin.host, origin.port):
            case Route.REFUSE:
                await _turn_away(sock, "403 Forbidden", f"{authority} is not on tape, and a replay stays offline")
            case Route.TUNNEL if origin.port == 443:
                return await self._tunnel(sock, origin, context.pool)
            case Route.TUNNEL:
                return await self._tunnel_or_plain(sock, origin, context.pool)
            case Route.INTERCEPT:
                if context.pool is not None and context.handler.forwards_everything:
                    context.pool.warm(origin)
                await loop.sock_sendall(sock, ESTABLISHED)
                first = await _peek(sock)
                if first.startswith(TLS_GREETING):
                    return await self._secure(sock, origin)
                if first:
                    return await self._plain(sock, Origin("http", origin.host, origin.port))
                sock.close()
        return False

    async def _secure(self, sock: socket.socket, origin: Origin | None) -> bool:
        """Speak TLS as the host the client wants; without an origin, as the one it names."""
        turned_away: list[str] = []
        if origin is None:
            context = self._certificates.sni_context(turned_away.append)
            protocol: ClientConnection = _SniConnection(self._context)
        else:
            context = self._certificates.server_context(origin.host)
            protocol = ClientConnection(self._context, origin)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol, sock, ssl=context, ssl_handshake_timeout=HANDSHAKE_SECONDS
            )
        except (ssl.SSLError, ConnectionError, TimeoutError) as error:
            sock.close()
            for name in turned_away:
                self._handler.route(name, 443)  # which remarks on what is not on tape
            if isinstance(error, ssl.SSLError) and not turned_away:
                subject = origin.host if origin is not None else "a client"
                self._handler.remark(subject, f"a client refused our certificate ({error.reason or error})")
            return False
        return True

    async def _plain(self, sock: socket.socket, origin: Origin | None) -> bool:
        await asyncio.get_running_loop().connect_accepted_socket(lambda: ClientConnection(self._context, origin), sock)
        return True

    async def _tunnel_or_plain(self, sock: socket.socket, origin: Origin, pool: Pool | None) -> bool:
        """Some proxy agents tunnel plain HTTP too; what looks like a model server in there is recorded."""
        await asyncio.get_running_loop().sock_sendall(sock, ESTABLISHED)
        try:
            async with asyncio.timeout(FIRST_WORD_SECONDS):
                first = await _peek(sock)
        except TimeoutError:
            first = b""  # a protocol in which the server speaks first
        if first.split(b" ")[0] in HTTP_METHODS:
            return await self._plain(sock, Origin("http", origin.host, origin.port))
        return await self._tunnel(sock, origin, pool, established=True)

    async def _tunnel(
        self, sock: socket.socket, origin: Origin, pool: Pool | None, *, established: bool = False
    ) -> bool:
        assert pool is not None, "an offline handler tunnels nothing"
        callers, peer = self._context.callers, _peer(sock)
        near, far = TunnelEnd(None if callers is None else lambda: callers.left(peer)), TunnelEnd()
        near.join(far)  # before it is connected: a server may speak first
        try:
            await pool.dialer.open(origin, far, tunnel=True)
        except UpstreamFailed as failure:
            if established:
                sock.close()
            else:
                await _turn_away(sock, "502 Bad Gateway", str(failure))
            return False
        try:
            if not established:
                await asyncio.get_running_loop().sock_sendall(sock, ESTABLISHED)
            await asyncio.get_running_loop().connect_accepted_socket(lambda: near, sock)
        except OSError:
            far.close()  # the client went away meanwhile
            raise
        return True


class _SniConnection(ClientConnection):
    """At the SNI entry the origin is known when the handshake is over."""

    def __init__(self, context: RunContext) -> None:
        super().__init__(context, None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        name = getattr(transport.get_extra_info("ssl_object"), "rewind_server_name", None)
        assert name, "the SNI entry refuses clients that name no host"
        self._origin = Origin("https", name, UNKNOWN_PORT)
        super().connection_made(transport)


def _peer(sock: socket.socket) -> Peer:
    try:
        return Peer(sock.getpeername()[1])
    except OSError:  # it has gone already
        return Peer(0)


async def _readable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(sock.fileno(), wake)
    try:
        await ready
    finally:
        loop.remove_reader(sock.fileno())


async def _peek(sock: socket.socket) -> bytes:
    """The first bytes, left in the socket."""
    while True:
        try:
            return sock.recv(8, socket.MSG_PEEK)
        except BlockingIOError:
            await _readable(sock)


async def _read_head(sock: socket.socket) -> bytes:
    """A request head, and not one byte more."""
    head = bytearray()
    while True:
        try:
            seen = sock.recv(MAX_HEAD, socket.MSG_PEEK)
        except BlockingIOError:
            await _readable(sock)
            continue
        if not seen:
            raise ConnectionResetError("closed before its head was complete")
        end = (head + seen).find(b"\r\n\r\n")
        take = len(seen) if end < 0 else end + 4 - len(head)
        head += sock.recv(take)
        if end >= 0:
            return bytes(head)
        if len(head) > MAX_HEAD:
            raise BadMessage("its head is too long")


async def _turn_away(sock: socket.socket, status: str, reason: str) -> None:
    body = f"rewind: {reason}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    await asyncio.get_running_loop().sock_sendall(sock, head.encode() + body)
    sock.close()
