"""Run the agent's command: its streams untouched and teed, signals passed on, its exit code given back.

A terminal stays a terminal: when ours is one, the child gets one too. Standard input that is a file is handed over
as it is; only a pipe has to be pumped, because what it held is needed again for a replay.
"""

import atexit
import contextlib
import errno
import fcntl
import os
import select
import shlex
import shutil
import signal
import stat
import subprocess
import termios
import threading
import tty
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from rewind.dataclass import dataclass
from rewind.errors import CommandNotFound, UsageError
from rewind.store.journal.writer import Stream

Tee = Callable[[Stream, bytes], None]
"""Told of ``stdin``, ``stdout`` or ``stderr`` bytes as they pass."""

LAST_OUTPUT_SECONDS = 1.0
"""How long output is awaited after the child ended; a daemon it left behind may hold the pipe open."""

FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)
ENDING = frozenset({signal.SIGHUP, signal.SIGTERM})
"""What a closed terminal or a shutdown sends, often more than once: the session's last line is written all the same."""


def check_command(command: Sequence[str], environ: Mapping[str, str], cwd: str | None = None) -> None:
    """Raise when there is nothing that could be run (in that folder)."""
    if not command:
        raise UsageError("There is no command to run.", hint="rewind record -- python my_agent.py")
    named_by_path = os.path.dirname(command[0])  # noqa: PTH120  as the system sees it: "./agent" has one
    program = os.path.join(cwd or "", command[0]) if named_by_path else command[0]  # noqa: PTH118
    if shutil.which(program, path=environ.get("PATH")) is None:
        raise _not_runnable(command[0], Path(cwd or "", command[0]), by_path=bool(named_by_path))


def _not_runnable(word: str, file: Path, *, by_path: bool) -> CommandNotFound:
    """Why the first word of a command cannot be run; ``file`` is what it would be as a path."""
    if not file.is_file():
        what = "is a folder" if by_path and file.is_dir() else "was not found"
        return CommandNotFound(f"The command {word!r} {what}.", hint="Check its spelling and the PATH.")
    here = word if by_path else f"./{word}"
    if not os.access(file, os.X_OK):
        then = "" if by_path else f", then give it as {shlex.quote(here)}"
        return CommandNotFound(f"The file {word!r} is not executable.", hint=f"chmod +x {shlex.quote(word)}{then}")
    return CommandNotFound(
        f"The command {word!r} was not found on the PATH; a file of that name is in this folder.",
        hint=shlex.quote(here),
    )


def stdin_kind() -> str:
    """What our own standard input is: ``none``, ``file``, ``pipe`` or ``tty``."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return "none"
    if os.isatty(0):
        return "tty"
    if stat.S_ISREG(mode):
        return "file"
    return "pipe" if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCommand:
    """What is run, and how."""

    command: tuple[str, ...]
    environ: Mapping[str, str]
    cwd: str | None = None
    stdin: bytes | None = None
    """Given in place of our own standard input."""
    shown: bool = True
    """False: what it prints goes to the tee alone."""
    own_group: bool = False
    """A process group of its own: it can be ended with all it started."""


class Child:
    """A command, run once."""

    def __init__(self, agent: AgentCommand, tee: Tee, variables: Mapping[str, str] | None = None) -> None:
        """``variables`` are its environment, where that is another than the agent's."""
        self._tee = tee
        self._cwd = agent.cwd
        self._shown = agent.shown
        self._own_group = agent.own_group
        self._pumps: dict[Stream, threading.Thread] = {}
        self._showing: set[Stream] = set()
        """Streams whose pump is passing bytes on right now."""
        self._given = agent.stdin
        self._kind = "given" if agent.stdin is not None else stdin_kind()
        self._file_start = os.lseek(0, 0, os.SEEK_CUR) if self._kind == "file" else 0
        self._terminal: RawTerminal | None = None
        self._code: int | None = None
        self._handlers: dict[int, Any] = {}
        self._early: list[int] = []
        """Signals that came before it could be told of them."""
        self._catch_signals()
        try:
            self._process = self._spawn(list(agent.command), dict(variables or agent.environ))
        except BaseException:
            self.release()
            raise
        for number in self._early:
            self._forward(number, None)

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended_within(self, seconds: float) -> bool:
        """Whether it is over already."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def wait(self) -> int:
        """Its exit code as a shell would show it, once it and its output have ended. May be asked again."""
        if self._code is not None:
            return self._code
        code = self._process.wait()
        if self._terminal is not None:
            self._terminal.take_back()
        self._restore_signals(set(self._handlers) - ENDING)
        for name, pump in self._pumps.items():
            pump.join(LAST_OUTPUT_SECONDS)
            while name in self._showing and pump.is_alive():
                pump.join(LAST_OUTPUT_SECONDS)  # our reader is slow; what the agent has said must not be lost
        if self._kind == "file":
            self._tee("stdin", self._file_read())
        self._code = 128 - code if code < 0 else code
        return self._code

    def release(self) -> None:
        """All that belongs to its run is written: from now on signals are ours again."""
        self._restore_signals(set(self._handlers))

    def end(self, grace: float) -> None:
        """Have it end, and what it started: asked to first, and after the grace period made to. From any thread."""
        if self._process.returncode is None:
            self._signal(signal.SIGTERM)
            self.ended_within(grace)
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self._own_group or self._terminal is not None:
            with contextlib.suppress(ProcessLookupError):  # all of them have ended
                os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)

    def _spawn(self, command: list[str], env: dict[str, str]) -> "subprocess.Popen[bytes]":
        ends: list[tuple[int, int, Stream]] = []
        if self._kind == "tty" and os.isatty(1):
            return self._spawn_in_terminal(command, env)
        targets: dict[Stream, int] = {}
        streams: tuple[tuple[Stream, int], ...] = (("stdout", 1), ("stderr", 2))
        for name, fd in streams:
            on_screen = self._shown and os.isatty(fd)
            reading, writing = os.openpty() if on_screen else os.pipe()
            if on_screen:
                copy_window_size(fd, writing)
            targets[name] = writing
            ends.append((reading, fd, name))
        pumped = self._kind in ("pipe", "given")
        try:
            process = subprocess.Popen(
                command,
                env=env,
                cwd=self._cwd,
                stdin=subprocess.PIPE if pumped else None,
                stdout=targets["stdout"],
                stderr=targets["stderr"],
                process_group=0 if self._own_group else None,
            )
        except OSError as error:
            for reading, _, _ in ends:
                os.close(reading)
            raise _not_started(command, error) from error
        finally:
            for writing in targets.values():
                os.close(writing)
        for reading, fd, name in ends:
            self._pump(self._copy_out, reading, fd, name)
        if pumped:
            self._feed(_own_fd(process))
        return process

    def _spawn_in_terminal(self, command: list[str], env: dict[str, str]) -> "subprocess.Popen[bytes]":
        master, slave = os.openpty()
        copy_window_size(1, slave)
        try:
            process = subprocess.Popen(
                command,
                env=env,
                cwd=self._cwd,
                stdin=slave,
                stdout=slave,
                stderr=slave if os.isatty(2) else None,
                start_new_session=True,
                # Takes no lock, so it does not matter what other threads were doing.
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            )
        except OSError as error:
            os.close(master)
            raise _not_started(command, error) from error
        finally:
            os.close(slave)
        self._terminal = RawTerminal(master)
        self._pump(self._copy_out, master, 1, "stdout")
        threading.Thread(target=self._copy_in, args=(os.dup(master),), daemon=True).start()
        return process

    def _pump(self, target: Callable[[int, int, Stream], None], reading: int, fd: int, name: Stream) -> None:
        pump = threading.Thread(target=target, args=(reading, fd, name), name=f"rewind-{name}", daemon=True)
        pump.start()
        self._pumps[name] = pump

    def _feed(self, writing: int) -> None:
        target = self._copy_given if self._kind == "given" else self._copy_in
        threading.Thread(target=target, args=(writing,), name="rewind-stdin", daemon=True).start()

    def _copy_out(self, reading: int, fd: int, name: Stream) -> None:
        """From the child to our own stream, then to the tee."""
        shown = True
        try:
            while shown and (data := _read(reading)):
                self._showing.add(name)
                shown = not self._shown or _shows(fd, data)
                self._tee(name, data)
                self._showing.discard(name)
        finally:
            os.close(reading)  # where our reader left, the child feels it

    def _copy_in(self, writing: int) -> None:
        """From our own standard input to the child's."""
        try:
            while data := _read(0):
                _write_all(writing, data)
                self._tee("stdin", data)
        except OSError:
            pass  # the child does not want more, or its terminal is closed
        finally:
            os.close(writing)

    def _copy_given(self, writing: int) -> None:
        assert self._given is not None, "there are bytes to give"
        try:
            _write_all(writing, self._given)
        except BrokenPipeError:
            pass  # the child does not want more
        finally:
            os.close(writing)

    def _file_read(self) -> bytes:
        """What the child read of the file on standard input: the descriptor's position is shared."""
        end = os.lseek(0, 0, os.SEEK_CUR)
        try:
            return os.pread(0, max(0, end - self._file_start), self._file_start)
        except OSError:
            return b""  # a file that was opened for writing only

    def _catch_signals(self) -> None:
        """From before it starts until it has ended: signals are for the child.

        One that is ignored (``nohup``, a background job) stays ignored, for the child inherits that.
        """
        if threading.current_thread() is threading.main_thread():
            for number in FORWARDED:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._handlers[number] = signal.signal(number, self._forward)

    def _restore_signals(self, numbers: set[int]) -> None:
        for number in numbers:
            signal.signal(number, self._handlers.pop(number))

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGWINCH:
            if self._terminal is not None:
                self._terminal.resize()
            return
        alone = self._terminal is not None or self._own_group
        if number in (signal.SIGINT, signal.SIGQUIT) and not alone and in_foreground():
            return  # Ctrl-C, Ctrl-\: the terminal has told the child as well, and we wait for what it does
        if getattr(self, "_process", None) is None:
            self._early.append(number)
            return
        if self._own_group:
            self._signal(number)
        else:
            self._process.send_signal(number)


def _not_started(command: Sequence[str], error: OSError) -> CommandNotFound:
    hint = None
    if error.errno == errno.ENOEXEC:
        hint = (
            f"Its first line must name its interpreter, such as #!/bin/sh; or give that: sh {shlex.quote(command[0])}"
        )
    return CommandNotFound(f"The command {command[0]!r} could not be started: {error.strerror}.", hint=hint)


def _own_fd(process: "subprocess.Popen[bytes]") -> int:
    """The child's standard input as a descriptor that is ours alone to close."""
    assert process.stdin is not None, "standard input is a pipe"
    fd = os.dup(process.stdin.fileno())
    process.stdin.close()
    return fd


def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, 65536)
        except BlockingIOError:
            select.select([fd], [], [])  # whoever shares this descriptor has made it non-blocking
        except OSError:
            return b""  # a terminal whose other end closed says EIO


def _shows(fd: int, data: bytes) -> bool:
    """Write it to our own stream. False: our reader left, the terminal is closed, or the disk is full."""
    try:
        _write_all(fd, data)
    except OSError:
        return False
    return True


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            select.select([], [fd], [])


class RawTerminal:
    """Our terminal while the agent has one of its own: a mere wire, so that keys, echo and Ctrl-C are the agent's.

    Made when the agent has just started.
    """

    def __init__(self, master: int) -> None:
        self._master = master
        self._settings: list[Any] = []
        with contextlib.suppress(termios.error):  # it was closed meanwhile
            self._settings = termios.tcgetattr(0)
            atexit.register(self.take_back)
            tty.setraw(0, termios.TCSADRAIN)

    def resize(self) -> None:
        """Our window has another size now."""
        copy_window_size(1, self._master)

    def take_back(self) -> None:
        """Make our terminal what it was. May be asked again."""
        if self._settings:
            with contextlib.suppress(termios.error):  # it is closed: there is nobody to give it back to
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
