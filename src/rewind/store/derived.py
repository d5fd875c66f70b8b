"""A DuckDB file that is made from the sessions and can be thrown away: opened, locked, doubted and built again.

DuckDB lets in either one writer or some readers, so every use holds a lock and is short. At any doubt (another
version, a checksum error) the file is deleted and filled anew.
"""

import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from rewind.errors import EnvironmentProblem
from rewind.store.files import check_home, reason

# The defaults would fetch native code over the network at run time.
_SHUT = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
_LOCKED = {**_SHUT, "enable_external_access": "false", "lock_configuration": "true"}
_Result = TypeVar("_Result")

Columns = Mapping[str, str]
Row = tuple[Any, ...]


class Derived:
    """One such file, with the tables it must have."""

    def __init__(self, home: Path, name: str, *, version: int, tables: Mapping[str, Columns]) -> None:
        self._home = home
        self._path = home / f"{name}.duckdb"
        self._lock_path = home / f"{name}.lock"
        self._version = version
        self._tables = tables

    def write(self, fill: Callable[[Any], _Result]) -> tuple[_Result, bool] | None:
        """What ``fill`` makes of the open database, and whether it was empty; ``None`` where there is no store."""
        if not check_home(self._home):
            return None

        def work(afresh: bool) -> tuple[_Result, bool]:
            with closing(_connect(str(self._path), _SHUT)) as db:
                empty = afresh or not self._is_current(db)
                if empty:
                    self._create(db)
                return fill(db), empty

        with self._lock():
            return self._surely(work)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """One process at a time; the others wait."""
        old = os.umask(0o077)  # DuckDB makes its files itself
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(self._lock_path, flags, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                yield
            finally:
                os.close(fd)
        except OSError as error:
            raise EnvironmentProblem(
                f"Cannot keep {self._path.name} in {self._home}: {reason(error)}."
            ) from error
        finally:
            os.umask(old)

    def _surely(self, work: Callable[[bool], _Result]) -> _Result:
        """Do it; if DuckDB doubts its file, do it once more with a new one."""
        import duckdb  # a fifth of a second to load, and only questions across sessions need it

        for afresh in (False, True):
            try:
                return work(afresh)
            except RuntimeError as stopped:
                if str(stopped) == "Query interrupted":  # what DuckDB makes of Ctrl-C
                    raise KeyboardInterrupt from stopped
                raise
            except duckdb.Error as error:
                why = str(error)
                for leftover in (self._path, self._path.with_suffix(".duckdb.wal")):
                    leftover.unlink(missing_ok=True)
        raise EnvironmentProblem(
            f"DuckDB cannot keep {self._path.name} in {self._home}: {why.splitlines()[0]}"
        )

    def _is_current(self, db: Any) -> bool:
        found = db.execute(
            "SELECT count(*) FROM information_schema.tables WHERE table_name = 'made_as'"
        ).fetchone()
        return (
            bool(found[0]) and db.execute("SELECT max(version) FROM made_as").fetchone()[0] == self._version
        )

    def _create(self, db: Any) -> None:
        for table, columns in (*self._tables.items(), ("made_as", {"version": "BIGINT"})):
            listed = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            db.execute(f"CREATE OR REPLACE TABLE {table} ({listed})")
        db.execute("INSERT INTO made_as VALUES (?)", [self._version])


def as_sql_path(path: Path) -> str:
    """A file's name inside a query. The readers take patterns; a bracket makes every sign stand for itself."""
    return re.sub(r"([*?\[])", r"[\1]", str(path)).replace("'", "''")


def shut_doors(db: Any) -> None:
    """From here on the connection can read and write nothing but its own file."""
    db.execute("SET enable_external_access = false")
    db.execute("SET lock_configuration = true")


def _connect(path: str, config: Mapping[str, str], *, read_only: bool = False) -> Any:
    import duckdb  # a fifth of a second to load, and only questions across sessions need it

    return duckdb.connect(path, read_only=read_only, config=dict(config))


def _rows(db: Any, query: str, params: Sequence[object]) -> list[Row]:
    return list(db.execute(query, list(params)).fetchall())
