"""The folders and files of the store: private, and only growing; and which folders hold sessions.

Nothing here trusts the umask, follows a symbolic link or leaves half a write behind.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from rewind.errors import DamagedStore, EnvironmentProblem, NewerStore, UsageError
from rewind.files import write_whole
from rewind.model.ids import SessionId
from rewind.model.session import SessionStart

FORMAT = 1
"""The number of the store's layout. Additions do not change it; a changed meaning does."""

Progress = Callable[[int, int], None]
"""Called with how many sessions are read, of how many."""
FOLDER = re.compile(r"(\d{8}T\d{6}\.\d{3}Z)-([0-9a-f]{8})", re.ASCII)
"""The folder of a session: when it began, and its id. Nothing else in the store is looked at."""
IMPORTING = ".import-"
"""How the folder begins in which a session from a file is put together, before it has its place."""
PIN = "pinned"
"""An empty file in the folder of a session that is to stay."""
_ID = re.compile(r"[0-9a-f]{8}", re.ASCII)
_MARKER = re.compile(r"rewind-store (\d{1,9})\n?")


def reason(error: OSError) -> str:
    """What went wrong, in the system's words."""
    return error.strerror or str(error)


def make_private_folder(path: Path) -> None:
    """Create one folder, for its owner only. Raises FileExistsError."""
    path.mkdir(mode=0o700)
    path.chmod(0o700)  # a umask can only have taken too much away; give it back


def open_private(path: Path, flags: int) -> int:
    """A descriptor of a new file, for its owner only. Raises FileExistsError, also for a planted link."""
    fd = os.open(path, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.fchmod(fd, 0o600)
    return fd


def open_to_read(path: Path) -> int:
    """A descriptor of an existing regular file; neither links nor pipes nor devices."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    return fd


def read_at(fd: int, size: int, offset: int) -> bytes:
    """As many of those bytes as the file has; a single pread gives at most 2 GiB."""
    parts: list[bytes] = []
    while size > 0 and (part := os.pread(fd, size, offset)):
        parts.append(part)
        size -= len(part)
        offset += len(part)
    return b"".join(parts)


def read_file(path: Path) -> bytes:
    """The whole file."""
    fd = open_to_read(path)
    try:
        return read_at(fd, os.fstat(fd).st_size, 0)
    finally:
        os.close(fd)


class GrowingFile:
    """A private file that is only ever appended to: one ``os.write`` each time, all of it or nothing."""

    def __init__(self, path: Path, *, durable: bool = False) -> None:
        self._fd = open_private(path, os.O_RDWR | os.O_APPEND)
        self.durable = durable
        self.size = 0
        self.torn = False
        """Half a write is at the end and could not be taken back: nothing may follow it."""

    def append(self, data: bytes) -> None:
        """Append all of it, or raise OSError and append nothing."""
        if self.torn:
            raise OSError(errno.EIO, "The end of the file is torn")
        rest = memoryview(data)
        try:
            while rest:  # a second turn only after a short write: it finds out why, or finishes it
                rest = rest[os.write(self._fd, rest) :]
            if self.durable:
                self.sync()
        except OSError:
            self._take_back()
            raise
        self.size += len(data)

    def sync(self) -> None:
        """Have it survive a power cut. Raises OSError."""
        os.fdatasync(self._fd)

    def _take_back(self) -> None:
        self.torn = True
        with contextlib.suppress(OSError):  # then it stays torn, and says so to the next append
            os.ftruncate(self._fd, self.size)
            self.torn = False

    def read(self, size: int, offset: int) -> bytes:
        return read_at(self._fd, size, offset)

    def clear(self) -> None:
        """Begin anew. Raises OSError."""
        os.ftruncate(self._fd, 0)
        self.size = 0

    def lock(self) -> None:
        """Lock the file until it is closed or the process dies. A file system without locks does without."""
        with contextlib.suppress(OSError):  # the effect is visible: readers say "interrupted", not "running"
            fcntl.flock(self._fd, fcntl.LOCK_EX)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def sync_names(*folders: Path) -> None:
    """Have the names in these folders survive a power cut, too."""
    for folder in folders:
        # Some folders may not be read, and some file systems refuse this; the files themselves are synced either way.
        with contextlib.suppress(OSError):
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def is_locked(fd: int) -> bool:
    """True if a living process writes this file."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks: nobody can hold one
        return False
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


def check_home(home: Path) -> bool:
    """True if there is a store. Raises if it cannot be used; changes nothing."""
    try:
        found = home.stat()
    except FileNotFoundError:
        return False
    except NotADirectoryError as error:
        raise EnvironmentProblem(f"The store {home} cannot be a folder: a part of its path is a file.") from error
    except OSError as error:
        raise EnvironmentProblem(f"The store {home} cannot be opened: {reason(error)}.") from error
    if not stat.S_ISDIR(found.st_mode):
        raise EnvironmentProblem(f"The store {home} is a file, not a folder.", hint="Set REWIND_HOME to a folder.")
    number = _format_of(home)
    if number is not None and number > FORMAT:
        raise NewerStore(
            f"The store {home} has format {number}, and this Rewind reads up to {FORMAT}.",
            hint="Upgrade Rewind: pip install --upgrade llm-rewind",
        )
    return True


def _format_of(home: Path) -> int | None:
    """``None`` where there is no marker (yet)."""
    try:
        text = read_file(home / "format").decode("ascii", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EnvironmentProblem(f"The store {home} cannot be read: {reason(error)}.") from error
    if not (found := _MARKER.fullmatch(text)):
        raise DamagedStore(
            f"{home / 'format'} does not say which format the store has.",
            hint=f"If this is a Rewind store, its text was: rewind-store {FORMAT}",
        )
    return int(found[1])


def prepare_home(home: Path) -> Path:
    """Make or check the store, and give back the folder of its sessions."""
    try:
        existed = check_home(home)
        if not existed:
            home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):  # another recorder was quicker
                make_private_folder(home)
        owner = home.stat().st_uid
        if owner != os.geteuid():
            raise EnvironmentProblem(
                f"The store {home} belongs to another user (uid {owner}).",
                hint="Set REWIND_HOME to a folder of your own.",
            )
        marked = (home / "format").exists()
        if existed and (marked or not any(home.iterdir())):
            home.chmod(0o700)  # ours beyond doubt; a stranger's folder keeps its mode
        if not marked:
            write_whole(home / "format", b"rewind-store %d\n" % FORMAT)
        sessions = home / "sessions"
        with contextlib.suppress(FileExistsError):
            make_private_folder(sessions)
        if not stat.S_ISDIR(sessions.lstat().st_mode):
            raise EnvironmentProblem(f"{sessions} is not a folder.")
    except OSError as error:
        raise EnvironmentProblem(f"Cannot write to the store {home}: {reason(error)}.") from error
    return sessions


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


def sweep(folder: Path, prefix: str = "") -> None:
    """Remove what killed processes left there, in folders named after the prefix and the number of the process."""
    for left in folder.glob(f"{prefix}*"):
        pid = left.name.removeprefix(prefix).partition("-")[0]
        if pid.isdigit() and not _is_alive(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


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


def is_pinned(folder: Path) -> bool:
    """Whether that session is to stay."""
    return (folder / PIN).exists()


def journal_size(home: Path, folder: str) -> int | None:
    """``None`` if the journal is gone: then this is not a session any more."""
    try:
        return os.lstat(f"{home}/sessions/{folder}/journal.jsonl").st_size
    except OSError:
        return None
