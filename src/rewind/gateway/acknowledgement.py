"""Acknowledge what came at once, so that nobody who writes a message in two pieces waits between them.

A client that writes head and body apart, with Nagle's algorithm on (urllib3 through a proxy, and so ``requests``),
sends the second piece when the first is acknowledged; the system would do that 40 ms later.
"""

import asyncio
import contextlib
import socket

_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
"""Linux alone has it. It holds until the system changes its mind, so it is asked for again after every read."""


def acknowledge(transport: asyncio.BaseTransport) -> None:
    """Tell the other end now that its bytes are here: it may wait with more until it knows."""
    if _QUICKACK is None:
        return
    sock = transport.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):  # closed meanwhile, or no TCP at all
            sock.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
