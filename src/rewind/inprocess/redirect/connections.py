"""Patches of name resolution and of connecting: to the gateway instead, or straight on, or not at all.

A name that concerns the caller is answered with an address of our own. So no resolver is asked for a recorded or a
forbidden host, and the connection that follows still knows its name.
"""

import _socket
import errno
import socket
from collections.abc import Callable
from typing import Any

from rewind.inprocess.redirect import callers
from rewind.inprocess.redirect.callers import Caller, current_caller, ourselves
from rewind.inprocess.redirect.open_connections import connected
from rewind.inprocess.redirect.patch import wrap_function
from rewind.inprocess.redirect.rules import Names, Way, place, port_number

_INTERNET = (socket.AF_INET, socket.AF_INET6)
_MOST_SEEN = 4096
_names = Names()
_seen: dict[str, str] = {}
"""Addresses that a resolver gave for a name that some run may reach offline."""
_real_getaddrinfo = socket.getaddrinfo


def stands_for(host: Any, flags: int = 0) -> str | None:
    """The address to answer with, where the caller's name must not be asked of a resolver."""
    caller = current_caller()
    if caller is None or flags & (socket.AI_NUMERICHOST | socket.AI_PASSIVE):
        return None
    if isinstance(host, (bytes, bytearray)):
        host = bytes(host).decode("latin-1")
    if not isinstance(host, str) or not caller.rules.answers_for(host):
        return None
    # A machine may always ask for itself, and many do for no reason.
    return None if place(host) == place(socket.gethostname()) else _names.address_of(host)


def name_behind(address: str) -> str | None:
    """The name that one of our addresses stands for; ``None`` for others'."""
    return _names.host_at(address)


def name_seen(address: str) -> str | None:
    """The name that a resolver gave this address for, if a run may reach it."""
    return _seen.get(address)


def address_info(address: str, port: Any, family: int = 0, kind: int = 0, proto: int = 0) -> list[Any]:
    """One of our addresses as ``getaddrinfo`` would give it."""
    meant = socket.SocketKind(kind or socket.SOCK_STREAM)
    if meant == socket.SOCK_STREAM:
        proto = socket.IPPROTO_TCP
    number = port_number(port)
    if family == socket.AF_INET6:
        return [(socket.AF_INET6, meant, proto, "", ("::ffff:" + address, number, 0, 0))]
    return [(socket.AF_INET, meant, proto, "", (address, number))]


def real_address(name: str, port: int, family: int, kind: int) -> Any:
    """Where a name really is, asked of the resolver; ``None`` where it does not know. Raises OSError."""
    with ourselves():
        infos = _real_getaddrinfo(name, port, family, kind)
    return infos[0][4] if infos else None


def remember(host: Any, infos: list[Any]) -> list[Any]:
    """Keep in mind which addresses belong to a name that the caller may reach offline."""
    caller = current_caller()
    if caller is not None and isinstance(host, str) and caller.rules.allows(host):
        _see(host, infos)
    return infos


def _see(host: str, infos: list[Any]) -> None:
    if len(_seen) > _MOST_SEEN:
        _seen.clear()
    for *_, address in infos:
        _seen[str(address[0])] = host


def is_allowed(address: str, caller: Caller) -> bool:
    """Whether an address belongs to a host that the caller may reach; asked of the resolver where nobody knows."""
    if (name := _seen.get(address)) is not None:
        return caller.rules.allows(name)
    for pattern in caller.rules.allowed.patterns:
        if "*" not in pattern:
            try:
                with ourselves():
                    _see(pattern, _real_getaddrinfo(pattern, None))
            except OSError:
                continue
    return (name := _seen.get(address)) is not None and caller.rules.allows(name)


def patch_names() -> None:
    """Once, for as long as the process lives."""
    # Both modules: some clients took ``socket.getaddrinfo`` for themselves when they were imported, and that one
    # asks ``_socket`` at every call.
    for module in (_socket, socket):
        wrap_function(module, "getaddrinfo", _resolving)
        wrap_function(module, "gethostbyname", _by_name)
        wrap_function(module, "gethostbyname_ex", _by_name_with_aliases)


def _resolving(real: Callable[..., Any]) -> Callable[..., Any]:
    def getaddrinfo(
        host: Any,
        port: Any,
        family: int = 0,
        type: int = 0,  # noqa: A002  its name in the standard library
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        address = stands_for(host, flags)
        if address is not None:
            return address_info(address, port, family, type, proto)
        return remember(host, real(host, port, family, type, proto, flags))

    return getaddrinfo


def _by_name(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda hostname: stands_for(hostname) or real(hostname)


def _by_name_with_aliases(real: Callable[..., Any]) -> Callable[..., Any]:
    def gethostbyname_ex(hostname: Any) -> Any:
        address = stands_for(hostname)
        return real(hostname) if address is None else (hostname, [], [address])

    return gethostbyname_ex


def aim(sock: socket.socket, address: Any) -> tuple[Any, Caller | None]:
    """Where to connect instead, and for whom where that is the gateway. Raises the caller's error to stop it."""
    if sock.family not in _INTERNET or not isinstance(address, tuple) or len(address) < 2:
        return address, None
    host, port = _text(address[0]), port_number(address[1])
    name = name_behind(host)
    caller = current_caller()
    if caller is not None:
        gateway = _gateway_port(caller, sock, name, host, port)
        if gateway is not None:
            loopback = "127.0.0.1" if sock.family == socket.AF_INET else "::ffff:127.0.0.1"
            return (loopback, gateway), caller
    else:
        callers.note_unowned_connection(name or host, port)
    if name is None or name == host:
        return address, None
    # The name was answered with an address of ours, for a run that is over or another port of the host.
    return real_address(name, port, sock.family, sock.type) or address, None


def _gateway_port(caller: Caller, sock: socket.socket, name: str | None, host: str, port: int) -> int | None:
    """The gateway's port, if that is where the connection goes; ``None`` sends it straight on."""
    meant = name or name_seen(host) or host
    rules = caller.rules
    # One of our addresses that stands for no name is the hook's, in a process that itself runs under Rewind.
    way = Way.STOP if name == host and rules.offline else rules.way(meant, port)
    if way is Way.GATEWAY:
        gateway = caller.gateway_port() if sock.type == socket.SOCK_STREAM else None
        if gateway is not None:
            return gateway
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
    callers.set_owner(port, caller)


def patch_connections() -> None:
    """Once, for as long as the process lives."""
    wrap_function(socket.socket, "connect", _connecting)
    wrap_function(socket.socket, "connect_ex", _connecting_by_number)
    wrap_function(socket.socket, "sendto", _sending_to)


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
        if callers.has_callers_or_connections():
            aim(self, args[-1])
        return real(self, *args)

    return sendto
