"""A DuckDB file that is made from the sessions, and built again when it is missing or damaged.

DuckDB lets in either one writer or some readers, so every use holds a lock and is short. At any doubt (another
version, a checksum error) the file is deleted and filled anew.
"""

import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping
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
_Filled = TypeVar("_Filled")
_Result = TypeVar("_Result")

Columns = Mapping[str, str]
Row = tuple[Any, ...]


class DerivedDatabase:
    """A DuckDB file with the tables it must have."""

    def __init__(self, home: Path, name: str, *, version: int, tables: Mapping[str, Columns]) -> None:
        self._home = home
        self._path = home / f"{name}.duckdb"
        self._lock_path = home / f"{name}.lock"
        self._version = version
        self._tables = tables

    def ask(
        self, fill: Callable[[Any], _Filled], question: Callable[[Any, _Filled, bool], _Result], *, nothing: _Result
    ) -> _Result:
        """Fill the database and ask it, in one go; ``nothing`` where there is no store.

        The question is given the database, what ``fill`` returned, and whether the database was empty before. It can
        read and write nothing else. If DuckDB doubts its file, all of it is done once more with a new one.
        """
        if not check_home(self._home):
            return nothing
        import duckdb  # a fifth of a second to load, and only questions across sessions need it

        with self._lock():
            for afresh in (False, True):
                try:
                    with closing(duckdb.connect(str(self._path), config={**_SHUT})) as db:
                        empty = afresh or not self._is_current(db)
                        if empty:
                            self._create(db)
                        filled = fill(db)
                        db.execute("SET enable_external_access = false")
                        db.execute("SET lock_configuration = true")
                        return question(db, filled, empty)
                except RuntimeError as stopped:
                    if str(stopped) == "Query interrupted":  # what DuckDB makes of Ctrl-C
                        raise KeyboardInterrupt from stopped
                    raise
                except duckdb.Error as error:
                    why = str(error).splitlines()[0]
                    for leftover in (self._path, self._path.with_suffix(".duckdb.wal")):
                        leftover.unlink(missing_ok=True)
        raise EnvironmentProblem(f"DuckDB cannot write {self._path.name} in {self._home}: {why}")

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
            raise EnvironmentProblem(f"Cannot write {self._path.name} in {self._home}: {reason(error)}.") from error
        finally:
            os.umask(old)

    def _is_current(self, db: Any) -> bool:
        made = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'made_as'"
        version = "SELECT max(version) FROM made_as"
        return bool(db.execute(made).fetchone()[0]) and db.execute(version).fetchone()[0] == self._version

    def _create(self, db: Any) -> None:
        for table, columns in (*self._tables.items(), ("made_as", {"version": "BIGINT"})):
            listed = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            db.execute(f"CREATE OR REPLACE TABLE {table} ({listed})")
        db.execute("INSERT INTO made_as VALUES (?)", [self._version])


def as_sql_path(path: Path) -> str:
    """A path inside a query. DuckDB takes patterns there; brackets make each sign stand for itself."""
    return re.sub(r"([*?\[])", r"[\1]", str(path)).replace("'", "''")


def as_sql_text(text: str) -> str:
    """The text as DuckDB takes it: no lone surrogates, no NUL."""
    plain = text.isascii() and "\0" not in text
    return text if plain else text.encode(errors="replace").decode().replace("\0", "\ufffd")


def columns(**by_type: str) -> dict[str, str]:
    """The columns of a table: ``columns(VARCHAR="folder id", DOUBLE="started")``."""
    return {name: kind for kind, names in by_type.items() for name in names.split()}


def json_rows(path: Path, columns: Columns, *, lenient: bool = False) -> str:
    """A table in a query, read from lines of JSON.

    If lenient, a value that does not fit its column is NULL, and so are all columns of a line that is not JSON.
    """
    listed = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    ignored = "ignore_errors = true, " if lenient else ""
    return f"read_json('{as_sql_path(path)}', format = 'newline_delimited', {ignored}columns = {{{listed}}})"
