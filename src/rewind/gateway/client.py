"""One client connection through any of the entries: requests are read one at a time and answered in order."""

import asyncio
from dataclasses import field
from typing import NamedTuple, Protocol, cast

from rewind.dataclass import dataclass
from rewind.errors import DamagedStore
from rewind.gateway.acknowledgement import acknowledge
from rewind.gateway.exchange import Decided, Exchange, Hold, Origin, Pass, Play, Reply, RequestHandler, Verdict
from rewind.gateway.http1 import MAX_HEAD, BadMessage, IncomingRequest, find_head_end, refit_head, write_head
from rewind.gateway.playout import play_at_once, play_paced
from rewind.gateway.relay import Relay
from rewind.gateway.targets import NoOrigin, aim
from rewind.gateway.upstream import Pool, UpstreamConnection
from rewind.gateway.websocket import FramePlayer, FrameRelay
from rewind.model.http import Headers, HttpRequest, HttpResponse, RequestHead, ResponseHead

MAX_KEPT_BODY = 256 * 1024 * 1024
"""A request body beyond this is passed on but not kept; the step says so."""

MAX_WAITING = 256 * 1024
"""Bytes that may wait behind an unfinished answer before the client is told to slow down."""

LAST_WORD_SECONDS = 1.0
"""How long a client that is still sending may take to read an answer that came early."""


class Peer(NamedTuple):
    """A client on this machine, as both ends of its connection know it."""

    port: int
    binding: bytes | None = None
    """The channel binding (RFC 5929) of its TLS; ``None`` where it speaks in the clear."""


class Callers(Protocol):
    """Whose requests come through a gateway that several runs share."""

    def context_of(self, peer: Peer) -> "RunContext":
        """The context of the run whose request begins to arrive from there."""
        ...

    def keeps(self, peer: Peer) -> bool:
        """False where the owner of the next request could not be determined: the connection ends with the answer."""
        ...

    def left(self, peer: Peer) -> None:
        """That connection is over."""
        ...


@dataclass(frozen=True, slots=True)
class RunContext:
    """What every connection of one gateway shares; in a shared gateway, every request of one run."""

    handler: RequestHandler
    pool: Pool | None
    """``None``: this gateway cannot reach any network at all."""
    port: int
    relays: set[Relay] = field(default_factory=set)
    """Exchanges under way with an origin, some of them for clients that have left."""
    callers: Callers | None = None
    """``None``: all requests are of one run."""


class ClientConnection(asyncio.Protocol):
    """Reads requests, asks the handler, and sees each answer through."""

    def __init__(self, context: RunContext, origin: Origin | None) -> None:
        self._context = context
        self._callers = context.callers
        self._peer = Peer(0)
        self._origin = origin
        """Fixed inside a CONNECT tunnel and behind SNI; otherwise each request names its own."""
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._incoming: IncomingRequest | None = None
        self._head: RequestHead | None = None
        self._exchange: Exchange | None = None
        self._relay: Relay | None = None
        self._frames: FrameRelay | FramePlayer | None = None
        self._raw: list[bytes] = []
        self._body: list[bytes] = []
        self._body_size = 0
        self._paced: asyncio.Task[None] | None = None
        self._held: asyncio.Future[Decided] | None = None
        self._full = False
        """The client does not read; told to each relay."""
        self._reading_held = False
        self._room = asyncio.Event()
        self._room.set()
        self._advancing = False
        self._leaving = False

    # ── asyncio's side ───────────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are not subclasses
        if self._callers is not None:
            tls = transport.get_extra_info("ssl_object")
            port = transport.get_extra_info("peername")[1]
            self._peer = Peer(port, None if tls is None else tls.get_channel_binding())

    def data_received(self, data: bytes) -> None:
        if self._leaving:
            return
        if self._frames is not None:
            self._frames.client_data(data)
        else:
            self._buffer += data
            self._advance()
        half_a_request = self._buffer if self._incoming is None else not self._incoming.complete
        if self._transport is not None and (half_a_request or self._frames is not None):
            acknowledge(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._callers is not None:
            self._callers.left(self._peer)
        if self._frames is not None:
            self._frames.client_lost()
        elif self._relay is not None:
            self._relay.client_lost()
        if self._paced is not None:
            self._paced.cancel()
        if self._held is not None:
            self._held.cancel()

    def pause_writing(self) -> None:
        self._full = True
        self._room.clear()
        if self._relay is not None:
            self._relay.client_full(True)

    def resume_writing(self) -> None:
        self._full = False
        self._room.set()
        if self._relay is not None:
            self._relay.client_full(False)

    # ── a relay's side ───────────────────────────────────────────────────────────────────────────────────

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def hold_reading(self, held: bool) -> None:
        if self._transport is not None and held != self._reading_held:
            self._reading_held = held
            self._transport.pause_reading() if held else self._transport.resume_reading()

    def answered(self, *, keep_alive: bool) -> None:
        complete = self._incoming is not None and self._incoming.complete
        self._rest()
        if not complete:
            self._leave()
            return
        if not keep_alive or (self._callers is not None and not self._callers.keeps(self._peer)):
            self.close()
            return
        self.hold_reading(False)
        self._advance()

    def drop(self, *, at_once: bool) -> None:
        self._rest()
        if self._transport is not None:
            self._transport.abort() if at_once else self._transport.close()

    def upgraded(self, relay: Relay, connection: UpstreamConnection, first: bytes) -> None:
        self._frames = FrameRelay(self, relay, connection, first)
        if self._buffer:
            self._frames.client_data(bytes(self._buffer))
            self._buffer.clear()

    # ── requests, one after the other ────────────────────────────────────────────────────────────────────

    def _advance(self) -> None:
        """Read on as far as the bytes reach; what follows an unfinished exchange waits its turn."""
        if self._advancing:
            return  # an answer was given at once: the loop below goes on with the next request
        self._advancing = True
        try:
            while self._transport is not None and self._frames is None:
                if self._incoming is None:
                    if not self._buffer or not self._read_head():
                        return
                elif self._incoming.complete:
                    if len(self._buffer) > MAX_WAITING:
                        self.hold_reading(True)
                    return
                elif self._buffer:
                    self._read_body()
                else:
                    return
        except BadMessage as problem:
            self._reject(400, "Bad Request", f"not an HTTP/1.1 request: {problem}")
        except NoOrigin as problem:
            self._reject(404, "Not Found", str(problem))
        finally:
            self._advancing = False

    def _read_head(self) -> bool:
        while self._buffer.startswith(b"\r\n"):  # RFC 9112, section 2.2: a robust server ignores these
            del self._buffer[:2]
        end = find_head_end(self._buffer)
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                raise BadMessage("its head is too long")
            return False
        incoming = IncomingRequest(bytes(self._buffer[:end]))
        del self._buffer[:end]
        if self._callers is not None:
            self._context = self._callers.context_of(self._peer)
        head, wire_head = aim(incoming, self._origin, self._context.port)
        self._incoming, self._head = incoming, head
        self._exchange = self._context.handler.begin(head)
        if self._exchange.early():
            self._forward(wire_head)
        else:
            self._raw.append(wire_head)
            if not incoming.complete and "100-continue" in (incoming.header("expect") or "").lower():
                self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if incoming.complete:
            self._arrived()
        return True

    def _read_body(self) -> None:
        assert self._incoming is not None, "a body follows a head"
        data = bytes(self._buffer)
        taken = self._incoming.consume(data)
        del self._buffer[:taken]
        piece = self._incoming.take_body()
        self._body_size += len(piece)
        if self._body_size <= MAX_KEPT_BODY:
            self._body.append(piece)
        if self._relay is not None:
            self._relay.send(data[:taken])
        elif self._body_size <= MAX_KEPT_BODY:
            self._raw.append(data[:taken])
        else:
            self._reject(413, "Content Too Large", f"a request body over {MAX_KEPT_BODY >> 20} MiB cannot be matched")
            return
        if self._incoming.complete:
            self._arrived()

    def _arrived(self) -> None:
        assert self._exchange is not None and self._incoming is not None, "a request is being read"
        body = b"".join(self._body) if self._body_size <= MAX_KEPT_BODY else None
        self._body = []
        verdict = self._exchange.arrived(body)
        if self._relay is not None:
            self._relay.request_complete(keep_alive=self._incoming.keep_alive)
        else:
            self._carry_out(verdict)

    def _carry_out(self, verdict: Verdict) -> None:
        assert self._incoming is not None, "a request is waiting for its answer"
        match verdict:
            case Play(response=response):
                self._play(verdict, response)
            case Reply(status=status, reason=reason, headers=headers, body=body):
                self._answer(status, reason, headers, body)
                self.answered(keep_alive=self._incoming.keep_alive)
            case Pass(changed=changed):
                raw, self._raw = self._raw, []
                self._forward(b"".join(raw) if changed is None else _rewritten(raw[0], changed))
                assert self._relay is not None, "forwarding has begun"
                self._relay.request_complete(keep_alive=self._incoming.keep_alive)
            case Hold(decided=decided):
                self._held = decided
                decided.add_done_callback(self._decided)

    def _play(self, play: Play, response: HttpResponse | None) -> None:
        assert self._incoming is not None and self._transport is not None, "a client is waiting for its answer"
        if response is None:
            self.drop(at_once=True)
        elif response.head.status == 101:
            self._play_frames(play)
        elif play.pace == 0.0 and response.long_body is None:
            usable = play_at_once(self._transport, play, self._incoming.method)
            self.answered(keep_alive=usable and self._incoming.keep_alive)
        else:
            self._paced = asyncio.get_running_loop().create_task(self._play_paced(play))

    def _decided(self, decided: "asyncio.Future[Decided]") -> None:
        self._held = None
        if self._transport is None:
            return  # the client gave up while it was held
        try:
            self._carry_out(decided.result())
        except BaseException:
            self.drop(at_once=True)  # nobody else would ever answer it
            raise

    def _forward(self, raw: bytes) -> None:
        assert self._exchange is not None and self._head is not None, "a request is being read"
        assert self._context.pool is not None, "an offline handler forwards nothing"
        relay, relays = Relay(self, self._exchange, self._head, self._context.pool), self._context.relays
        relays.add(relay)
        relay.task.add_done_callback(lambda _task: relays.discard(relay))
        relay.client_full(self._full)
        relay.send(raw)
        self._relay = relay

    async def _play_paced(self, play: Play) -> None:
        assert self._transport is not None and self._incoming is not None, "the client is still there"
        try:
            usable = await play_paced(self._transport, play, self._incoming.method, has_room=self._room.wait)
        except Exception as problem:  # noqa: BLE001  whatever it is: nobody else would ever end this answer
            assert self._exchange is not None, "its answer is being played"
            why = (
                f"where it is damaged: {problem.message}" if isinstance(problem, DamagedStore) else f"here: {problem!r}"
            )
            self._exchange.missed(f"Rewind: an answer breaks off {why}")
            self.drop(at_once=True)
            return
        self._paced = None
        self.answered(keep_alive=usable and self._incoming is not None and self._incoming.keep_alive)

    def _play_frames(self, play: Play) -> None:
        assert self._incoming is not None and self._exchange is not None, "a request is waiting for its answer"
        key = self._incoming.header("sec-websocket-key") or ""
        self._frames = FramePlayer(self, self._exchange, play, key)

    def _answer(self, status: int, reason: str, headers: Headers, body: bytes) -> None:
        head = ResponseHead(status=status, reason=reason, headers=())
        method = self._incoming.method if self._incoming is not None else "GET"
        self.write(
            write_head(head, (*headers, ("Content-Length", str(len(body))))) + (b"" if method == "HEAD" else body)
        )

    def _reject(self, status: int, reason: str, text: str) -> None:
        """A request we cannot read: the connection ends here."""
        self._answer(
            status, reason, (("Content-Type", "text/plain"), ("Connection", "close")), f"rewind: {text}\n".encode()
        )
        if self._relay is not None:
            self._relay.client_lost()
        self._rest()
        self._leave()

    def _leave(self) -> None:
        """Close, but throw away what still comes: closed at once, the client would lose the answer to a reset."""
        self._leaving = True
        self._buffer.clear()
        if self._transport is not None:
            self.hold_reading(False)
            if self._transport.can_write_eof():
                self._transport.write_eof()
            asyncio.get_running_loop().call_later(LAST_WORD_SECONDS, self.close)

    def _rest(self) -> None:
        """Ready for the next request."""
        self._incoming = self._head = self._exchange = self._relay = None
        self._raw = []
        self._body_size = 0


def _rewritten(raw_head: bytes, changed: HttpRequest) -> bytes:
    """The client's head around another body."""
    gone = () if changed.head.header("content-encoding") is not None else (b"content-encoding",)
    return refit_head(raw_head, changed.head.target, len(changed.body), drop=gone) + changed.body
