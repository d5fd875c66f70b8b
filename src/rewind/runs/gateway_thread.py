"""The gateway in a thread of its own, so that the caller's thread is free for the child, signals and the terminal."""

import asyncio
import contextlib
import gc
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from rewind.gateway.authority import Authority
from rewind.gateway.client import Callers
from rewind.gateway.dial import Dialer
from rewind.gateway.exchange import RequestHandler
from rewind.gateway.options import UpstreamOptions
from rewind.gateway.server import Certificates, Gateway
from rewind.gateway.upstream import Pool
from rewind.model.clock import Clock
from rewind.redaction.redactor import Redactor
from rewind.runs.bypass_watch import BypassWatch
from rewind.runs.child_tools import ChildToolCalls
from rewind.runs.harness import AgentRun, SessionRecording
from rewind.runs.junction import Junction
from rewind.runs.surroundings import SurroundingsLookup
from rewind.runs.tally import Tally


class BackgroundGateway:
    """Serves a handler until it is stopped."""

    def __init__(
        self,
        listener: socket.socket,
        handler: RequestHandler,
        certificates: Certificates,
        dialer: Dialer | None,
        callers: Callers | None = None,
        idle_work: Iterator[object] | None = None,
    ) -> None:
        """``idle_work`` is done in small pieces between requests."""
        self._idle_work = idle_work if idle_work is not None else iter(())
        self._listener = listener
        self._handler = handler
        self._certificates = certificates
        self._dialer = dialer
        self._callers = callers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="rewind-gateway", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_this_thread(self) -> bool:
        return threading.current_thread() is self._thread

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """Where it runs, once it does; ``None`` when it never came to that."""
        self._ready.wait()
        return self._loop

    def stop(self) -> None:
        """Let what is under way settle, then end."""
        self._ready.wait()
        if self._loop is not None and self._stop is not None:
            # The loop may have ended by itself after a bug; that was remarked on.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _serve(self) -> None:
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(self._run())
        finally:
            self._ready.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._remark_on_bug)
        self._stop = asyncio.Event()
        self._ready.set()
        pool = Pool(self._dialer) if self._dialer is not None else None
        gateway = Gateway(self._listener, self._handler, self._certificates, pool, self._callers)
        self._loop.call_soon(self._do_idle_work, self._loop, self._stop)
        await gateway.run(self._stop)

    def _do_idle_work(self, loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
        """One piece; whatever came meanwhile is seen to before the next."""
        done = object()
        if next(self._idle_work, done) is not done and not stop.is_set():
            loop.call_soon(self._do_idle_work, loop, stop)

    def _remark_on_bug(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self._handler.remark("a bug in Rewind", f"{context['message']}: {error!r}")


@contextmanager
def serving(
    run: AgentRun,
    junction: Junction,
    dialer: Dialer | None,
    *,
    provenance: SessionRecording | None = None,
    idle_work: Iterator[object] | None = None,
) -> Iterator[list[str]]:
    """Answer the agent's requests, and let what is under way settle at the end.

    ``idle_work`` is done between requests. ``provenance`` is told what the run stands on: git, lock files. Gives the
    addresses that the agent connected to around the gateway, which are known at the end, and remarked on.
    """
    handler = ChildToolCalls(junction, run.tools_token)
    gateway = BackgroundGateway(run.listener, handler, Authority(run.ca, run.rules), dialer, idle_work=idle_work)
    gateway.start()
    gc.freeze()  # what is loaded by now stays: looking through it again and again would hold up requests
    watch = BypassWatch(run.child.pid)
    looking = None
    if provenance is not None:
        folder, tell = run.agent.cwd or str(Path.cwd()), provenance.surroundings
        looking = SurroundingsLookup(folder, run.agent.environ, junction.redactor, tell)
        looking.start()
    bypasses: list[str] = []
    try:
        yield bypasses
    finally:
        gateway.stop()
        gc.unfreeze()
        if looking is not None:
            looking.stop()
        offline, online = "directly: this run was not offline", "without passing through Rewind: not recorded"
        for program, address in watch.stop():
            bypasses.append(address)
            junction.remark(program, f"connected to {address} {offline if run.offline else online}")


def serving_recorded(
    run: AgentRun,
    recording: SessionRecording,
    *,
    redactor: Redactor,
    clock: Clock,
    ignore: tuple[str, ...],
    tally: Tally,
    way: UpstreamOptions,
) -> AbstractContextManager[list[str]]:
    """Pass the agent's requests on and record them."""
    junction = Junction(
        rules=run.rules,
        redactor=redactor,
        clock=clock,
        online=True,
        writer_thread=recording.writer_thread,
        ignore=ignore,
        tally=tally,
    )
    return serving(run, junction, Dialer(way, run.agent.environ), provenance=recording)


class _OwnLoop(asyncio.SelectorEventLoop):
    """Resolves names in threads of its own: no executor can be used any more once the main thread has ended, and
    other threads may go on for long."""

    async def getaddrinfo(self, host: Any, port: Any, **hints: int) -> Any:
        resolved: asyncio.Future[Any] = self.create_future()

        def tell(result: Any, error: OSError | None) -> None:
            if not resolved.done():  # else nobody waits for it any more
                resolved.set_result(result) if error is None else resolved.set_exception(error)

        def resolve() -> None:
            result, problem = None, None
            try:
                result = socket.getaddrinfo(host, port, **hints)
            except OSError as error:
                problem = error
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self.call_soon_threadsafe(tell, result, problem)

        threading.Thread(target=resolve, name="rewind-names", daemon=True).start()
        return await resolved


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop where it is installed: it keeps memory flat under many TLS connections."""
    try:
        import uvloop
    except (ImportError, RuntimeError):  # it can no longer be loaded once the main thread has ended
        return _OwnLoop
    return uvloop.new_event_loop
