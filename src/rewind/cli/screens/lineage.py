"""Where a session comes from, in a few words."""

from rewind.model.session import Lineage
from rewind.safe import safe_line

_SHOWN = 60


def changes(lineage: Lineage, width: int = _SHOWN) -> str:
    """``system=You are…, temperature=0``: what a fork changed at its step."""
    told = [*lineage.edits, *(["edited by hand"] if lineage.by_hand else [])]
    shown = ", ".join(safe_line(one, width) for one in told) or "nothing changed"
    return shown + (f" · sample {lineage.sample}" if lineage.sample is not None else "")
