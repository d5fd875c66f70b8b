"""The files of a trace: the trace itself, and the long outputs beside it (``<trace>.blobs/<sha256>``)."""
# Importing pathlib would take longer than all of this, and rewind.replay() needs no more of the store.
# ruff: noqa: PTH118

import os
import re
from stat import S_ISREG

from rewind.errors import BadCassette, SessionNotFound
from rewind.formats.trace.lines import TraceFile

LARGEST_TRACE = 512 * 1024 * 1024
LARGEST_OUTPUT = 64 * 1024 * 1024
"""Bytes of an output that is read back whole."""
_BLOB = re.compile(r"sha256:([0-9a-f]{64})", re.ASCII)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


def open_trace(path: str | os.PathLike[str], *, largest: int = LARGEST_TRACE) -> TraceFile:
    """All that the file holds now. Raises SessionNotFound or BadCassette."""
    name = os.fsdecode(path)
    try:
        data = _read_regular(name, largest, 0)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SessionNotFound(f"There is no trace {name!r}.", hint="Give the path of its file.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadCassette(f"It cannot be opened: {reason}.", path=name) from error
    return TraceFile(name=name, data=data, output=lambda ref: _output(f"{name}.blobs", ref))


def _output(folder: str, ref: str) -> bytes | None:
    """The bytes of that name; ``None`` where they are missing, too large or not what the name says.

    Nothing but a digest ever becomes a path.
    """
    digest = _BLOB.fullmatch(ref)
    if digest is None:
        return None
    try:
        path = os.path.join(folder, digest[1])
        data = _read_regular(path, LARGEST_OUTPUT, getattr(os, "O_NOFOLLOW", 0))
    except (OSError, BadCassette):
        return None
    from hashlib import sha256  # lazily: most traces have no long output

    return data if sha256(data).hexdigest() == digest[1] else None


def _read_regular(path: str, largest: int, flags: int) -> bytes:
    """Up to that many bytes of a regular file. Raises OSError, or BadCassette for one that is larger already."""
    fd = os.open(path, os.O_RDONLY | _NONBLOCK | flags)
    try:
        status = os.fstat(fd)
        if not S_ISREG(status.st_mode):
            raise BadCassette("It is not a file.", path=path)
        if status.st_size > largest:
            raise BadCassette(
                f"It is too large for a trace: {status.st_size:,} bytes.",
                path=path,
                hint='Split it: each run has its own id in the field "run".',
            )
        parts: list[bytes] = []
        while largest > 0 and (part := os.read(fd, min(largest, 1 << 24))):
            parts.append(part)
            largest -= len(part)
        return b"".join(parts)
    finally:
        os.close(fd)
