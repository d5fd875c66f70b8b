"""What rests in the pools of HTTP clients: connections that lie in a pool's own list of free ones.

Nothing of a client's is changed, and what is not as we know it is left alone. A pool is asked while nobody can take a
connection out of it: under its own lock where it has one, else on the thread of its event loop.
"""

import asyncio
import gc
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

LOCK_SECONDS = 1.0
"""For a lock that is held for moments. A forked child may have one that nobody will ever let go."""


@dataclass(frozen=True, slots=True)
class Resting:
    """A connection that nobody uses."""

    sock: Any
    tls: ssl.SSLSocket | ssl.SSLObject | None


Wanted = Callable[[Resting], bool]
Shut = Callable[[Any], None]


def shut_what_rests(wanted: Wanted, shut: Shut) -> None:
    """Shut what is wanted among all connections at rest in this process."""
    kinds: dict[type, Callable[[Any, Wanted, Shut], None] | None] = {}
    for found in gc.get_objects():
        kind = type(found)
        if kind not in kinds:
            kinds[kind] = _look_for(kind)
        look = kinds[kind]
        if look is not None:
            with suppress(Exception):  # another version of that client: then nothing is known of it
                look(found, wanted, shut)


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
        if connection.is_idle() and not any(connection is one for one in taken):
            while (inner := getattr(connection, "_connection", None)) is not None:
                connection = inner
            stream = getattr(connection, "_network_stream", None)
            if stream is not None:
                yield stream


def _shut_stream(stream: Any, wanted: Wanted, shut: Shut) -> None:
    sock = stream.get_extra_info("socket")
    _shut_if(
        sock, sock if isinstance(sock, ssl.SSLSocket) else stream.get_extra_info("ssl_object"), wanted, shut
    )


def _loop_of(stream: Any) -> Any:
    """The event loop of a stream of anyio's; ``None`` where nobody knows (uvloop's, from before the seams)."""
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
    return sock is not None and wanted(Resting(sock, tls))


def _shut_if(sock: Any, tls: Any, wanted: Wanted, shut: Shut) -> None:
    known = tls if isinstance(tls, (ssl.SSLSocket, ssl.SSLObject)) else None
    if wanted(Resting(sock, known)):
        shut(sock)


def _on(loop: Any, look: Callable[[Any], None]) -> None:
    """Have it looked at on the loop's own thread: there nobody takes a connection meanwhile."""
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
