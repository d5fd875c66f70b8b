"""Dial an origin: directly, by ``--connect-to``, or through a parent proxy."""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from ipaddress import ip_address, ip_network

from rewind.errors import UsageError
from rewind.gateway.exchange import Origin
from rewind.gateway.options import ParentProxy, UpstreamOptions, proxy_variable

DIAL_TIMEOUT = 30.0


class UpstreamFailed(Exception):
    """The origin could not be reached; the text says why."""


def excepted(host: str, no_proxy: str) -> bool:
    """Whether ``NO_PROXY`` sends this host around the proxy."""
    return any(_excepts(entry.strip().lower(), host) for entry in no_proxy.split(","))


def _excepts(entry: str, host: str) -> bool:
    if entry.startswith("["):
        entry = entry[1:].partition("]")[0]
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:  # a name stands on one side
        name = entry.partition(":")[0].removeprefix("*.").lstrip(".")
        return entry == "*" or (bool(name) and (host == name or host.endswith("." + name)))


def _is_this_machine(host: str) -> bool:
    """No proxy elsewhere could reach it: clients that obey no variables never ask theirs for it either."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class Dialer:
    """Opens connections to origins, and counts them."""

    def __init__(self, options: UpstreamOptions, environ: Mapping[str, str]) -> None:
        self.connects = 0
        self._detours = options.detours
        self._fixed_proxy = options.parent
        self._environ = {key.lower(): value for key, value in environ.items() if key.lower().endswith("_proxy")}
        self._options = options
        self._context: ssl.SSLContext | None = None

    def parent(self, origin: Origin) -> ParentProxy | None:
        """The proxy that stands before this origin: the flag's, else the user's own variables'."""
        if self.address(origin) != (origin.host, origin.port):
            return None
        if self._fixed_proxy is not None:
            return self._fixed_proxy
        url = proxy_variable(origin.scheme, self._environ)
        if not url or _is_this_machine(origin.host) or excepted(origin.host, self._environ.get("no_proxy", "")):
            return None
        return ParentProxy.parse(url)

    def address(self, origin: Origin) -> tuple[str, int]:
        """Where to dial for this origin when no parent proxy is in between."""
        for detour in self._detours:
            if detour.host in ("", origin.host) and detour.port in ("", str(origin.port)):
                return detour.to_host, detour.to_port
        return origin.host, origin.port

    async def open(self, origin: Origin, protocol: asyncio.Protocol, *, tunnel: bool = False) -> asyncio.Transport:
        """Connect ``protocol`` to the origin; with ``tunnel`` without TLS of our own."""
        self.connects += 1
        try:
            async with asyncio.timeout(DIAL_TIMEOUT):
                return await self._open(origin, protocol, tunnel)
        except TimeoutError as error:
            raise UpstreamFailed(f"{origin.host}:{origin.port} did not answer within {DIAL_TIMEOUT:.0f} s") from error
        except (OSError, UsageError, ValueError) as error:
            # ValueError: a name that no resolver would take. UsageError: a proxy variable we cannot use.
            raise UpstreamFailed(f"{origin.host}:{origin.port}: {error}") from error

    async def _open(self, origin: Origin, protocol: asyncio.Protocol, tunnel: bool) -> asyncio.Transport:
        loop = asyncio.get_running_loop()
        secure = origin.scheme == "https" and not tunnel
        context = self._tls() if secure else None
        parent = self.parent(origin)
        if parent is None:
            host, port = self.address(origin)
            transport, _ = await loop.create_connection(
                lambda: protocol, host, port, ssl=context, server_hostname=origin.host if secure else None
            )
            return transport
        if not secure and not tunnel:
            transport, _ = await loop.create_connection(lambda: protocol, parent.host, parent.port)
            return transport
        sock = await self._through(parent, origin)
        transport, _ = await loop.create_connection(
            lambda: protocol, sock=sock, ssl=context, server_hostname=origin.host if secure else None
        )
        return transport

    async def _through(self, parent: ParentProxy, origin: Origin) -> socket.socket:
        """A socket to the origin, asked of the parent proxy with CONNECT."""
        loop = asyncio.get_running_loop()
        sock = await self._reached(parent)
        try:
            name = f"[{origin.host}]" if ":" in origin.host else origin.host
            lines = [f"CONNECT {name}:{origin.port} HTTP/1.1", f"Host: {name}:{origin.port}"]
            if parent.authorization:
                lines.append(f"Proxy-Authorization: {parent.authorization}")
            await loop.sock_sendall(sock, ("\r\n".join(lines) + "\r\n\r\n").encode())
            answer = b""
            while b"\r\n\r\n" not in answer:
                # One byte at a time: what follows the blank line belongs to the tunnel.
                byte = await loop.sock_recv(sock, 1)
                if not byte or len(answer) > 65536:
                    raise OSError(f"the parent proxy {parent.host}:{parent.port} closed the connection")
                answer += byte
            status = answer.split(b"\r\n", 1)[0].decode("latin-1")
            if status.split(" ")[1:2] != ["200"]:
                raise OSError(f"the parent proxy {parent.host}:{parent.port} answered {status!r}")
        except BaseException:
            sock.close()
            raise
        return sock

    async def _reached(self, parent: ParentProxy) -> socket.socket:
        """A socket to the parent proxy, at the first of its addresses that answers."""
        loop = asyncio.get_running_loop()
        failure = OSError(f"the parent proxy {parent.host} has no address")
        for family, kind, proto, _, address in await loop.getaddrinfo(
            parent.host, parent.port, type=socket.SOCK_STREAM
        ):
            sock = socket.socket(family, kind, proto)
            sock.setblocking(False)
            try:
                await loop.sock_connect(sock, address)
            except OSError as error:
                sock.close()
                failure = OSError(f"the parent proxy {parent.host}:{parent.port}: {error}")
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        raise failure

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            context = ssl.create_default_context()
            if self._options.ca is not None:
                context.load_verify_locations(cafile=self._options.ca)
            if self._options.insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            context.set_alpn_protocols(["http/1.1"])
            self._context = context
        return self._context
