"""No run, only a guard: nothing may leave this machine; or a watch: everything may, and models are noted."""

import os
from collections.abc import Callable
from dataclasses import field

from rewind.dataclass import dataclass
from rewind.inprocess.redirect import install as redirect
from rewind.inprocess.redirect.callers import Caller, join, leave
from rewind.inprocess.redirect.rules import ConnectionRules
from rewind.providers.hosts import LLM_HOSTS, HostRules, hosts_from_environment, plain_name


class Guard(Caller):
    """No run: it only sees to it that nothing leaves this machine. Loopback and ``allowed_hosts`` are free.

    ``start``, then ``activate`` or ``make_default``, then ``finish``. Starts no gateway.
    """

    def __init__(
        self, *, allowed_hosts: tuple[str, ...] = (), offline_error: Callable[[str], str] | None = None
    ) -> None:
        super().__init__(offline_error)
        self.rules = ConnectionRules(offline=True, allowed=HostRules(allowed_hosts))

    def start(self) -> None:
        redirect.install()
        join(self)

    def finish(self) -> tuple[str, ...]:
        """The URLs of the connections that were stopped, each as often as it was tried."""
        self.over = True
        leave(self)
        return tuple(self.blocked)


@dataclass(frozen=True)
class _NotedHosts(HostRules):
    """Remembers which hosts were asked for."""

    noted: dict[str, None] = field(default_factory=dict)

    def records(self, host: str) -> bool:
        self.noted[plain_name(host)] = None
        return HostRules.records(self, host)


class ModelWatch(Guard):
    """Stops nothing, and knows which models were asked."""

    def __init__(self) -> None:
        super().__init__()
        self._hosts = _NotedHosts(("*",))
        self.rules = ConnectionRules(offline=True, allowed=self._hosts)

    def models(self, expected: tuple[str, ...]) -> tuple[str, ...]:
        """Their hosts, but for those that one expects to be asked."""
        known = HostRules((*LLM_HOSTS, *hosts_from_environment(os.environ)))
        usual = HostRules(expected)
        return tuple(host for host in self._hosts.noted if known.records(host) and not usual.records(host))
