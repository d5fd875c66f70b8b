"""``FakeProvider``: a real server on loopback that does exactly what its playbook says, and remembers everything."""

import socket
import ssl
import struct
import tempfile
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from support.script import Answer, Playbook, Request
from support.trust import PROVIDER_NAMES, Trust
from support.websocket import serve_frames

PATIENCE = 30.0
"""Seconds after which any wait of a provider ends, so that a broken test ends too."""


class Gone(Exception):
    """The client hung up."""


@dataclass(slots=True)
class _Line:
    """One connection: buffered reading that keeps every byte."""

    sock: socket.socket
    number: int
    buffer: bytearray = field(default_factory=bytearray)
    taken: bytearray = field(default_factory=bytearray)

    def _more(self) -> None:
        data = self.sock.recv(65536)
        if not data:
            raise Gone
        self.buffer += data

    def until(self, mark: bytes) -> bytes:
        while (at := self.buffer.find(mark)) < 0:
            self._more()
        return self.exactly(at + len(mark))

    def exactly(self, size: int) -> bytes:
        while len(self.buffer) < size:
            self._more()
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        self.taken += data
        return data

    def chunked(self) -> tuple[bytes, bytes]:
        """The entity and the trailer section."""
        body = bytearray()
        while size := int(self.until(b"\r\n").split(b";")[0], 16):
            body += self.exactly(size)
            self.exactly(2)
        trailers = b""
        while (line := self.until(b"\r\n")) != b"\r\n":
            trailers += line
        return bytes(body), trailers


class FakeProvider:
    """Listens on loopback, plain or with TLS, until it is left; ``go_away`` makes every later connection fail."""

    def __init__(
        self,
        playbook: Playbook,
        *,
        trust: Trust | None = None,
        names: tuple[str, ...] = PROVIDER_NAMES,
        address: str = "127.0.0.1",
        receive_buffer: int | None = None,
        body_gate: threading.Event | None = None,
    ) -> None:
        self.playbook = playbook
        self.requests: list[Request] = []
        self.handshakes_failed = 0
        self.connections = 0
        """Accepted connections, those after ``go_away`` included."""
        self.sent = 0
        """Bytes of bodies that the system took from us; exact while one answer is under way."""
        self.errors: list[BaseException] = []
        self.gone = False
        self._trust, self._names = trust, names
        self._context: ssl.SSLContext | None = None
        self._body_gate = body_gate
        """Bodies of requests are not read before this is set."""
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._seen: Counter[tuple[str, str, bytes]] = Counter()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.socket(family, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer is not None:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._listener.bind((address, 0))
        self._listener.listen(256)
        self.address = address
        self.port: int = self._listener.getsockname()[1]

    @property
    def calls(self) -> int:
        return len(self.requests)

    @property
    def url(self) -> str:
        name = f"[{self.address}]" if ":" in self.address else self.address
        return f"{'https' if self._trust else 'http'}://{name}:{self.port}"

    def go_away(self) -> None:
        """From now on a connection is counted and reset: nobody is served, and nobody comes unseen."""
        self.gone = True
        with self._lock:
            for sock in self._open:
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        if self._trust is not None:
            with tempfile.TemporaryDirectory() as folder:
                self._context = self._trust.server_context(self._names, Path(folder))
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        # A blocked accept() is not woken by close(); shutdown() does it.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.go_away()
        for thread in self._threads:
            thread.join(PATIENCE)
        if error is None and self.errors:
            raise AssertionError(f"the provider's playbook failed: {self.errors[0]!r}") from self.errors[0]

    def _start(self, target: "object", *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                number = self.connections
            if self.gone:
                _reset(sock)
                continue
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(PATIENCE)
            self._start(self._serve, sock, number)

    def _serve(self, plain: socket.socket, number: int) -> None:
        sock = plain
        try:
            if self._context is not None:
                try:
                    sock = self._context.wrap_socket(plain, server_side=True)
                except (OSError, ssl.SSLError):
                    with self._lock:
                        self.handshakes_failed += 1
                    return
            with self._lock:
                self._open.add(sock)
            line = _Line(sock, number)
            while self._exchange(line):
                pass
        except (Gone, OSError):
            return
        except BaseException as error:  # noqa: BLE001 - a thread has no caller; __exit__ raises it
            self.errors.append(error)
        finally:
            with self._lock:
                self._open.discard(sock)
            sock.close()

    def _exchange(self, line: _Line) -> bool:
        """Serve one request; False when the connection is over."""
        request = self._read(line)
        answer = self.playbook(request)
        if answer.frames is not None:
            serve_frames(line.sock, request, answer.frames, first=bytes(line.buffer))
            return False
        self._send(line.sock, answer, bodiless=request.method == "HEAD" or answer.status in (204, 304))
        if answer.cut == "rst":
            _reset(line.sock)
        return answer.cut is None and not (answer.close or answer.hang_up) and answer.framing != "close"

    def _read(self, line: _Line) -> Request:
        line.taken.clear()
        head = line.until(b"\r\n\r\n").decode("latin-1")
        first, *rest = head.rstrip("\r\n").split("\r\n")
        method, target, _version = first.split(" ", 2)
        headers = tuple((name, value.strip()) for name, _, value in (field.partition(":") for field in rest))
        lower = {name.lower(): value for name, value in headers}
        if self._body_gate is not None:
            self._body_gate.wait(PATIENCE)
        if lower.get("expect", "").lower() == "100-continue":
            line.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        trailers = b""
        if lower.get("transfer-encoding", "").lower() == "chunked":
            body, trailers = line.chunked()
        else:
            body = line.exactly(int(lower.get("content-length", "0")))
        with self._lock:
            self._seen[(method, target, body)] += 1
            request = Request(
                method=method,
                target=target,
                headers=headers,
                body=body,
                raw=bytes(line.taken),
                hit=len(self.requests) + 1,
                nth=self._seen[(method, target, body)],
                connection=line.number,
                trailers=trailers,
            )
            self.requests.append(request)
        return request

    def _send(self, sock: socket.socket, answer: Answer, *, bodiless: bool) -> None:
        if answer.before:
            sock.sendall(answer.before)
        if not answer.headless:
            sock.sendall(answer.head)
        if bodiless:
            return
        for number, piece in enumerate(answer.pieces):
            if number and answer.gap and self._stopping.wait(answer.gap):
                raise Gone
            if answer.hold is not None and number == len(answer.pieces) - 1:
                answer.hold.wait(PATIENCE)
            sock.sendall(answer.framed(piece))
            self.sent += len(piece)
        if answer.cut is None and answer.ending:
            sock.sendall(answer.ending)


def _reset(sock: socket.socket) -> None:
    """Close with RST rather than FIN."""
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
