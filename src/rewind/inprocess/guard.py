"""No run, only a guard: nothing may leave this machine."""

from collections.abc import Callable

from rewind.inprocess.redirect import install as redirect
from rewind.inprocess.redirect.callers import Caller, join, leave
from rewind.inprocess.redirect.rules import ConnectionRules
from rewind.providers.hosts import HostRules


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
