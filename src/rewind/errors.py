"""Every error a user can meet, with its reason, its hint and its exit code.

``RewindError`` is for what a user can act on. Anything else is a bug of ours and keeps its traceback.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """The documented exit codes of every command."""

    OK = 0
    DIFFERENT = 1
    USAGE = 2
    NOT_FOUND = 3
    MISS = 4
    AGENT_FAILED = 5
    ENVIRONMENT = 6
    INTERRUPTED = 130


class RewindError(Exception):
    """One clear sentence, and what to try next."""

    exit_code: ExitCode = ExitCode.ENVIRONMENT

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(RewindError):
    """The command line or a setting makes no sense."""

    exit_code = ExitCode.USAGE


class CannotEdit(UsageError):
    """A recorded request that cannot be changed as asked, or cannot be changed at all."""


class SessionNotFound(RewindError):
    """No session, or no step, has that name."""

    exit_code = ExitCode.NOT_FOUND


class AmbiguousSession(RewindError):
    """A prefix or name that several sessions share."""

    exit_code = ExitCode.NOT_FOUND


class CommandNotFound(RewindError):
    """The agent's command could not be started."""

    exit_code = ExitCode.USAGE


class EnvironmentProblem(RewindError):
    """A port, a certificate, a folder: something around us is not as it must be."""


class DamagedStore(RewindError):
    """Bytes on disk are not the bytes we wrote."""


class BadCassette(RewindError):
    """A file that is not, or not any more, what it says it is; nothing of it is used."""

    def __init__(self, reason: str, *, path: object = None, hint: str | None = None) -> None:
        super().__init__(reason if path is None else f"{path} cannot be used. {reason}", hint=hint)
        self.reason = reason
        """A sentence about the file: what it is not, or what it holds."""

    def about(self, path: object, *, hint: str | None = None) -> "BadCassette":
        """The same, about a file of that name."""
        return BadCassette(self.reason, path=path, hint=hint or self.hint)


class NewerStore(RewindError):
    """Written by a newer Rewind than this one."""


class ReplayMiss(RewindError):
    """A replay in this process was asked what its recording cannot answer; the message tells what differs."""

    exit_code = ExitCode.MISS


class ToolFailed(RewindError):
    """A recorded tool call had raised an exception whose own type cannot be raised here."""

    exit_code = ExitCode.AGENT_FAILED

    def __init__(self, tool: str, type_name: str, text: str) -> None:
        super().__init__(f"The tool {tool!r} had failed when it was recorded: {type_name}: {text}")
        self.tool = tool
        self.type_name = type_name
        """The full name of the exception's class."""
        self.text = text


class ResultLost(RewindError):
    """A recorded tool result that cannot be given back as what it was."""
