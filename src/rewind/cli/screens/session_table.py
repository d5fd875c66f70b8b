"""The table of sessions, for people."""

import shlex
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence

from rewind.cli.screens.facts import status
from rewind.cli.screens.table import GAP, Cell, Column, display_width, print_table
from rewind.cli.screens.terminal import Span, Terminal
from rewind.model.session import Session
from rewind.store.catalog.totals import Totals
from rewind.text import NONE, age, dollars, duration, number, plural

COLUMNS = (
    Column("id"),
    Column("name", flexible=True),
    Column("age", right=True),
    Column("status"),
    Column("steps", right=True),
    Column("llm", right=True),
    Column("threads", right=True),
    Column("tokens", right=True),
    Column("cost", right=True),
    Column("took", right=True),
    Column("tags", flexible=True),
    Column("command", flexible=True, least=16),
)
_FIRST_TO_GO = ("threads", "tags", "took", "steps")
"""Columns that a narrow screen does without, in this order. Pipes are wide enough for all."""


def print_sessions(
    terminal: Terminal,
    rows: Iterable[tuple[Session, Totals]],
    *,
    now: float,
    ids: Collection[str] = (),
) -> None:
    """The table of ``rewind list``. What is unique among ``ids`` stands out."""
    listed = list(rows)
    prefixes = unique_prefixes(ids, [session.id for session, _ in listed]) if terminal.colour else {}
    cells = [_row(session, totals, now, prefixes.get(session.id, 8)) for session, totals in listed]
    shown = _columns_that_fit(cells, terminal.width)
    print_table(terminal, [COLUMNS[at] for at in shown], [[row[at] for at in shown] for row in cells])


def unique_prefixes(ids: Iterable[str], shown: Iterable[str]) -> dict[str, int]:
    """Id → how many of its first characters no other id shares."""
    ordered = sorted(set(ids))
    lengths = {}
    for one in shown:
        at = bisect_left(ordered, one)
        neighbours = [*ordered[max(at - 1, 0) : at], *ordered[at + (ordered[at : at + 1] == [one]) :][:1]]
        lengths[one] = 1 + max((_shared(one, other) for other in neighbours), default=0)
    return lengths


def _shared(one: str, other: str) -> int:
    """How many of their first characters are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _row(session: Session, totals: Totals, now: float, unique: int) -> list[Cell]:
    start, end = session.start, session.end
    tokens = None
    if totals.tokens_in is not None or totals.tokens_out is not None:
        tokens = (totals.tokens_in or 0) + (totals.tokens_out or 0)
    return [
        (Span(session.id[:unique], "bold"), Span(session.id[unique:], "dim")),
        start.name or NONE,
        age(now - start.started),
        _outcome(session, totals),
        number(totals.steps),
        number(totals.llm_calls),
        number(totals.threads),
        number(tokens),
        dollars(totals.cost, totals.unpriced) if totals.llm_calls else NONE,
        duration(max(0.0, end.ended - start.started)) if end is not None else NONE,
        " ".join(f"{key}={value}" if value else key for key, value in start.tags.items()) or NONE,
        shlex.join(start.command),
    ]


def _outcome(session: Session, totals: Totals) -> Span:
    shown = status(session)
    errors = f" · {plural(totals.errors, 'error')}" if totals.errors else ""
    return Span(shown.text + errors, shown.style)


def _columns_that_fit(rows: Sequence[Sequence[Cell]], width: int) -> list[int]:
    """All where the screen is wide enough, else without the first to go."""
    least = [
        min(column.least, widest) if column.flexible else widest
        for at, column in enumerate(COLUMNS)
        for widest in [max((_width(row[at]) for row in rows), default=0)]
    ]
    needed = [max(len(column.title), cells) for column, cells in zip(COLUMNS, least, strict=True)]
    shown = list(range(len(COLUMNS)))
    for title in _FIRST_TO_GO:
        if sum(needed[at] + len(GAP) for at in shown) - len(GAP) <= width:
            break
        shown = [at for at in shown if COLUMNS[at].title != title]
    return shown


def _width(cell: Cell) -> int:
    spans = cell if isinstance(cell, tuple) else (cell,)
    return sum(display_width(span if isinstance(span, str) else span.text) for span in spans)
