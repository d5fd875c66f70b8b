"""Aligned columns that know how wide a character is on the screen."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rewind.cli.screens.terminal import Span, Terminal
from rewind.safe import safe_line

GAP = "  "
LONGEST = 1000
"""Cells of a cell: no screen is wider, and what agents write may be endless."""

Cell = str | Span | tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """How one column is set."""

    title: str
    right: bool = False
    """Numbers stand right."""
    flexible: bool = False
    """Whether it gives way, down to ``least``, when the line is too long."""
    least: int = 12


def display_width(text: str) -> int:
    """Columns the text takes: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def print_table(terminal: Terminal, columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> None:
    """Titles and rows; flexible columns are clipped so that a line fits the screen."""
    titles: list[list[Span]] = [[Span(column.title, "dim")] for column in columns]
    body = [[_spans(cell) for cell in row] for row in rows]
    widths = [
        max(sum(display_width(span.text) for span in row[at]) for row in [titles, *body])
        for at in range(len(columns))
    ]
    _fit(columns, widths, terminal.width)
    for row in [titles, *body]:
        shown = [
            _set(terminal, spans, column, width)
            for spans, column, width in zip(row, columns, widths, strict=True)
        ]
        terminal.write(GAP.join(shown).rstrip() + "\n")


def _spans(cell: Cell) -> list[Span]:
    spans = cell if isinstance(cell, tuple) else (cell if isinstance(cell, Span) else Span(cell),)
    return [Span(safe_line(span.text, LONGEST), span.style) for span in spans]


def _fit(columns: Sequence[Column], widths: list[int], screen: int) -> None:
    """Take what is too much from the widest flexible column, until it fits or all are at their least."""
    excess = sum(widths) + len(GAP) * (len(columns) - 1) - screen
    while excess > 0:
        able = [at for at, column in enumerate(columns) if column.flexible and widths[at] > column.least]
        if not able:
            return
        widest = max(able, key=lambda at: widths[at])
        others = [widths[at] for at in able if at != widest]
        # Down to the next widest at once; one at a time when several are equally wide.
        floor = max(columns[widest].least, max(others, default=0))
        given = min(excess, max(1, widths[widest] - floor))
        widths[widest] -= given
        excess -= given


def _set(terminal: Terminal, spans: list[Span], column: Column, width: int) -> str:
    painted, room = [], width
    for span in spans:
        shown = safe_line(span.text, room)
        room -= display_width(shown)
        painted.append(terminal.paint(shown, span.style))
    filler = " " * room
    return filler + "".join(painted) if column.right else "".join(painted) + filler


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
