"""On whose behalf connections of this process are made, or stopped: what a run and a guard share, and the guard."""

import threading
from collections.abc import Callable
from contextvars import Token
from typing import Any

from rewind.gateway.client import RunContext
from rewind.inprocess.redirect import callers as redirect_callers
from rewind.inprocess.redirect import install as redirect
from rewind.inprocess.redirect.rules import ConnectionRules, url_of
from rewind.providers.hosts import HostRules


class Offline(ConnectionError):
    """A connection that would leave this machine, for somebody who stays offline. ``url`` is where it was going."""

    def __init__(self, message: str, url: str) -> None:
        super().__init__(message)
        self.url = url


class CallerBase:
    """A caller (``redirect/callers.py``) that contexts can be bound to, and that can be made the default."""

    def __init__(self, offline_error: Callable[[str], str] | None) -> None:
        self.rules = ConnectionRules()
        self.over = False
        """Nothing belongs to it any more."""
        self.blocked: list[str] = []
        """URLs of the connections that were stopped so far."""
        self._offline_error = offline_error or _offline_text

    def activate(self) -> "Token[Any]":
        """What this context does from now on, and what it starts, belongs here."""
        return redirect_callers.activate(self)

    def deactivate(self, token: "Token[Any]") -> None:
        """In the same context as ``activate``."""
        redirect_callers.deactivate(token)

    def make_default(self) -> None:
        """What belongs to nobody belongs here: other threads, children, loops that were there before. Of several the
        last one counts."""
        redirect_callers.make_default(self)

    def unmake_default(self) -> None:
        """Done by ``finish``, too."""
        redirect_callers.unmake_default(self)

    # ── what the redirect asks ───────────────────────────────────────────────────────────────────────────

    def adopts(self, thread: threading.Thread) -> bool:
        return False

    @property
    def context(self) -> RunContext | None:
        return None

    def gateway_port(self) -> int | None:
        return None

    def stopped(self, host: str, port: int) -> OSError:
        url = url_of(host, port)
        self.blocked.append(url)
        return Offline(self._offline_error(url), url)

    def bypassed(self, host: str, port: int) -> OSError:
        return self.stopped(host, port)

    def unrecorded(self, host: str, why: str) -> None:
        """Nothing is recorded here."""


def _offline_text(url: str) -> str:
    return f"Rewind: {url} was blocked: no connection may leave this machine now"


class Guard(CallerBase):
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
        redirect_callers.join(self)

    def finish(self) -> tuple[str, ...]:
        """The URLs of the connections that were stopped, each as often as it was tried."""
        self.over = True
        redirect_callers.leave(self)
        return tuple(self.blocked)
