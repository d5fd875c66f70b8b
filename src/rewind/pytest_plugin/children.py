"""Processes that a test starts belong to its run, too: Python and Node are brought to it by variables.

What these name (certificates, hooks) is the same for every test of a process and takes tens of milliseconds to write,
so it is made once; what differs from test to test is laid over it, or joined with it.
"""

import atexit
import os
from collections.abc import Mapping
from functools import cache

from rewind.inprocess.child_environment import ChildEnvironment, hook_variables
from rewind.inprocess.redirect.rules import ConnectionRules
from rewind.inprocess.shared_gateway import shared_gateway

_SHARED = ("PYTHONPATH", "NODE_OPTIONS")


def child_variables(rules: ConnectionRules) -> dict[str, str]:
    """They do nothing in this process, so they may stand in its environment."""
    lasting = _lasting()
    hosts = rules.hosts
    plain = (f"{host}:{port}" for host, port in sorted(rules.endpoints))
    known = lasting["REWIND_GATEWAY_PLAIN"].split(",")
    return {
        **lasting,
        **joined(lasting, os.environ),
        "REWIND_GATEWAY_HOSTS": "*" if hosts.all_hosts else ",".join(hosts.patterns),
        "REWIND_GATEWAY_PLAIN": ",".join(dict.fromkeys(filter(None, (*plain, *known)))),
        "REWIND_OFFLINE": "1" if rules.offline else "0",
        "REWIND_LIVE_HOSTS": ",".join(rules.allowed.patterns),
    }


def joined(ours: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that we share with the user: our part, and what the environment holds now."""
    folders = [ours["PYTHONPATH"], *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    require, options = ours["NODE_OPTIONS"], environ.get("NODE_OPTIONS", "")
    return {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(folders)),
        "NODE_OPTIONS": options if require in options else f"{options} {require}".strip(),
    }


@cache
def _lasting() -> dict[str, str]:
    made = ChildEnvironment(shared_gateway(), ConnectionRules())
    atexit.register(made.close)
    # Our part alone: the user's may be another one in the next test.
    alone = {name: value for name, value in os.environ.items() if name not in _SHARED}
    return hook_variables(made.variables(alone))
