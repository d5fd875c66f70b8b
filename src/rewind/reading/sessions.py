"""The sessions of a store: which there are, and what each came to."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rewind.dataclass import dataclass
from rewind.errors import EnvironmentProblem, RewindError, SessionNotFound, UsageError
from rewind.model.outcome import Outcome
from rewind.model.session import Session
from rewind.pricing.prices import Prices
from rewind.pricing.spending import Spending
from rewind.reading.progress import OnProgress, ignored
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
    library = Library(home)
    probes = probes or bool(wanted.statuses)
    if limit and wanted == EVERYTHING:
        listing = _from_journals(home, prices, limit, probes)
    else:
        listing = _from_catalog(home, prices, wanted, limit, probes, on_progress)
    rows = listing.rows
    if ancestors:
        rows += tuple(_ancestors(library, prices, [row.session for row in rows]))
    filtered = wanted != EVERYTHING and bool(rows or library.ids())
    return replace(listing, rows=rows, filtered=filtered, price_warning=prices.warning)


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


def _from_journals(home: Path, prices: Prices, limit: int, probes: bool) -> SessionList:
    """The newest, without any database: a catalog would take longer to open than this takes."""
    library = Library(home)
    rows: list[ListedSession] = []
    hidden, more = 0, False
    for session in library.newest():
        if session.is_probe and not probes:
            hidden += 1
        elif limit and len(rows) == limit:
            more = True
            break
        else:
            with suppress(SessionNotFound):  # removed since we looked; the others are still worth a list
                rows.append(ListedSession(session, library.totals(session, prices)))
    return SessionList(home=home, rows=tuple(rows), more=more, limit=limit, probes=hidden)


def _from_catalog(
    home: Path, prices: Prices, wanted: SessionFilter, limit: int, probes: bool, on_progress: OnProgress
) -> SessionList:
    from rewind.store.catalog import database  # lazily: mostly the newest are asked for, and need none

    pairs = [tag.partition("=") for tag in wanted.tags]
    query = database.SessionQuery(
        name=wanted.name,
        model=wanted.model,
        since=wanted.since,
        outcomes=frozenset(map(Outcome, wanted.statuses)),
        tags=tuple((key, value if equals else None) for key, equals, value in pairs),
        folders=_folders_with(home, wanted.texts, on_progress) if wanted.texts else None,
        probes=probes,
    )
    catalog = database.Catalog(home, prices=prices, on_progress=lambda done, of: on_progress("sessions read", done, of))
    try:
        page = database.find_sessions(catalog, home, query, limit)
    except EnvironmentProblem:
        # A store that cannot be written has no catalog, but its sessions can still be listed one by one.
        if wanted != EVERYTHING:
            raise
        return _from_journals(home, prices, limit, probes)
    rows = tuple(ListedSession(*row) for row in page.rows)
    return SessionList(home=home, rows=rows, more=page.more, limit=limit, probes=page.probes)


def _folders_with(home: Path, texts: Sequence[str], on_progress: OnProgress) -> frozenset[str]:
    from rewind.reading.search import folders_with  # lazily: the index knows every provider; few lists ask it

    return folders_with(home, texts, on_progress)


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
