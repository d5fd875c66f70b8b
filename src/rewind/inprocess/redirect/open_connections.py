"""Connections that do not lead to the gateway: which there are, and which of them a run that begins has to end.

A client that was used live keeps its connections in a pool, and would go past the run on them. Those that lie in a
pool's own list of free connections are shut down when a run begins; the pool sees the end and connects anew. All others
are left alone, because nobody can tell whether an answer is still to come on them: the patches of writing see them if
the run uses them.

Nothing of a client's is changed, and what is not as we know it is left alone. A pool is asked while nobody can take a
connection out of it: under its own lock where it has one, else on the thread of its event loop.

Clients that connect in C or Rust go past every patch: they cannot be redirected or stopped, but the system sees them
(Linux). What they connect to while a run is to be offline is told at its end.
"""

import asyncio
import gc
import os
import socket
import ssl
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from weakref import WeakSet

from rewind.dataclass import dataclass
from rewind.inprocess.redirect.callers import acts_for_itself
from rewind.inprocess.redirect.rules import THIS_MACHINE, ConnectionRules, Way, place
from rewind.runs.bypass_watch import connections_of_this_process

LOCK_SECONDS = 1.0
"""For a lock that is held for moments. A forked child may have one that nobody will ever let go."""


Tls = ssl.SSLSocket | ssl.SSLObject
IsOurs = Callable[[Tls], bool | None]
"""Whether the gateway is at the other end of a TLS connection; ``None`` as long as nobody can know."""
T = TypeVar("T")

_INTERNET = (socket.AF_INET, socket.AF_INET6)
_plain: "WeakSet[Any]" = WeakSet()
"""Sockets, and transports of uvloop's that have none of Python's."""
_tls: "WeakSet[Tls]" = WeakSet()
"""Those with a host's name."""


NATIVE_CLIENTS = ("grpc", "pycurl", "curl_cffi", "pyqwest", "primp", "rnet")
"""Modules whose clients do not use Python's sockets. Without any of them nobody has to look."""


_uvloops: "WeakSet[Any]" = WeakSet()
"""Transports of uvloop's from before the patches: what is written there is not seen."""


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
    inodes = set()
    for sock in [*_all(_plain), *(tls for tls in _all(_tls) if isinstance(tls, ssl.SSLSocket))]:
        with suppress(OSError):  # closed meanwhile
            inodes.add(str(os.fstat(sock.fileno()).st_ino))
    return frozenset(inodes)


def find_open_connections() -> None:
    """Look through the whole process, once: for what was connected before anybody told us."""
    if not _has_sockets():
        return
    others: set[int] = set()
    """Kinds of objects that are no connections, by their ids: not every class can be put into a set."""
    for candidate in gc.get_objects():
        kind = type(candidate)
        if id(kind) in others:
            continue  # as nearly all of hundreds of thousands
        if issubclass(kind, (ssl.SSLSocket, ssl.SSLObject)):
            if candidate.server_hostname and not candidate.server_side:
                _tls.add(candidate)
        elif issubclass(kind, socket.socket):
            connected(candidate)
        elif kind.__name__ == "TCPTransport" and kind.__module__ == "uvloop.loop":
            _uvloops.add(candidate)
        else:
            others.add(id(kind))


def _has_sockets() -> bool:
    """Whether any file of this process is a socket; yes where the system does not tell."""
    try:
        files = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208
    except (OSError, ValueError):
        return True
    for file in files:
        with suppress(OSError):  # the one that the folder was read by
            if stat.S_ISSOCK(os.fstat(file).st_mode):
                return True
    return not files


def close_idle_connections(rules: ConnectionRules, gateway_port: int, is_ours: IsOurs) -> None:
    """For a run that begins: nothing that it would record may go past it, as far as it is certain to be at rest."""

    def leads_past(idle: IdleConnection) -> bool:
        if idle.tls is not None:
            return _tls_leads_past(idle.tls, rules, is_ours)
        return _leads_past(idle.sock, rules, gateway_port)

    # Going through all objects of the process takes a while, so only where there is something to find.
    if (
        any(_tls_leads_past(connection, rules, is_ours) for connection in _all(_tls))
        or any(_leads_past(connection, rules, gateway_port) for connection in _all(_plain))
        or any(
            _leads_past(connection.get_extra_info("socket"), rules, gateway_port)
            for connection in _all(_uvloops)
            if not connection.is_closing()
        )
    ):
        shut_idle_connections(leads_past, shut)


def _tls_leads_past(connection: Tls, rules: ConnectionRules, is_ours: IsOurs) -> bool:
    host = connection.server_hostname
    if not host or not rules.trusts(host) or rules.allows(host):
        return False
    return is_ours(connection) is False


def _leads_past(sock: Any, rules: ConnectionRules, gateway_port: int) -> bool:
    try:
        host, port = sock.getpeername()[:2]
    except (OSError, AttributeError, ValueError, TypeError):  # it has ended, or is no connection of the internet
        return False
    return bool(port != gateway_port and rules.way(host, port) is Way.GATEWAY)


def shut(sock: Any) -> None:
    """End a connection for both sides, from any thread: whoever owns it sees its end, and closes it."""
    with suppress(OSError), _twin(sock) as twin:
        twin.shutdown(socket.SHUT_RDWR)


def _twin(sock: Any) -> socket.socket:
    """The same connection: shut down by its own name, an SSLSocket would forget that it speaks TLS."""
    return socket.socket(fileno=os.dup(sock.fileno()))


def _all(connections: "WeakSet[T]") -> list[T]:
    """What is in it now, while other threads put more in."""
    while True:
        try:
            return list(connections)
        except RuntimeError:  # it has grown meanwhile
            continue


# ── in the pools of HTTP clients ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class IdleConnection:
    """A connection that nobody uses."""

    sock: Any
    tls: ssl.SSLSocket | ssl.SSLObject | None


Wanted = Callable[[IdleConnection], bool]
Shut = Callable[[Any], None]


def shut_idle_connections(wanted: Wanted, shut: Shut) -> None:
    """Shut what is wanted among all connections at rest in this process."""
    kinds: dict[type, Callable[[Any, Wanted, Shut], None] | None] = {}
    for candidate in gc.get_objects():
        kind = type(candidate)
        if kind not in kinds:
            kinds[kind] = _look_for(kind)
        look = kinds[kind]
        if look is not None:
            with suppress(Exception):  # another version of that client: then nothing is known of it
                look(candidate, wanted, shut)


def _look_for(kind: type) -> "Callable[[Any, Wanted, Shut], None] | None":
    for base in kind.__mro__:
        # The package itself, a later one of its kind (``httpcore2``), or a copy in somebody else's.
        match base.__name__, f".{base.__module__}":
            case "ConnectionPool", home if ".httpcore" in home:
                return _in_httpcore
            case "AsyncConnectionPool", home if ".httpcore" in home:
                return _in_httpcore_on_a_loop
            case "HTTPConnectionPool", home if ".urllib3" in home:
                return _in_urllib3
            case "TCPConnector", home if ".aiohttp" in home:
                return _in_aiohttp
    return None


def _in_httpcore(pool: Any, wanted: Wanted, shut: Shut) -> None:
    with _held(pool._optional_thread_lock._lock):
        for stream in _idle_streams(pool):
            _shut_stream(stream, wanted, shut)


def _in_httpcore_on_a_loop(pool: Any, wanted: Wanted, shut: Shut) -> None:
    loops: dict[int, Any] = {}
    for stream in _idle_streams(pool):
        loop = _loop_of(stream)
        loops[id(loop)] = loop

    def look(loop: Any) -> None:
        for stream in _idle_streams(pool):
            if _loop_of(stream) is loop:
                _shut_stream(stream, wanted, shut)

    for loop in loops.values():
        _on(loop, look)


def _idle_streams(pool: Any) -> Iterator[Any]:
    taken = [request.connection for request in pool._requests]
    for connection in list(pool._connections):
        if connection.is_idle() and not any(connection is other for other in taken):
            while (inner := getattr(connection, "_connection", None)) is not None:
                connection = inner
            stream = getattr(connection, "_network_stream", None)
            if stream is not None:
                yield stream


def _shut_stream(stream: Any, wanted: Wanted, shut: Shut) -> None:
    sock = stream.get_extra_info("socket")
    _shut_if(sock, sock if isinstance(sock, ssl.SSLSocket) else stream.get_extra_info("ssl_object"), wanted, shut)


def _loop_of(stream: Any) -> Any:
    """The event loop of a stream of anyio's; ``None`` where nobody knows (uvloop's, from before the patches)."""
    inner = getattr(stream, "_stream", None)
    while (below := getattr(inner, "transport_stream", None)) is not None:  # TLS, within TLS perhaps
        inner = below
    return getattr(getattr(inner, "_transport", None), "_loop", None)


def _in_urllib3(pool: Any, wanted: Wanted, shut: Shut) -> None:
    free = pool.pool
    if free is None:
        return  # it is closed
    with _held(free.mutex):
        for connection in free.queue:
            sock = getattr(connection, "sock", None)
            if sock is not None:
                _shut_if(sock, sock if isinstance(sock, ssl.SSLSocket) else None, wanted, shut)


def _in_aiohttp(connector: Any, wanted: Wanted, _shut: Shut) -> None:
    if not connector._conns:
        return

    def look(_loop: Any) -> None:
        for free in list(connector._conns.values()):
            for protocol, *_ in list(free):
                transport = protocol.transport
                if transport is not None and _is_wanted(transport, wanted):
                    # It asks the transport, not the socket, whether the connection is still there.
                    transport.abort()

    _on(connector._loop, look)


def _is_wanted(transport: Any, wanted: Wanted) -> bool:
    sock, tls = transport.get_extra_info("socket"), transport.get_extra_info("ssl_object")
    return sock is not None and wanted(IdleConnection(sock, tls))


def _shut_if(sock: Any, tls: Any, wanted: Wanted, shut: Shut) -> None:
    known = tls if isinstance(tls, (ssl.SSLSocket, ssl.SSLObject)) else None
    if wanted(IdleConnection(sock, known)):
        shut(sock)


def _on(loop: Any, look: Callable[[Any], None]) -> None:
    """Look at it on the loop's own thread, where no connection is taken meanwhile."""
    try:
        here = asyncio.get_running_loop()
    except RuntimeError:
        here = None
    if loop is None or loop is here:
        look(loop)
        return

    def look_there() -> None:
        with suppress(Exception):  # as above
            look(loop)

    with suppress(RuntimeError):  # the loop is closed, and with it the client
        loop.call_soon_threadsafe(look_there)


@contextmanager
def _held(lock: Any) -> Iterator[None]:
    if not lock.acquire(timeout=LOCK_SECONDS):
        raise TimeoutError
    try:
        yield
    finally:
        lock.release()


# ── past Python's sockets ───────────────────────────────────────────────────────────────────────────────────


class UnseenConnections:
    """Looks at the connections of this process twice, and tells the difference."""

    def __init__(self) -> None:
        self._before = frozenset(inode for inode, _ in _foreign())

    def since(self) -> tuple[str, ...]:
        """Addresses that this process is connected to now, but not by Python code."""
        return tuple(sorted({address for inode, address in _foreign() if inode not in self._before}))


def _foreign() -> list[tuple[str, str]]:
    if not any(name in sys.modules for name in NATIVE_CLIENTS):
        return []
    ours = known_inodes()
    return [
        (inode, address)
        for inode, address in connections_of_this_process()
        if inode not in ours and place(address.rpartition(":")[0]) != THIS_MACHINE
    ]
