"""Every recorded byte hashed again, and what is damaged."""

from pathlib import Path

from rewind.dataclass import dataclass
from rewind.errors import RewindError
from rewind.reading.progress import OnProgress, ignored
from rewind.store.catalog.database import Catalog, CatalogState
from rewind.store.library import Library
from rewind.store.verify import Damage


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What hashing everything again came to."""

    sessions: int
    damage: tuple[Damage, ...]
    catalog: CatalogState | None = None
    """Brought up to date, where the whole store was asked for."""
    catalog_problem: str | None = None
    """Why that failed."""

    @property
    def all_is_well(self) -> bool:
        return not self.damage and self.catalog_problem is None


def verify(home: Path, ref: str | None = None, *, on_progress: OnProgress = ignored) -> Verification:
    """One session, or the whole store and its catalog."""
    library = Library(home)
    chosen = [library.find(ref)] if ref else library.sessions()
    damage: list[Damage] = []
    for done, session in enumerate(chosen):
        on_progress("sessions checked", done, len(chosen))
        damage += library.verify(session)
    state, problem = (None, None) if ref else _catalog(home)
    return Verification(sessions=len(chosen), damage=tuple(damage), catalog=state, catalog_problem=problem)


def _catalog(home: Path) -> tuple[CatalogState | None, str | None]:
    """Its state after it has caught up, or why that failed."""
    try:
        return Catalog(home).catch_up(), None
    except RewindError as problem:
        return None, problem.message
