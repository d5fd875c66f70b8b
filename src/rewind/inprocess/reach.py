"""How far a run of this process reaches: which hosts it records, and where its connections go."""

from collections.abc import Mapping
from dataclasses import dataclass

from rewind.inprocess.options import InProcessOptions
from rewind.inprocess.redirect.rules import THIS_MACHINE, ConnectionRules, pairs, place, proxies
from rewind.model.session import Recording
from rewind.providers import notes, tools
from rewind.providers.hosts import (
    LLM_HOSTS,
    LOCAL_ENDPOINTS,
    HostRules,
    endpoints_from_environment,
    hosts_from_environment,
)

OWN_SCHEMES = (tools.SCHEME, notes.SCHEME)
"""Of calls that ask nothing of the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What one run has to do with the network."""

    rules: ConnectionRules
    recorded: HostRules
    """The hosts whose exchanges are recorded once they are at the gateway."""
    hosts: tuple[str, ...]
    """Those that are recorded besides the known ones, for the first line of the journal."""


def reach_of(options: InProcessOptions, environ: Mapping[str, str], recording: Recording | None) -> Reach:
    """For a run that records, or that replays this recording.

    A replay leads to the tape whatever is on it, whether the rules of its machine would record that or not.
    """
    patterns, endpoints = pairs(options.hosts)
    local = {(place(at.host), at.port) for at in (*endpoints_from_environment(environ), *LOCAL_ENDPOINTS)}
    named, on_tape, all_hosts = (*LLM_HOSTS, *patterns), frozenset[str](), options.all_hosts
    if recording is not None:
        start = recording.session.start
        heads = [step.request.head for step in recording.steps]
        heads = [head for head in heads if head.scheme not in OWN_SCHEMES]
        on_tape = frozenset(head.host for head in heads)
        local |= {(place(head.host), head.port) for head in heads}
        named, all_hosts = (*named, *pairs(start.hosts)[0]), all_hosts or start.all_hosts
    recorded = {host for host, _ in endpoints | local} | on_tape
    if THIS_MACHINE in recorded:
        recorded |= {"127.0.0.1", "::1"}
    return Reach(
        rules=ConnectionRules(
            hosts=HostRules(named, all_hosts),
            endpoints=frozenset(endpoints | local | proxies(environ)),
            offline=recording is not None and options.on_miss == "refuse",
            allowed=HostRules(options.allowed_hosts if recording is not None else ()),
        ),
        recorded=HostRules((*named, *sorted(recorded)), all_hosts),
        hosts=(*patterns, *sorted({host for host, _ in endpoints}), *hosts_from_environment(environ)),
    )
