"""Open a TLS connection to the provider: straight to its address, or through the proxy the environment names."""

import os
import socket
import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

from bench.traffic import HOST, PORT

PATIENCE = 30.0
"""Seconds without a byte after which a run is given up; nothing here takes that long."""


@dataclass(frozen=True, slots=True)
class Route:
    """How to reach the provider."""

    address: tuple[str, int]
    through_proxy: bool
    trust: ssl.SSLContext

    @classmethod
    def find(cls, direct: str | None, ca: str | None) -> "Route":
        """``direct`` (HOST:PORT) if given, else what ``HTTPS_PROXY`` says, as any client would."""
        trust = ssl.create_default_context(cafile=ca or os.environ.get("SSL_CERT_FILE"))
        if direct is not None:
            host, _, port = direct.rpartition(":")
            return cls((host, int(port)), False, trust)
        proxy = urlsplit(os.environ["HTTPS_PROXY"])
        assert proxy.hostname is not None and proxy.port is not None, "HTTPS_PROXY names a host and a port"
        return cls((proxy.hostname, proxy.port), True, trust)

    def open(self) -> ssl.SSLSocket:
        plain = socket.create_connection(self.address, timeout=PATIENCE)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.through_proxy:
            plain.sendall(f"CONNECT {HOST}:{PORT} HTTP/1.1\r\nHost: {HOST}:{PORT}\r\n\r\n".encode())
            said = b""
            while not said.endswith(b"\r\n\r\n"):
                more = plain.recv(4096)
                if not more:
                    raise ConnectionError(f"the proxy hung up after {said!r}")
                said += more
            if b" 200" not in said.split(b"\r\n", 1)[0]:
                raise ConnectionError(f"the proxy refused: {said!r}")
        return self.trust.wrap_socket(plain, server_hostname=HOST)
