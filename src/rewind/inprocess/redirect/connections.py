"""The seams of connecting: to the gateway instead, or straight on, or not at all."""

import errno
import socket
from collections.abc import Callable
from typing import Any

from rewind.inprocess.redirect import callers
from rewind.inprocess.redirect.callers import Caller, whose
from rewind.inprocess.redirect.names import name_behind, name_seen, real_address
from rewind.inprocess.redirect.open_connections import connected
from rewind.inprocess.redirect.patch import change as change_seam
from rewind.inprocess.redirect.rules import Way, port_number

_INTERNET = (socket.AF_INET, socket.AF_INET6)


def aim(sock: socket.socket, address: Any) -> tuple[Any, Caller | None]:
    """Where to connect instead, and for whom where that is the gateway. Raises the caller's error to stop it."""
    if sock.family not in _INTERNET or not isinstance(address, tuple) or len(address) < 2:
        return address, None
    host, port = _text(address[0]), port_number(address[1])
    name = name_behind(host)
    caller = whose()
    if caller is not None:
        door = _door(caller, sock, name, host, port)
        if door is not None:
            return (
                ("127.0.0.1", door) if sock.family == socket.AF_INET else ("::ffff:127.0.0.1", door)
            ), caller
    else:
        callers.outside(name or host, port)
    if name is None or name == host:
        return address, None
    # The name was answered with an address of ours, for a run that is over or another port of the host.
    return real_address(name, port, sock.family, sock.type) or address, None


def _door(caller: Caller, sock: socket.socket, name: str | None, host: str, port: int) -> int | None:
    """The gateway's port, if that is where the connection goes; ``None`` sends it straight on."""
    meant = name or name_seen(host) or host
    rules = caller.rules
    # One of our addresses that stands for no name is the hook's, in a process that itself runs under Rewind.
    way = Way.STOP if name == host and rules.offline else rules.way(meant, port)
    if way is Way.GATEWAY:
        door = caller.gateway_port() if sock.type == socket.SOCK_STREAM else None
        if door is not None:
            return door
        if not rules.offline:
            caller.unrecorded(meant, "was reached without the gateway: not recorded")
            return None
        way = Way.STOP
    if way is Way.STOP:
        raise caller.stopped(meant, port)
    return None


def _text(host: Any) -> str:
    return bytes(host).decode("latin-1") if isinstance(host, (bytes, bytearray)) else str(host)


def _claim(sock: socket.socket, caller: Caller) -> None:
    """This connection to the gateway, perhaps still being made, is the caller's."""
    try:
        port = sock.getsockname()[1]
    except OSError:
        return
    callers.own(port, caller)


def change() -> None:
    """Put the seams in; once, for as long as the process lives."""
    change_seam(socket.socket, "connect", _connecting)
    change_seam(socket.socket, "connect_ex", _connecting_by_number)
    change_seam(socket.socket, "sendto", _sending_to)


def _connecting(real: Callable[..., Any]) -> Callable[..., Any]:
    def connect(self: socket.socket, address: Any) -> None:
        target, caller = aim(self, address)
        try:
            real(self, target)
        finally:
            if caller is not None:
                _claim(self, caller)
            else:
                connected(self)

    return connect


def _connecting_by_number(real: Callable[..., Any]) -> Callable[..., Any]:
    def connect_ex(self: socket.socket, address: Any) -> Any:
        try:
            target, caller = aim(self, address)
        except OSError as stopped:
            return stopped.errno or errno.ENETUNREACH  # this one raises nothing, it tells by number
        try:
            return real(self, target)
        finally:
            if caller is not None:
                _claim(self, caller)
            else:
                connected(self)

    return connect_ex


def _sending_to(real: Callable[..., Any]) -> Callable[..., Any]:
    def sendto(self: socket.socket, *args: Any) -> Any:
        if callers.anybody():
            aim(self, args[-1])
        return real(self, *args)

    return sendto
