"""Bring the connections of this very process to the gateway.

Functions of the standard library are patched once, when the first run of the process begins, and stay: clients that
were built before are caught like those that come later, whatever library they are of. Without a run every patch asks
one context variable and goes on. Which code acts for which run is decided in ``callers.py``, what becomes of a
connection in ``rules.py``.
"""

import threading

from rewind.inprocess.redirect import open_connections, tls, writes
from rewind.inprocess.redirect.concurrency import carry_into_threads, patch_concurrency
from rewind.inprocess.redirect.connections import patch_connections, patch_names
from rewind.inprocess.redirect.rules import ConnectionRules

_lock = threading.Lock()
_installed = threading.Event()


def install() -> None:
    """Patch, unless that is done. Call it before the first thread of ours is started."""
    with _lock:
        if not _installed.is_set():
            open_connections.find_open_connections()
            carry_into_threads()
            patch_names()
            patch_connections()
            writes.patch_writes()
            tls.patch_tls()
            patch_concurrency()
            _installed.set()


def close_idle_connections(rules: ConnectionRules, gateway_port: int) -> None:
    """For a run that begins: connections from before it that rest, to hosts that it records, are closed."""
    open_connections.close_idle_connections(rules, gateway_port, tls.is_ours)


def add_gateway(port: int, certificate_pem: bytes, common_name: str) -> None:
    """The gateway listens there, and shows certificates of that authority."""
    writes.add_gateway(port)
    tls.trust(certificate_pem, common_name)
