"""A company's proxy in small: CONNECT only, one upstream for every name, and a memory of who asked for what."""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

PATIENCE = 30.0


class ParentProxy:
    """Joins every tunnel to one address and keeps the request heads."""

    def __init__(self, upstream: tuple[str, int], *, required: str | None = None) -> None:
        self.heads: list[str] = []
        self._required = required
        """The ``Proxy-Authorization`` value without which nobody passes."""
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sock in (self._listener, *self._open):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.settimeout(PATIENCE)
            self._open.append(sock)
            self._run(self._serve, sock)

    def _run(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _serve(self, client: socket.socket) -> None:
        head = b""
        with suppress(OSError):
            while not head.endswith(b"\r\n\r\n"):
                byte = client.recv(1)
                if not byte:
                    return
                head += byte
            text = head.decode("latin-1")
            self.heads.append(text)
            if self._required is not None and f"proxy-authorization: {self._required}".lower() not in text.lower():
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
                return
            server = socket.create_connection(self._upstream, timeout=PATIENCE)
            self._open.append(server)
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self._run(_pour, server, client)
            _pour(client, server)


def _pour(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
