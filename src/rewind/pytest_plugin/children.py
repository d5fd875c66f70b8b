"""Processes that a test starts belong to its run, too: Python and Node are brought to it by variables.

What these name (certificates, hooks) is the same for every test of a process and takes tens of milliseconds to write,
so it is made once; what differs from test to test is laid over it.
"""

import atexit
import os
from functools import cache

from rewind.gateway.redirect_rules import Itinerary
from rewind.runs.inprocess_children import ForChildren, of_the_hooks
from rewind.runs.switchboard import switchboard


def child_variables(itinerary: Itinerary) -> dict[str, str]:
    """They do nothing in this process, so they may stand in its environment."""
    lasting = _lasting()
    hosts = itinerary.hosts
    plain = (f"{host}:{port}" for host, port in sorted(itinerary.endpoints))
    known = lasting["REWIND_GATEWAY_PLAIN"].split(",")
    return {
        **lasting,
        "REWIND_GATEWAY_HOSTS": "*" if hosts.all_hosts else ",".join(hosts.patterns),
        "REWIND_GATEWAY_PLAIN": ",".join(dict.fromkeys(filter(None, (*plain, *known)))),
        "REWIND_OFFLINE": "1" if itinerary.offline else "0",
        "REWIND_LIVE_HOSTS": ",".join(itinerary.allowed.patterns),
    }


@cache
def _lasting() -> dict[str, str]:
    made = ForChildren(switchboard(), Itinerary())
    atexit.register(made.close)
    return of_the_hooks(made.variables(dict(os.environ)))
