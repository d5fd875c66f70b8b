"""The ``rewind`` command: help and version at once, everything else on demand.

Importing click costs four bare interpreter starts. So what needs no parsing is printed from the table below,
and the module of a command is imported when that command is used.
"""

import atexit
import io
import os
import sys

from rewind.errors import EnvironmentProblem, ExitCode, RewindError
from rewind.version import __version__

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("rewind.cli.commands.init", "Prepare the store, and see which clients can be recorded here"),
    "demo": ("rewind.cli.commands.demo", "Record and replay a small agent, without any key or network"),
    "record": ("rewind.cli.commands.record", "Run a command and record what it asks of the world"),
    "replay": ("rewind.cli.commands.replay", "Run a recorded command again, answered by its recording"),
    "fork": ("rewind.cli.commands.fork", "Run it again up to a step, change that step, and go on live"),
    "list": ("rewind.cli.commands.list", "Show the recorded sessions, newest first"),
    "stats": ("rewind.cli.commands.stats", "Show what the recorded calls cost, by model, day or name"),
    "inspect": ("rewind.cli.commands.inspect", "Show a session step by step, or one step in full"),
    "messages": ("rewind.cli.commands.messages", "Print a conversation as the message list of an API"),
    "bisect": ("rewind.cli.commands.bisect", "Find the step where a bad run left a good one, and why"),
    "diff": ("rewind.cli.commands.diff", "Show what differs between two sessions, step by step"),
    "search": ("rewind.cli.commands.search", "Find a text in everything recorded"),
    "export": ("rewind.cli.commands.export", "Write a session to a file that can be shared and replayed"),
    "import": ("rewind.cli.commands.import_", "Take in a cassette, or what another tool recorded"),
    "verify": ("rewind.cli.commands.verify", "Hash every recorded byte again and name what is damaged"),
    "config": ("rewind.cli.commands.config", "Show each setting, its value and where it comes from"),
    "completion": ("rewind.cli.commands.completion", "Print the completion script of bash, zsh or fish"),
}
"""Name → module and summary. The module's ``command`` is the click command."""

COMPLETE_VARIABLE = "_REWIND_COMPLETE"
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
        sys.stderr.write("rewind: interrupted\n")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        return READER_GONE if _reader_is_gone() else _report_bug()
    except Exception:  # noqa: BLE001 - the last door: an unknown fault keeps its traceback and says whose it is
        return _report_bug()
    return code


def help_text() -> str:
    """What ``rewind --help`` prints."""
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items())
    return f"""\
Rewind records what an AI agent asks of the world, in any language, and replays it offline.

Usage: rewind COMMAND [OPTIONS] …

Commands:
{commands}

Examples:
  rewind record python agent.py     record a run; nothing in the agent changes
  rewind inspect last               what it asked, step by step
  rewind inspect last:4             one step in full
  rewind replay last                the same run again: offline, free, compared

A session is named by its id, a prefix of it, its name, 'last' or 'last~1'; a step is ID:4.
A cassette (run.rw) or a trace (run.jsonl) may stand in its place.
For every command: --home DIR (another store), --debug (tracebacks), -h, --help.
"""


def _dispatch(arguments: list[str]) -> int:
    if COMPLETE_VARIABLE in os.environ:
        # Lazily, as below: only here is click needed.
        from rewind.cli.commands.completion import complete

        return complete(os.environ[COMPLETE_VARIABLE])
    if arguments in ([], ["-h"], ["--help"]):
        sys.stdout.write(help_text())
        return ExitCode.OK
    if arguments in (["--version"], ["-V"]):
        sys.stdout.write(f"rewind {__version__}\n")
        return ExitCode.OK
    from rewind.cli.group import dispatch

    return dispatch(arguments)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise EnvironmentProblem(f"The output could not be written: {problem.strerror}.") from problem


def _report(error: RewindError) -> int:
    # Lazily: the regular expressions of the screen are no part of ``--help``.
    from rewind.safe import safe

    sys.stderr.write(f"rewind: {safe(error.message)}\n")
    if error.hint:
        sys.stderr.write(f"  try: {safe(error.hint)}\n")
    return error.exit_code


def _report_bug() -> int:
    show_traceback()
    sys.stderr.write(
        f"rewind: this is a bug in Rewind {__version__}, not in your agent; "
        "please report the lines above to the issue tracker of llm-rewind\n"
    )
    return BUG


def show_traceback() -> None:
    """The traceback of the fault at hand; its message may quote what an agent sent."""
    import traceback

    from rewind.safe import safe

    sys.stderr.write(safe(traceback.format_exc()))


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
