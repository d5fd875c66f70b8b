"""A terminal with ``rewind`` in it, as a person has it."""

import fcntl
import os
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from support.cli import PATIENCE, REWIND, plain_environment


class Seat:
    """Somebody who sees what the terminal shows, and types. Left early, whatever still runs in it is ended."""

    def __init__(
        self,
        args: Sequence[str],
        home: Path,
        env: Mapping[str, str] | None = None,
        *,
        cwd: Path,
        program: Sequence[str] = REWIND,
        stdout: IO[bytes] | None = None,
        rows: int = 40,
        columns: int = 120,
    ) -> None:
        """``stdout`` where that goes elsewhere."""
        self.seen = ""
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            [*program, *args],
            stdin=slave,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            env=plain_environment(home) | {"TERM": "xterm"} | dict(env or {}),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def __enter__(self) -> "Seat":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
            self.process.wait(PATIENCE)
        os.close(self._master)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def sees(self, text: str) -> str:
        """What was shown from the last look up to this text, once it is there."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.seen:
            ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{text!r} was not shown, but:\n{self.seen}"
            data = self._read()
            assert data, f"the terminal was closed before {text!r} was shown:\n{self.seen}"
            self.seen += data
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def ends(self) -> tuple[int, str]:
        """The exit code, and what was shown since the last look."""
        deadline = time.monotonic() + PATIENCE
        while data := self._read():
            self.seen += data
            assert time.monotonic() < deadline, f"it does not end:\n{self.seen}"
        return self.process.wait(PATIENCE), self.seen

    def _read(self) -> str:
        try:
            return os.read(self._master, 65536).decode(errors="replace").replace("\r\n", "\n")
        except OSError:
            return ""  # everybody has closed the terminal


def eventually(holds: Callable[[], bool]) -> None:
    """Wait for something that nobody announces."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)
