"""Clients that connect in C or Rust, past every seam: they cannot be led or stopped, but the system sees them (Linux).

What they connect to while a run is to be offline is told at its end, so that nobody believes it was.
"""

import sys

from rewind.inprocess.redirect.open_connections import known_inodes
from rewind.inprocess.redirect.rules import THIS_MACHINE, place
from rewind.runs.bypass_watch import connections_of_this_process

OF_THEIR_OWN = ("grpc", "pycurl", "curl_cffi", "pyqwest", "primp", "rnet")
"""Modules whose clients do not use Python's sockets. Without any of them nobody has to look."""


class UnseenConnections:
    """Looks at the connections of this process twice, and tells the difference."""

    def __init__(self) -> None:
        self._before = frozenset(inode for inode, _ in _foreign())

    def since(self) -> tuple[str, ...]:
        """Addresses that somebody is connected to by now, and no Python code has connected to."""
        return tuple(sorted({address for inode, address in _foreign() if inode not in self._before}))


def _foreign() -> list[tuple[str, str]]:
    if not any(name in sys.modules for name in OF_THEIR_OWN):
        return []
    ours = known_inodes()
    return [
        (inode, address)
        for inode, address in connections_of_this_process()
        if inode not in ours and place(address.rpartition(":")[0]) != THIS_MACHINE
    ]
