"""Notice clients that went around the gateway, where the system lets us see connections (Linux).

Everything the agent's processes say over TLS should reach the world through our own process. A connection of theirs to
port 443 elsewhere is one that no variable and no hook could catch: it was not recorded, and the run must say so.
"""

import os
import threading
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

PROC = Path("/proc")
LOOK_EVERY = 0.5
TLS_PORT = 443
ESTABLISHED = "01"


class BypassWatch:
    """Looks at the sockets of a process and its descendants now and then."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._seen: set[tuple[str, str]] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="rewind-bypass-watch", daemon=True)
        if (PROC / "net" / "tcp").exists():
            self._thread.start()

    def stop(self) -> list[tuple[str, str]]:
        """Program and address of each connection that went around."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        return sorted(self._seen)

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EVERY):
            self._look()

    def _look(self) -> None:
        around = dict(_tls_connections())
        if not around:
            return
        for pid in _descendants(self._root):
            for inode in _socket_inodes(pid):
                if inode in around:
                    self._seen.add((_program(pid), around[inode]))


def connections_of_this_process() -> list[tuple[str, str]]:
    """Inode and far address of each connection to port 443 that this very process has now."""
    around = dict(_tls_connections())
    if not around:
        return []
    return [(inode, around[inode]) for inode in _socket_inodes(os.getpid()) if inode in around]


def _tls_connections() -> Iterator[tuple[str, str]]:
    """Inode and far address of every established connection to port 443."""
    for table in ("tcp", "tcp6"):
        try:
            text = (PROC / "net" / table).read_text()
        except OSError:
            continue  # no IPv6 here
        for line in text.splitlines()[1:] if f":{TLS_PORT:04X} {ESTABLISHED} " in text else ():
            fields = line.split()
            address, _, port = fields[2].partition(":")
            if fields[3] == ESTABLISHED and int(port, 16) == TLS_PORT:
                yield fields[9], f"{_readable(address)}:{TLS_PORT}"


def _readable(address: str) -> str:
    """The kernel prints addresses as little-endian 32-bit words."""
    words = bytes.fromhex(address)
    return str(ip_address(b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))))


def _descendants(root: int) -> list[int]:
    pids, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        pids.append(pid)
        try:
            for task in (PROC / str(pid) / "task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue  # it ended meanwhile
    return pids


def _socket_inodes(pid: int) -> Iterator[str]:
    try:
        with os.scandir(PROC / str(pid) / "fd") as entries:
            for entry in entries:
                target = str(Path(entry.path).readlink())
                if target.startswith("socket:["):
                    yield target[8:-1]
    except OSError:
        return  # it ended meanwhile, or is not ours to look at


def _program(pid: int) -> str:
    try:
        return (PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return f"process {pid}"
