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


class NewerStore(RewindError):
    """Written by a newer Rewind than this one."""
