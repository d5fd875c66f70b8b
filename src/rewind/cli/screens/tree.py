"""Sessions as a tree: forks and kept replays under the session they come from."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rewind.cli.screens.facts import status
from rewind.cli.screens.lineage import changes
from rewind.cli.screens.table import GAP, display_width
from rewind.cli.screens.terminal import Span, Terminal
from rewind.model.session import Session
from rewind.safe import safe_line
from rewind.store.catalog.totals import Totals
from rewind.text import NONE, age, dollars, plural

_LEAST = 24
"""Cells for what a session is about, however narrow the screen."""
_NAME_SHOWN = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Twig:
    """One line of the tree."""

    lines: str
    """What is drawn before the id."""
    id: str
    session: Session | None
    """``None`` for a parent that is gone."""


def parent_of(session: Session) -> str | None:
    """The id of the session it was forked from, or is a replay of."""
    origin = session.start.forked_from
    return origin.session if origin is not None else session.start.replay_of


def tree(sessions: Iterable[Session]) -> Iterator[Twig]:
    """Every session once, and every parent that is not among them: trees with the newest session first.

    Children stand under their parent, oldest first. Journals that name each other as parents end the walk, not us.
    """
    known: dict[str, Session] = {
        session.id: session for session in sorted(sessions, key=lambda one: one.start.started)
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
) -> Iterator[Twig]:
    waiting: list[tuple[str, str, str]] = [(root, "", "")]
    while waiting:
        name, before, corner = waiting.pop()
        if name in shown:
            continue
        shown.add(name)
        yield Twig(lines=before + corner, id=name, session=known.get(name))
        below = before + {"": "", "├─ ": "│  ", "└─ ": "   "}[corner]
        under = [child for child in children.get(name, ()) if child not in shown]
        for at, child in enumerate(reversed(under)):
            waiting.append((child, below, "├─ " if at else "└─ "))


def print_tree(terminal: Terminal, rows: Iterable[tuple[Session, Totals]], *, now: float) -> None:
    """The lines of ``rewind list --tree``."""
    totals: dict[str, Totals] = {session.id: counted for session, counted in rows}
    sessions = [session for session, _ in rows]
    twigs = list(tree(sessions))
    cells = [_cells(twig, totals.get(twig.id), now) for twig in twigs]
    widths = [
        max((display_width(row[at].text) for row in cells), default=0) for at in range(len(cells[0]) - 1)
    ]
    room = max(_LEAST, terminal.width - sum(widths) - len(GAP) * len(widths))
    for row in cells:
        parts = []
        for span, width in zip(row, widths, strict=False):
            filler = " " * (width - display_width(span.text))
            parts.append(terminal.paint(span.text, span.style) + filler)
        last = row[-1]
        parts.append(terminal.paint(safe_line(last.text, room), last.style))
        terminal.write(GAP.join(parts).rstrip() + "\n")


def _cells(twig: Twig, totals: Totals | None, now: float) -> list[Span]:
    """All but the last are safe and of their width already."""
    place = Span(twig.lines + safe_line(twig.id, 8), "bold")
    session = twig.session
    if session is None or totals is None:
        nothing = [Span("") for _ in range(5)]
        return [place, *nothing, Span("gone: it is not in the store any more", "yellow")]
    start = session.start
    return [
        place,
        Span(safe_line(start.name or NONE, _NAME_SHOWN)),
        Span(age(now - start.started)),
        status(session),
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
