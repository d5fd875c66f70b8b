"""Bring the connections of this very process to the gateway.

Seams of the standard library are changed once, when the first run of the process begins, and stay: clients that were
built before are caught like those that come later, whatever library they are of. Without a run every seam asks one
context variable and goes on. Which code acts for which run is told in ``redirect_callers``, what becomes of a
connection in ``redirect_rules``.
"""

import threading

from rewind.inprocess.redirect import connections as redirect_connections
from rewind.inprocess.redirect import loops as redirect_loops
from rewind.inprocess.redirect import names as redirect_names
from rewind.inprocess.redirect import open_connections as redirect_open
from rewind.inprocess.redirect import threads as redirect_threads
from rewind.inprocess.redirect import tls as redirect_tls
from rewind.inprocess.redirect import writes as redirect_writing
from rewind.inprocess.redirect.rules import ConnectionRules

_lock = threading.Lock()
_installed = threading.Event()


def install() -> None:
    """Put the seams in, if they are not. Call it before the first thread of ours is started."""
    with _lock:
        if not _installed.is_set():
            redirect_open.find_what_is_there()
            redirect_threads.carry_into_threads()
            redirect_names.change()
            redirect_connections.change()
            redirect_writing.change()
            redirect_tls.change()
            redirect_loops.change()
            _installed.set()


def close_what_rests(rules: ConnectionRules, gateway_port: int) -> None:
    """For a run that begins: connections from before it that rest, to hosts that it records, are closed."""
    redirect_open.close_what_rests(rules, gateway_port, redirect_tls.is_ours)


def lead_to(port: int, certificate_pem: bytes, common_name: str) -> None:
    """The gateway listens there, and shows certificates of that authority."""
    redirect_writing.lead_to(port)
    redirect_tls.trust(certificate_pem, common_name)
