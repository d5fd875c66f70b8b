"""``rewind.note``: a word of the program's own, kept as a step between the others."""

from __future__ import annotations

from rewind.sdk.current import current_run

TYPE_CHECKING = False  # typing's own would have to be imported
if TYPE_CHECKING:
    from typing import Any


def note(text: str, /, **fields: Any) -> bool:
    """Keep a note in the current session, with whatever belongs to it; False where no session is being recorded, or
    it cannot be kept."""
    run = current_run()
    if run is None:
        return False
    from rewind.sdk.values.serialise import write  # lazily: outside a session nothing is loaded

    try:
        run.note(text if isinstance(text, str) else str(text), write(fields).plain)
    except Exception as error:  # noqa: BLE001  what is told to a recording never stops the program
        run.unrecorded("note", f"it was not recorded: {type(error).__name__}")
        return False
    return True
