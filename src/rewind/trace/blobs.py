"""Long outputs beside a trace: ``<trace>.blobs/<sha256>``, each written whole before the line that names it."""
# Importing pathlib would take longer than all of this.
# ruff: noqa: PTH103, PTH105, PTH108, PTH110, PTH116, PTH118

import os
import re
from stat import S_ISREG

PREFIX = "sha256:"
LARGEST = 64 * 1024 * 1024
"""Bytes of an output that is read back whole."""
_NAME = re.compile(r"sha256:([0-9a-f]{64})", re.ASCII)


class Blobs:
    """The folder beside one trace. Nothing but the digest of the bytes ever becomes a path."""

    def __init__(self, trace: str) -> None:
        self._folder = f"{trace}.blobs"

    def put(self, data: bytes, *, durable: bool = False) -> str:
        """Keep these bytes, for their owner only; gives their name. Raises OSError."""
        digest = _digest(data)
        path = os.path.join(self._folder, digest)
        if self._is_there(path, len(data)):
            return PREFIX + digest
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        draft = f"{path}.{os.urandom(6).hex()}.new"
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(fd, rest) :]
                if durable:
                    os.fsync(fd)
            finally:
                os.close(fd)
            os.replace(draft, path)
            if durable:
                sync_folder(self._folder)
        except BaseException:
            if os.path.exists(draft):
                os.unlink(draft)
            raise
        return PREFIX + digest

    def get(self, name: str) -> bytes | None:
        """The bytes of that name; ``None`` where they are not there, too large or not what the name says."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        try:
            fd = os.open(
                os.path.join(self._folder, found[1]),
                os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0),
            )
        except OSError:
            return None
        try:
            status = os.fstat(fd)
            if not S_ISREG(status.st_mode) or status.st_size > LARGEST:
                return None
            data = read_all(fd, LARGEST)
        except OSError:
            return None
        finally:
            os.close(fd)
        return data if _digest(data) == found[1] else None

    @staticmethod
    def _is_there(path: str, size: int) -> bool:
        """Shared: the same output is kept once. One of another size is none of ours, and is written anew."""
        try:
            return os.stat(path).st_size == size
        except OSError:
            return False


def read_all(fd: int, most: int) -> bytes:
    """What the file holds, up to that many bytes. Raises OSError."""
    parts: list[bytes] = []
    while most > 0 and (part := os.read(fd, min(most, 1 << 24))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def _digest(data: bytes) -> str:
    import hashlib  # takes as long to load as all the rest, and most traces have no long output

    return hashlib.sha256(data).hexdigest()


def sync_folder(path: str) -> None:
    """Wait until the disk has the names in a folder. Raises OSError."""
    fd = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def cut_at(data: bytes, cap: int) -> str:
    """The beginning of a text of UTF-8, at most that long, up to a whole character."""
    while cap > 0 and data[cap : cap + 1] and data[cap] & 0xC0 == 0x80:
        cap -= 1
    return data[: max(cap, 0)].decode("utf-8", "replace")
