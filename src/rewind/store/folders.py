"""The folders of sessions: when each session began, and its id. Nothing else in the store is looked at."""

import os
import re
from datetime import UTC, datetime
from pathlib import Path

from rewind.errors import EnvironmentProblem, UsageError
from rewind.model.ids import SessionId
from rewind.model.session import SessionStart
from rewind.store.files import reason

FOLDER = re.compile(r"(\d{8}T\d{6}\.\d{3}Z)-([0-9a-f]{8})", re.ASCII)
_ID = re.compile(r"[0-9a-f]{8}", re.ASCII)


def folder_name(start: SessionStart) -> str:
    """The name of its folder, which sorts by time. Raises UsageError if the id or the time is not valid."""
    if not _ID.fullmatch(start.id):
        raise UsageError(f"{start.id[:80]!r} is not a session id: eight hexadecimal digits.")
    try:
        return f"{folder_time(start.started)}-{start.id}"
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"{start.started!r} is not a time at which a session can begin.") from error


def folder_time(ts: float) -> str:
    """The first part of a folder's name: the time. Raises ValueError, OverflowError or OSError."""
    moment = datetime.fromtimestamp(ts, UTC)
    return f"{moment:%Y%m%dT%H%M%S}.{moment.microsecond // 1000:03d}Z"


def start_from_name(name: str) -> SessionStart:
    """What the folder's name says of a session whose first line is damaged."""
    found = FOLDER.fullmatch(name)
    assert found is not None, "only folders with a session's name are looked at"
    try:
        started = datetime.strptime(found[1] + "+0000", "%Y%m%dT%H%M%S.%fZ%z").timestamp()
    except ValueError:
        started = 0.0
    return SessionStart(
        id=SessionId(found[2]), name=None, command=(), cwd="", started=started, rewind_version="unknown"
    )


def session_folders(home: Path) -> list[str]:
    """The names of the folders of all sessions, oldest first. Raises EnvironmentProblem."""
    try:
        with os.scandir(home / "sessions") as entries:
            return sorted(entry.name for entry in entries if FOLDER.fullmatch(entry.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise EnvironmentProblem(f"The store {home} cannot be read: {reason(error)}.") from error


def journal_size(home: Path, folder: str) -> int | None:
    """``None`` if the journal is gone: then this is not a session any more."""
    try:
        return os.lstat(f"{home}/sessions/{folder}/journal.jsonl").st_size
    except OSError:
        return None
