"""The seams of name resolution: a name that concerns the caller is answered with an address of our own.

So no resolver is asked for a recorded or a forbidden host, and the connection that follows still knows its name.
"""

import _socket
import socket
from collections.abc import Callable
from typing import Any

from rewind.inprocess.redirect.callers import Caller, ourselves, whose
from rewind.inprocess.redirect.patch import change as change_seam
from rewind.inprocess.redirect.rules import Names, place, port_number

_MOST_SEEN = 4096
_names = Names()
_seen: dict[str, str] = {}
"""Addresses that a resolver gave for a name that some run may reach offline."""
_real_getaddrinfo = socket.getaddrinfo


def stands_for(host: Any, flags: int = 0) -> str | None:
    """The address to answer with, where the caller's name must not be asked of a resolver."""
    caller = whose()
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
        found = _real_getaddrinfo(name, port, family, kind)
    return found[0][4] if found else None


def remember(host: Any, found: list[Any]) -> list[Any]:
    """Keep in mind which addresses belong to a name that the caller may reach offline."""
    caller = whose()
    if caller is not None and isinstance(host, str) and caller.rules.allows(host):
        _see(host, found)
    return found


def _see(host: str, found: list[Any]) -> None:
    if len(_seen) > _MOST_SEEN:
        _seen.clear()
    for *_, address in found:
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


def change() -> None:
    """Put the seams in; once, for as long as the process lives."""
    # Both modules: some clients took ``socket.getaddrinfo`` for themselves when they were imported, and that one
    # asks ``_socket`` at every call.
    for module in (_socket, socket):
        change_seam(module, "getaddrinfo", _resolving)
        change_seam(module, "gethostbyname", _by_name)
        change_seam(module, "gethostbyname_ex", _by_name_with_aliases)


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
