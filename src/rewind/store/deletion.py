"""Deletes sessions: first out of sight, then their bytes, then what the derived files hold of them.

A session that is to go is moved to a folder aside, which is one step and cannot be half done. The folder aside is
there until the last byte is gone, so whoever finds it knows that a deletion was killed, and finishes it. A process that
has the files of a session open reads on; one that opens them later finds that the session is gone.
"""

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rewind.errors import EnvironmentProblem
from rewind.store.derived import DERIVED, DerivedFile
from rewind.store.files import (
    FOLDER,
    IMPORTING,
    PIN,
    is_pinned,
    make_private_folder,
    open_private,
    reason,
    session_folders,
    sweep,
)
from rewind.store.replays import forget_names

ASIDE = ".deleted"
"""Holds what is being deleted. Empty, it says that a derived file still has to be written anew."""
QUICK = 8 * 1024 * 1024
"""Bytes of a derived file that is written anew in about a second."""


def delete_sessions(
    home: Path, folders: Iterable[str], *, even_pinned: bool = False, at_most: int | None = None
) -> set[str]:
    """Delete the sessions in these folders, which nobody may be recording; give back those that stayed.

    One pinned in the last moment stays. One that is gone already is no error: another process was quicker. Derived
    files of more than ``at_most`` bytes are left for the next :func:`finish_deletions`. Raises EnvironmentProblem.
    """
    with _deleting(home, wait=True):
        aside = home / ASIDE
        with suppress(FileExistsError):
            make_private_folder(aside)
        stayed = set()
        for folder in folders:
            assert FOLDER.fullmatch(folder), "only sessions are deleted"
            session = home / "sessions" / folder
            if is_pinned(session) and not even_pinned:
                stayed.add(folder)
                continue
            with suppress(FileNotFoundError):
                session.rename(aside / folder)
        _finish(home, at_most)
    return stayed


def finish_deletions(home: Path, *, at_most: int | None = None) -> None:
    """Go on where a deletion was killed; nothing to do where none was, or where another process is at it."""
    if (home / ASIDE).is_dir():
        with _deleting(home, wait=False) as ours:
            if ours and (home / ASIDE).is_dir():
                _finish(home, at_most)


def set_pinned(folder: Path, *, pinned: bool) -> None:
    """Whether that session is to stay. Raises EnvironmentProblem."""
    try:
        if pinned:
            with suppress(FileExistsError):
                os.close(open_private(folder / PIN, os.O_WRONLY))
        else:
            (folder / PIN).unlink(missing_ok=True)
    except OSError as error:
        raise EnvironmentProblem(f"The session in {folder} cannot be written: {reason(error)}.") from error


def size_on_disk(folder: Path) -> int:
    """What the files of a session take of the disk, as ``du`` counts; 0 for one that is gone."""
    try:
        with os.scandir(folder) as entries:
            files = [os.lstat(folder), *(entry.stat(follow_symlinks=False) for entry in entries)]
    except OSError:
        return 0
    return sum(file.st_blocks for file in files) * 512


def _finish(home: Path, at_most: int | None) -> None:
    aside = home / ASIDE
    for left in aside.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink()
    sweep(home, IMPORTING)
    there = session_folders(home)
    ids = {folder.rpartition("-")[2] for folder in there}
    forget_names(home, ids.__contains__)
    purged = [DerivedFile(home, name).purge(there, at_most=at_most) for name in DERIVED]
    if all(purged):
        aside.rmdir()


@contextmanager
def _deleting(home: Path, *, wait: bool) -> Iterator[bool]:
    """One process at a time. Yields whether it is this one; if it waits, it always is."""
    try:
        fd = os.open(home / "delete.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            yield _locked(fd, wait=wait)
        finally:
            os.close(fd)
    except OSError as error:
        raise EnvironmentProblem(
            f"Not everything could be deleted from the store {home}: {reason(error)}.",
            hint="when that is mended, any rewind command deletes the rest",
        ) from error


def _locked(fd: int, *, wait: bool) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: each step is whole, and none is harmed by being done twice
        return True
    return True
