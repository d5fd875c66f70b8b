"""Writing a file whole or not at all. (:mod:`rewind.trace` has its own: it stands on the standard library alone.)"""

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, data: bytes | Iterable[bytes], *, mode: int | None = 0o600) -> None:
    """Others see the old file or the new one, also after a crash. Makes the folder. Raises OSError.

    It is for its owner only, unless another ``mode`` is given; without one the umask decides. Data may come in pieces;
    whatever is raised while they are made leaves the old file alone.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.new")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            if mode is not None:
                os.fchmod(fd, mode)  # whatever the umask
            file.writelines((data,) if isinstance(data, bytes) else data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with suppress(OSError):  # what went wrong first is what matters
            draft.unlink()
        raise
