"""Connections to the real providers, kept warm.

The pool exists because SDKs close their connection after each stream: with it the provider still sees a
kept-alive client, and a recorded run is not slower than a bare one.
"""

import asyncio
from typing import Protocol, cast

from rewind.gateway.acknowledgement import acknowledge
from rewind.gateway.dial import Dialer
from rewind.gateway.exchange import Origin
from rewind.gateway.options import ParentProxy

IDLE_LIMIT = 4.0
"""Seconds an idle connection is trusted: below the keep-alive of the servers we know (uvicorn has 5)."""


MOST_IDLE = 256
"""So many connections may wait for their next exchange."""


class Carrier(Protocol):
    """Who an upstream connection works for at the moment."""

    def upstream_data(self, data: bytes) -> None: ...

    def upstream_lost(self, error: Exception | None) -> None: ...

    def upstream_full(self, full: bool) -> None: ...


class UpstreamConnection(asyncio.Protocol):
    """One connection to an origin; carries one exchange at a time."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.carrier: Carrier | None = None
        self.used = False
        self.absolute_form: ParentProxy | None = None
        """Set for plain HTTP through a parent proxy: it wants the whole URL in the request line."""
        self.idle_since = 0.0
        self.lost = False
        self._transport: asyncio.Transport | None = None

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None, "used before it was connected"
        return self._transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are not subclasses

    def data_received(self, data: bytes) -> None:
        if self.carrier is None:
            self.transport.abort()  # nobody asked: this connection is out of step
        else:
            self.carrier.upstream_data(data)
            acknowledge(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        if self.carrier is not None:
            self.carrier.upstream_lost(exc)

    def pause_writing(self) -> None:
        if self.carrier is not None:
            self.carrier.upstream_full(True)

    def resume_writing(self) -> None:
        if self.carrier is not None:
            self.carrier.upstream_full(False)


class Pool:
    """Kept-alive connections to origins: few, and each for seconds only, whether anybody wants it again or not."""

    def __init__(self, dialer: Dialer) -> None:
        self.dialer = dialer
        self._idle: dict[Origin, list[UpstreamConnection]] = {}
        self._warming: dict[Origin, tuple[asyncio.Task[UpstreamConnection], float]] = {}
        """Each with when it began."""
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many connections wait for somebody who wants them."""
        return sum(map(len, self._idle.values())) + len(self._warming)

    def warm(self, origin: Origin) -> None:
        """Start a connection now, because a request is about to want it."""
        if origin not in self._idle and origin not in self._warming and len(self._warming) < MOST_IDLE:
            loop = asyncio.get_running_loop()
            task = loop.create_task(self.fresh(origin))
            task.add_done_callback(_look_at)
            self._warming[origin] = task, loop.time()
            self._sweep_later()

    def idle(self, origin: Origin) -> UpstreamConnection | None:
        """A connection for one exchange that waits for it."""
        now = asyncio.get_running_loop().time()
        idle = self._idle.pop(origin, [])
        while idle:
            connection = idle.pop()
            if _is_usable(connection, now):
                if idle:
                    self._idle[origin] = idle
                return connection
        return None

    async def acquire(self, origin: Origin) -> UpstreamConnection:
        """A connection for one exchange; raises UpstreamFailed."""
        if (connection := self.idle(origin)) is not None:
            return connection
        if origin in self._warming:
            connection = await self._warming.pop(origin)[0]
            connection.used = True  # it may have waited so long that the other end has left
            if not connection.lost:
                return connection
        return await self.fresh(origin)

    async def fresh(self, origin: Origin) -> UpstreamConnection:
        """A connection nobody has used."""
        connection = UpstreamConnection(origin)
        if origin.scheme == "http":
            connection.absolute_form = self.dialer.parent(origin)
        await self.dialer.open(origin, connection)
        return connection

    def release(self, connection: UpstreamConnection) -> None:
        """Give back a connection that can carry another exchange."""
        connection.carrier = None
        connection.used = True
        connection.idle_since = asyncio.get_running_loop().time()
        if self._closed:
            connection.transport.abort()
        elif not connection.lost:
            connection.transport.resume_reading()
            self._idle.setdefault(connection.origin, []).append(connection)
            if self.waiting > MOST_IDLE:
                self._drop_oldest()
            self._sweep_later()

    def _drop_oldest(self) -> None:
        oldest = min((idle[0] for idle in self._idle.values()), key=lambda one: one.idle_since)
        oldest.transport.abort()
        self._keep(oldest.origin, self._idle[oldest.origin][1:])

    def _keep(self, origin: Origin, idle: list[UpstreamConnection]) -> None:
        if idle:
            self._idle[origin] = idle
        else:
            self._idle.pop(origin, None)

    def _sweep_later(self) -> None:
        if self._sweeping is None and not self._closed:
            self._sweeping = asyncio.get_running_loop().call_later(IDLE_LIMIT, self._sweep)

    def _sweep(self) -> None:
        """Close what nobody wanted in time."""
        self._sweeping = None
        now = asyncio.get_running_loop().time()
        for origin, idle in list(self._idle.items()):
            self._keep(origin, [connection for connection in idle if _is_usable(connection, now)])
        for origin, (task, began) in list(self._warming.items()):
            if task.done() and now - began > IDLE_LIMIT:
                del self._warming[origin]
                _close_warmed(task)
        if self.waiting:
            self._sweep_later()

    def close(self) -> None:
        """Let go of everything that waits. What is under way may go on, and is not kept afterwards."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        for idle in self._idle.values():
            for connection in idle:
                connection.transport.abort()
        for task, _ in self._warming.values():
            task.add_done_callback(_close_warmed)
            task.cancel()
        self._idle.clear()
        self._warming.clear()


def _is_usable(connection: UpstreamConnection, now: float) -> bool:
    """False for one that the other end has closed, and for one that has waited too long: that is closed here."""
    if connection.lost or connection.transport.is_closing():
        return False
    if now - connection.idle_since > IDLE_LIMIT:
        connection.transport.abort()
        return False
    return True


def _look_at(task: "asyncio.Task[UpstreamConnection]") -> None:
    """A warmed connection that failed is reported to the next request that wants it, and to nothing else."""
    if not task.cancelled():
        task.exception()


def _close_warmed(task: "asyncio.Task[UpstreamConnection]") -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().transport.abort()
