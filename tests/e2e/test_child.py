"""The agent's process under Rewind: its streams, its terminal, its signals and its exit code are its own."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.cli import PATIENCE, REWIND, Result, plain_environment, run_rewind

pytestmark = pytest.mark.e2e

ECHO = "import sys; sys.stdout.write(sys.stdin.read().upper())"


def python(code: str, *args: str) -> list[str]:
    return [sys.executable, "-c", code, *args]


def record(home: Path, command: list[str], **more: object) -> Result:
    return run_rewind(["record", "--", *command], home, cwd=home.parent, **more)  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "store"


@contextmanager
def started(home: Path, command: list[str], **more: object) -> Iterator["subprocess.Popen[bytes]"]:
    """``rewind record COMMAND`` while it runs; its group is ended if the test is not."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    process: subprocess.Popen[bytes] = subprocess.Popen(  # type: ignore[call-overload]
        [*REWIND, "record", "--", *command],
        env=plain_environment(home),
        cwd=home.parent,
        start_new_session=True,
        **options,
    )
    try:
        yield process
        process.communicate(timeout=PATIENCE)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.communicate(timeout=PATIENCE)


def session_line(home: Path) -> dict[str, object]:
    journal = next((home / "sessions").glob("*/journal.jsonl"))
    line: dict[str, object] = json.loads(journal.read_bytes().split(b"\n", 1)[0])
    return line


def end_line(home: Path) -> dict[str, object]:
    journal = next((home / "sessions").glob("*/journal.jsonl"))
    line: dict[str, object] = json.loads(journal.read_bytes().splitlines()[-1])
    assert line["kind"] == "end", line
    return line


# Standard input


def again(session: str, home: Path, **more: Any) -> Result:
    """A replay of a child that asks nobody: it runs as it did, and there is nothing that could be replayed."""
    replayed = run_rewind(["replay", session], home, **more)
    assert replayed.code == 4 and "0/0 steps replayed" in replayed.talk, replayed.talk
    return replayed


def test_a_pipe_on_stdin_is_passed_on_recorded_and_given_again(home: Path) -> None:
    recorded = record(home, python(ECHO), stdin=b"from a pipe\n").ok()
    assert recorded.stdout == b"FROM A PIPE\n"
    replayed = again(recorded.session, home, stdin=b"something else\n")
    assert replayed.stdout == b"FROM A PIPE\n"


def test_a_file_on_stdin_is_handed_over_and_given_again(home: Path, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_bytes(b"skipped\nfrom a file\n" * 5000)
    with words.open("rb") as file:
        os.lseek(file.fileno(), 8, os.SEEK_SET)
        done = subprocess.run(
            [*REWIND, "record", "--", *python(ECHO)],
            stdin=file,
            capture_output=True,
            env=plain_environment(home),
            timeout=PATIENCE,
            check=True,
        )
    assert done.stdout == words.read_bytes()[8:].upper()
    words.unlink()
    session = Result((), done.stdout, done.stderr, 0).session
    assert again(session, home).stdout == done.stdout


def test_a_child_that_goes_back_in_its_file_does_not_disturb_the_end_of_the_run(home: Path, tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_bytes(b"0123456789")
    code = "import os; os.lseek(0, 2, os.SEEK_SET); print(os.pread(0, 3, 0))"
    with words.open("rb") as file:
        os.lseek(file.fileno(), 8, os.SEEK_SET)
        done = subprocess.run(
            [*REWIND, "record", "--", *python(code)],
            stdin=file,
            capture_output=True,
            env=plain_environment(home),
            timeout=PATIENCE,
        )
    result = Result((), done.stdout, done.stderr, done.returncode).sound().ok()
    assert "Traceback" not in result.talk
    assert result.session


def test_no_stdin_is_no_stdin(home: Path) -> None:
    with started(home, python(ECHO)) as process:
        pass
    assert process.returncode == 0
    assert session_line(home).get("stdin_kind", "none") == "none"


def test_a_child_that_does_not_read_its_stdin_is_not_waited_for(home: Path) -> None:
    assert record(home, python("print('done')"), stdin=b"x" * 1_000_000).ok().stdout == b"done\n"


# Exit codes and signals


@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_exit_code_is_the_childs(home: Path, code: int) -> None:
    assert record(home, python(f"raise SystemExit({code})")).code == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_child_that_dies_of_a_signal_ends_as_a_shell_shows_it(home: Path, number: int) -> None:
    assert record(home, python(f"import os; os.kill(os.getpid(), {int(number)})")).code == 128 + number


WAITING = """
import os, signal, sys
def caught(number, frame):
    os.write(1, b"caught %d\\n" % number)  # not print: the signal may come in the middle of one
    sys.exit(7)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
    signal.signal(number, caught)
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_for_rewind_is_one_for_the_agent(home: Path, number: signal.Signals) -> None:
    with started(home, python(WAITING)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        said = process.stdout.readline()
        assert said == b"caught %d\n" % number, process.communicate(timeout=PATIENCE)
    assert process.returncode == 7


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_is_ignored_stays_ignored_for_the_agent(home: Path, number: signal.Signals) -> None:
    """As under ``nohup``, or in a background job of a script."""
    code = f"import signal; print(signal.getsignal({int(number)}) is signal.SIG_IGN)"
    previous = signal.signal(number, signal.SIG_IGN)
    try:
        assert record(home, python(code)).ok().stdout == b"True\n"
    finally:
        signal.signal(number, previous)


# Output


def test_large_output_on_both_streams_is_passed_on_and_kept_to_the_byte(home: Path) -> None:
    code = "import sys\nfor n in range(40000): print('out', n, 'x' * 60); print('err', n, file=sys.stderr)"
    plain = subprocess.run(python(code), capture_output=True, check=True)
    recorded = record(home, python(code)).ok()
    assert recorded.stdout == plain.stdout
    assert plain.stderr in recorded.stderr
    assert b"output identical" in again(recorded.session, home).stderr


@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "non-blocking"])
def test_a_slow_reader_gets_everything_although_the_agent_has_ended(home: Path, blocking: bool) -> None:
    """A pager, for instance, that is not scrolled for a while. Some parents hand down non-blocking pipes."""
    reading, writing = os.pipe()
    os.set_blocking(writing, blocking)
    with started(home, python("import sys; sys.stdout.write('x' * 190_000)"), stdout=writing) as process:
        os.close(writing)
        # Longer than the run would wait for output of a child that has ended.
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(4)
        with open(reading, "rb") as pipe:
            assert len(pipe.read()) == 190_000
    assert process.returncode == 0


def test_when_our_reader_leaves_the_agent_feels_it(home: Path) -> None:
    code = "import sys\nwhile True: print('y' * 1000)"
    with started(home, python(code)) as process:
        assert process.stdout is not None
        assert process.stdout.read(10) == b"y" * 10
        process.stdout.close()
        process.stdout = None
        process.wait(PATIENCE)
        assert process.stderr is not None
        talk = process.stderr.read().decode()
    assert process.returncode != 0, "as without Rewind: a broken pipe ends it"
    assert "Exception in thread" not in talk


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_under_stdout_is_no_bug_of_ours(home: Path) -> None:
    with open("/dev/full", "wb") as full, started(home, python("print('x' * 100_000)"), stdout=full) as process:
        _, talk = process.communicate(timeout=PATIENCE)
    assert b"Exception in thread" not in talk
    assert b"Session recorded" in talk


def test_a_daemon_that_keeps_the_pipe_does_not_keep_us(home: Path) -> None:
    code = (
        "import subprocess, sys; print('bye', flush=True);"
        "subprocess.Popen([sys.executable, '-c', 'import sys; sys.stdin.read()'], stdin=0)"
    )
    # The daemon ends when this pipe does.
    reading, writing = os.pipe()
    with started(home, python(code), stdin=subprocess.PIPE, pass_fds=(reading,)) as process:
        began = time.monotonic()
        assert process.stdout is not None
        assert process.stdout.readline() == b"bye\n"
        process.wait(PATIENCE)
        assert time.monotonic() - began < 10
    os.close(reading)
    os.close(writing)
    assert process.returncode == 0


# Commands


def test_a_relative_command_is_found_where_it_was_recorded(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "agent.sh"
    script.write_text("#!/bin/sh\necho hello\n")
    script.chmod(0o755)
    recorded = record(home, ["./agent.sh"]).ok()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert again(recorded.session, home, cwd=elsewhere).stdout == b"hello\n"


def test_a_file_that_cannot_be_executed_is_one_clear_sentence(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "agent"
    script.write_bytes(b"\x00 neither a script nor a program")
    script.chmod(0o755)
    result = record(home, ["./agent"])
    assert result.code == 2
    assert "could not be started" in result.talk
    assert "Traceback" not in result.talk


# A terminal


class Terminal:
    """A terminal with ``rewind record`` in it, as a person has it."""

    def __init__(self, home: Path, command: list[str], *, rows: int = 31, columns: int = 117) -> None:
        self.seen = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(home.parent)
                words = [*REWIND, "record", "--", *command]
                os.execve(words[0], words, plain_environment(home, TERM="xterm"))
            finally:
                os._exit(127)
        self.resize(rows, columns)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    def read_until(self, holds: Callable[[bytes], bool]) -> bytes:
        deadline = time.monotonic() + PATIENCE
        while not holds(self.seen):
            ready, _, _ = select.select([self.master], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"the terminal stayed silent after {self.seen!r}"
            try:
                data = os.read(self.master, 65536)
            except OSError:
                data = b""
            assert data, f"the terminal was closed after {self.seen!r}"
            self.seen += data
        return self.seen

    def end(self) -> int:
        """Its exit code, once everything was read."""
        try:
            while data := os.read(self.master, 65536):
                self.seen += data
        except OSError:
            pass  # the terminal is closed
        _, status = os.waitpid(self.pid, 0)
        os.close(self.master)
        return os.waitstatus_to_exitcode(status)


def test_in_a_terminal_the_agent_has_a_terminal_of_the_same_size(home: Path) -> None:
    code = (
        "import os, sys; input('size? ');"
        "print([os.isatty(n) for n in range(3)], os.get_terminal_size(), os.ttyname(0) == os.ttyname(1))"
    )
    terminal = Terminal(home, python(code))
    terminal.read_until(lambda seen: b"size? " in seen)
    terminal.type(b"\r")
    assert terminal.end() == 0, terminal.seen
    assert b"[True, True, True] os.terminal_size(columns=117, lines=31) True" in terminal.seen


def test_what_is_typed_reaches_the_agent_and_is_echoed_once(home: Path) -> None:
    terminal = Terminal(home, python("print('hello ' + input('name? ').upper())"))
    terminal.read_until(lambda seen: b"name? " in seen)
    terminal.type(b"ann\r")
    assert terminal.end() == 0, terminal.seen
    assert b"hello ANN" in terminal.seen
    assert terminal.seen.count(b"ann") == 1


def test_a_new_window_size_reaches_the_agent(home: Path) -> None:
    code = (
        "import os, signal\n"
        "def told(number, frame): print('now', os.get_terminal_size().columns, flush=True); os._exit(0)\n"
        "signal.signal(signal.SIGWINCH, told)\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()"
    )
    terminal = Terminal(home, python(code))
    terminal.read_until(lambda seen: b"ready" in seen)
    terminal.resize(50, 200)
    assert terminal.end() == 0, terminal.seen
    assert b"now 200" in terminal.seen


def test_ctrl_c_interrupts_the_agent_and_rewind_keeps_what_it_did(home: Path) -> None:
    code = (
        "import signal\n"
        "try:\n    print('ready', flush=True)\n    signal.pause()\n"
        "except KeyboardInterrupt:\n    print('tidied up', flush=True)\n    raise SystemExit(9)"
    )
    terminal = Terminal(home, python(code))
    terminal.read_until(lambda seen: b"ready" in seen)
    terminal.type(b"\x03")
    assert terminal.end() == 9, terminal.seen
    assert b"tidied up" in terminal.seen
    assert b"Session recorded" in terminal.seen
    assert b"Traceback" not in terminal.seen


TIDIES = (
    "import os, signal, sys, time\n"
    "def told(number, frame):\n"
    "    signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    "    open(sys.argv[1], 'w').write('tidied up')\n"
    "    os._exit(7)\n"
    "signal.signal(signal.SIGHUP, told)\n"
    "print('ready', flush=True)\n"
    "while True: time.sleep(0.05)"
)
DIES = "import signal; print('ready', flush=True); signal.pause()"
TALKS_ON = "import time\nprint('ready', flush=True)\nwhile True: print('y' * 500, flush=True); time.sleep(0.001)"


@pytest.mark.parametrize(
    ("code", "ends_with"), [(TIDIES, 7), (DIES, 128 + signal.SIGHUP), (TALKS_ON, 128 + signal.SIGHUP)]
)
def test_a_closed_terminal_ends_the_session_cleanly(home: Path, tmp_path: Path, code: str, ends_with: int) -> None:
    """The agent gets the signal, and the session its last line."""
    terminal = Terminal(home, python(code, str(tmp_path / "told")))
    terminal.read_until(lambda seen: b"ready" in seen)
    os.close(terminal.master)
    _, status = os.waitpid(terminal.pid, 0)
    assert os.waitstatus_to_exitcode(status) == ends_with
    assert end_line(home)["exit_code"] == ends_with
    assert (code != TIDIES) or (tmp_path / "told").read_text() == "tidied up"
    run_rewind(["verify"], home, cwd=tmp_path).ok()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_signals_while_the_run_is_ending_do_not_cost_its_last_line(home: Path, number: signal.Signals) -> None:
    """Shells send more than one: some come when the agent has ended, and what it printed is still being written."""
    code = "import sys, os; sys.stdout.write('x' * 20_000_000); sys.stdout.flush(); os._exit(0)"
    with started(home, python(code), stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            time.sleep(0.005)
            if any(home.glob("sessions/*/stdout.part")):
                process.send_signal(number)
    assert end_line(home)["exit_code"] in (0, 128 + number), "the agent ended by itself, or of the signal"
    assert process.returncode in (end_line(home)["exit_code"], -number), "ended; or ended by the last one, at the end"


def test_when_nobody_reads_what_rewind_says_the_agents_exit_code_stays(home: Path) -> None:
    with started(home, python("import sys; sys.stdin.read(); raise SystemExit(3)"), stdin=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        process.stderr.close()
        process.stdout = process.stderr = None
        process.communicate(b"", timeout=PATIENCE)
    assert process.returncode == 3
    assert end_line(home)["exit_code"] == 3


def test_the_end_of_input_reaches_the_agent(home: Path) -> None:
    terminal = Terminal(home, python("import sys; print('ready', flush=True); print(len(sys.stdin.read()), 'bytes')"))
    terminal.read_until(lambda seen: b"ready" in seen)
    terminal.type(b"abc\r\x04")
    assert terminal.end() == 0, terminal.seen
    assert b"4 bytes" in terminal.seen


def test_in_a_terminal_too_a_file_that_cannot_be_executed_is_one_clear_sentence(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "agent"
    script.write_bytes(b"\x00 neither a script nor a program")
    script.chmod(0o755)
    terminal = Terminal(home, ["./agent"])
    assert terminal.end() == 2, terminal.seen
    assert b"could not be started" in terminal.seen
    assert b"Traceback" not in terminal.seen
