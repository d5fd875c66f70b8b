"""Names in a request that are others than in the recorded one: how far they may be, and which they are."""

from typing import Literal, get_args

from rewind.dataclass import dataclass

MatchMode = Literal["exact", "fields", "renamed"]
"""``exact``: no name may differ. ``fields``: facts of the run, its clock, and ids that are the whole value of a field.
``renamed``: all tokens of :mod:`rewind.match.tokens`, ids in texts too."""
MATCH_MODES: tuple[MatchMode, ...] = get_args(MatchMode)


@dataclass(frozen=True, slots=True)
class Renamed:
    """One thing, and what it is called in the recording and now."""

    kind: str
    """``id``, ``date``, ``folder`` …"""
    then: str
    now: str
