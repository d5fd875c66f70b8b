"""The sessions of a store, for people: as a table, or as a tree with forks under the sessions they come from."""

import shlex
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping

from rewind.cli.screens.facts import changes, status
from rewind.cli.screens.layout import GAP, Cell, Column, print_table
from rewind.cli.screens.terminal import Span, Terminal, hint
from rewind.dataclass import dataclass
from rewind.model.session import Session
from rewind.reading.sessions import ListedSession, SessionList, parent_of
from rewind.safe import display_width, safe_line
from rewind.text import NONE, SOME_UNKNOWN, age, dollars, duration, number, plural

# A narrow screen does without the spare ones. Pipes are wide enough for all.
COLUMNS = (
    Column("id"),
    Column("name", flexible=True),
    Column("age", right=True, spare=3),
    Column("status"),
    Column("steps", right=True, spare=6),
    Column("llm", right=True, spare=5),
    Column("threads", right=True, spare=9),
    Column("tokens", right=True, spare=4),
    Column("cost", right=True, spare=2),
    Column("took", right=True, spare=7),
    Column("tags", flexible=True, spare=8),
    Column("command", flexible=True, least=16),
)
_PINNED = " · pinned"


def print_sessions(terminal: Terminal, rows: Iterable[ListedSession], *, now: float, ids: Collection[str] = ()) -> None:
    """The table of ``rewind list``. What is unique among ``ids`` stands out."""
    listed = list(rows)
    prefixes = unique_prefixes(ids, [row.session.id for row in listed]) if terminal.colour else {}
    cells = [_row(row, now, prefixes.get(row.session.id, 8)) for row in listed]
    print_table(terminal, COLUMNS, cells)


def unique_prefixes(ids: Iterable[str], shown: Iterable[str]) -> dict[str, int]:
    """Id → how many of its first characters no other id shares."""
    ordered = sorted(set(ids))
    lengths = {}
    for session_id in shown:
        at = bisect_left(ordered, session_id)
        neighbours = [*ordered[max(at - 1, 0) : at], *ordered[at + (ordered[at : at + 1] == [session_id]) :][:1]]
        lengths[session_id] = 1 + max((_shared(session_id, other) for other in neighbours), default=0)
    return lengths


def _shared(first: str, second: str) -> int:
    """How many of their first characters are the same."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


def _row(row: ListedSession, now: float, unique: int) -> list[Cell]:
    session, totals = row
    start, end = session.start, session.end
    tokens = None
    if totals.tokens_in is not None or totals.tokens_out is not None:
        tokens = (totals.tokens_in or 0) + (totals.tokens_out or 0)
    return [
        (Span(session.id[:unique], "bold"), Span(session.id[unique:], "dim")),
        start.name or NONE,
        age(now - start.started) if start.dated else NONE,
        _outcome(row),
        number(totals.steps),
        number(totals.llm_calls),
        number(totals.threads),
        number(tokens),
        dollars(totals.cost, totals.unpriced) if totals.llm_calls else NONE,
        duration(max(0.0, end.ended - start.started)) if end is not None and start.dated else NONE,
        " ".join(f"{key}={value}" if value else key for key, value in start.tags.items()) or NONE,
        shlex.join(start.command),
    ]


def _outcome(row: ListedSession) -> Span:
    shown = status(row.session)
    errors = f" · {plural(row.totals.errors, 'error')}" if row.totals.errors else ""
    return Span(shown.text + errors + _PINNED * row.session.pinned, shown.style)


_LEAST = 10
"""Cells for what a session is about, however narrow the screen."""
_NAME_SHOWN = 24
_NAME_IN_SHORT = 12
_NARROW = 100
"""Columns below which names in a tree are shown in short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLine:
    """One line of the tree."""

    drawn: str
    """What is drawn before the id."""
    id: str
    session: Session | None
    """``None`` for a parent that is gone."""


def tree(sessions: Iterable[Session]) -> Iterator[TreeLine]:
    """Every session once, and every parent that is not among them: trees with the newest session first.

    Children stand under their parent, oldest first. Journals that name each other as parents end the walk, not us.
    """
    known: dict[str, Session] = {
        session.id: session for session in sorted(sessions, key=lambda session: session.start.started)
    }
    children: dict[str, list[str]] = {}
    for name, session in known.items():
        if (parent := parent_of(session)) is not None:
            children.setdefault(parent, []).append(name)
    shown: set[str] = set()
    for newest in reversed(known):
        root = _root_of(newest, known)
        if root not in shown:
            yield from _walk(root, known, children, shown)


def _root_of(name: str, known: Mapping[str, Session]) -> str:
    seen = {name}
    while (session := known.get(name)) is not None:
        parent = parent_of(session)
        if parent is None or parent in seen:
            return name
        seen.add(parent)
        name = parent
    return name


def _walk(
    root: str, known: Mapping[str, Session], children: Mapping[str, list[str]], shown: set[str]
) -> Iterator[TreeLine]:
    waiting: list[tuple[str, str, str]] = [(root, "", "")]
    while waiting:
        name, before, corner = waiting.pop()
        if name in shown:
            continue
        shown.add(name)
        yield TreeLine(drawn=before + corner, id=name, session=known.get(name))
        below = before + {"": "", "├─ ": "│  ", "└─ ": "   "}[corner]
        under = [child for child in children.get(name, ()) if child not in shown]
        for at, child in enumerate(reversed(under)):
            waiting.append((child, below, "├─ " if at else "└─ "))


def print_tree(terminal: Terminal, rows: Iterable[ListedSession], *, now: float) -> None:
    """The lines of ``rewind list --tree``."""
    listed: dict[str, ListedSession] = {row.session.id: row for row in rows}
    lines = list(tree(row.session for row in listed.values()))
    named = _NAME_IN_SHORT if terminal.width < _NARROW else _NAME_SHOWN
    cells = [_cells(line, listed.get(line.id), now, named) for line in lines]
    widths = [max((display_width(row[at].text) for row in cells), default=0) for at in range(len(cells[0]) - 1)]
    room = max(_LEAST, terminal.width - sum(widths) - len(GAP) * len(widths))
    for row in cells:
        parts = []
        for span, width in zip(row, widths, strict=False):
            filler = " " * (width - display_width(span.text))
            parts.append(terminal.paint(span.text, span.style) + filler)
        last = row[-1]
        parts.append(terminal.paint(safe_line(last.text, room), last.style))
        terminal.write(GAP.join(parts).rstrip() + "\n")


def _cells(line: TreeLine, row: ListedSession | None, now: float, named: int) -> list[Span]:
    """All but the last are safe and of their width already."""
    place = Span(line.drawn + safe_line(line.id, 8), "bold")
    if row is None:
        nothing = [Span("") for _ in range(5)]
        return [place, *nothing, Span("gone: it is not in the store any more", "yellow")]
    session, totals = row
    start = session.start
    return [
        place,
        Span(safe_line(start.name or NONE, named)),
        Span(age(now - start.started) if start.dated else NONE),
        Span(status(session).text + _PINNED * session.pinned, status(session).style),
        Span(plural(totals.steps, "step")),
        Span(dollars(totals.cost, totals.unpriced) if totals.llm_calls else NONE),
        Span(_about(session)),
    ]


def _about(session: Session) -> str:
    start = session.start
    if start.forked_from is not None:
        return f"at step {start.forked_from.step}: {changes(start.forked_from)}"
    if start.replay_of is not None:
        return "replay, with live answers"
    return shlex.join(start.command)


def say_there_is_nothing(terminal: Terminal, listing: SessionList) -> None:
    """In place of an empty table."""
    if listing.probes:
        return
    if listing.filtered:
        terminal.line("No session matches all of these filters.")
        terminal.line(hint("→ rewind list"))
    else:
        terminal.line(f"No session is recorded in {listing.home} yet.")
        terminal.line(hint("→ rewind record python agent.py · rewind demo"))


def explain_list(terminal: Terminal, listing: SessionList, *, as_json: bool) -> None:
    """What the table cannot say itself."""
    is_table = bool(listing.rows) and not as_json
    if is_table and any(row.totals.unpriced and row.totals.cost is not None for row in listing.rows):
        terminal.line(Span(f"{SOME_UNKNOWN} some calls are not counted: their price or tokens are unknown", "dim"))
    if listing.probes:
        are = "is" if listing.probes == 1 else "are"
        terminal.line(Span(f"{plural(listing.probes, 'probe')} {are} left out: --all, or --tree", "dim"))
    if is_table and listing.price_warning:
        terminal.line(Span(listing.price_warning, "yellow"))
    if is_table and listing.more:
        terminal.line(Span(f"There are more: --limit {listing.limit * 2}, or 0 for all", "dim"))
