"""The words of all sessions in one DuckDB file of its own, for ``rewind search``. Derived, as the catalog is.

Reading all packed text is quick enough for a million steps (ADR 0007), so there is no index of words to keep. Hits
are looked for in windows, the newest sessions first and each window larger than the one before: a common word is
found in the first.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from rewind.dataclass import dataclass
from rewind.store.derived import DerivedDatabase, as_sql_text
from rewind.store.files import Progress
from rewind.store.search.fill import TABLES, fill

VERSION = 1
_FIRST_WINDOW = 32 * 1024
"""Texts in the newest window."""
_GROWTH = 16
_BEFORE, _AFTER = 160, 440
"""Characters that are given around a hit: more than a screen is wide."""
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What to look for, and where."""

    texts: tuple[str, ...]
    """All of them must occur in the same text."""
    case: bool = False
    """Whether capitals count."""
    kinds: tuple[str, ...] = ()
    """Of :class:`rewind.providers.summary.TextKind`; none means all."""
    folder: str | None = None
    since: float | None = None
    """Only sessions that began then or later."""
    limit: int = 0
    """How many hits at most; 0 for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A text that holds all that was searched for."""

    folder: str
    step: int
    ts: float
    """When the step began."""
    kind: str
    snippet: str
    """The words around the first place."""
    marks: tuple[tuple[int, int], ...]
    """Start and end, in the snippet, of every place."""
    from_start: bool
    """Whether the snippet begins where the text does."""
    to_end: bool
    """Whether it ends where the text does."""

    @property
    def session(self) -> str:
        return self.folder[-8:]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """How much the index knows."""

    sessions: int = 0
    texts: int = 0
    cut: int = 0
    """Texts so long that only their start is searched."""
    unreadable: int = 0
    """Bodies and sessions that could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits, newest session first and its last step first."""

    hits: tuple[SearchHit, ...] = ()
    more: bool = False
    """Whether there are older ones beyond the limit."""
    index: IndexState = IndexState()


class SearchIndex:
    """Every question first brings in what was recorded since the last one."""

    def __init__(self, home: Path, *, on_progress: Progress = lambda _done, _total: None) -> None:
        self._file = DerivedDatabase(home, "search", version=VERSION, tables=TABLES)
        self._fill: Callable[[Any], int] = lambda db: fill(db, home, on_progress)

    def catch_up(self) -> IndexState:
        """Bring in what is new and forget what is gone."""
        return self._ask(lambda _db, state: state, IndexState())

    def search(self, query: SearchQuery) -> SearchResult:
        return self._ask(lambda db, state: _search(db, query, state), SearchResult())

    def sessions_with(self, *texts: str) -> set[str]:
        """The folders of the sessions in which ``search`` finds these texts."""

        def ask(db: Any, _state: IndexState) -> set[str]:
            matching = _Matching(db, SearchQuery(texts=texts))
            rows = db.execute(f"SELECT DISTINCT folder FROM texts WHERE {matching.where}", matching.values)  # noqa: S608
            return {folder for (folder,) in rows.fetchall()}

        return self._ask(ask, set())

    def _ask(self, question: Callable[[Any, IndexState], _Result], nothing: _Result) -> _Result:
        return self._file.ask(self._fill, lambda db, lost, _empty: question(db, _state(db, lost)), nothing=nothing)


def _state(db: Any, lost: int) -> IndexState:
    sessions, texts, unreadable = db.execute(
        "SELECT count(*), coalesce(sum(texts), 0), coalesce(sum(unreadable), 0) FROM sessions"
    ).fetchone()
    (cut,) = db.execute("SELECT count(*) FROM texts WHERE cut").fetchone()
    return IndexState(sessions=sessions, texts=int(texts), cut=cut, unreadable=int(unreadable) + lost)


class _Matching:
    """A query in DuckDB's words. What is looked for travels as values, never inside the SQL."""

    def __init__(self, db: Any, query: SearchQuery) -> None:
        self._case = query.case
        rows = db.execute(f"SELECT {self.folded('unnest(?)')}", [[as_sql_text(text) for text in query.texts]])
        self.needles = [needle for (needle,) in rows.fetchall()]
        self.values: dict[str, Any] = {f"text{at}": needle for at, needle in enumerate(self.needles)}
        conditions = [f"contains({self.folded('text')}, ${name})" for name in self.values]
        if query.kinds:
            conditions.append("list_contains($kinds, kind)")
            self.values["kinds"] = list(query.kinds)
        if query.folder is not None:
            conditions.append("folder = $folder")
            self.values["folder"] = query.folder
        self.where = " AND ".join(conditions)

    def folded(self, column: str) -> str:
        """DuckDB's ``lower`` keeps the number of characters, so a place in what it gives is a place in the text."""
        return column if self._case else f"lower({column})"

    @property
    def first_place(self) -> str:
        text = self.folded("text")
        return "least(" + ", ".join(f"instr({text}, $text{at})" for at in range(len(self.needles))) + ")"

    @property
    def snippet_size(self) -> int:
        return _BEFORE + max(map(len, self.needles)) + _AFTER

    def marks(self, folded: str) -> tuple[tuple[int, int], ...]:
        """Where the needles are in that text; places that touch are one."""
        marks: list[tuple[int, int]] = []
        for start, end in sorted(place for needle in self.needles for place in _places(folded, needle)):
            if marks and start <= marks[-1][1]:
                marks[-1] = (marks[-1][0], max(end, marks[-1][1]))
            else:
                marks.append((start, end))
        return tuple(marks)


def _places(text: str, needle: str) -> Iterator[tuple[int, int]]:
    start = text.find(needle)
    while start >= 0:
        yield start, start + len(needle)
        start = text.find(needle, start + len(needle))


def _search(db: Any, query: SearchQuery, state: IndexState) -> SearchResult:
    matching = _Matching(db, query)
    hits: list[SearchHit] = []
    for after, until in _windows(db, query):
        hits += _hits_within(db, matching, after, until, query.limit and query.limit + 1 - len(hits))
        if query.limit and len(hits) > query.limit:
            return SearchResult(hits=tuple(hits[: query.limit]), more=True, index=state)
    return SearchResult(hits=tuple(hits), index=state)


def _windows(db: Any, query: SearchQuery) -> Iterator[tuple[float, float]]:
    """Spans of time, from the newest sessions to the oldest: after the first moment, until the second."""
    sessions = db.execute(
        "SELECT started, texts FROM sessions WHERE started >= coalesce($since, started) "
        "AND folder = coalesce($folder, folder) ORDER BY started DESC",
        {"since": query.since, "folder": query.folder},
    ).fetchall()
    if not sessions:
        return
    until, size, room = sessions[0][0], 0, _FIRST_WINDOW
    for started, texts in sessions:
        if size >= room and started < until:
            yield started, until
            until, size, room = started, 0, room * _GROWTH
        size += texts
    yield math.nextafter(sessions[-1][0], -math.inf), until


def _hits_within(db: Any, matching: _Matching, after: float, until: float, limit: int) -> Iterator[SearchHit]:
    rows = db.execute(
        f"WITH found AS (SELECT *, rowid AS place, greatest({matching.first_place} - {_BEFORE}, 1) AS begin "  # noqa: S608
        f"FROM texts WHERE started > $after AND started <= $until AND {matching.where}), "
        f"shown AS (SELECT *, substring(text, begin, {matching.snippet_size}) AS snippet FROM found) "
        f"SELECT folder, step, ts, kind, begin, length(text), snippet, {matching.folded('snippet')} "
        f"FROM shown ORDER BY started DESC, folder DESC, step DESC, place " + (f"LIMIT {int(limit)}" if limit else ""),
        {**matching.values, "after": after, "until": until},
    ).fetchall()
    for folder, step, ts, kind, begin, length, snippet, folded in rows:
        yield SearchHit(
            folder=folder,
            step=step,
            ts=ts,
            kind=kind,
            snippet=snippet,
            marks=matching.marks(folded),
            from_start=begin == 1,
            to_end=begin - 1 + len(snippet) >= length,
        )
