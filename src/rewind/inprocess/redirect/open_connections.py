"""Connections that do not lead to the gateway: which there are, and which of them a run that begins has to end.

A client that was used live keeps its connections in a pool, and would go past the run on them. Those that lie in a
pool's own list of free connections are shut down when a run begins (``redirect_pools``); the pool sees the end and
connects anew. All others are left alone, because nobody can tell whether an answer is still to come on them: the seams
of writing see them if the run uses them.
"""

import gc
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakSet

from rewind.inprocess.redirect.callers import acts_for_itself
from rewind.inprocess.redirect.pools import Resting, shut_what_rests
from rewind.inprocess.redirect.rules import ConnectionRules, Way

Tls = ssl.SSLSocket | ssl.SSLObject
IsOurs = Callable[[Tls], bool | None]
"""Whether the gateway is at the other end of a TLS connection; ``None`` as long as nobody can know."""
T = TypeVar("T")

_INTERNET = (socket.AF_INET, socket.AF_INET6)
_plain: "WeakSet[Any]" = WeakSet()
"""Sockets, and transports of uvloop's that have none of Python's."""
_tls: "WeakSet[Tls]" = WeakSet()
"""Those with a host's name."""


def connected(sock: Any) -> None:
    """A connection was made that does not lead to the gateway, and is not the gateway's own."""
    if sock.family in _INTERNET and sock.type == socket.SOCK_STREAM and not acts_for_itself():
        _plain.add(sock)


def speaks_tls(connection: Tls) -> None:
    """TLS begins there, under a host's name."""
    if not acts_for_itself():
        _tls.add(connection)


def leads_to_gateway(connection: Tls) -> None:
    """Seen at a write: it need not be looked at when the next run begins."""
    _tls.discard(connection)


def known_inodes() -> frozenset[str]:
    """The system's numbers of the connections that Python code has made, not to the gateway."""
    found = set()
    for sock in [*_all(_plain), *(one for one in _all(_tls) if isinstance(one, ssl.SSLSocket))]:
        with suppress(OSError):  # closed meanwhile
            found.add(str(os.fstat(sock.fileno()).st_ino))
    return frozenset(found)


def find_what_is_there() -> None:
    """Look through the whole process, once: for what was connected before anybody told us."""
    for found in gc.get_objects():
        kind = type(found)
        if issubclass(kind, (ssl.SSLSocket, ssl.SSLObject)):
            if found.server_hostname and not found.server_side:
                _tls.add(found)
        elif issubclass(kind, socket.socket):
            connected(found)
        elif kind.__name__ == "TCPTransport" and kind.__module__ == "uvloop.loop":
            _uvloops.add(found)


_uvloops: "WeakSet[Any]" = WeakSet()
"""Transports of uvloop's from before the seams: what is written there is not seen."""


def close_what_rests(rules: ConnectionRules, gateway_port: int, is_ours: IsOurs) -> None:
    """For a run that begins: nothing that it would record may go past it, as far as it is certain to be at rest."""

    def leads_past(found: Resting) -> bool:
        if found.tls is not None:
            return _tls_leads_past(found.tls, rules, is_ours)
        return _leads_past(found.sock, rules, gateway_port)

    # Going through all objects of the process takes a while, so only where there is something to find.
    if (
        any(_tls_leads_past(one, rules, is_ours) for one in _all(_tls))
        or any(_leads_past(one, rules, gateway_port) for one in _all(_plain))
        or any(
            _leads_past(one.get_extra_info("socket"), rules, gateway_port)
            for one in _all(_uvloops)
            if not one.is_closing()
        )
    ):
        shut_what_rests(leads_past, shut)


def _tls_leads_past(connection: Tls, rules: ConnectionRules, is_ours: IsOurs) -> bool:
    host = connection.server_hostname
    if not host or not rules.trusts(host) or rules.allows(host):
        return False
    return is_ours(connection) is False


def _leads_past(sock: Any, rules: ConnectionRules, gateway_port: int) -> bool:
    try:
        host, port = sock.getpeername()[:2]
    except (
        OSError,
        AttributeError,
        ValueError,
        TypeError,
    ):  # it has ended, or is no connection of the internet
        return False
    return bool(port != gateway_port and rules.way(host, port) is Way.GATEWAY)


def shut(sock: Any) -> None:
    """End a connection for both sides, from any thread: whoever owns it sees its end, and closes it."""
    with suppress(OSError), _twin(sock) as twin:
        twin.shutdown(socket.SHUT_RDWR)


def _twin(sock: Any) -> socket.socket:
    """The same connection: shut down by its own name, an SSLSocket would forget that it speaks TLS."""
    return socket.socket(fileno=os.dup(sock.fileno()))


def _all(found: "WeakSet[T]") -> list[T]:
    """What is in it now, while other threads put more in."""
    while True:
        try:
            return list(found)
        except RuntimeError:  # it has grown meanwhile
            continue
