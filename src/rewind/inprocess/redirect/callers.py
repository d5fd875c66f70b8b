"""Whose connection is it? Every piece of code in this process acts for a caller, or for none.

The rules, in order:

1. A context variable names the caller. asyncio tasks inherit it; threads started and work given to a
   ``ThreadPoolExecutor`` or a ``ThreadPool`` take it along (nothing else of the context is carried).
2. Where the context names nobody, or somebody whose run is over, the *default* caller answers, if there is one
   (``make_default``: a test, to which everything in the process belongs while it runs).
3. A plain thread without an event loop, whose context names nobody, belongs to the only caller there is, if that one
   adopts it. A replay adopts threads that were there before it: they may be its workers, fed by a queue.
4. What an offline run left behind stays offline: a task that outlives its replay is never live.
5. All else is nobody's, and goes its way untouched. Where it reaches a host that a replay of this process would have
   answered for, that replay's end says so.

Connections have an owner too: the caller who connected, and then whoever wrote last, so that a kept-alive connection
that two runs share gives each request to the right one. A connection of another process, a forked worker's or a
child's, belongs to the default or to the only caller; where there are several, and one is offline, it is refused.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, Token, copy_context
from typing import Any, NamedTuple, TypeAlias
from weakref import ref

from rewind.gateway.client import Peer, RunContext
from rewind.inprocess.redirect.rules import ConnectionRules, Way, url_of


class _Ourselves:
    """The gateway's own threads: their connections are never sent to the gateway."""


_OURSELVES = _Ourselves()
Bound: TypeAlias = "Caller | _Ourselves | None"
BOUND: ContextVar[Bound] = ContextVar("rewind_caller", default=None)
"""For whom a context acts."""
_defaults: "list[Caller]" = []
_callers: "list[Caller]" = []
_lock = threading.RLock()
"""A run may end wherever its last reference goes, also while this very thread holds the lock."""


class _Claim(NamedTuple):
    """A caller who may be gone by now, and what then is left to know of it."""

    caller: "ref[Caller]"
    offline: bool


class Offline(ConnectionError):
    """A connection that would leave this machine, for somebody who stays offline. ``url`` is where it was going."""

    def __init__(self, message: str, url: str) -> None:
        super().__init__(message)
        self.url = url


class Caller:
    """A run of this process, or a guard: on whose behalf connections are made, or stopped."""

    def __init__(self, offline_error: Callable[[str], str] | None = None) -> None:
        """``offline_error`` makes the text of :class:`Offline` from a URL."""
        self.rules = ConnectionRules()
        self.over = False
        """Nothing belongs to it any more."""
        self.blocked: list[str] = []
        """URLs of the connections that were stopped so far."""
        self._offline_error = offline_error or _offline_text

    def activate(self) -> "Token[Any]":
        """What this context does from now on, and what it starts, belongs here."""
        return BOUND.set(self)

    def deactivate(self, token: "Token[Any]") -> None:
        """In the same context as ``activate``."""
        BOUND.reset(token)

    def make_default(self) -> None:
        """What belongs to nobody belongs here: other threads, children, loops that were there before. Of several the
        last one counts."""
        with _lock:
            _defaults.append(self)

    def unmake_default(self) -> None:
        """Done by ``leave``, too."""
        with _lock:
            if self in _defaults:
                _defaults.remove(self)

    # ── what the redirect asks ───────────────────────────────────────────────────────────────────────────

    def adopts(self, thread: threading.Thread) -> bool:
        """Whether a plain thread whose context names nobody belongs to it, as long as it is alone."""
        return False

    @property
    def context(self) -> RunContext | None:
        """What the gateway needs to carry its requests; ``None``: none of them may come there."""
        return None

    def gateway_port(self) -> int | None:
        """``None`` when the gateway has ended."""
        return None

    def stopped(self, host: str, port: int) -> OSError:
        """A connection there is not made; the error to raise."""
        url = url_of(host, port)
        self.blocked.append(url)
        return Offline(self._offline_error(url), url)

    def bypassed(self, host: str, port: int) -> OSError:
        """A recorded host, on a connection that does not lead to the gateway; the error to raise where the caller is
        offline. The connection is closed then, and a client that tries again comes to the gateway."""
        return self.stopped(host, port)

    def unrecorded(self, host: str, why: str) -> None:
        """Something went there that should have been recorded, and was not."""


def _offline_text(url: str) -> str:
    return f"Rewind: {url} was blocked: no connection may leave this machine now"


class _Gone(Caller):
    """An offline run that has been garbage-collected, or an unknown one: its requests are refused."""

    def __init__(self) -> None:
        super().__init__()
        self.rules = ConnectionRules(offline=True)
        self.over = True

    def stopped(self, host: str, port: int) -> OSError:
        return ConnectionRefusedError(
            f"Rewind: {url_of(host, port)} was blocked: it belongs to a replay that is over, and replays stay offline"
        )


REFUSED: Caller = _Gone()

_owners: dict[int | bytes, _Claim | None] = {}
"""This process's connections to the gateway, and for whom something was written there last. A connection is known by
its local port; and by its channel binding where what is seen is not the socket but the TLS (uvloop's sockets are
written to in C)."""
_unseen: set[int] = set()
"""Local ports of connections of which only the beginning was seen."""


def current_caller() -> Caller | None:
    """For whom the code acts that is running now."""
    bound = BOUND.get()
    if bound is None:
        if _defaults:
            return _defaults[-1]
        return _adopting() if _callers else None
    if isinstance(bound, _Ourselves):
        return None
    if not bound.over:
        return bound
    if _defaults:
        return _defaults[-1]
    return bound if bound.rules.offline else None


def has_callers_or_connections() -> bool:
    """Whether any run or guard is there at all, or a connection that some run has left behind."""
    return bool(_callers or _defaults or _owners)


def acts_for_itself() -> bool:
    """Whether the code that is running now is Rewind's own."""
    return isinstance(BOUND.get(), _Ourselves)


def note_unowned_connection(host: str, port: int | None) -> None:
    """Nobody's code goes there (``None``: with TLS, on some port): the replays that would have answered will say so."""
    if not _callers or acts_for_itself():
        return
    for caller in tuple(_callers):
        way = caller.rules
        if way.offline and (
            way.trusts(host) and not way.allows(host) if port is None else way.way(host, port) is Way.GATEWAY
        ):
            caller.unrecorded(
                url_of(host, port or 443), "was reached live, by code outside any session, during this replay"
            )


def _adopting() -> Caller | None:
    try:
        (alone,) = _callers
    except ValueError:
        return None
    return alone if _is_plain_thread() and alone.adopts(threading.current_thread()) else None


def _is_plain_thread() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False


# ── whose requests ───────────────────────────────────────────────────────────────────────────────────────────


def set_owner(line: int | bytes, caller: Caller | None) -> None:
    """What is written there from now on is for this caller. A line is a local port or a channel binding."""
    known = _owners.get(line)
    if caller is None:
        _owners[line] = None
    elif known is None or known.caller() is not caller:
        _owners[line] = _Claim(ref(caller), caller.rules.offline)


def mark_unseen(port: int) -> None:
    """What is written from that port is not seen, unless it is TLS."""
    if port in _owners:
        _unseen.add(port)


def owner(peer: Peer) -> Caller | None:
    """For whom the gateway's client writes."""
    for line in (peer.binding, peer.port):
        if line is not None and line in _owners:
            return _claimant(_owners[line])
    return _stranger()


def _claimant(claim: _Claim | None) -> Caller | None:
    if claim is None:
        return None
    caller = claim.caller()
    return REFUSED if caller is None and claim.offline else caller


def is_certain(peer: Peer) -> bool:
    """Whether the owner of the next request from there can be determined."""
    return peer.binding is not None or peer.port not in _unseen


def forget(peer: Peer) -> None:
    """That connection is over."""
    _owners.pop(peer.port, None)
    _unseen.discard(peer.port)
    if peer.binding is not None:
        _owners.pop(peer.binding, None)


def forget_line(line: bytes) -> None:
    """The client's end of that TLS is gone."""
    _owners.pop(line, None)


def _stranger() -> Caller | None:
    """To whom a connection belongs that no code of this process made: a child's, or a forked worker's."""
    if _defaults:
        return _defaults[-1]
    there = tuple(_callers)
    if len(there) == 1:
        return there[0]
    if not any(caller.rules.offline for caller in there):
        return None
    for caller in there:
        caller.unrecorded(
            "another process",
            "sent a request while several sessions were running: refused, because it cannot be told whose it is",
        )
    return REFUSED


# ── who is there ─────────────────────────────────────────────────────────────────────────────────────────────


def join(caller: Caller) -> None:
    with _lock:
        _callers.append(caller)


def leave(caller: Caller) -> None:
    with _lock:
        if caller in _callers:
            _callers.remove(caller)
        while caller in _defaults:
            _defaults.remove(caller)


def active_callers() -> tuple[Caller, ...]:
    with _lock:
        return tuple(_callers)


@contextmanager
def ourselves() -> Iterator[None]:
    """What is done and started here is Rewind's own."""
    token = BOUND.set(_OURSELVES)
    try:
        yield
    finally:
        BOUND.reset(token)


def our_context() -> Context:
    """A context for callbacks on our loop: they would otherwise run in the context of whoever asked for them."""
    with ourselves():
        return copy_context()


def _after_fork() -> None:
    """A forked child has one thread; whoever held the lock is not there to let it go."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
