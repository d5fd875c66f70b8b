"""WebSockets: recorded as frames beside a verbatim tunnel, and played back frame by frame.

The form of the log is in :mod:`rewind.wire.frame_log`.
"""

import asyncio
import base64
import hashlib
import json
from typing import Any, Protocol

from rewind.gateway.exchange import Exchange, Play
from rewind.gateway.http1 import write_head
from rewind.gateway.relay import Relay
from rewind.gateway.upstream import UpstreamConnection
from rewind.model.http import HttpResponse, ResponseHead, header, without_headers
from rewind.model.step import Ending
from rewind.wire.frame_log import LoggedFrame, read_frame_log

ACCEPT_SALT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3
DATA_FRAMES = ("text", "binary", "cont")


class Wire(Protocol):
    """The client's side, once the protocol has been switched."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...

    def hold_reading(self, held: bool) -> None: ...


class FrameLog:
    """Reads both directions of a WebSocket without touching them."""

    def __init__(self, head: ResponseHead) -> None:
        # Imported here: only conversations that switch to WebSocket pay for it.
        from websockets.extensions.permessage_deflate import PerMessageDeflate
        from websockets.protocol import CLIENT, OPEN, SERVER
        from websockets.protocol import Protocol as FrameReader

        self._readers = {
            "client": FrameReader(SERVER, state=OPEN, max_size=None),
            "server": FrameReader(CLIENT, state=OPEN, max_size=None),
        }
        offered = header(head.headers, "sec-websocket-extensions") or ""
        if "permessage-deflate" in offered:
            alone = {
                "client": "client_no_context_takeover" in offered,
                "server": "server_no_context_takeover" in offered,
            }
            for side, reader in self._readers.items():
                other = "server" if side == "client" else "client"
                reader.extensions = [PerMessageDeflate(alone[side], alone[other], 15, 15)]
        self._start = asyncio.get_running_loop().time()
        self.closed = False
        self.unreadable: str | None = None

    def lines(self, side: str, data: bytes) -> bytes:
        """The log lines of the frames that these bytes completed."""
        if self.unreadable is not None:
            return b""
        reader = self._readers[side]
        reader.receive_data(data)
        reader.data_to_send()  # the answers it would give; the real peer gives its own
        if reader.parser_exc is not None and not self.closed:
            self.unreadable = f"the {side} sent frames that cannot be read: {reader.parser_exc}"
        at = int((asyncio.get_running_loop().time() - self._start) * 1_000_000)
        return b"".join(self._line(side, at, frame) for frame in reader.events_received())

    def _line(self, side: str, at: int, frame: Any) -> bytes:
        op = frame.opcode.name.lower()
        self.closed = self.closed or op == "close"
        entry: dict[str, Any] = {"from": side, "at": at, "op": op, "fin": frame.fin}
        try:
            entry["text"] = bytes(frame.data).decode("utf-8") if op == "text" else None
        except UnicodeDecodeError:
            entry["text"] = None
        if entry["text"] is None:
            del entry["text"]
            entry["base64"] = base64.b64encode(bytes(frame.data)).decode()
        return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class FrameRelay:
    """Carries a switched connection and logs its frames."""

    def __init__(self, wire: Wire, relay: Relay, upstream: UpstreamConnection, first: bytes) -> None:
        assert relay.response.head is not None, "a switched connection has an answer"
        self._wire = wire
        self._relay = relay
        self._upstream = upstream
        websocket = (relay.response.head.header("upgrade") or "").lower() == "websocket"
        self._log = FrameLog(relay.response.head) if websocket else None
        upstream.carrier = self
        if first:
            self.upstream_data(first)

    @property
    def exchange(self) -> Exchange:
        return self._relay.exchange

    def client_data(self, data: bytes) -> None:
        self._keep("client", data)
        self._upstream.transport.write(data)

    def upstream_data(self, data: bytes) -> None:
        self._keep("server", data)
        self._wire.write(data)

    def _keep(self, side: str, data: bytes) -> None:
        lines = self._log.lines(side, data) if self._log is not None else b""
        if lines:
            self.exchange.answer_piece(lines, ends_chunk=True)
            self.exchange.about_to_show()

    def upstream_lost(self, error: Exception | None) -> None:
        self._finish(Ending.UPSTREAM_CUT, "the upstream broke off")
        self._wire.close()

    def client_lost(self) -> None:
        self._upstream.transport.close()
        self._finish(Ending.CLIENT_CLOSED, "the agent hung up")

    def upstream_full(self, full: bool) -> None:
        self._wire.hold_reading(full)

    def _finish(self, ending: Ending, reason: str) -> None:
        if self._log is None:
            self._relay.finish_upgrade(ending, "switched to a protocol that is not recorded")
        elif self._log.closed:
            self._relay.finish_upgrade(Ending.COMPLETE, self._log.unreadable)
        else:
            self._relay.finish_upgrade(ending, self._log.unreadable or reason)


class FramePlayer:
    """Plays the server's half of a recorded WebSocket, and holds the agent to its own half.

    The server's frames are sent up to the next frame the agent sent in the recording; then the agent has to send
    one that means the same. If it does not, the connection is closed and the miss is reported.
    """

    def __init__(self, wire: Wire, exchange: Exchange, play: Play, request_key: str) -> None:
        from websockets.protocol import OPEN, SERVER
        from websockets.protocol import Protocol as FrameReader

        assert play.response is not None, "there is a conversation to play"
        self._wire = wire
        self._exchange = exchange
        self._pace = play.pace
        self._reader = FrameReader(SERVER, state=OPEN, max_size=None)
        self._script = read_frame_log(play.response.body)
        self._arrived: asyncio.Queue[tuple[str, bytes] | None] = asyncio.Queue()
        wire.write(_handshake(play.response, request_key))
        self._task = asyncio.get_running_loop().create_task(self._run())

    def client_data(self, data: bytes) -> None:
        self._reader.receive_data(data)
        self._reader.data_to_send()
        for frame in self._reader.events_received():
            op = frame.opcode.name.lower()  # type: ignore[union-attr]  # on this side events are frames
            if op == "ping":
                self._wire.write(_pong(bytes(frame.data)))  # type: ignore[union-attr]
            elif op in DATA_FRAMES or op == "close":
                self._arrived.put_nowait((op, bytes(frame.data)))  # type: ignore[union-attr]

    def client_lost(self) -> None:
        self._arrived.put_nowait(None)

    async def _run(self) -> None:
        before = 0
        for number, frame in enumerate(self._script, 1):
            if frame.from_client:
                if frame.op not in (*DATA_FRAMES, "close"):
                    continue
                sent = await self._arrived.get()
                if sent is None:
                    return
                if frame.op != "close" and not self._agrees(frame, *sent):
                    self._exchange.missed(f"frame {number} of the WebSocket is not the one that was recorded")
                    break
            elif frame.op != "pong":  # pings are answered when they come
                if self._pace:
                    await asyncio.sleep(max(0, frame.at - before) / 1_000_000 * self._pace)
                self._wire.write(_frame(frame))
            before = frame.at
        self._wire.close()

    def _agrees(self, frame: LoggedFrame, op: str, data: bytes) -> bool:
        if op != frame.op:
            return False
        if frame.text is not None:
            return self._exchange.frame_agrees(frame.text, data.decode("utf-8", "replace"))
        return frame.data == data


def _frame(frame: LoggedFrame) -> bytes:
    from websockets.frames import Frame, Opcode

    return Frame(Opcode[frame.op.upper()], frame.data, frame.fin).serialize(mask=False)


def _pong(data: bytes) -> bytes:
    from websockets.frames import Frame, Opcode

    return Frame(Opcode.PONG, data).serialize(mask=False)


def _handshake(response: HttpResponse, request_key: str) -> bytes:
    accept = base64.b64encode(hashlib.sha1(request_key.encode() + ACCEPT_SALT, usedforsecurity=False).digest())
    # Extensions are not offered again: frames are played as plain frames.
    kept = without_headers(response.head.headers, ("sec-websocket-accept", "sec-websocket-extensions"))
    return write_head(response.head, (*kept, ("Sec-WebSocket-Accept", accept.decode())))
