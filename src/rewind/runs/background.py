"""The gateway in a thread of its own, so that the caller's thread is free for the child, signals and the terminal."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

from rewind.gateway.dial import Dialer
from rewind.gateway.server import Certificates, Gateway
from rewind.gateway.upstream import Pool
from rewind.runs.junction import Junction


class BackgroundGateway:
    """Serves a junction until it is stopped."""

    def __init__(
        self, listener: socket.socket, junction: Junction, certificates: Certificates, dialer: Dialer | None
    ) -> None:
        self._listener = listener
        self._junction = junction
        self._certificates = certificates
        self._dialer = dialer
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="rewind-gateway", daemon=True)

    def start(self) -> None:
        self._thread.start()

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
        await Gateway(self._listener, self._junction, self._certificates, pool).run(self._stop)

    def _remark_on_bug(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self._junction.remark("a bug in Rewind", f"{context['message']}: {error!r}")


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed: it keeps memory flat under many TLS connections."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
