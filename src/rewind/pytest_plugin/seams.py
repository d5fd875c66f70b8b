"""Rewind's seams above those of others while a test of ours runs.

Plugins that block the network (pytest-recording, pytest-socket) change the very functions that our seams are in, and
put back what they knew before. A marked test is guarded more closely than by them, and its way to the gateway on this
machine must stay open: ours come first, and what was there is put back.
"""

import socket
from collections.abc import Callable
from functools import cache
from typing import Any

from rewind.inprocess.redirect import install as redirect

_NAMES = ("connect", "connect_ex")


class Seams:
    """The seams as they were when they were put in."""

    def __init__(self) -> None:
        redirect.install()
        self._ours: dict[str, Any] = {name: getattr(socket.socket, name) for name in _NAMES}

    def on_top(self) -> Callable[[], None]:
        """Ours come first until what is returned is called."""
        found = {name: getattr(socket.socket, name) for name in _NAMES}
        for name, ours in self._ours.items():
            setattr(socket.socket, name, ours)

        def put_back() -> None:
            for name, theirs in found.items():
                # Somebody had put back what was there before us: that ours are gone was not meant.
                if theirs is not getattr(self._ours[name], "__wrapped__", None):
                    setattr(socket.socket, name, theirs)

        return put_back


@cache
def seams() -> Seams:
    """Made before the first marked test, when nobody blocks anything yet."""
    return Seams()
