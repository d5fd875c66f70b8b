"""Sessions by what is asked of them, with their totals, out of the catalog."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from rewind.model.outcome import Outcome, outcome_of
from rewind.model.session import Session, Status
from rewind.pricing.spending import known_sum
from rewind.store.catalog.catalog import Catalog
from rewind.store.catalog.costs import UNPRICED
from rewind.store.catalog.filters import Listed, Wanted
from rewind.store.journal.reader import end_in, peek, start_in, status_of
from rewind.store.journal.totals import Totals

# A quotation mark inside a text is escaped there, so that no text reads like this.
_PROBE = "contains(coalesce(first, ''), '\"probe\":true')"
_ENDED = "last IS NOT NULL AND NOT coalesce(broken, false)"
_OUTCOMES = {
    Outcome.OK: f"{_ENDED} AND exit_code = 0 AND NOT {_PROBE}",
    Outcome.FAILED: f"{_ENDED} AND exit_code <> 0 AND NOT {_PROBE}",
    Outcome.PROBE: f"{_ENDED} AND {_PROBE}",
    Outcome.BROKEN: "coalesce(broken, false)",
    # Which of the two it is, only the lock on the journal tells.
    Outcome.RUNNING: "last IS NULL",
    Outcome.INTERRUPTED: "last IS NULL",
}


def listed(catalog: Catalog, home: Path, wanted: Wanted, limit: int) -> Listed:
    """At most that many; 0 for all."""
    return catalog.asked(lambda db: _listed(db, home / "sessions", wanted, limit), nothing=Listed([]))


def _listed(db: Any, sessions: Path, wanted: Wanted, limit: int) -> Listed:
    chosen: list[tuple[int, Session | None]] = []
    probes = 0
    for nr, session, is_probe in _chosen(db, sessions, wanted):
        if is_probe and not wanted.probes:
            probes += 1
            continue
        if limit and len(chosen) == limit:
            return Listed(_rows(db, chosen), more=True, probes=probes)
        chosen.append((nr, session))
    return Listed(_rows(db, chosen), probes=probes)


def _chosen(db: Any, sessions: Path, wanted: Wanted) -> Iterator[tuple[int, Session | None, bool]]:
    """The number of each, those that have not ended as they are now, and whether it is a probe."""
    conditions, values = _conditions(wanted)
    query = (
        f"SELECT nr, folder, last IS NULL, {_PROBE} FROM sessions WHERE {' AND '.join(conditions)} "  # noqa: S608
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


def _conditions(wanted: Wanted) -> tuple[list[str], dict[str, Any]]:
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
        values[f"key{at}"] = _plain(key)
        if value is None:
            conditions.append(f"list_contains(map_keys(tags), $key{at})")
        else:
            pair = f"struct_pack(key := $key{at}, value := $value{at})"
            conditions.append(f"list_contains(map_entries(tags), {pair})")
            values[f"value{at}"] = _plain(value)
    return conditions, values


def _like(column: str, text: str, parameter: str, values: dict[str, Any]) -> str:
    values[parameter] = _plain(text)
    if any(sign in text for sign in "*?["):
        return f"coalesce(lower({column}) GLOB lower(${parameter}), false)"
    return f"coalesce(contains(lower({column}), lower(${parameter})), false)"


def _plain(text: str) -> str:
    """Arguments may hold bytes that are no text; no session is called so."""
    return text.encode(errors="replace").decode()


_TOTALS = f"""
    SELECT nr,
        count(*) AS steps,
        count(*) FILTER (type = 'llm_call') AS llm_calls,
        sum(tokens_in) AS tokens_in,
        sum(tokens_out) AS tokens_out,
        sum(cache_read) AS cache_read,
        sum(cache_write) AS cache_write,
        sum(reasoning) AS reasoning,
        max(tokens_in) FILTER (tokens_out IS NOT NULL) AS peak_context,
        nullif(count(DISTINCT thread), 0) AS threads,
        count(*) FILTER (ending <> 'complete') AS cut,
        count(*) FILTER (outcome = 'error') AS errors,
        count(*) FILTER (retry) AS retries,
        count(*) FILTER (replayed) AS replayed,
        sum(cost) FILTER (type = 'llm_call') AS cost,
        count(*) FILTER ({UNPRICED}) AS unpriced,
        count(*) FILTER (ending IS NULL) AS open
    FROM steps WHERE nr IN (SELECT unnest($chosen)) GROUP BY nr
"""  # noqa: S608


def _rows(db: Any, chosen: Collection[tuple[int, Session | None]]) -> list[tuple[Session, Totals]]:
    numbers = {"chosen": [nr for nr, _ in chosen]}
    found = db.execute(_TOTALS, numbers)
    names = [column[0] for column in found.description]
    totals = {row[0]: dict(zip(names[1:], row[1:], strict=True)) for row in found.fetchall()}
    first_and_last = {
        nr: rest
        for nr, *rest in db.execute(
            "SELECT nr, folder, first, last FROM sessions WHERE nr IN (SELECT unnest($chosen))", numbers
        ).fetchall()
    }
    rows = []
    for nr, unended in chosen:
        session = unended or _session(*first_and_last[nr])
        rows.append((session, _totals(totals.get(nr, {}), session)))
    return rows


def _session(folder: str, first: str | None, last: str | None) -> Session:
    """From its first and last line, as the library would read it."""
    end = end_in((last or "").encode())
    start = start_in((first or "").encode(), folder)
    return Session(start=start, end=end, status=status_of(end, running=False), folder=folder)


def _totals(counted: dict[str, Any], session: Session) -> Totals:
    """Of a session that runs, an answer that has not come is not yet missing."""
    missing = counted.pop("open", 0)
    if session.status is not Status.RUNNING and counted:
        counted["cut"] += missing
    if counted:
        counted["cost"] = known_sum(counted["cost"], counted["unpriced"])
    return Totals(**counted)
