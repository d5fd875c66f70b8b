"""DuckDB over all journals, for questions that cross sessions. Derived: at any doubt it is deleted and built again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rewind.store.catalog.fill import FingerprintedPricing, Progress, fill
from rewind.store.catalog.rows import SESSION, STEP
from rewind.store.derived import Derived, Row, shut_doors

_VERSION = 3
_Result = TypeVar("_Result")


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
        progress: Progress = lambda _done, _total: None,
    ) -> None:
        self._home = home
        self._prices = prices
        self._progress = progress
        self._file = Derived(home, "catalog", version=_VERSION, tables={"sessions": SESSION, "steps": STEP})

    def catch_up(self) -> CatalogState:
        """Bring in what the journals have that the catalog has not."""

        def work(db: Any) -> tuple[int, int]:
            fill(db, self._home, self._prices, self._progress)
            sessions, steps = db.execute(
                "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM steps)"
            ).fetchone()
            return sessions, steps

        done = self._file.write(work)
        if done is None:
            return CatalogState(sessions=0, steps=0, rebuilt=False)
        (sessions, steps), rebuilt = done
        return CatalogState(sessions=sessions, steps=steps, rebuilt=rebuilt)

    def asked(self, question: Callable[[Any], _Result], *, nothing: _Result) -> _Result:
        """Catch up and ask, in one breath; ``nothing`` where there is no store."""

        def work(db: Any) -> _Result:
            fill(db, self._home, self._prices, self._progress)
            shut_doors(db)
            return question(db)

        done = self._file.write(work)
        return nothing if done is None else done[0]

    def sql(self, query: str, params: Sequence[object] = ()) -> list[Row]:
        """Ask the catalog as it is. The query can read nothing but the catalog."""
        rows = self._file.ask(query, params)
        if rows is None:
            self.catch_up()
            rows = self._file.ask(query, params)
        assert rows is not None, "it has been filled"
        return rows
