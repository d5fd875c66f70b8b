"""The thread that writes a session's journal and pack.

What the agent waits for comes first; what can wait (the meaning of steps) is done when the gateway is quiet, or when so
much of it waits that it must not grow any more. Short work is done by the gateway's own thread: see ``StepWriter``.

A process that was forked from this one has neither the thread nor the session: nothing is written there, and nobody
waits.
"""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from rewind.store.journal.writer import SessionWriter

OnResult = Callable[[Any], object]
LOOK_EVERY = 1.0
"""Seconds between checks that the interpreter is not shutting down, while waiting for the end."""
QUIET_SECONDS = 0.03
"""So long after the gateway last kept something, it is taken to be quiet: most models think longer."""
MOST_WAITING = 24 * 1024 * 1024
"""Bytes of steps whose meaning may wait."""
EACH = 4096
"""What a step weighs beside its bytes."""


class WriterThread:
    """Writes in the order it is told to: first what is wanted now, then what can wait."""

    def __init__(self, writer: SessionWriter) -> None:
        self.writer = writer
        self._pid = os.getpid()
        self.failure: BaseException | None = None
        """A bug of ours while writing; the run goes on, and says so at its end."""
        self._work: SimpleQueue[tuple[Callable[[], Any], OnResult | None] | None] = SimpleQueue()
        self._waiting: deque[tuple[Callable[[], Any], int]] = deque()
        self._weight = 0
        self._counting = threading.Lock()
        self._busy_at = 0.0
        self._numbers = count(1)
        self._closed = False
        self._last: Callable[[], Any] = _nothing
        self._thread = threading.Thread(target=self._write, name="rewind-writer", daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """False in a process that was forked from the one that writes."""
        return self._pid == os.getpid()

    def next_index(self) -> int:
        """Steps are numbered when their request arrives."""
        return next(self._numbers)

    def later(self, work: Callable[[], Any]) -> None:
        """Have this written, without waiting."""
        if self.is_here:
            self._work.put((work, None))

    def ask(self, work: Callable[[], Any], on_result: OnResult) -> None:
        """Have this written, and be told its result (``None`` when it failed), on the writer thread."""
        if self._closed or not self.is_here:
            on_result(None)  # an exchange that outlived its run: nobody would ever tell it
        else:
            self._work.put((work, on_result))

    def here(self, work: Callable[[], Any]) -> bool:
        """Do it on this thread, if no other one stores a request now; whether it was done."""
        if not self.is_here or not self.writer.storing.acquire(blocking=False):
            return False
        try:
            self._attempt(work)
        finally:
            self.writer.storing.release()
        return True

    def busy(self) -> None:
        """The gateway has just kept something."""
        self._busy_at = monotonic()

    def when_quiet(self, work: Callable[[], Any], weight: int = 0) -> None:
        """Have this written when there is time: in this order, and before the end."""
        if not self.is_here:
            return
        self._busy_at = monotonic()
        with self._counting:
            sleeps, had_time = not self._waiting, self._weight <= MOST_WAITING
            self._weight += weight + EACH
            self._waiting.append((work, weight + EACH))
            is_late = had_time and self._weight > MOST_WAITING
        if sleeps or is_late:
            self._work.put((_nothing, None))

    @property
    def is_behind(self) -> bool:
        """So much waits that whoever brings more should wait, too."""
        return self._weight > 2 * MOST_WAITING

    def ask_when_quiet(self, work: Callable[[], Any], on_result: OnResult) -> None:
        """As ``ask``, but behind all that can wait."""
        if self._closed or not self.is_here:
            on_result(None)
        else:
            self.when_quiet(lambda: on_result(self._attempt(work)), weight=MOST_WAITING)

    def close(self, last: Callable[[], Any] | None = None) -> None:
        """Write what is left, and as the last thing of all this."""
        if not self.is_here:
            return
        self._closed = True
        self._last = last or _nothing
        self._work.put(None)
        while self._thread.is_alive() and not sys.is_finalizing():  # then it stands still for ever
            self._thread.join(LOOK_EVERY)

    def _write(self) -> None:
        while True:
            try:
                item = self._work.get(timeout=self._patience())
            except Empty:
                self._catch_up()
                continue
            if item is None:
                break
            work, on_result = item
            result = self._attempt(work)
            if on_result is not None:
                self._attempt(partial(on_result, result))
        while self._waiting:
            self._catch_up()
        self._attempt(self._last)

    def _patience(self) -> float | None:
        """How long to wait for something urgent before what can wait is done; ``None``: nothing waits."""
        if not self._waiting:
            return None
        if self._weight > MOST_WAITING:
            return 0.0
        return max(0.0, self._busy_at + QUIET_SECONDS - monotonic())

    def _catch_up(self) -> None:
        with self._counting:
            work, weight = self._waiting.popleft()
            self._weight -= weight
        self._attempt(work)

    def _attempt(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:  # noqa: BLE001  whatever it is: the agent goes on, and the run's end names it
            self.failure = self.failure or error
            return None


def _nothing() -> None: ...
