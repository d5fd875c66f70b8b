"""The ``rewind`` command: help and version at once, everything else on demand.

Importing click costs four bare interpreter starts. So what needs no parsing is printed from the table of commands,
and the module of a command is imported when that command is used.
"""

import atexit
import contextlib
import io
import os
import sys

from rewind.cli.commands import COMPLETE_VARIABLE, help_text
from rewind.errors import EnvironmentProblem, ExitCode, RewindError
from rewind.version import __version__

BUG = 70
"""``EX_SOFTWARE``: a fault of Rewind itself, never mistaken for "a difference was found"."""
READER_GONE = 141
"""What the shell shows for a writer whose reader left (128 + SIGPIPE), as for any other tool."""


def main() -> None:
    """The console script."""
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:
        # Said already. What is still buffered has no place to go, and Python would complain on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _leave(code)


def _leave(code: int) -> None:
    """End without taking every module apart first: that would be a tenth of the time of a short command."""
    atexit._run_exitfuncs()
    try:
        sys.stderr.flush()
    finally:
        os._exit(code)


def run(arguments: list[str]) -> int:
    """Do what the arguments ask; the exit code."""
    _open_standard_streams()
    try:
        code = _dispatch(arguments)
        _flush()
    except RewindError as error:
        return _report(error)
    except KeyboardInterrupt:
        _say("rewind: interrupted\n")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return READER_GONE if _reader_is_gone() else _report_bug()
    except Exception:  # noqa: BLE001 - last resort: an unknown fault keeps its traceback and says whose it is
        return _report_bug()
    return code


def _dispatch(arguments: list[str]) -> int:
    completes = os.environ.get(COMPLETE_VARIABLE)
    if completes is None and arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    if completes is None and arguments in ([], ["-h"], ["--help"]):
        sys.stdout.write(help_text())
        return ExitCode.OK
    if completes is None and arguments in (["--version"], ["-V"]):
        sys.stdout.write(f"rewind {__version__}\n")
        return ExitCode.OK
    # Lazily: only here is click needed.
    from rewind.cli.group import complete, dispatch

    return dispatch(arguments, show_traceback) if completes is None else complete(completes)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise EnvironmentProblem(f"The output could not be written: {problem.strerror}.") from problem


def _report(error: RewindError) -> int:
    _say(f"rewind: {error.message}\n")
    if error.hint:
        _say(f"  try: {error.hint}\n")
    return error.exit_code


def _report_bug() -> int:
    show_traceback()
    _say(
        f"rewind: this is a bug in Rewind {__version__}, not in your agent; "
        "please report the lines above to the issue tracker of llm-rewind\n"
    )
    return BUG


def show_traceback() -> None:
    """The traceback of the fault at hand; its message may quote what an agent sent."""
    import traceback

    _say(traceback.format_exc())


def _say(text: str) -> None:
    # Lazily: the regular expressions of the screen are no part of ``--help``.
    from rewind.safe import safe

    with contextlib.suppress(OSError):  # a terminal that was closed: there is nobody to tell
        sys.stderr.write(safe(text))


def _reader_is_gone() -> bool:
    """Whether the reader of our output hung up; otherwise a broken pipe is a fault inside."""
    import select

    poll = select.poll()
    for descriptor in (1, 2):
        poll.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _open_standard_streams() -> None:
    """Make the three standard streams usable, whatever we were started with.

    A descriptor that the caller closed would be handed to the next file we open: the agent would then print
    into its own journal. And an encoding that lacks a character must not end a command.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if descriptor == 0 else os.O_WRONLY)
            # Python opens its own descriptors as not inheritable; the agent must find this one too.
            os.set_inheritable(descriptor, True)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - lives as long as we do
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
