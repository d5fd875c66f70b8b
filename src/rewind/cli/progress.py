"""How far a long piece of work has come, on a screen, when it takes long."""

from rewind.cli.terminal import Terminal
from rewind.model.clock import SystemClock

QUIET_SECONDS = 1.0


class Progress:
    """One line that is written over and over, and cleared at the end. Pipes and files see nothing of it."""

    def __init__(self, terminal: Terminal, total: int, what: str) -> None:
        self._terminal, self._total, self._what = terminal, total, what
        self._clock = SystemClock()
        self._began = self._last = self._clock.now()
        self._shown = 0

    def show(self, done: int) -> None:
        now = self._clock.now()
        if self._terminal.stream.isatty() and now - self._began > QUIET_SECONDS and now - self._last > 0.1:
            text = f"{done:,}/{self._total:,} {self._what}"
            self._terminal.write("\r" + text.ljust(self._shown))
            self._shown, self._last = len(text), now

    def clear(self) -> None:
        if self._shown:
            self._terminal.write("\r" + " " * self._shown + "\r")
