"""DuckDB over all journals, for questions that cross sessions. Derived: at any doubt it is deleted and built again.

DuckDB lets in either one writer or some readers, so every use holds a lock and is short. New journal lines are
brought in through one temporary file that DuckDB reads in one go; thousands of small files would take it minutes.
"""

import fcntl
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rewind.errors import EnvironmentProblem
from rewind.store.files import check_home, open_private, reason
from rewind.store.rows import ANSWER, COLUMNS, SESSION, STEP, journal_sizes, new_rows

_VERSION = 1
# The defaults would fetch native code over the network at run time.
_SHUT = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
_LOCKED = {**_SHUT, "enable_external_access": "false", "lock_configuration": "true"}
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogState:
    """How much the catalog knows."""

    sessions: int
    steps: int
    rebuilt: bool


class Catalog:
    """The tables ``sessions`` and ``steps``."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / "catalog.duckdb"

    def catch_up(self) -> CatalogState:
        """Bring in what the journals have that the catalog has not."""
        if not check_home(self._home):
            return CatalogState(sessions=0, steps=0, rebuilt=False)
        with self._lock():
            return self._surely(self._load)

    def sql(self, query: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Ask the catalog as it is. The query can read nothing but the catalog."""
        if not check_home(self._home):
            with closing(_connect(":memory:", _SHUT)) as empty:
                _create(empty)
                return _rows(empty, query, params)
        with self._lock():
            return self._surely(lambda afresh: self._ask(query, params, afresh=afresh), asking=True)

    def _ask(self, query: str, params: Sequence[object], *, afresh: bool) -> list[tuple[Any, ...]]:
        if afresh or not self._is_usable():
            self._load(True)
        with closing(_connect(str(self._path), _LOCKED, read_only=True)) as db:
            return _rows(db, query, params)

    def _is_usable(self) -> bool:
        if not self._path.exists():
            return False
        with closing(_connect(str(self._path), _LOCKED, read_only=True)) as db:
            return _is_current(db)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """One process at a time; the others wait."""
        old = os.umask(0o077)  # DuckDB makes its files itself
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(self._home / "catalog.lock", flags, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                yield
            finally:
                os.close(fd)
        except OSError as error:
            raise EnvironmentProblem(f"Cannot keep a catalog in {self._home}: {reason(error)}.") from error
        finally:
            os.umask(old)

    def _surely(self, work: Callable[[bool], _Result], *, asking: bool = False) -> _Result:
        """Do it; if DuckDB doubts its file, do it once more with a new one. A question that is wrong stays wrong."""
        import duckdb  # half a second to load, and only questions across sessions need it

        wrong_question = (
            duckdb.ProgrammingError,
            duckdb.DataError,
            duckdb.NotSupportedError,
            duckdb.PermissionException,
        )
        for afresh in (False, True):
            try:
                return work(afresh)
            except duckdb.Error as error:
                if asking and isinstance(error, wrong_question):
                    raise
                why = str(error)
                for leftover in (self._path, self._path.with_suffix(".duckdb.wal")):
                    leftover.unlink(missing_ok=True)
        raise EnvironmentProblem(f"DuckDB cannot keep a catalog in {self._home}: {why.splitlines()[0]}")

    def _load(self, rebuilt: bool) -> CatalogState:
        rebuilt = rebuilt or not self._path.exists()
        with closing(_connect(str(self._path), _SHUT)) as db:
            if not _is_current(db):
                _create(db)
                rebuilt = True
            self._bring_in(db)
            sessions, steps = db.execute(
                "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM steps)"
            ).fetchone()
        return CatalogState(sessions=sessions, steps=steps, rebuilt=rebuilt)

    def _bring_in(self, db: Any) -> None:
        known: dict[str, int] = dict(db.execute("SELECT folder, read_to FROM sessions").fetchall())
        sizes = journal_sizes(self._home / "sessions")
        # A journal only grows; one that shrank is another one.
        stale = [folder for folder, read_to in known.items() if sizes.get(folder, -1) < read_to]
        grown = [folder for folder, size in sizes.items() if folder in stale or size > known.get(folder, 0)]
        if not stale and not grown:
            return
        fresh = self._home / f".catalog-{secrets.token_hex(8)}.ndjson"
        fd = open_private(fresh, os.O_WRONLY)
        try:
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                for folder in grown:
                    start = 0 if folder in stale else known.get(folder, 0)
                    for row in new_rows(self._home / "sessions" / folder, start):
                        file.write(json.dumps(row) + "\n")
            _insert(db, fresh, stale)
        finally:
            fresh.unlink(missing_ok=True)


def _connect(path: str, config: dict[str, str], *, read_only: bool = False) -> Any:
    import duckdb  # half a second to load, and only questions across sessions need it

    return duckdb.connect(path, read_only=read_only, config=dict(config))


def _rows(db: Any, query: str, params: Sequence[object]) -> list[tuple[Any, ...]]:
    return list(db.execute(query, list(params)).fetchall())


def _is_current(db: Any) -> bool:
    found = db.execute(
        "SELECT count(*) FROM information_schema.tables WHERE table_name = 'catalog'"
    ).fetchone()
    return bool(found[0]) and db.execute("SELECT max(version) FROM catalog").fetchone()[0] == _VERSION


def _create(db: Any) -> None:
    for table, columns in (("sessions", SESSION), ("steps", STEP), ("catalog", {"version": "BIGINT"})):
        listed = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
        db.execute(f"CREATE OR REPLACE TABLE {table} ({listed})")
    db.execute("INSERT INTO catalog VALUES (?)", [_VERSION])


def _insert(db: Any, rows: Path, stale: list[str]) -> None:
    """All of it or nothing: a catalog never knows half a catch-up. Names here are ours, not recorded ones."""
    # The reader takes patterns; a bracket makes every other sign stand for itself.
    path = re.sub(r"([*?\[])", r"[\1]", str(rows)).replace("'", "''")
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS.items())
    session, step = (", ".join(f'"{name}"' for name in names) for names in (SESSION, STEP))
    answer = ", ".join(f'"{name}" = fresh."{name}"' for name in ANSWER)
    same = "steps.folder = fresh.folder AND steps.step = fresh.step"
    db.execute("BEGIN")
    if stale:
        for table in ("sessions", "steps"):
            db.execute(f"DELETE FROM {table} WHERE folder IN (SELECT unnest(?))", [stale])  # noqa: S608
    for statement in (
        f"CREATE TEMP TABLE fresh AS SELECT * FROM "  # noqa: S608
        f"read_json('{path}', format = 'newline_delimited', columns = {{{columns}}})",
        f"INSERT INTO sessions SELECT {session} FROM fresh WHERE \"row\" = 'session'",  # noqa: S608
        f"INSERT INTO steps SELECT {step} FROM fresh WHERE \"row\" = 'step'",  # noqa: S608
        f"UPDATE steps SET {answer}, model = coalesce(fresh.model, steps.model) "  # noqa: S608
        f"FROM fresh WHERE fresh.\"row\" = 'answer' AND {same}",
        "UPDATE sessions SET ended = fresh.ended, exit_code = fresh.exit_code, broken = fresh.broken "
        "FROM fresh WHERE fresh.\"row\" = 'end' AND sessions.folder = fresh.folder",
        "UPDATE sessions SET read_to = fresh.read_to "
        "FROM fresh WHERE fresh.\"row\" = 'read' AND sessions.folder = fresh.folder",
        "DROP TABLE fresh",
        "COMMIT",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        db.execute(statement)
