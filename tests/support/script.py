"""What a scripted provider is asked and what it answers: every byte, every border, every pause."""

import gzip
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Literal

import brotli

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as the provider saw it."""

    method: str
    target: str
    headers: Headers
    body: bytes
    raw: bytes
    """Every byte of it, transfer framing included."""
    hit: int
    """Counts all requests of this provider from 1; answers carry it, so that an answer that went live shows."""
    nth: int
    """Counts the requests with this method, target and body, from 1."""
    connection: int
    trailers: bytes = b""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def host(self) -> str:
        return self.header("host").rpartition(":")[0] or self.header("host")

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer, as exact as it must be."""

    status: int = 200
    headers: Headers = (("content-type", "application/json"),)
    pieces: tuple[bytes, ...] = ()
    """What is sent at a time; with ``chunked`` framing each piece is one transfer chunk."""
    framing: Literal["length", "chunked", "close", "none"] = "length"
    gap: float = 0.0
    """Seconds of silence before each piece but the first."""
    before: bytes = b""
    """Raw bytes ahead of the status line, such as ``HTTP/1.1 103 …``."""
    trailers: Headers = ()
    cut: Literal["fin", "rst"] | None = None
    """After the pieces the connection ends like this, and the framing is never completed."""
    hold: threading.Event | None = None
    """The last piece waits for this (a bounded time)."""
    close: bool = False
    """Announced by ``connection: close`` and done."""
    hang_up: bool = False
    """Closed after the whole answer without a word, as idle keep-alive connections are."""
    headless: bool = False
    """Not even a status line: with ``cut`` the connection dies before any answer."""
    frames: "FrameScript | None" = None
    """For a WebSocket: what to send back for each message."""

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def head(self) -> bytes:
        try:
            reason = HTTPStatus(self.status).phrase
        except ValueError:
            reason = "Unassigned"
        lines = [f"HTTP/1.1 {self.status} {reason}", *(f"{name}: {value}" for name, value in self.headers)]
        match self.framing:
            case "length":
                lines.append(f"content-length: {len(self.body)}")
            case "chunked":
                lines.append("transfer-encoding: chunked")
                if self.trailers:
                    lines.append("trailer: " + ", ".join(name for name, _ in self.trailers))
            case "close" | "none":
                pass
        if self.close or self.framing == "close":
            lines.append("connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def framed(self, piece: bytes) -> bytes:
        """The piece as it goes over the wire."""
        return b"%x\r\n%b\r\n" % (len(piece), piece) if self.framing == "chunked" else piece

    @property
    def ending(self) -> bytes:
        if self.framing != "chunked":
            return b""
        fields = "".join(f"{name}: {value}\r\n" for name, value in self.trailers)
        return b"0\r\n" + fields.encode("latin-1") + b"\r\n"

    def compressed(self, coding: Literal["gzip", "br"]) -> "Answer":
        """The same answer in that content encoding, in one piece."""
        packed = gzip.compress(self.body, mtime=0) if coding == "gzip" else brotli.compress(self.body)
        return replace(self, headers=(*self.headers, ("content-encoding", coding)), pieces=(packed,))


FrameScript = Callable[[str | bytes], list[str | bytes]]
Playbook = Callable[[Request], Answer]


def echo(message: str | bytes) -> list[str | bytes]:
    """A WebSocket peer that says everything once again."""
    return [message]


def in_order(*answers: Answer) -> Playbook:
    """The n-th request gets the n-th answer; one more is an error that shows."""

    def play(request: Request) -> Answer:
        if request.hit > len(answers):
            raise AssertionError(f"request {request.hit} came, {len(answers)} were expected: {request.target}")
        return answers[request.hit - 1]

    return play


def routes(table: Mapping[str, Playbook]) -> Playbook:
    """The playbook whose path is the start of the request's path, longest first."""
    ordered = sorted(table, key=len, reverse=True)

    def play(request: Request) -> Answer:
        prefix = next((path for path in ordered if request.path.startswith(path)), None)
        if prefix is None:
            raise AssertionError(f"nobody answers {request.method} {request.target}")
        return table[prefix](request)

    return play
