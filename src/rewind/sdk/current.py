"""The session that the running code belongs to."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing's own would have to be imported
if TYPE_CHECKING:
    from rewind.inprocess.run import InProcessRun


def current_run() -> InProcessRun | None:
    """``None`` outside a session. As long as nobody began one, the engine is not even loaded."""
    engine = sys.modules.get("rewind.inprocess.run")
    if engine is None:
        return None
    found: InProcessRun | None = engine.current_run()
    return found
