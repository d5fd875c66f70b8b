"""The figures of all sessions, asked of the catalog in one round."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

from rewind.pricing.report import By, Day, Figures, Group, Report, Saved
from rewind.store.catalog.catalog import Catalog
from rewind.store.catalog.costs import UNPRICED
from rewind.store.replays import ServedAgain

_KEYS = {
    By.MODEL: "model",
    By.PROVIDER: "provider",
    By.DAY: "strftime(day, '%Y-%m-%d')",
    By.NAME: "sessions.name",
    By.COMMAND: "nullif(sessions.program, '')",
}
_ORDERS = {By.DAY: "grouped"}
_BY_COST = "cost DESC NULLS LAST, calls DESC, grouped"
_CALLS = "type = 'llm_call' AND NOT replayed"
_COUNTED = f"""
    count(*) AS calls,
    coalesce(sum(tokens_in), 0) AS tokens_in,
    coalesce(sum(cache_read), 0) AS cache_read,
    coalesce(sum(cache_write), 0) AS cache_write,
    coalesce(sum(tokens_out), 0) AS tokens_out,
    coalesce(sum(reasoning), 0) AS reasoning,
    sum(cost) AS cost,
    count(*) FILTER ({UNPRICED}) AS unpriced,
    count(*) FILTER (outcome = 'error') AS errors,
    count(*) FILTER (ending IS DISTINCT FROM 'complete') AS cut,
    count(*) FILTER (retry) AS retries,
    quantile_cont(ms, 0.5) FILTER (outcome = 'answered') AS ms_p50,
    quantile_cont(ms, 0.95) FILTER (outcome = 'answered') AS ms_p95,
    quantile_cont(first_ms, 0.5) FILTER (outcome = 'answered') AS first_ms_p50
"""


def report(
    catalog: Catalog, *, by: By, first: date | None, last: date, served_again: Iterable[ServedAgain] = ()
) -> Report:
    """Of the steps from the first day on, or of all; days are those of UTC."""
    nothing = Report(by=by, first=first, last=last)
    return catalog.asked(lambda db: _report(db, by, first, last, served_again), nothing=nothing)


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
    sessions, other_steps = db.execute(
        f"SELECT count(DISTINCT nr) FILTER ({_CALLS}), count(*) FILTER (type IS DISTINCT FROM 'llm_call') "  # noqa: S608
        f"FROM steps WHERE {within}",
        values,
    ).fetchone()
    return Report(
        by=by,
        first=first,
        last=last,
        sessions=sessions,
        other_steps=other_steps,
        groups=tuple(groups),
        total=total.figures,
        days=tuple(Day(*row) for row in days),
        saved=_saved(db, first, served_again),
    )


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
    return [
        Group(key, Figures(**dict(zip(names, counted, strict=True)))) for key, *counted in found.fetchall()
    ]


def _saved(db: Any, first: date | None, served_again: Iterable[ServedAgain]) -> Saved:
    """What the recorded calls cost that were not made again. A session that is gone takes its part along."""
    began = None if first is None else datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp()
    times = Counter(
        (served.session, served.step) for served in served_again if began is None or served.ts >= began
    )
    if not times:
        return Saved()
    calls, tokens_in, tokens_out, cost, unpriced = db.execute(
        f"""
        SELECT sum(times), coalesce(sum(times * tokens_in), 0), coalesce(sum(times * tokens_out), 0),
            sum(times * cost), sum(times) FILTER ({UNPRICED})
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
    return Saved(
        calls=calls or 0, tokens_in=tokens_in, tokens_out=tokens_out, cost=cost, unpriced=unpriced or 0
    )
