"""A recorded WebSocket played back: the server's frames, the agent held to its own, and pings answered by us."""

import asyncio
import json
from typing import Any

from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT, OPEN
from websockets.protocol import Protocol as FrameReader

from rewind.gateway.exchange import Play
from rewind.gateway.websocket import FramePlayer
from rewind.model.http import HttpResponse, RequestHead, ResponseHead
from rewind.model.step import Ending
from unit.gateway.wiring import PATIENCE, Remembered, run

HEAD = RequestHead(method="GET", scheme="https", host="api.openai.com", port=443, target="/v1/realtime", headers=())
SWITCHED = ResponseHead(
    status=101,
    reason="Switching Protocols",
    headers=(
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", "of another key"),
        ("Sec-WebSocket-Extensions", "permessage-deflate"),
    ),
)


class Wire:
    """The agent's end: reads what is written to it as frames."""

    def __init__(self) -> None:
        self.handshake = b""
        self.closed = asyncio.Event()
        self.frames: list[tuple[str, bytes]] = []
        self._reader = FrameReader(CLIENT, state=OPEN, max_size=None)

    def write(self, data: bytes) -> None:
        if not self.handshake:
            self.handshake = data
            return
        self._reader.receive_data(data)
        for frame in self._reader.events_received():
            assert isinstance(frame, Frame)
            self.frames.append((frame.opcode.name.lower(), bytes(frame.data)))

    def close(self) -> None:
        self.closed.set()

    def hold_reading(self, held: bool) -> None: ...


class Strict(Remembered):
    """Keeps misses."""

    misses: list[str]

    def missed(self, reason: str) -> None:
        self.misses.append(reason)


def line(side: str, op: str, text: str) -> dict[str, Any]:
    return {"from": side, "at": 0, "op": op, "fin": True, "text": text}


def player(*entries: dict[str, Any]) -> tuple[FramePlayer, Wire, Strict]:
    log = b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)
    play = Play(response=HttpResponse(head=SWITCHED, body=log, chunks=()), ending=Ending.COMPLETE)
    wire, exchange = Wire(), Strict(HEAD)
    exchange.misses = []
    return FramePlayer(wire, exchange, play, "dGhlIHNhbXBsZSBub25jZQ=="), wire, exchange


def sent(op: Opcode, data: bytes) -> bytes:
    return Frame(op, data).serialize(mask=True)


def test_the_servers_frames_come_as_the_agent_sends_its_own() -> None:
    async def play() -> None:
        playing, wire, exchange = player(
            line("server", "text", "hello"), line("client", "text", "question"), line("server", "text", "answer")
        )
        await asyncio.sleep(0)
        assert wire.frames == [("text", b"hello")]
        playing.client_data(sent(Opcode.TEXT, b"question"))
        await asyncio.wait_for(wire.closed.wait(), PATIENCE)
        assert wire.frames == [("text", b"hello"), ("text", b"answer")]
        assert exchange.misses == []

    run(play())


def test_the_handshake_answers_this_key_and_offers_no_extension() -> None:
    async def play() -> None:
        _, wire, _ = player(line("client", "text", "x"))
        assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in wire.handshake  # RFC 6455, section 1.3
        assert b"of another key" not in wire.handshake
        assert b"permessage-deflate" not in wire.handshake

    run(play())


def test_an_agent_that_says_something_else_is_a_miss() -> None:
    async def play() -> None:
        playing, wire, exchange = player(line("client", "text", "question"), line("server", "text", "answer"))
        playing.client_data(sent(Opcode.TEXT, b"another question"))
        await asyncio.wait_for(wire.closed.wait(), PATIENCE)
        assert wire.frames == []
        assert len(exchange.misses) == 1 and "frame 1" in exchange.misses[0]

    run(play())


def test_pings_are_answered_when_they_come_and_recorded_pongs_are_not_played() -> None:
    """Clients ping by their own clock; unanswered they would hang up."""

    async def play() -> None:
        playing, wire, exchange = player(
            line("client", "ping", "old"), line("server", "pong", "old"), line("client", "text", "question")
        )
        await asyncio.sleep(0)
        assert wire.frames == []
        playing.client_data(sent(Opcode.PING, b"new"))
        assert wire.frames == [("pong", b"new")]
        playing.client_data(sent(Opcode.TEXT, b"question"))
        await asyncio.wait_for(wire.closed.wait(), PATIENCE)
        assert exchange.misses == []

    run(play())


def test_an_agent_that_leaves_ends_the_playing() -> None:
    async def play() -> None:
        playing, wire, exchange = player(line("client", "text", "question"), line("server", "text", "answer"))
        playing.client_lost()
        await asyncio.wait_for(playing._task, PATIENCE)
        assert wire.frames == [] and exchange.misses == []

    run(play())
