"""A client that hides nothing: exact bytes out, and what came back with its borders and times."""

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Headers = tuple[tuple[str, str], ...]


def message(
    method: str, target: str, host: str, body: bytes | None = None, headers: Sequence[tuple[str, str]] = ()
) -> bytes:
    """A request in bytes; a body brings its length."""
    fields = [("Host", host), *headers]
    if body is not None:
        fields.append(("Content-Length", str(len(body))))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (body or b"")


@dataclass(slots=True)
class Reply:
    """An answer as far as it came."""

    status: int = 0
    headers: Headers = ()
    pieces: list[bytes] = field(default_factory=list)
    """One per transfer chunk where the answer is chunked, else one per read."""
    times: list[float] = field(default_factory=list)
    """When each piece was there, on the monotonic clock."""
    trailers: Headers = ()
    interim: list[int] = field(default_factory=list)
    """The 1xx answers that came first."""
    raw: bytearray = field(default_factory=bytearray)
    ended: Literal["complete", "cut"] = "complete"

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


class Reader:
    """Reads answers from one connection, one after the other."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = bytearray()
        self._reply = Reply()

    def next(self, method: str = "POST") -> Reply:
        """The next answer to a request of that method, to its end or to the end of the connection."""
        self._reply = reply = Reply()
        try:
            self._head(reply)
            self._body(reply, method)
        except (EOFError, ConnectionError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
            reply.ended = "cut"
        return reply

    def _more(self) -> None:
        data = self._sock.recv(262144)
        if not data:
            raise EOFError
        self._buffer += data

    def _until(self, mark: bytes) -> bytes:
        while (at := self._buffer.find(mark)) < 0:
            self._more()
        return self._exactly(at + len(mark))

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._more()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        self._reply.raw += data
        return data

    def _head(self, reply: Reply) -> None:
        while True:
            first, *rest = self._until(b"\r\n\r\n").decode("latin-1").rstrip("\r\n").split("\r\n")
            status = int(first.split(" ", 2)[1])
            if status >= 200 or status == 101:
                reply.status, reply.headers = status, _fields(rest)
                return
            reply.interim.append(status)

    def _body(self, reply: Reply, method: str) -> None:
        if method == "HEAD" or reply.status in (101, 204, 304):
            return
        length = reply.header("content-length")
        if (reply.header("transfer-encoding") or "").lower() == "chunked":
            while size := int(self._until(b"\r\n").split(b";")[0], 16):
                self._piece(reply, self._exactly(size))
                self._exactly(2)
            lines = []
            while (line := self._until(b"\r\n")) != b"\r\n":
                lines.append(line.decode("latin-1").rstrip("\r\n"))
            reply.trailers = _fields(lines)
        elif length is not None:
            missing = int(length)
            while missing:
                if not self._buffer:
                    self._more()
                data = self._exactly(min(missing, len(self._buffer)))
                missing -= len(data)
                self._piece(reply, data)
        else:
            try:
                while True:
                    if not self._buffer:
                        self._more()
                    self._piece(reply, self._exactly(len(self._buffer)))
            except EOFError:
                return

    def _piece(self, reply: Reply, data: bytes) -> None:
        reply.times.append(time.monotonic())
        reply.pieces.append(data)


def _fields(lines: list[str]) -> Headers:
    return tuple((name, value.strip()) for name, _, value in (line.partition(":") for line in lines))


def ask(sock: socket.socket, request: bytes) -> Reply:
    """Send one request and read its answer."""
    sock.sendall(request)
    return Reader(sock).next(request.split(b" ", 1)[0].decode())
