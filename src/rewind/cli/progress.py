"""How far a long piece of work has come, on a screen, when it takes long."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rewind.cli.screens.terminal import Terminal, err
from rewind.model.clock import SystemClock
from rewind.reading.progress import OnProgress

QUIET_SECONDS = 1.0


class ProgressLine:
    """One line that is written over and over, and cleared at the end. Pipes and files see nothing of it."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._clock = SystemClock()
        self._began = self._last = self._clock.now()
        self._shown = 0

    def show(self, what: str, done: int, total: int) -> None:
        now = self._clock.now()
        if self._terminal.stream.isatty() and now - self._began > QUIET_SECONDS and now - self._last > 0.1:
            text = f"{done:,}/{total:,} {what}"
            self._terminal.write("\r" + text.ljust(self._shown))
            self._shown, self._last = len(text), now

    def clear(self) -> None:
        if self._shown:
            self._terminal.write("\r" + " " * self._shown + "\r")


@contextmanager
def progress_line() -> Iterator[OnProgress]:
    """The callback of a use case; the line is gone when the work is done."""
    line = ProgressLine(err())
    try:
        yield line.show
    finally:
        line.clear()


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """The same for work that counts one thing."""
    with progress_line() as show:
        yield lambda done, total: show(what, done, total)
