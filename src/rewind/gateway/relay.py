"""One exchange carried between a client and its origin, byte for byte.

Bytes go through as they come, in both directions, with back-pressure; llhttp reads along. Only the last read of
an answer waits until the exchange has been written down, so that what the agent saw complete is on disk.
When the client hangs up early (the OpenAI SDK does at every ``[DONE]``) the answer is read on for a moment, so
that the step is whole and the connection can be used again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from rewind.gateway.dial import UpstreamFailed
from rewind.gateway.exchange import Exchange, Origin
from rewind.gateway.http1 import BadMessage, IncomingResponse
from rewind.gateway.upstream import Pool, UpstreamConnection
from rewind.model.http import RequestHead
from rewind.model.step import Ending

DRAIN_SECONDS = 1.0
"""How long an answer is read on after the client left. Longer would make the provider generate for nobody."""

RESEND_LIMIT = 32 * 1024 * 1024
"""Requests up to this size can be sent again when a kept-alive connection turns out to be dead."""

RUN_ENDED = "the run ended before the answer did"

BACKLOG_LIMIT = 1024 * 1024
"""Bytes of a request that may wait for the connection; then the client is told to slow down."""


class Client(Protocol):
    """The client's side of a relay."""

    def write(self, data: bytes) -> None: ...

    def hold_reading(self, held: bool) -> None: ...

    def answered(self, *, keep_alive: bool) -> None:
        """The answer went out whole."""
        ...

    def drop(self, *, at_once: bool) -> None:
        """The answer breaks off here."""
        ...

    def upgraded(self, relay: "Relay", connection: UpstreamConnection, first: bytes) -> None:
        """Upstream said 101: from here on it is another protocol."""
        ...


class Relay:
    """Carries one request up and its answer down."""

    def __init__(self, client: Client, exchange: Exchange, head: RequestHead, pool: Pool) -> None:
        self.exchange = exchange
        self.response = IncomingResponse(head.method)
        self._client: Client | None = client
        self._head = head
        self._pool = pool
        self._connection: UpstreamConnection | None = None
        self._backlog: list[bytes] = []
        self._backlog_size = 0
        self._client_full = False
        self._sent: list[bytes] | None = []
        self._sent_size = 0
        self._request_complete = False
        self._client_keep_alive = True
        self._held = b""
        self._left_early = False
        """Bytes of the body came after the client had gone."""
        self._ended: asyncio.Future[tuple[Ending, str | None]] = asyncio.get_running_loop().create_future()
        self.task = asyncio.get_running_loop().create_task(self._settle())
        """Done when the exchange is written down and its end released."""
        self._dialling: asyncio.Task[None] | None = None

    @property
    def origin(self) -> Origin:
        return Origin(self._head.scheme, self._head.host, self._head.port)

    # ── the client's side ────────────────────────────────────────────────────────────────────────────────

    def send(self, data: bytes) -> None:
        """Bytes of the request, as the client sent them."""
        if self._sent is not None:
            self._sent.append(data)
            self._sent_size += len(data)
            if self._sent_size > RESEND_LIMIT:
                self._sent = None
        if self._connection is not None:
            self._connection.transport.write(data)
            return
        self._backlog.append(data)
        self._backlog_size += len(data)
        if self._dialling is None:
            self._begin()
        elif self._backlog_size > BACKLOG_LIMIT and self._client is not None:
            self._client.hold_reading(True)

    def _begin(self) -> None:
        """Send on a connection that waits, if there is one: a task would only begin when the loop comes round again."""
        if (waiting := self._pool.idle(self.origin)) is not None:
            self._attach(waiting)
        else:
            self._dialling = asyncio.get_running_loop().create_task(self._dial(self._pool.acquire))

    def request_complete(self, *, keep_alive: bool) -> None:
        """No more of the request will come."""
        self._request_complete = True
        self._client_keep_alive = keep_alive

    def client_lost(self) -> None:
        """The client hung up."""
        self._client = None
        if self.response.head is None or self.response.after_upgrade is not None:
            self._end(Ending.CLIENT_CLOSED, "the agent hung up before an answer came")
            return
        if self._connection is not None and not self._ended.done():
            self._connection.transport.resume_reading()
            asyncio.get_running_loop().call_later(
                DRAIN_SECONDS, self._end, Ending.CLIENT_CLOSED, "the agent hung up before the answer ended"
            )

    def client_full(self, full: bool) -> None:
        """The client's socket buffer is full, or has room again."""
        self._client_full = full
        if self._connection is not None and not self._connection.lost:
            transport = self._connection.transport
            transport.pause_reading() if full else transport.resume_reading()

    # ── upstream's side ──────────────────────────────────────────────────────────────────────────────────

    def upstream_data(self, data: bytes) -> None:
        if self._ended.done():
            self.response.keep_alive = False  # nobody asked for this: the connection is out of step
            return
        self._sent = None  # an answer has begun: nothing may be sent twice
        began = self.response.head is None
        try:
            self.response.feed(data)
        except BadMessage as problem:
            self._show(data)
            self._end(Ending.UPSTREAM_CUT, f"the upstream's answer is not HTTP: {problem}")
            return
        if began and self.response.head is not None:
            self.exchange.answer_began(self.response.head)
        for piece, ends_chunk in self.response.take_pieces():
            self._left_early = self._left_early or (self._client is None and bool(piece))
            self.exchange.answer_piece(piece, ends_chunk=ends_chunk)
        if self.response.after_upgrade is not None:
            self._switch(data)
        elif self.response.complete:
            self._held = data
            self._end(Ending.COMPLETE, None)
        else:
            self.exchange.about_to_show()
            self._show(data)

    def upstream_lost(self, error: Exception | None) -> None:
        if self._can_resend():
            self._resend()
        elif self.response.ends_with_connection() and not isinstance(error, ConnectionError):
            self._end(Ending.COMPLETE, None)
        elif self.response.head is None:
            self._end(Ending.NO_ANSWER, f"the upstream closed the connection without an answer{_because(error)}")
        else:
            self._end(Ending.UPSTREAM_CUT, f"the upstream broke off{_because(error)}")

    def upstream_full(self, full: bool) -> None:
        if self._client is not None:
            self._client.hold_reading(full)

    # ── the exchange, start to end ───────────────────────────────────────────────────────────────────────

    async def _dial(self, way: Callable[[Origin], Awaitable[UpstreamConnection]]) -> None:
        """Nobody waits for this: an exchange may end while its origin is still being dialled."""
        try:
            self._attach(await way(self.origin))
        except UpstreamFailed as failure:
            self._end(Ending.NO_ANSWER, str(failure))

    def _resend(self) -> None:
        """The kept-alive connection had been closed by the other end: the request goes out again on a new one."""
        assert self._sent is not None, "only requests that were kept are sent again"
        self._connection = None
        self._backlog, self._sent = self._sent, None
        self._dialling = asyncio.get_running_loop().create_task(self._dial(self._pool.fresh))

    def _attach(self, connection: UpstreamConnection) -> None:
        if self._ended.done():
            connection.transport.abort()
            return
        self._connection = connection
        connection.carrier = self
        if connection.absolute_form is not None and self._backlog:
            self._backlog[0] = self._for_parent(self._backlog[0], connection.absolute_form.authorization)
        if self._backlog_size > BACKLOG_LIMIT and self._client is not None:
            self._client.hold_reading(False)
        connection.transport.write(b"".join(self._backlog))
        self._backlog, self._backlog_size = [], 0
        if self._client_full:
            connection.transport.pause_reading()

    def _for_parent(self, raw_head: bytes, authorization: str | None) -> bytes:
        """The request line a parent proxy wants for plain HTTP."""
        method, target, rest = raw_head.split(b" ", 2)
        line = b" ".join((method, self._head.origin.encode() + target, rest))
        if authorization is None:
            return line
        first, _, lines = line.partition(b"\r\n")
        return first + b"\r\nProxy-Authorization: " + authorization.encode() + b"\r\n" + lines

    async def _settle(self) -> None:
        """Wait for the end, have it written down, then release what was held back."""
        ending, reason = await self._ended
        if ending is Ending.COMPLETE and self._left_early:
            how, reason = Ending.CLIENT_CLOSED, "the agent hung up early; the answer was read to its end"
        else:
            how = ending
        await self.exchange.answer_ended(how, trailers=self.response.trailers, reason=reason)
        reusable = (
            ending is Ending.COMPLETE
            and self.response.complete
            and self.response.keep_alive
            and self.response.after_upgrade is None
            and self._request_complete
            and self._client_keep_alive
        )
        # Let go of it before the client is written to: a full client must not pause what another may use next.
        connection, self._connection = self._connection, None
        if connection is not None:
            if reusable and not connection.lost:
                self._pool.release(connection)
            else:
                connection.carrier = None
                connection.transport.abort()
        client, self._client = self._client, None
        if client is None:
            return
        if self._held:
            client.write(self._held)
        if ending is Ending.COMPLETE:
            client.answered(keep_alive=reusable)
        else:
            client.drop(at_once=ending is Ending.NO_ANSWER)

    def _show(self, data: bytes) -> None:
        if self._client is not None:
            self._client.write(data)

    def _switch(self, data: bytes) -> None:
        rest = self.response.after_upgrade
        assert rest is not None and self._connection is not None, "an upgrade comes from upstream"
        self.exchange.about_to_show()
        if self._client is None:
            self._end(Ending.CLIENT_CLOSED, "the agent hung up before the protocol was switched")
            return
        self._client.write(data[: len(data) - len(rest)])
        self._client.upgraded(self, self._connection, rest)

    def finish_upgrade(self, ending: Ending, reason: str | None) -> None:
        """The switched protocol is over."""
        self._end(ending, reason)

    def _can_resend(self) -> bool:
        return (
            self._connection is not None
            and self._connection.used
            and self._sent is not None
            and self._client is not None
            and not self._ended.done()
        )

    def _end(self, ending: Ending, reason: str | None) -> None:
        if not self._ended.done():
            self._ended.set_result((ending, reason))

    def stop(self) -> None:
        """The run is over: keep what came, and let go."""
        self._end(Ending.CLIENT_CLOSED, RUN_ENDED)

    async def outlive(self, rest: Exchange) -> None:
        """The run is over: keep what came. The client hears the rest as if there had been no run, as ``rest``."""
        if self._client is None or self._ended.done():
            self.stop()
            await asyncio.wait([self.task])
            return
        kept, self.exchange = self.exchange, rest
        await kept.answer_ended(Ending.CLIENT_CLOSED, reason=RUN_ENDED)


def _because(error: Exception | None) -> str:
    return f" ({error})" if error else ""
