"""The least a recorder on the wire could do: TLS on both sides, and every byte handed on as it comes.

``python -m bench.limit CERTIFICATE UPSTREAM_PORT [STORE]`` prints its port and serves until its standard input closes.
With STORE, each piece is also hashed and appended to that file before it is handed on. It understands nothing, redacts
nothing and cannot replay: what Rewind takes beyond this is the price of those.
"""

import asyncio
import hashlib
import os
import ssl
import sys
from typing import cast

from bench.traffic import HOST
from bench.upstream import serve, server_context


class End(asyncio.Protocol):
    """One side of a connection: what it reads, the other side writes."""

    def __init__(self, store: int | None) -> None:
        self._store = store
        self.transport: asyncio.Transport | None = None
        self.other: End | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._store is not None:
            os.write(self._store, hashlib.blake2b(data, digest_size=32).digest() + data)
        assert self.other is not None and self.other.transport is not None, "both are connected before bytes come"
        self.other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class Entry(asyncio.Protocol):
    """A client that asks for a tunnel, and gets TLS."""

    def __init__(self, near: ssl.SSLContext, far: ssl.SSLContext, port: int, store: int | None) -> None:
        self._near, self._far, self._port, self._store = near, far, port, store
        self._read = b""
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._read += data
        if self._read.endswith(b"\r\n\r\n"):
            self._transport.pause_reading()  # what comes next is for the TLS layer
            self._task = asyncio.get_running_loop().create_task(self._join())

    async def _join(self) -> None:
        loop = asyncio.get_running_loop()
        near, far = End(self._store), End(self._store)
        near.other, far.other = far, near
        await loop.create_connection(lambda: far, "127.0.0.1", self._port, ssl=self._far, server_hostname=HOST)
        self._transport.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        near.transport = await loop.start_tls(self._transport, near, self._near, server_side=True)


def main() -> None:
    near = server_context(sys.argv[1])
    far = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    far.check_hostname, far.verify_mode = False, ssl.CERT_NONE
    port = int(sys.argv[2])
    kept = os.open(sys.argv[3], os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600) if len(sys.argv) > 3 else None
    asyncio.run(serve(lambda: Entry(near, far, port, kept)))


if __name__ == "__main__":
    main()
