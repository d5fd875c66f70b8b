"""Brings into the catalog what is new in the journals.

New sessions come through temporary files that DuckDB reads in one go; thousands of small files would take it
minutes. It reads one batch while Python prices the batch before and copies the next. A session that has grown is
read anew, so that its rows are always those of one look at its journal.
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from rewind.dataclass import dataclass
from rewind.model.step import OTHER_ENDING, OUTCOMES, OutcomeRow, StepOutcome
from rewind.pricing.spending import Pricing, cost_of_call
from rewind.providers.telemetry import PLAIN_HTTP, rules_fingerprint, upload_row
from rewind.store.catalog.rows import LINE, SESSION, Copier
from rewind.store.derived import Row, as_sql_path, json_rows
from rewind.store.files import Progress, journal_size, make_private_folder, open_private, session_folders
from rewind.store.journal.records import as_counts

_BATCH = 32 * 1024 * 1024
"""Bytes of journals that are brought in at once."""
_SESSIONS_AT_ONCE = 1000

_COSTS = {"nr": "INTEGER", "step": "BIGINT", "cost": "DOUBLE"}
"""The columns of the lines."""
_PRICEABLE = """
    SELECT coalesce(host, '') AS host, coalesce(target, '/') AS target, coalesce(provider, '') AS provider,
        asked, model, coalesce(tier, '') AS tier,
        list(nr), list(step), list(coalesce(ts, 0.0)),
        list(tokens_in), list(tokens_out), list(cache_read), list(cache_write), list(reasoning), list("usage")
    FROM steps
    WHERE type = 'llm_call' AND NOT replayed
        AND (tokens_in IS NOT NULL OR tokens_out IS NOT NULL OR "usage" IS NOT NULL)
        AND {chosen}
    GROUP BY ALL
"""
"""The steps that may have cost something, those together that have the same price list."""


class FingerprintedPricing(Pricing, Protocol):
    """Prices that differ from others by their fingerprint: :class:`rewind.pricing.prices.Prices`."""

    @property
    def fingerprint(self) -> str: ...


@dataclass(frozen=True, slots=True)
class _Batch:
    """Journals copied for DuckDB."""

    lines: Path
    sessions: Path
    first: int
    """The number of its first session."""
    last: int


def fill(db: Any, home: Path, prices: FingerprintedPricing | None, on_progress: Progress) -> None:
    """All of it or nothing: a catalog never knows half a catch-up. Without prices, costs wait for the next one."""
    fresh, gone = _changes(db, home)
    stale = prices is not None and _is_by_others(db, "prices", prices.fingerprint)
    rules = rules_fingerprint()
    if not (fresh or gone or stale or _is_by_others(db, "uploads", rules)):
        return
    with _scratch(home) as scratch:
        costs = scratch / "costs"
        db.execute("BEGIN")
        for table in ("sessions", "steps") if gone else ():
            db.execute(f"DELETE FROM {table} WHERE nr IN (SELECT unnest(?))", [gone])  # noqa: S608
        with _new_file(costs) as file:
            if prices is not None and stale:
                for calls in _to_price_again(db, prices.fingerprint):
                    file.writelines(_cost_lines(prices, calls))
            for calls in _brought_in(db, _copied(db, home, scratch, fresh, on_progress)):
                if prices is not None:
                    file.writelines(_cost_lines(prices, calls))
        if prices is not None:
            _set_costs(db, costs, prices.fingerprint)
        _mark_telemetry(db, rules)
        db.execute("COMMIT")


def _changes(db: Any, home: Path) -> tuple[list[str], list[int]]:
    """The folders to be read, oldest first, and the numbers of the sessions to be forgotten."""
    # Who has ended writes no more, so their journals need not even be looked at.
    query = "SELECT folder, nr, CASE WHEN last IS NULL THEN size END FROM sessions"
    known = {folder: (nr, size) for folder, nr, size in db.execute(query).fetchall()}
    there = session_folders(home)
    fresh = []
    for folder in there:
        _, size = known.get(folder, (0, -1))
        if size is not None and size != journal_size(home, folder):
            fresh.append(folder)
    left = (known.keys() - set(there)) | (known.keys() & set(fresh))
    return fresh, [known[folder][0] for folder in left]


def _copied(db: Any, home: Path, scratch: Path, folders: list[str], on_progress: Progress) -> Iterator[_Batch]:
    """The journals of those folders, in files for DuckDB."""
    (number,) = db.execute("SELECT coalesce(max(nr), 0) FROM sessions").fetchone()
    waiting = iter(enumerate(folders, number + 1))
    done = 0
    while done < len(folders):
        first = number + 1 + done
        batch = _Batch(scratch / f"lines-{first}", scratch / f"sessions-{first}", first, 0)
        with _new_file(batch.lines) as lines, _new_file(batch.sessions) as sessions:
            copier = Copier(lines)
            for nr, folder in waiting:
                on_progress(done, len(folders))
                done += 1
                if (row := copier.copy(home / "sessions" / folder, nr)) is not None:
                    sessions.write(json.dumps(row).encode() + b"\n")
                if copier.copied >= _BATCH:
                    break
        yield replace(batch, last=number + done)
    on_progress(done, len(folders))


def _brought_in(db: Any, batches: Iterator[_Batch]) -> Iterator[list[Row]]:
    """The calls of each batch that may have a price, as :data:`_PRICEABLE` has them."""
    from concurrent.futures import Future, ThreadPoolExecutor  # lazily: mostly there is nothing new

    with ThreadPoolExecutor(max_workers=1) as aside:
        under_way: Future[list[Row]] | None = None
        for batch in batches:
            calls = under_way.result() if under_way is not None else []
            under_way = aside.submit(_insert, db, batch)
            yield calls
        if under_way is not None:
            yield under_way.result()


def _insert(db: Any, batch: _Batch) -> list[Row]:
    """Names in these queries are ours, not recorded ones."""
    session = ", ".join(f'"{name}"' for name in SESSION)
    either = ", ".join(f'any_value("{name}") AS "{name}"' for name in _IN_EITHER_LINE)
    arrived = json_rows(batch.sessions, SESSION | _RUN, lenient=True)
    for statement in (
        f"CREATE OR REPLACE TEMP TABLE arrived AS SELECT * FROM {arrived}",  # noqa: S608
        f"INSERT INTO sessions SELECT {session} FROM arrived",  # noqa: S608
        # The two lines of a step meet by its number. Few of their fields have the same name.
        f"""
        CREATE OR REPLACE TEMP TABLE paired AS
        SELECT *, {_OUTCOME} AS outcome FROM (
        SELECT run, step, {either},
            any_value(ts) FILTER (kind IN ('request', 'asked') AND abs(ts) < 1e12) AS ts,
            any_value(model) FILTER (kind = 'request') AS asked,
            any_value(model) FILTER (kind IN ('step', 'cut')) AS answered,
            CASE WHEN count_if(kind NOT IN ('request', 'asked')) > 0
                THEN coalesce(any_value(ending), 'complete') END AS ending,
            any_value(ms) FILTER (abs(ms) < 1e12) AS ms,
            any_value(first_ms) FILTER (abs(first_ms) < 1e12) AS first_ms,
            count(tape) > 0 AS replayed
        FROM {json_rows(batch.lines, LINE, lenient=True)}
        WHERE kind IN ('request', 'asked', 'step', 'cut', 'answered') AND step IS NOT NULL
        GROUP BY run, step
        HAVING count_if(kind IN ('request', 'asked')) > 0)
        """,  # noqa: S608
        # The rule of conversation/retries.py: the last word on the same request was a failure. Few are asked twice.
        f"""
        CREATE OR REPLACE TEMP TABLE retried AS
        WITH attempts AS (
            SELECT run, step, key, coalesce(paired.ts, 0.0) AS began, began + ms / 1000 AS ended,
                outcome IN {_FAILED} AS failed
            FROM paired SEMI JOIN (SELECT run, key FROM paired GROUP BY ALL HAVING count(*) > 1) USING (run, key)
        )
        SELECT attempt.run, attempt.step
        FROM attempts AS attempt ASOF JOIN (
            SELECT run, key, ended, arg_max(failed, step) AS failed FROM attempts GROUP BY run, key, ended
        ) AS word ON attempt.run = word.run AND attempt.key = word.key AND attempt.began > word.ended
        WHERE word.failed
        """,  # noqa: S608
        """
        INSERT INTO steps BY NAME
        SELECT paired.* EXCLUDE (run, key, asked, answered), arrived.nr,
            coalesce(answered, paired.asked) AS model,
            nullif(paired.asked, model) AS asked,
            CASE WHEN abs(ts) < 1e11 THEN make_timestamp(CAST(ts * 1e6 AS BIGINT))::DATE END AS day,
            retried.step IS NOT NULL AS retry,
            false AS telemetry,
            CASE WHEN replayed THEN 0.0 END AS cost
        FROM paired JOIN arrived USING (run)
            LEFT JOIN retried ON retried.run = paired.run AND retried.step = paired.step
        ORDER BY nr, paired.step
        """,
    ):
        db.execute(statement)
    batch.lines.unlink()
    return _calls(db, "nr BETWEEN ? AND ?", [batch.first, batch.last])


def outcome_sql() -> str:
    """:data:`rewind.model.step.OUTCOMES` as SQL over the columns ``ending``, ``status`` and ``error``."""

    def cases(row: OutcomeRow) -> str:
        return (
            f"CASE WHEN error IS NOT NULL OR status >= 400 THEN '{row.error}' "
            f"WHEN status IS NULL THEN '{row.no_status}' ELSE '{row.good_status}' END"
        )

    known = " ".join(f"WHEN '{ending}' THEN {cases(row)}" for ending, row in OUTCOMES.items() if ending)
    recorded = f"CASE ending {known} ELSE {cases(OTHER_ENDING)} END"
    return f"CASE WHEN ending IS NULL THEN {cases(OUTCOMES[None])} ELSE {recorded} END"


_OUTCOME = outcome_sql()
_FAILED = tuple(outcome.value for outcome in StepOutcome if outcome.failed)
_RUN = {"run": "VARCHAR"}
"""By what the lines of a session are known; see :class:`Copier`."""
_IN_EITHER_LINE = (
    "type", "provider", "method", "host", "target", "thread", "key", "status", "error", "tokens_in", "tokens_out",
    "cache_read", "cache_write", "reasoning", "tier", "usage",
)  # fmt: skip


def _is_by_others(db: Any, rules: str, fingerprint: str) -> bool:
    """Whether what some session has was worked out by other prices, or other rows of telemetry, than these."""
    query = f"SELECT count(*) FROM sessions WHERE {rules} IS DISTINCT FROM ?"  # noqa: S608
    return bool(db.execute(query, [fingerprint]).fetchone()[0])


def _mark_telemetry(db: Any, rules: str) -> None:
    """By the same function that everybody asks, once for each address."""
    others = "nr IN (SELECT nr FROM sessions WHERE uploads IS DISTINCT FROM ?)"
    address = "coalesce(method, ''), coalesce(host, ''), split_part(coalesce(target, '/'), '?', 1)"
    plain = f"provider = '{PLAIN_HTTP}' AND {others}"
    found = db.execute(f"SELECT DISTINCT {address} FROM steps WHERE {plain}", [rules]).fetchall()  # noqa: S608
    uploads = [list(row) for row in found if upload_row(*row) is not None]
    db.execute(f"UPDATE steps SET telemetry = false WHERE telemetry AND {plain}", [rules])  # noqa: S608
    if uploads:
        marked = f"UPDATE steps SET telemetry = true WHERE list_contains(?, [{address}]) AND {plain}"  # noqa: S608
        db.execute(marked, [uploads, rules])
    db.execute("UPDATE sessions SET uploads = $1 WHERE uploads IS DISTINCT FROM $1", [rules])


def _to_price_again(db: Any, fingerprint: str) -> Iterator[list[Row]]:
    """The calls whose cost is by other prices than these, or by none yet."""
    others = "nr IN (SELECT nr FROM sessions WHERE prices IS DISTINCT FROM ?)"
    db.execute(f"UPDATE steps SET cost = NULL WHERE NOT replayed AND {others}", [fingerprint])  # noqa: S608
    (last,) = db.execute("SELECT coalesce(max(nr), 0) FROM sessions").fetchone()
    for first in range(1, last + 1, _SESSIONS_AT_ONCE):
        numbers = [first, first + _SESSIONS_AT_ONCE - 1]
        yield _calls(db, f"nr BETWEEN ? AND ? AND {others}", [*numbers, fingerprint])


def _calls(db: Any, chosen: str, values: list[object]) -> list[Row]:
    calls: list[Row] = db.execute(_PRICEABLE.format(chosen=chosen), values).fetchall()
    return calls


def _set_costs(db: Any, costs: Path, fingerprint: str) -> None:
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in _COSTS.items())
    db.execute(
        "UPDATE steps SET cost = priced.cost FROM "  # noqa: S608
        f"read_csv('{as_sql_path(costs)}', header = false, auto_detect = false, columns = {{{columns}}}) AS priced "
        "WHERE steps.nr = priced.nr AND steps.step = priced.step"
    )
    db.execute("UPDATE sessions SET prices = $1 WHERE prices IS DISTINCT FROM $1", [fingerprint])


class _RefilledUsage:
    """A usage that is filled anew for each call: to make so many values would take as long as to price them."""

    __slots__ = ("cache_read", "cache_write", "input", "more", "output", "reasoning", "tier")


def _cost_lines(prices: Pricing, groups: Iterable[Row]) -> Iterator[bytes]:
    """``nr,step,cost`` for each call that has a price: by the model that answered, or else by the one asked for."""
    usage: Any = _RefilledUsage()
    for host, target, provider, asked, model, usage.tier, *columns in groups:
        models = (model,) if asked is None else (model, asked)
        lines = []
        for nr, step, ts, *counts, more in zip(*columns, strict=True):
            usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning = counts
            usage.more = _counts(more) if more else {}
            cost = cost_of_call(prices, models, host=host, target=target, provider=provider, usage=usage, ts=ts)
            if cost is not None:
                lines.append(f"{nr},{step},{cost!r}\n")
        yield "".join(lines).encode()


def _counts(text: str) -> dict[str, int]:
    """The rarer kinds of tokens, from their JSON."""
    try:
        return as_counts(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _new_file(path: Path) -> BinaryIO:
    return os.fdopen(open_private(path, os.O_WRONLY), "wb")


@contextmanager
def _scratch(home: Path) -> Iterator[Path]:
    """A private folder that is gone afterwards."""
    folder = home / f".catalog-{secrets.token_hex(8)}"
    make_private_folder(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
