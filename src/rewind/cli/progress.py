"""How far a long piece of work has come, on a screen, when it takes long."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rewind.cli.screens.terminal import Terminal, err
from rewind.model.clock import SystemClock

QUIET_SECONDS = 1.0


class Progress:
    """One line that is written over and over, and cleared at the end. Pipes and files see nothing of it."""

    def __init__(self, terminal: Terminal, what: str) -> None:
        self._terminal, self._what = terminal, what
        self._clock = SystemClock()
        self._began = self._last = self._clock.now()
        self._shown = 0

    def show(self, done: int, total: int) -> None:
        now = self._clock.now()
        if self._terminal.stream.isatty() and now - self._began > QUIET_SECONDS and now - self._last > 0.1:
            text = f"{done:,}/{total:,} {self._what}"
            self._terminal.write("\r" + text.ljust(self._shown))
            self._shown, self._last = len(text), now

    def clear(self) -> None:
        if self._shown:
            self._terminal.write("\r" + " " * self._shown + "\r")


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Something to tell how much is done, of how much; the line is gone when the work is."""
    line = Progress(err(), what)
    try:
        yield line.show
    finally:
        line.clear()
