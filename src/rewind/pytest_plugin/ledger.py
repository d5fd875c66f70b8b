"""What the workers of one pytest run must know of each other: which cassettes were written, and by whom just now."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Ledger:
    """A folder that all workers of a run share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def was_written(self, cassette: Path) -> bool:
        """Whether a test of this run has written it."""
        return self._mark(cassette, "written").exists()

    def note(self, cassette: Path) -> None:
        self._mark(cassette, "written").touch()

    def fresh(self, cassette: Path) -> Path:
        """Where that lies which this run recorded of a cassette that keeps older steps, too."""
        return self._mark(cassette, "fresh.rw")

    @contextmanager
    def writing(self, cassette: Path) -> Iterator[None]:
        """One worker at a time for each cassette."""
        fd = os.open(self._mark(cassette, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _mark(self, cassette: Path, kind: str) -> Path:
        name = hashlib.sha256(os.fsencode(cassette)).hexdigest()[:32]
        return self._folder / f"{name}.{kind}"
