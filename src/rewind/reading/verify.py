"""Every recorded byte hashed again, and what is damaged."""

from pathlib import Path

from rewind.dataclass import dataclass
from rewind.errors import RewindError
from rewind.reading.progress import OnProgress, ignored
from rewind.store.catalog.database import Catalog, CatalogState
from rewind.store.library import Library
from rewind.store.session_files import file_remarks
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
    remarks: tuple[str, ...] | None = None
    """Of a file: what it states otherwise than its bodies say. That is not damage, and nobody goes by it."""

    @property
    def all_is_well(self) -> bool:
        return not self.damage and self.catalog_problem is None


def verify(home: Path, ref: str | None = None, *, on_progress: OnProgress = ignored) -> Verification:
    """One session, or the whole store and its catalog."""
    library = Library(home)
    if ref:
        session = library.find(ref)
        remarks = None if session.file is None else file_remarks(session.file)
        return Verification(sessions=1, damage=library.verify(session), remarks=remarks)
    sessions, damage = library.verify_all(lambda done, total: on_progress("sessions checked", done, total))
    state, problem = _catalog(home)
    return Verification(sessions=sessions, damage=damage, catalog=state, catalog_problem=problem)


def _catalog(home: Path) -> tuple[CatalogState | None, str | None]:
    """Its state after it has caught up, or why that failed."""
    try:
        return Catalog(home).catch_up(), None
    except RewindError as problem:
        return None, problem.message
