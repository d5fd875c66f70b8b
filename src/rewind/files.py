"""Writing a file whole or not at all. (:mod:`rewind.trace` has its own: it stands on the standard library alone.)"""

import os
import secrets
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, data: bytes, *, shared: bool = False) -> None:
    """Others see the old file or the new one, also after a crash. Makes the folder. Raises OSError.

    The file is for its owner only; a shared one has the rights that the umask gives.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.new")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644 if shared else 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            if not shared:
                os.fchmod(fd, 0o600)  # whatever the umask
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with suppress(OSError):  # what went wrong first is what matters
            draft.unlink()
        raise
