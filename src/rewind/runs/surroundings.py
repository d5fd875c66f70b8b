"""Find out what a run stands on, while it runs: the commit, what is changed since, the lock files.

Nobody waits for this. It begins when the agent is under way, has a few seconds, and ends with the agent at the latest;
what is known by then is told. Nothing is written in the agent's folder, and nothing is fetched.
"""

import hashlib
import os
import signal
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from time import monotonic

from rewind.model.session import Surroundings
from rewind.redaction.redactor import Redactor

GIT_SECONDS = 5.0
"""For all that git is asked; a repository that takes longer is not worth its agent's processor."""
LOCK_FILES = (
    "Cargo.lock",
    "Pipfile.lock",
    "go.sum",
    "package-lock.json",
    "pnpm-lock.yaml",
    "poetry.lock",
    "requirements*.txt",
    "uv.lock",
    "yarn.lock",
)
LARGEST_LOCK = 10 * 1024 * 1024
MOST_LOCKS = 32
LARGEST_CHANGES = 64 * 1024 * 1024
"""Bytes of changed files that are read; of more than that we only say that there are changes."""

_BLOCK = 1024 * 1024
_LEAVING_SECONDS = 0.25
"""Long enough for a killed process to be gone; who takes longer is left behind."""
_QUIET = {
    "GIT_OPTIONAL_LOCKS": "0",  # so that `status` does not write its index
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",  # a partial clone would ask its server for what is not there …
    "GIT_ALLOW_PROTOCOL": "none",  # … and older versions of git only know this
    "LC_ALL": "C",
}
# Plumbing where there is any, and no daemon that would stay behind.
_GIT = ("git", "--no-pager", "-c", "core.fsmonitor=false")
_WHERE = ("rev-parse", "--show-toplevel", "HEAD", "--symbolic-full-name", "HEAD")
# Of the commands that compare contents only this one leaves the index alone; `git diff` writes it, locks or not.
_CHANGED = ("status", "--porcelain=v2", "-z", "--untracked-files=no", "--no-renames")


class _Stopped(Exception):
    """The run is over, or the time is up."""


class SurroundingsLookup:
    """A look around in a thread of its own; ``tell`` is called once, if there is anything to tell."""

    def __init__(
        self,
        folder: str,
        environ: Mapping[str, str],
        redactor: Redactor,
        tell: Callable[[Surroundings], None],
        *,
        seconds: float = GIT_SECONDS,
    ) -> None:
        self._folder = folder
        self._environ = {**environ, **_QUIET}
        self._redactor = redactor
        self._tell = tell
        self._known = Surroundings()
        self._over = False
        self._git: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._deadline = monotonic() + seconds
        self._thread = threading.Thread(target=self._look, name="rewind-surroundings", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Report what is known by now, and end."""
        self._finish()
        if self._thread.ident is not None:
            self._thread.join(_LEAVING_SECONDS)

    def _finish(self) -> None:
        with self._lock:
            if self._over:
                return
            self._over = True
            _kill(self._git)
            if self._known.is_known:
                self._tell(self._known)

    def _look(self) -> None:
        # A folder that is gone, a file that cannot be read: then that much is not known.
        with suppress(_Stopped, OSError, ValueError):
            self._known = replace(self._known, locks=dict(self._locks()))
        with suppress(_Stopped, OSError, ValueError):
            self._look_at_repository()
        self._finish()

    # ── lock files ───────────────────────────────────────────────────────────────────────────────────────

    def _locks(self) -> Iterator[tuple[str, str]]:
        with os.scandir(self._folder) as entries:
            names = sorted(entry.name for entry in entries if _is_lock(entry.name))
        for name in names[:MOST_LOCKS]:
            with suppress(OSError):
                digest = hashlib.sha256()
                if self._read_into(digest.update, os.path.join(self._folder, name), LARGEST_LOCK):  # noqa: PTH118
                    yield self._redactor.text(name), digest.hexdigest()[:16]

    def _read_into(self, take: Callable[[bytes], None], path: str | bytes, at_most: int) -> bool:
        """Hand over the bytes of a regular file, piece by piece; nothing if it is larger than that, or no file."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_size > at_most:
                return False
            while data := os.read(fd, _BLOCK):
                self._check()
                take(data)
        finally:
            os.close(fd)
        return True

    # ── git ──────────────────────────────────────────────────────────────────────────────────────────────

    def _look_at_repository(self) -> None:
        # From the end, because a folder may have a line break in its name.
        top, commit, reference, _ = self._ask(*_WHERE).rsplit(b"\n", 3)
        _, is_branch, branch = reference.decode(errors="replace").partition("refs/heads/")
        self._known = replace(
            self._known, commit=commit.decode("ascii"), branch=self._redactor.text(branch) if is_branch else None
        )
        changed = sorted(_changed_paths(self._ask(*_CHANGED)))
        self._known = replace(self._known, dirty=bool(changed))
        if changed:
            self._known = replace(self._known, changes=self._digest(top, changed))

    def _ask(self, *arguments: str) -> bytes:
        """What git prints. Raises ValueError where it fails, OSError where it is not installed."""
        with self._lock:
            self._check()
            self._git = process = subprocess.Popen(
                [*_GIT, *arguments],
                cwd=self._folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the agent; and whom git has started ends with it
            )
        try:
            said, _ = process.communicate(timeout=max(0.0, self._deadline - monotonic()))
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            raise _Stopped from None
        if process.returncode != 0:
            raise ValueError(f"git ended with {process.returncode}")
        return said

    def _digest(self, top: bytes, changed: list[tuple[bytes, bytes]]) -> str | None:
        """Of the names, modes and contents of the changed files, as they are now."""
        digest = hashlib.sha256()
        left = LARGEST_CHANGES
        for path, mode in changed:
            digest.update(b"%d:%b %b " % (len(path), path, mode))
            place = os.path.join(top, path)  # noqa: PTH118  a name may hold any bytes
            try:
                found = os.lstat(place)
            except FileNotFoundError:
                digest.update(b"gone")
                continue
            if stat.S_ISLNK(found.st_mode):
                target = os.readlink(place)  # noqa: PTH115
                digest.update(b"link %d:%b" % (len(target), target))
            elif stat.S_ISREG(found.st_mode):
                digest.update(b"file %d:" % found.st_size)
                if not self._read_into(digest.update, place, left):
                    return None
                left -= found.st_size
            else:
                return None  # a submodule: what is changed inside it, only a git of its own could say
        return f"sc1:{digest.hexdigest()[:16]}"

    def _check(self) -> None:
        if self._over or monotonic() > self._deadline:
            raise _Stopped


def _is_lock(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in LOCK_FILES)


def _changed_paths(status: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Path and mode of each changed file, as ``git status`` has them.

    ``1 XY SUB mHEAD mINDEX mWORKTREE hHEAD hINDEX PATH`` for a change, ``u XY SUB m1 m2 m3 mWORKTREE h1 h2 h3 PATH``
    for a conflict.
    """
    for line in status.split(b"\0"):
        match line[:2]:
            case b"1 ":
                *_, mode, _, _, path = line.split(b" ", 8)
            case b"u ":
                *_, mode, _, _, _, path = line.split(b" ", 10)
            case _:
                continue
        yield path, mode


def _kill(process: "subprocess.Popen[bytes] | None") -> None:
    """It, and whom it has started."""
    if process is not None and process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
