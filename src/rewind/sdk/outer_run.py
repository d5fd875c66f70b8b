"""The run of ``rewind record``, ``replay`` or ``fork`` that this process is a child of, as its environment tells."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rewind.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterRun:
    """What the command line does with the program around us."""

    session: str
    """That is written, or replayed."""
    again: bool
    """What was recorded is done once more: nothing of it is another recording."""
    folder: str | None
    """Goes when the run is over."""

    def passing_store(self) -> Path:
        """A store for what nobody wants to keep. Raises OSError."""
        folder = self.folder if self.folder is not None and os.access(self.folder, os.W_OK) else None
        return Path(tempfile.mkdtemp(prefix="rewind-again-", dir=folder))


def outer_run(environ: Mapping[str, str] | None = None) -> OuterRun | None:
    """``None`` in a process that nobody watches."""
    environ = os.environ if environ is None else environ
    session = environ.get("REWIND_SESSION")
    if not session or not environ.get("REWIND_GATEWAY_URL"):
        return None
    certificate = environ.get("REWIND_GATEWAY_CA")
    folder = None if not certificate else str(Path(certificate).parent)
    return OuterRun(session=session, again=environ.get("REWIND_REPLAY") == "1", folder=folder)
