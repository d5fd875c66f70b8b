"""Our terminal while the agent has one of its own: a mere wire, so that keys, echo and Ctrl-C are the agent's."""

import atexit
import contextlib
import fcntl
import os
import termios
import tty
from typing import Any


class RawTerminal:
    """The agent's terminal, seen from ours. Made when the agent has just started."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._settings: list[Any] = termios.tcgetattr(0)
        atexit.register(self.take_back)
        tty.setraw(0, termios.TCSADRAIN)

    def resize(self) -> None:
        """Our window has another size now."""
        copy_window_size(1, self._master)

    def take_back(self) -> None:
        """Make our terminal what it was. May be asked again."""
        if self._settings:
            termios.tcsetattr(0, termios.TCSADRAIN, self._settings)
            self._settings = []
            atexit.unregister(self.take_back)


def in_foreground() -> bool:
    """Whether a Ctrl-C at our terminal reaches our whole process group."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False  # we have none
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    finally:
        os.close(terminal)


def copy_window_size(source: int, target: int) -> None:
    with contextlib.suppress(OSError):  # one of them is no terminal any more
        fcntl.ioctl(target, termios.TIOCSWINSZ, fcntl.ioctl(source, termios.TIOCGWINSZ, b"\0" * 8))
