"""The catalog: DuckDB over all journals, for questions that cross sessions.

Derived: at any doubt it is deleted and built again. Two questions are asked of it: which sessions there are, with
their totals (``rewind list``), and what all their steps come to (``rewind stats``).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, TypeVar

from rewind.dataclass import dataclass
from rewind.model.outcome import Outcome, outcome_of
from rewind.model.session import Session, Status
from rewind.pricing.report import By, Day, Figures, Group, Report, Saved
from rewind.pricing.spending import LEFT_OPEN, known_sum
from rewind.store.catalog.fill import FingerprintedPricing, fill
from rewind.store.catalog.rows import SESSION, STEP, TOKENS
from rewind.store.derived import DerivedDatabase, as_sql_text
from rewind.store.files import Progress, is_pinned
from rewind.store.journal.reader import end_in, peek, start_in, status_of
from rewind.store.journal.totals import Totals
from rewind.store.replays import ServedAgain

_VERSION = 7
_Result = TypeVar("_Result")
_UNPRICED = f"""
    type = 'llm_call' AND cost IS NULL
    AND (tokens_in IS NOT NULL OR tokens_out IS NOT NULL OR status < 400
        OR ending IS NULL OR (status IS NULL AND ending IN {LEFT_OPEN}))
"""
"""What a sum of costs leaves out, by the rule of :func:`rewind.pricing.spending.may_have_cost`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogState:
    """How much the catalog knows."""

    sessions: int
    steps: int
    rebuilt: bool


class Catalog:
    """The tables ``sessions`` and ``steps``; their columns are in :mod:`rewind.store.catalog.rows`."""

    def __init__(
        self,
        home: Path,
        *,
        prices: FingerprintedPricing | None = None,
        on_progress: Progress = lambda _done, _total: None,
    ) -> None:
        self._file = DerivedDatabase(home, "catalog", version=_VERSION, tables={"sessions": SESSION, "steps": STEP})
        self._fill: Callable[[Any], None] = lambda db: fill(db, home, prices, on_progress)

    def catch_up(self) -> CatalogState:
        """Bring in what is new in the journals."""

        def state(db: Any, _filled: None, rebuilt: bool) -> CatalogState:
            counted = "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM steps)"
            sessions, steps = db.execute(counted).fetchone()
            return CatalogState(sessions=sessions, steps=steps, rebuilt=rebuilt)

        nothing = CatalogState(sessions=0, steps=0, rebuilt=False)
        return self._file.ask(self._fill, state, nothing=nothing)

    def ask(self, question: Callable[[Any], _Result], *, nothing: _Result) -> _Result:
        """Catch up, then ask; ``nothing`` if there is no store."""
        return self._file.ask(self._fill, lambda db, _filled, _empty: question(db), nothing=nothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionQuery:
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
        """True if it leaves out nothing but probes."""
        return replace(self, probes=True) == SessionQuery()


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Sessions of the store with their totals, newest first."""

    rows: list[tuple[Session, Totals]]
    more: bool = False
    """Whether there are older ones beyond the limit."""
    probes: int = 0
    """How many were left out, up to the last one listed."""


_ENDED = "last IS NOT NULL AND NOT coalesce(broken, false)"
_OUTCOMES = {
    Outcome.OK: f"{_ENDED} AND exit_code = 0 AND NOT probe",
    Outcome.FAILED: f"{_ENDED} AND exit_code <> 0 AND NOT probe",
    Outcome.PROBE: f"{_ENDED} AND probe",
    Outcome.BROKEN: "coalesce(broken, false)",
    # Which of the two it is, only the lock on the journal tells.
    Outcome.RUNNING: "last IS NULL",
    Outcome.INTERRUPTED: "last IS NULL",
}


def find_sessions(catalog: Catalog, home: Path, wanted: SessionQuery, limit: int) -> SessionPage:
    """The sessions that the query matches, newest first: at most ``limit``, or all for 0."""
    return catalog.ask(lambda db: _found_sessions(db, home / "sessions", wanted, limit), nothing=SessionPage([]))


def _found_sessions(db: Any, sessions: Path, wanted: SessionQuery, limit: int) -> SessionPage:
    chosen: list[tuple[int, Session | None]] = []
    probes = 0
    for nr, session, is_probe in _chosen(db, sessions, wanted):
        if is_probe and not wanted.probes:
            probes += 1
            continue
        if limit and len(chosen) == limit:
            return SessionPage(_rows(db, sessions, chosen), more=True, probes=probes)
        chosen.append((nr, session))
    return SessionPage(_rows(db, sessions, chosen), probes=probes)


def _chosen(db: Any, sessions: Path, wanted: SessionQuery) -> Iterator[tuple[int, Session | None, bool]]:
    """The number of each, those that have not ended as they are now, and whether it is a probe."""
    conditions, values = _conditions(wanted)
    query = (
        f"SELECT nr, folder, last IS NULL, probe FROM sessions WHERE {' AND '.join(conditions)} "  # noqa: S608
        "ORDER BY folder DESC"
    )
    for nr, folder, unended, is_probe in db.execute(query, values).fetchall():
        if wanted.folders is not None and folder not in wanted.folders:
            continue
        session = None
        if unended:
            if (found := peek(sessions / folder)) is None:
                continue
            session = found[0]
            if wanted.outcomes and outcome_of(session) not in wanted.outcomes:
                continue
        yield nr, session, is_probe


def _conditions(wanted: SessionQuery) -> tuple[list[str], dict[str, Any]]:
    """In DuckDB's words. What is looked for travels as values, never inside the SQL."""
    conditions, values = ["true"], dict[str, Any]()
    if wanted.name is not None:
        conditions.append(_like("name", wanted.name, "name", values))
    if wanted.model is not None:
        either = " OR ".join(_like(column, wanted.model, "model", values) for column in ("model", "asked"))
        conditions.append(f"nr IN (SELECT nr FROM steps WHERE type = 'llm_call' AND ({either}))")  # noqa: S608
    if wanted.since is not None:
        conditions.append("started >= $since")
        values["since"] = wanted.since
    if wanted.outcomes:
        conditions.append("(" + " OR ".join(_OUTCOMES[outcome] for outcome in sorted(wanted.outcomes)) + ")")
    for at, (key, value) in enumerate(wanted.tags):
        values[f"key{at}"] = as_sql_text(key)
        if value is None:
            conditions.append(f"list_contains(map_keys(tags), $key{at})")
        else:
            pair = f"struct_pack(key := $key{at}, value := $value{at})"
            conditions.append(f"list_contains(map_entries(tags), {pair})")
            values[f"value{at}"] = as_sql_text(value)
    return conditions, values


def _like(column: str, text: str, parameter: str, values: dict[str, Any]) -> str:
    values[parameter] = as_sql_text(text)
    if any(sign in text for sign in "*?["):
        return f"coalesce(lower({column}) GLOB lower(${parameter}), false)"
    return f"coalesce(contains(lower({column}), lower(${parameter})), false)"


_TOTALS = f"""
    SELECT nr,
        count(*) AS steps,
        count(*) FILTER (type = 'llm_call') AS llm_calls,
        {", ".join(f"sum({name}) AS {name}" for name in TOKENS)},
        max(tokens_in) FILTER (tokens_out IS NOT NULL) AS peak_context,
        nullif(count(DISTINCT thread), 0) AS threads,
        count(*) FILTER (ending <> 'complete') AS cut,
        count(*) FILTER (outcome = 'error') AS errors,
        count(*) FILTER (retry) AS retries,
        count(*) FILTER (replayed) AS replayed,
        sum(cost) FILTER (type = 'llm_call') AS cost,
        count(*) FILTER ({_UNPRICED}) AS unpriced,
        count(*) FILTER (ending IS NULL) AS open
    FROM steps WHERE NOT telemetry AND nr IN (SELECT unnest($chosen)) GROUP BY nr
"""  # noqa: S608


_UPLOADS = "SELECT nr, count(*) FROM steps WHERE telemetry AND nr IN (SELECT unnest($chosen)) GROUP BY nr"


def _rows(db: Any, sessions: Path, chosen: Collection[tuple[int, Session | None]]) -> list[tuple[Session, Totals]]:
    numbers = {"chosen": [nr for nr, _ in chosen]}
    found = db.execute(_TOTALS, numbers)
    names = [column[0] for column in found.description]
    totals = {row[0]: dict(zip(names[1:], row[1:], strict=True)) for row in found.fetchall()}
    for nr, uploads in db.execute(_UPLOADS, numbers).fetchall():
        totals.setdefault(nr, {})["telemetry"] = uploads
    first_and_last = {
        nr: rest
        for nr, *rest in db.execute(
            "SELECT nr, folder, first, last FROM sessions WHERE nr IN (SELECT unnest($chosen))", numbers
        ).fetchall()
    }
    rows = []
    for nr, unended in chosen:
        session = unended or _session(sessions, *first_and_last[nr])
        rows.append((session, _totals(totals.get(nr, {}), session)))
    return rows


def _session(sessions: Path, folder: str, first: str | None, last: str | None) -> Session:
    """From its first and last line, as the library would read it."""
    end = end_in((last or "").encode())
    start = start_in((first or "").encode(), folder)
    status, pinned = status_of(end, running=False), is_pinned(sessions / folder)
    return Session(start=start, end=end, status=status, folder=folder, pinned=pinned)


def _totals(counted: dict[str, Any], session: Session) -> Totals:
    """Of a session that runs, an answer that has not come is not yet missing."""
    missing = counted.pop("open", 0)
    if "steps" in counted:
        counted["cut"] += missing if session.status is not Status.RUNNING else 0
        counted["cost"] = known_sum(counted["cost"], counted["unpriced"])
    return Totals(**counted)


_KEYS = {
    By.MODEL: "model",
    By.PROVIDER: "provider",
    By.DAY: "strftime(day, '%Y-%m-%d')",
    By.NAME: "sessions.name",
    By.COMMAND: "nullif(sessions.program, '')",
}
_ORDERS = {By.DAY: "grouped"}
_BY_COST = "cost DESC NULLS LAST, calls DESC, grouped"
_ONCE = "nr NOT IN (SELECT nr FROM sessions WHERE part_of IN (SELECT id FROM sessions))"
"""A program that records itself under ``rewind record`` is in the store twice, and asked once."""
_CALLS = f"type = 'llm_call' AND NOT replayed AND {_ONCE}"
_COUNTED = f"""
    count(*) AS calls,
    {", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in TOKENS)},
    sum(cost) AS cost,
    count(*) FILTER ({_UNPRICED}) AS unpriced,
    count(*) FILTER (outcome = 'error') AS errors,
    count(*) FILTER (ending IS DISTINCT FROM 'complete') AS cut,
    count(*) FILTER (retry) AS retries,
    quantile_cont(nullif(ms, 0), 0.5) FILTER (outcome = 'answered') AS ms_p50,
    quantile_cont(nullif(ms, 0), 0.95) FILTER (outcome = 'answered') AS ms_p95,
    quantile_cont(nullif(first_ms, 0), 0.5) FILTER (outcome = 'answered') AS first_ms_p50
"""


def report(
    catalog: Catalog, *, by: By, first: date | None, last: date, served_again: Iterable[ServedAgain] = ()
) -> Report:
    """What the steps come to from the first day on, or all of them; days are those of UTC."""
    nothing = Report(by=by, first=first, last=last)
    return catalog.ask(lambda db: _report(db, by, first, last, served_again), nothing=nothing)


def _report(db: Any, by: By, first: date | None, last: date, served_again: Iterable[ServedAgain]) -> Report:
    within = "true" if first is None else "day >= $first"
    values = {} if first is None else {"first": first}
    groups = _groups(db, by, within, values)
    everything = f"SELECT NULL AS grouped, {_COUNTED} FROM steps WHERE {_CALLS} AND {within}"  # noqa: S608
    (total,) = _figures(db.execute(everything, values))
    days = db.execute(
        f"SELECT day, count(*), sum(cost) FROM steps WHERE {_CALLS} AND {within} AND day IS NOT NULL "  # noqa: S608
        "GROUP BY day ORDER BY day",
        values,
    ).fetchall()
    sessions, other_steps, telemetry = db.execute(
        f"SELECT count(DISTINCT nr) FILTER ({_CALLS}), count(*) FILTER (type IS DISTINCT FROM 'llm_call' "  # noqa: S608
        "AND NOT telemetry), count(*) FILTER (telemetry) "
        f"FROM steps WHERE {_ONCE} AND {within}",
        values,
    ).fetchone()
    (damaged,) = db.execute(
        "SELECT coalesce(sum(damaged), 0) FROM sessions WHERE started >= coalesce($began, started)",
        {"began": _began(first)},
    ).fetchone()
    return Report(
        by=by,
        first=first,
        last=last,
        damaged_lines=int(damaged),
        sessions=sessions,
        other_steps=other_steps,
        telemetry=telemetry,
        groups=tuple(groups),
        total=total.figures,
        days=tuple(Day(*row) for row in days),
        saved=_saved(db, first, served_again),
    )


def _began(first: date | None) -> float | None:
    return None if first is None else datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp()


def _groups(db: Any, by: By, within: str, values: dict[str, Any]) -> list[Group]:
    joined = "JOIN sessions USING (nr)" if by in (By.NAME, By.COMMAND) else ""
    return _figures(
        db.execute(
            f"SELECT {_KEYS[by]} AS grouped, {_COUNTED} FROM steps {joined} WHERE {_CALLS} AND {within} "  # noqa: S608
            f"GROUP BY grouped ORDER BY {_ORDERS.get(by, _BY_COST)}",
            values,
        )
    )


def _figures(found: Any) -> list[Group]:
    names = [column[0] for column in found.description][1:]
    return [Group(key, Figures(**dict(zip(names, counted, strict=True)))) for key, *counted in found.fetchall()]


def _saved(db: Any, first: date | None, served_again: Iterable[ServedAgain]) -> Saved:
    """What the recorded calls cost that were not made again. A session that is gone takes its part along."""
    began = _began(first)
    times = Counter((served.session, served.step) for served in served_again if began is None or served.ts >= began)
    if not times:
        return Saved()
    calls, tokens_in, tokens_out, cost, unpriced = db.execute(
        f"""
        SELECT sum(times), coalesce(sum(times * tokens_in), 0), coalesce(sum(times * tokens_out), 0),
            sum(times * cost), sum(times) FILTER ({_UNPRICED})
        FROM (SELECT unnest($sessions) AS id, unnest($steps) AS step, unnest($times) AS times) AS served
        JOIN (SELECT id, max(nr) AS nr FROM sessions GROUP BY id) USING (id)
        JOIN steps USING (nr, step)
        WHERE type = 'llm_call'
        """,  # noqa: S608
        {
            "sessions": [session for session, _ in times],
            "steps": [step for _, step in times],
            "times": list(times.values()),
        },
    ).fetchone()
    return Saved(calls=calls or 0, tokens_in=tokens_in, tokens_out=tokens_out, cost=cost, unpriced=unpriced or 0)
