"""Files that people keep: read under a limit, written whole or not at all, with the rights that their umask gives."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from rewind.errors import BadCassette, EnvironmentProblem
from rewind.store.files import read_at, reason


def read_bounded(path: Path, most: int) -> bytes:
    """All of a file that is not larger. Raises BadCassette."""
    try:
        with path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size > most:
                raise BadCassette(f"{path} has {size:,} bytes, and a cassette at most {most:,}.")
            return read_at(file.fileno(), size, 0)
    except OSError as error:
        raise BadCassette(f"{path} cannot be opened: {reason(error)}.") from error


def write_whole(path: Path, data: bytes) -> None:
    """Others see the old file or the new one, also after a crash. Raises EnvironmentProblem."""
    beside = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except BaseException:
            with suppress(OSError):  # what went wrong first is what matters
                beside.unlink()
            raise
    except OSError as error:
        raise EnvironmentProblem(f"Cannot write {path}: {reason(error)}.") from error
