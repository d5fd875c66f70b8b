"""Which sessions a list shows, and what it is given."""

from dataclasses import dataclass, replace

from rewind.model.outcome import Outcome
from rewind.model.session import Session
from rewind.store.journal.totals import Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which sessions; without anything, all of them."""

    name: str | None = None
    """A part of the name; with ``*``, ``?`` or ``[`` a pattern for all of it. Capitals do not count."""
    model: str | None = None
    """The same, for a model that was asked or answered."""
    since: float | None = None
    outcomes: frozenset[Outcome] = frozenset()
    tags: tuple[tuple[str, str | None], ...] = ()
    """Names, with their values where one is given; a session must have all of them."""
    folders: frozenset[str] | None = None
    """Only these, where something else has chosen already."""
    probes: bool = True
    """Whether probes are among them."""

    @property
    def everything(self) -> bool:
        """But for probes perhaps."""
        return replace(self, probes=True) == Wanted()


@dataclass(frozen=True, slots=True)
class Listed:
    """Newest first."""

    rows: list[tuple[Session, Totals]]
    more: bool = False
    """Whether there are older ones beyond the limit."""
    probes: int = 0
    """How many were left out, up to the last one listed."""
