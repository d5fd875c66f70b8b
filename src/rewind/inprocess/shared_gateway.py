"""The one gateway of this process, which all of its runs share: each request is handed to the run that sent it.

It is started with the first run, in a daemon thread, and stays: a run in process costs no thread, no port and no
certificate authority of its own. Its authority lives in memory only and is told to the contexts of this process alone.
"""

import asyncio
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from rewind.gateway.authority import Authority
from rewind.gateway.certificates import make_ca
from rewind.gateway.client import Peer, RunContext
from rewind.gateway.dial import Dialer
from rewind.gateway.environment import prepare
from rewind.gateway.exchange import Exchange, RequestHandler, Route
from rewind.gateway.listener import listen
from rewind.gateway.options import UpstreamOptions
from rewind.gateway.server import LINGER_SECONDS
from rewind.gateway.upstream import Pool
from rewind.inprocess.redirect import install as redirect
from rewind.inprocess.redirect.callers import forget, is_certain, our_context, ourselves, owner
from rewind.inprocess.redirect.rules import ConnectionRules
from rewind.model.http import RequestHead
from rewind.providers.hosts import HostRules
from rewind.providers.telemetry import upload_row
from rewind.runs.gateway_thread import BackgroundGateway
from rewind.runs.pass_through import PassThrough, RefusedExchange, ThankedUpload

LOOK_EVERY = 1.0
"""Seconds between checks that the gateway is still there, while waiting for it."""

HOOKS = ("PYTHONPATH", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS")
"""Besides our own: what the hooks in Python and Node need. A process that runs already does not read them."""

T = TypeVar("T")


class GatewayGone(Exception):
    """The gateway has ended, or belongs to the process that this one was forked from."""


class UnownedRequests:
    """For requests that belong to no run: they pass, or are refused where they come from an offline run."""

    forwards_everything = False

    def __init__(self, *, offline: bool) -> None:
        self._offline = offline

    def route(self, host: str, port: int) -> Route:
        return Route.REFUSE if self._offline else Route.TUNNEL

    def begin(self, head: RequestHead) -> Exchange:
        if self._offline:
            if (row := upload_row(head.method, head.host, head.path)) is not None:
                return ThankedUpload(head, row)  # clients send the last of it when all is over
            return RefusedExchange(
                f"{head.origin} was blocked: its connection belongs to a replay that is over, and replays stay offline"
            )
        return PassThrough()

    def remark(self, subject: str, text: str) -> None:
        """Nobody listens."""


class SharedGateway:
    """Knows every run of the process, and where the gateway is."""

    def __init__(self) -> None:
        redirect.install()
        self._pid = os.getpid()
        self._context = our_context()
        rules = HostRules((), all_hosts=True)
        self._authority = Authority(make_ca(rules), rules)
        listener = listen(0)
        self.port: int = listener.getsockname()[1]
        redirect.add_gateway(self.port, self.certificate_pem, self._authority.ca.name)
        dialer = Dialer(UpstreamOptions(), os.environ)
        self._nobody = RunContext(UnownedRequests(offline=False), Pool(dialer), self.port)
        self._refusing = RunContext(UnownedRequests(offline=True), None, self.port)
        self._ways: dict[int, Pool] = {}
        """How the hosts were reached of which a connection from that port was last used by a run."""
        self._gateway = BackgroundGateway(listener, self._nobody.handler, self._authority, dialer, callers=self)
        with ourselves():
            self._gateway.start()

    @property
    def certificate_pem(self) -> bytes:
        return self._authority.ca.certificate_pem

    @property
    def is_here(self) -> bool:
        """Whether the gateway runs in this very process, and not in the one this was forked from."""
        return self._pid == os.getpid()

    @property
    def alive(self) -> bool:
        return not self.is_here or self._gateway.running

    @property
    def is_this_thread(self) -> bool:
        """Whether this is the gateway's own thread: whatever is collected as garbage may be collected there."""
        return self.is_here and self._gateway.is_this_thread

    # ── what the gateway asks ────────────────────────────────────────────────────────────────────────────

    def context_of(self, peer: Peer) -> RunContext:
        caller = owner(peer)
        context = None if caller is None else caller.context
        if context is not None and context.pool is not None:
            self._ways[peer.port] = context.pool
        if caller is not None and not caller.over and context is not None:
            return context
        if caller is not None and caller.rules.offline:
            return self._refusing
        # On a run's connection, also what is not the run's goes by the run's ways: its proxy, its authorities.
        pool = self._ways.get(peer.port)
        return self._nobody if pool is None else replace(self._nobody, pool=pool)

    def keeps(self, peer: Peer) -> bool:
        return is_certain(peer)

    def left(self, peer: Peer) -> None:
        forget(peer)
        self._ways.pop(peer.port, None)

    # ── what runs ask ────────────────────────────────────────────────────────────────────────────────────

    def run_context(self, handler: RequestHandler, pool: Pool | None) -> RunContext:
        """What the gateway needs to carry the requests of one run."""
        return RunContext(handler, pool, self.port)

    def settle(self, context: RunContext) -> None:
        """Have what is under way there come to its end, for a moment; the rest is kept as far as it came, and goes on
        for its clients as if there had been no run."""
        with suppress(GatewayGone):  # there is no gateway any more, and so nothing under way
            self.wait_for(self.later(lambda: _settle(context)))

    def wait_for(self, done: "Future[T]") -> T:
        """The result. Raises GatewayGone where the gateway ends before there is one.

        Not on the gateway's own thread, which would wait for itself (``is_this_thread``).
        """
        assert not self.is_this_thread, "the gateway does not wait for itself"
        while True:
            try:
                return done.result(timeout=LOOK_EVERY)
            except TimeoutError:
                if not self.alive or sys.is_finalizing():
                    raise GatewayGone from None

    def later(self, work: Callable[[], Coroutine[Any, Any, T]]) -> "Future[T]":
        """Have this done on the gateway's loop. Raises GatewayGone."""
        loop = self._gateway.loop
        if loop is None or not self.is_here or sys.is_finalizing():
            raise GatewayGone
        done: Future[T] = Future()

        def begin() -> None:
            # In a context of our own: what is done here is not the run's doing.
            task = asyncio.get_running_loop().create_task(work(), context=self._context.copy())
            task.add_done_callback(lambda task: _hand_over(task, done))

        try:
            loop.call_soon_threadsafe(begin, context=self._context)
        except RuntimeError as closed:
            raise GatewayGone from closed
        return done


async def _settle(context: RunContext) -> None:
    if context.relays:
        await asyncio.wait([relay.task for relay in context.relays], timeout=LINGER_SECONDS)
    await asyncio.gather(*(relay.outlive(PassThrough()) for relay in tuple(context.relays)))
    if context.pool is not None:
        context.pool.close()


def _hand_over(task: "asyncio.Task[T]", done: "Future[T]") -> None:
    if done.cancelled():
        return
    if task.cancelled():
        done.cancel()
    elif (error := task.exception()) is not None:
        done.set_exception(error)
    else:
        done.set_result(task.result())


_making = threading.RLock()
_made: list[SharedGateway] = []


def shared_gateway() -> SharedGateway:
    """The shared gateway of this process, made on first use; a forked child that begins a run has one of its own."""
    with _making:
        if not _made or not _made[-1].is_here:
            _made[:] = [SharedGateway()]
        return _made[-1]


def _after_fork() -> None:
    """Whoever held the lock is not there to let it go."""
    global _making
    _making = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


class ChildVariables:
    """The variables that bring a child of this process to the shared gateway, and the certificates that they name.

    Made when they are first asked for, in a private folder.
    """

    def __init__(self, gateway: SharedGateway, rules: ConnectionRules) -> None:
        self._gateway = gateway
        self._itinerary = rules
        self._folder: Path | None = None
        self._variables: dict[str, str] = {}

    def variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """All of them, to be laid over that environment. Raises OSError where no file can be written."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="rewind-run-"))
            self._variables = self._prepared(self._folder, environ)
        return self._variables

    def _prepared(self, folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
        rules, gateway = self._itinerary, self._gateway
        prepared = prepare(
            folder,
            environ,
            port=gateway.port,
            authority_pem=gateway.certificate_pem,
            rules=rules.hosts,
            offline=rules.offline and not rules.allowed.patterns,
        )
        endpoints = sorted(f"{host}:{port}" for host, port in rules.endpoints)
        plain = [*endpoints, *prepared.variables["REWIND_GATEWAY_PLAIN"].split(",")]
        return {
            **prepared.variables,
            **(dict.fromkeys(("NO_PROXY", "no_proxy"), "") if rules.offline else {}),
            "REWIND_GATEWAY_URL": f"http://127.0.0.1:{gateway.port}",
            "REWIND_GATEWAY_PLAIN": ",".join(dict.fromkeys(filter(None, plain))),
            "REWIND_OFFLINE": "1" if rules.offline else "0",
            "REWIND_LIVE_HOSTS": ",".join(rules.allowed.patterns),
        }

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def hook_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that only the hooks read."""
    return {name: value for name, value in variables.items() if name in HOOKS or name.startswith("REWIND_")}
