"""Two runs compared → plain JSON: what differs, where they part, and why."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rewind.compare.align import Row
from rewind.compare.comparison import Comparison
from rewind.compare.delta import Aspect, Difference
from rewind.compare.move_result import saying_of
from rewind.compare.phrases import slug
from rewind.compare.summary import Likeness, RowChange, Summary, likeness
from rewind.model.session import Session
from rewind.store.catalog.totals import Totals
from rewind.views.session import session as session_view


def tokens_of(totals: Totals) -> int | None:
    """In and out; ``None`` where no step told any."""
    if totals.tokens_in is None and totals.tokens_out is None:
        return None
    return (totals.tokens_in or 0) + (totals.tokens_out or 0)


def seconds_of(session: Session) -> float | None:
    """How long it took; ``None`` where it has no end."""
    return None if session.end is None else max(0.0, session.end.ended - session.start.started)


def difference(one: Difference) -> dict[str, Any]:
    return {
        "aspect": slug(one.aspect),
        "place": one.place,
        "fate": one.fate.value,
        "before": one.before,
        "after": one.after,
        "about": one.about or None,
        "volatile": str(one.noise) if one.noise is not None else None,
    }


def diff(
    sides: Sequence[tuple[Session, Totals]],
    comparison: Comparison,
    rows: Sequence[Row],
    changes: Iterable[RowChange],
    summary: Summary | None,
    *,
    same: bool,
    damaged: Sequence[Collection[int]] = ((), ()),
) -> dict[str, Any]:
    """Two sessions side by side; ``summary`` only where whole sessions are compared.

    ``damaged`` are steps of which a body could not be read: what the rows say of them is not known to be so.
    """
    by_row = {id(change.row): change for change in changes}
    (a, totals_a), (b, totals_b) = sides
    return {
        "schema": "rewind/diff@1",
        "a": session_view(a, totals_a),
        "b": session_view(b, totals_b),
        "same": same,
        "summary": None if summary is None else _summary(summary),
        "tokens": _figure(tokens_of(totals_a), tokens_of(totals_b)),
        "cost_usd": _figure(*(None if one.unpriced else one.cost for one in (totals_a, totals_b))),
        "seconds": _figure(seconds_of(a), seconds_of(b)),
        "rows": [diff_row(comparison, row, by_row.get(id(row))) for row in rows],
        "damaged": {"a": sorted(damaged[0]), "b": sorted(damaged[1])},
    }


def diff_row(comparison: Comparison, row: Row, change: RowChange | None) -> dict[str, Any]:
    """One row; what was told in an earlier one is named by its steps."""
    view: dict[str, Any] = {
        "a": row.indexes[0],
        "b": row.indexes[1],
        "likeness": likeness(comparison, row).value,
        "changed": [],
        "volatile": [],
        "history_inherited": False,
        "tries": {"a": _tries(row, 0), "b": _tries(row, 1)},
        "differences": [],
        "repeated": [],
    }
    if row.a is None or row.b is None:
        run, move = (comparison.a, row.a) if row.b is None else (comparison.b, row.b)
        assert move is not None, "a row has a move"
        return view | {"text": str(saying_of(run, move))}
    relation = comparison.relation(row)
    view |= {
        "changed": _slugs(relation.changed),
        "volatile": _slugs(relation.noise),
        "history_inherited": relation.inherited,
    }
    if change is not None:
        view["differences"] = [difference(one) for one in change.differences]
        view["repeated"] = [
            {"aspect": slug(aspect), "as_at": steps(earlier, "a", "b")}
            for aspect, earlier in change.repeated.items()
        ]
    return view


def steps(row: Row, first: str, second: str) -> dict[str, int | None]:
    """The steps of a row, by what the runs are called."""
    return {first: row.indexes[0], second: row.indexes[1]}


def _slugs(aspects: Iterable[Aspect]) -> list[str]:
    known = set(aspects)
    return [slug(aspect) for aspect in Aspect if aspect in known]


def _tries(row: Row, side: int) -> int | None:
    move = (row.a, row.b)[side]
    return None if move is None else len(move.failures) + 1


def _summary(one: Summary) -> Mapping[str, int]:
    return {
        "equal": one.equal,
        "changed": one.changed,
        "only_in_a": one.counts[Likeness.ONLY_A],
        "only_in_b": one.counts[Likeness.ONLY_B],
        "volatile": one.counts[Likeness.VOLATILE],
        "reworded": one.counts[Likeness.REWORDED],
        "reordered": one.reordered,
        "retried": one.retried,
    }


def _figure(a: float | None, b: float | None) -> dict[str, float | None]:
    return {"a": a, "b": b, "delta": None if a is None or b is None else b - a}
