"""A DuckDB file that is made from the sessions, and built again when it is missing or damaged.

DuckDB lets in either one writer or some readers, so every use holds a lock and is short. At any doubt (another
version, a checksum error) the file is deleted and filled anew.
"""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
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

DERIVED = ("catalog", "search")
"""The files of that kind in a store: ``catalog.duckdb``, ``search.duckdb``."""

Columns = Mapping[str, str]
Row = tuple[Any, ...]


class DerivedFile:
    """A DuckDB file, whatever it holds, and the lock under which it is used."""

    def __init__(self, home: Path, name: str) -> None:
        self._home = home
        self._path = home / f"{name}.duckdb"
        self._log = home / f"{name}.duckdb.wal"
        """What DuckDB wrote and has not yet brought into the file."""
        self._lock_path = home / f"{name}.lock"

    def purge(self, there: Collection[str], *, at_most: int | None = None) -> bool:
        """Write the file anew with what it has of the sessions in these folders, and without a byte of any other.

        DuckDB leaves what it deletes where it was, until it needs the room. False if the file has more than
        ``at_most`` bytes, and was left alone. A file that DuckDB doubts is deleted, and filled by the next question.
        """
        if not any(self._home.glob(f"*{self._path.stem}*")):
            return True
        with self._lock():
            self._sweep()
            files = [file for file in (self._path, self._log) if file.exists()]
            if not files:
                return True
            if at_most is not None and sum(file.stat().st_size for file in files) > at_most:
                return False
            import duckdb

            draft = self._home / f".{self._path.stem}-{secrets.token_hex(8)}.duckdb"
            try:
                with closing(duckdb.connect(str(self._path), config={**_SHUT})) as db:
                    _copy(db, draft, there)
            except RuntimeError as stopped:
                raise _interrupt(stopped) from stopped
            except duckdb.Error:
                self._unlink()
            else:
                self._unlink()
                draft.rename(self._path)
            self._sweep()
        return True

    def _unlink(self) -> None:
        for file in (self._path, self._log):
            file.unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove what killed processes left of their work; now the lock is ours."""
        for left in (*self._home.glob(f".{self._path.stem}-*"), self._path.with_suffix(".duckdb.tmp")):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)

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


def _interrupt(stopped: RuntimeError) -> BaseException:
    """What DuckDB makes of Ctrl-C, as what it is."""
    return KeyboardInterrupt() if str(stopped) == "Query interrupted" else stopped


def _copy(db: Any, draft: Path, there: Collection[str]) -> None:
    """Into a new file, in the order in which the rows stand. Some name a folder, others the number of a session."""
    tables = db.execute(
        "SELECT table_name, sql, list_contains(list(column_name), 'folder'), list_contains(list(column_name), 'nr') "
        "FROM duckdb_tables() JOIN duckdb_columns() USING (table_name) GROUP BY ALL ORDER BY 3 DESC"
    ).fetchall()
    (old,) = db.execute("SELECT current_database()").fetchone()
    db.execute("ATTACH '{}' AS draft".format(str(draft).replace("'", "''")))
    db.execute("USE draft")
    for table, made, has_folder, has_number in tables:
        db.execute(made)
        chosen = "folder IN (SELECT unnest(?))" if has_folder else "nr IN (SELECT nr FROM sessions)"
        where = f"WHERE {chosen}" if has_folder or has_number else ""
        db.execute(f'INSERT INTO {table} SELECT * FROM "{old}".{table} {where}', [list(there)] if has_folder else [])  # noqa: S608


class DerivedDatabase(DerivedFile):
    """One with the tables it must have."""

    def __init__(self, home: Path, name: str, *, version: int, tables: Mapping[str, Columns]) -> None:
        super().__init__(home, name)
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
            self._sweep()
            if self._path.is_symlink() or (self._path.exists() and not self._path.is_file()):
                self._path.unlink()  # DuckDB would wait for a pipe to be written, and read a device for ever
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
                    raise _interrupt(stopped) from stopped
                except duckdb.Error as error:
                    why = str(error).splitlines()[0]
                    self._unlink()
        raise EnvironmentProblem(f"DuckDB cannot write {self._path.name} in {self._home}: {why}")

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
