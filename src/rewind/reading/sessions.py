"""The sessions of a store: which there are, and what each came to."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rewind.errors import EnvironmentProblem, RewindError, SessionNotFound, UsageError
from rewind.model.outcome import Outcome
from rewind.model.session import Session
from rewind.pricing.prices import Prices
from rewind.pricing.spending import Spending
from rewind.reading.progress import OnProgress, ignored
from rewind.store.catalog.database import Catalog, SessionPage, SessionQuery, find_sessions
from rewind.store.journal.totals import Totals
from rewind.store.library import Library

_MOST_RECENT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Which sessions; a session must pass all of it, and without anything all do."""

    name: str | None = None
    """A part of the name; with ``*``, ``?`` or ``[`` a pattern for all of it. Capitals do not count."""
    model: str | None = None
    """The same, for a model that was asked or answered."""
    since: float | None = None
    statuses: tuple[str, ...] = ()
    """One of these outcomes."""
    tags: tuple[str, ...] = ()
    """``KEY`` or ``KEY=VALUE``: all of them."""
    texts: tuple[str, ...] = ()
    """A search finds them in the session, all in one text."""

    def __post_init__(self) -> None:
        given = {"name": [self.name], "model": [self.model], "tag": self.tags, "text": self.texts}
        for option, values in given.items():
            if any(value is not None and not value.strip(" =") for value in values):
                raise UsageError(f"--{option} is empty: it would say nothing about a session.")


EVERYTHING = SessionFilter()


class ListedSession(NamedTuple):
    """A session, and what its steps add up to."""

    session: Session
    totals: Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionList:
    """Sessions, newest first."""

    home: Path
    """The store."""
    rows: tuple[ListedSession, ...] = ()
    more: bool = False
    """Whether there are older ones beyond the limit."""
    limit: int = 0
    probes: int = 0
    """Probes that were left out, up to the last session listed."""
    filtered: bool = False
    """Whether there are sessions that the filter may have left out."""
    price_warning: str | None = None
    """Why newer prices that are there could not be used."""


def list_sessions(
    home: Path,
    prices: Prices,
    wanted: SessionFilter = EVERYTHING,
    *,
    limit: int = 0,
    probes: bool = False,
    ancestors: bool = False,
    on_progress: OnProgress = ignored,
) -> SessionList:
    """The newest sessions that pass the filter, at most ``limit`` of them; 0 for all.

    ``ancestors``: also the sessions that these were forked from or replay, behind the others.
    """
    query = _catalog_query(home, wanted, probes, on_progress)
    library = Library(home)
    if limit and query.everything:
        matches = _from_journals(library, prices, query, limit)
    else:
        matches = _from_catalog(library, home, prices, query, limit, on_progress)
    rows = [ListedSession(*row) for row in matches.rows]
    if ancestors:
        rows += _ancestors(library, prices, [row.session for row in rows])
    return SessionList(
        home=home,
        rows=tuple(rows),
        more=matches.more,
        limit=limit,
        probes=matches.probes,
        filtered=not query.everything and bool(rows or library.ids()),
        price_warning=prices.warning,
    )


def session_ids(home: Path) -> list[str]:
    """All ids, newest first."""
    return Library(home).ids()


def recent_sessions(home: Path) -> list[Session]:
    """The newest few."""
    return Library(home).sessions(limit=_MOST_RECENT)


def cost_of_session(home: Path, session_id: str, prices: Prices) -> Spending | None:
    """What its calls cost; ``None`` where the store cannot be read."""
    library = Library(home)
    try:
        totals = library.totals(library.find(session_id), prices)
    except RewindError:
        return None
    return Spending(usd=totals.cost, unpriced=totals.unpriced)


def parent_of(session: Session) -> str | None:
    """The id of the session it was forked from, or is a replay of."""
    origin = session.start.forked_from
    return origin.session if origin is not None else session.start.replay_of


def _catalog_query(home: Path, wanted: SessionFilter, probes: bool, on_progress: OnProgress) -> SessionQuery:
    pairs = [tag.partition("=") for tag in wanted.tags]
    return SessionQuery(
        name=wanted.name,
        model=wanted.model,
        since=wanted.since,
        outcomes=frozenset(map(Outcome, wanted.statuses)),
        tags=tuple((key, value if equals else None) for key, equals, value in pairs),
        folders=_folders_with(home, wanted.texts, on_progress) if wanted.texts else None,
        probes=probes or bool(wanted.statuses),
    )


def _folders_with(home: Path, texts: Sequence[str], on_progress: OnProgress) -> frozenset[str]:
    from rewind.reading.search import folders_with  # lazily: the index knows every provider; few lists ask it

    return folders_with(home, texts, on_progress)


def _from_journals(library: Library, prices: Prices, wanted: SessionQuery, limit: int) -> SessionPage:
    """Straight from the journals: the catalog would take longer to open than this takes."""
    rows: list[tuple[Session, Totals]] = []
    probes = 0
    for session in library.newest():
        if session.is_probe and not wanted.probes:
            probes += 1
        elif limit and len(rows) == limit:
            return SessionPage(rows, more=True, probes=probes)
        else:
            with suppress(SessionNotFound):  # removed since we looked; the others are still worth a list
                rows.append((session, library.totals(session, prices)))
    return SessionPage(rows, probes=probes)


def _from_catalog(
    library: Library, home: Path, prices: Prices, wanted: SessionQuery, limit: int, on_progress: OnProgress
) -> SessionPage:
    try:
        return find_sessions(open_catalog(home, prices, on_progress), home, wanted, limit)
    except EnvironmentProblem:
        # A store that cannot be written has no catalog, but its sessions can still be listed one by one.
        if not wanted.everything:
            raise
        return _from_journals(library, prices, wanted, limit)


def open_catalog(home: Path, prices: Prices, on_progress: OnProgress) -> Catalog:
    """The catalog of that store; it catches up when it is asked."""
    return Catalog(home, prices=prices, on_progress=lambda done, of: on_progress("sessions read", done, of))


def _ancestors(library: Library, prices: Prices, sessions: Iterable[Session]) -> Iterator[ListedSession]:
    """The sessions that the others come from, and that are not among them; those that are gone are left out."""
    waiting = list(sessions)
    there = set(library.ids())
    seen: set[str] = {session.id for session in waiting}
    while waiting:
        parent = parent_of(waiting.pop())
        if parent is None or parent in seen or parent not in there:
            continue
        seen.add(parent)
        with suppress(SessionNotFound):
            session = library.find(parent)
            yield ListedSession(session, library.totals(session, prices))
            waiting.append(session)
