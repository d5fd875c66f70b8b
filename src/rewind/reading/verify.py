"""Every recorded byte hashed again, and what is damaged."""

from contextlib import nullcontext, suppress
from pathlib import Path

from rewind.dataclass import dataclass
from rewind.errors import RewindError, SessionNotFound
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
    chosen = [library.find(ref)] if ref else library.sessions()
    remarks = file_remarks(chosen[0].file) if ref and chosen[0].file is not None else None
    damage: list[Damage] = []
    for done, session in enumerate(chosen):
        on_progress("sessions checked", done, len(chosen))
        with nullcontext() if ref else suppress(SessionNotFound):  # deleted since we looked: then nothing is damaged
            damage += library.verify(session)
    state, problem = (None, None) if ref else _catalog(home)
    return Verification(
        sessions=len(chosen), damage=tuple(damage), catalog=state, catalog_problem=problem, remarks=remarks
    )


def _catalog(home: Path) -> tuple[CatalogState | None, str | None]:
    """Its state after it has caught up, or why that failed."""
    try:
        return Catalog(home).catch_up(), None
    except RewindError as problem:
        return None, problem.message
