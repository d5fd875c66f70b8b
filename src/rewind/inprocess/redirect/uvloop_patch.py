"""Patches of uvloop: it connects and writes in C, past the socket module.

Connections are made by a socket of Python's where a run has a say in them. And protocols are given a transport that
looks at what is written in the clear before it hands it on; what is TLS is seen by the patches of the ssl module.
"""

import socket
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

from rewind.inprocess.redirect import callers
from rewind.inprocess.redirect.callers import acts_for_itself, current_caller
from rewind.inprocess.redirect.connections import aim, name_behind, stands_for
from rewind.inprocess.redirect.open_connections import connected
from rewind.inprocess.redirect.patch import wrap_function
from rewind.inprocess.redirect.rules import Way, port_number
from rewind.inprocess.redirect.writes import before_write, joined

_OF_A_NEW_SOCKET = ("family", "proto", "flags", "local_addr", "happy_eyeballs_delay", "interleave", "all_errors")


class Watched:
    """A transport of uvloop's whose writes are seen. All else is the transport's own doing."""

    __slots__ = ("__weakref__", "_loop", "_sock", "_transport")

    def __init__(self, transport: Any, loop: Any) -> None:
        self._transport = transport
        self._sock = transport.get_extra_info("socket")
        self._loop = loop

    def write(self, data: Any) -> None:
        if callers.has_callers_or_connections():
            before_write(self, data)
        self._transport.write(data)

    def writelines(self, pieces: Any) -> None:
        whole = list(pieces)
        if callers.has_callers_or_connections():
            before_write(self, joined(whole))
        self._transport.writelines(whole)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    # ── asked like a socket ──────────────────────────────────────────────────────────────────────────────

    @property
    def family(self) -> int:
        return int(self._sock.family)

    @property
    def type(self) -> int:
        return int(self._sock.type)

    def fileno(self) -> int:
        return int(self._sock.fileno())

    def getpeername(self) -> Any:
        return self._sock.getpeername()

    def getsockname(self) -> Any:
        return self._sock.getsockname()


def patch_uvloop(uvloop: ModuleType) -> None:
    """Once, for as long as the process lives."""
    wrap_function(uvloop.Loop, "create_connection", _connecting)
    wrap_function(uvloop.Loop, "create_datagram_endpoint", _sending)
    wrap_function(uvloop.Loop, "start_tls", _starting_tls)
    wrap_function(uvloop.Loop, "sendfile", _starting_tls)


def _connecting(real: Callable[..., Any]) -> Callable[..., Any]:
    async def create_connection(
        self: Any, protocol_factory: Any, host: Any = None, port: Any = None, **kwargs: Any
    ) -> Any:
        if acts_for_itself():
            return await real(self, protocol_factory, host, port, **kwargs)
        sock, caller = kwargs.get("sock"), current_caller()
        if sock is None and isinstance(host, str) and caller is None:
            host = name_behind(host) or host  # an address of ours that somebody kept from a run
            if not kwargs.get("ssl"):  # else the patched ssl module tells
                callers.note_unowned_connection(host, port_number(port))
        elif sock is None and host is not None and caller is not None:
            name = host.decode("latin-1") if isinstance(host, (bytes, bytearray)) else str(host)
            number = port_number(port)
            kept = stands_for(name) is not None or name_behind(name) is not None
            if kept or caller.rules.way(name, number) is not Way.DIRECT:
                sock = await _connected(self, name, number)
                if kwargs.get("ssl") and kwargs.get("server_hostname") is None:
                    kwargs["server_hostname"] = name
                kwargs = {key: value for key, value in kwargs.items() if key not in _OF_A_NEW_SOCKET}
                kwargs["sock"], host, port = sock, None, None
        if kwargs.get("ssl"):
            return await real(self, protocol_factory, host, port, **kwargs)
        made: list[Watched] = []
        factory = _watching(protocol_factory, self, made)
        transport, protocol = await real(self, factory, host, port, **kwargs)
        if not made:
            _unwatch(transport)
            return transport, protocol
        if sock is None:
            connected(made[0])
        return made[0], protocol

    return create_connection


def _watching(factory: Callable[[], Any], loop: Any, made: list[Watched]) -> Callable[[], Any]:
    """The same protocols, which are told of a watched transport when they are connected."""

    def make() -> Any:
        protocol = factory()
        own, real = getattr(protocol, "__dict__", {}).get("connection_made"), protocol.connection_made

        def connection_made(transport: Any) -> None:
            if own is None:
                del protocol.connection_made
            else:
                protocol.connection_made = own
            made.append(Watched(transport, loop))
            real(made[0])

        with suppress(AttributeError):  # it lets nobody: then it is told of the bare one
            protocol.connection_made = connection_made
        return protocol

    return make


def _unwatch(transport: Any) -> None:
    with suppress(OSError, AttributeError, IndexError, TypeError):
        callers.mark_unseen(transport.get_extra_info("socket").getsockname()[1])


def _starting_tls(real: Callable[..., Any]) -> Callable[..., Any]:
    """Those that ask for a transport of uvloop's own kind."""

    async def on_transport(self: Any, transport: Any, *args: Any, **kwargs: Any) -> Any:
        bare = transport._transport if isinstance(transport, Watched) else transport
        return await real(self, bare, *args, **kwargs)

    return on_transport


def _sending(real: Callable[..., Any]) -> Callable[..., Any]:
    async def create_datagram_endpoint(self: Any, protocol_factory: Any, *args: Any, **kwargs: Any) -> Any:
        remote = kwargs.get("remote_addr", args[1] if len(args) > 1 else None)
        if remote is not None and current_caller() is not None:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                aim(probe, tuple(remote))
        return await real(self, protocol_factory, *args, **kwargs)

    return create_datagram_endpoint


async def _connected(loop: Any, host: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        target = stands_for(host) or host
        await loop.sock_connect(sock, (target, port))
    except BaseException:
        sock.close()
        raise
    return sock
