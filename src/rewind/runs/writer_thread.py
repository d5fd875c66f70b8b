"""The thread that writes a session's journal and pack, in order.

The part of an answer that is still arriving is written on the gateway's thread.
"""

import sys
import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from queue import SimpleQueue
from typing import Any

from rewind.store.journal.writer import SessionWriter

OnResult = Callable[[Any], object]
LOOK_EVERY = 1.0
"""Seconds between checks that the interpreter is not shutting down, while waiting for the end."""


class WriterThread:
    """Writes in the order it is told to."""

    def __init__(self, writer: SessionWriter) -> None:
        self.writer = writer
        self.failure: BaseException | None = None
        """A bug of ours while writing; the run goes on, and says so at its end."""
        self._work: SimpleQueue[tuple[Callable[[], Any], OnResult | None] | None] = SimpleQueue()
        self._numbers = count(1)
        self._closed = False
        self._thread = threading.Thread(target=self._write, name="rewind-writer", daemon=True)
        self._thread.start()

    def next_index(self) -> int:
        """Steps are numbered when their request arrives."""
        return next(self._numbers)

    def later(self, work: Callable[[], Any]) -> None:
        """Have this written, without waiting."""
        self._work.put((work, None))

    def ask(self, work: Callable[[], Any], on_result: OnResult) -> None:
        """Have this written, and be told its result (``None`` when it failed), on the writer thread."""
        if self._closed:
            on_result(None)  # an exchange that outlived its run: nobody would ever tell it
        else:
            self._work.put((work, on_result))

    def close(self) -> None:
        """Write what is left."""
        self._closed = True
        self._work.put(None)
        while self._thread.is_alive() and not sys.is_finalizing():  # then it stands still for ever
            self._thread.join(LOOK_EVERY)

    def _write(self) -> None:
        while (item := self._work.get()) is not None:
            work, on_result = item
            result = self._attempt(work)
            if on_result is not None:
                self._attempt(partial(on_result, result))

    def _attempt(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:  # noqa: BLE001  whatever it is: the agent goes on, and the run's end names it
            self.failure = self.failure or error
            return None
