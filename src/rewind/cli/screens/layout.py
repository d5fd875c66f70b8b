"""Text set on a screen: in columns, and in lines that are broken between words and hang from a label."""

import re
from collections.abc import Iterable, Iterator, Sequence

from rewind.cli.screens.terminal import Span, Terminal
from rewind.dataclass import dataclass
from rewind.safe import display_width, safe, safe_line

GAP = "  "
LONGEST = 1000
"""Characters that one cell may have: no screen is wider, and what agents write may be endless."""

WIDEST = 120
"""Columns beyond which a line of text is hard to read, however wide the screen is."""
LEAST = 20
_WORD = re.compile(r"\s+|\S+")

Cell = str | Span | tuple[Span, ...]
Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    right: bool = False
    """For numbers: aligned to the right."""
    flexible: bool = False
    """Whether it gives way, down to ``least``, when the line is too long."""
    least: int = 12
    spare: int = 0
    """Left out where nothing else makes the line fit, the highest first; 0: never."""


def print_table(terminal: Terminal, columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> list[str]:
    """Titles and rows. So that a line fits the screen, flexible columns are clipped, then spare ones left out.

    Gives back the titles of those.
    """
    titles: list[list[Span]] = [[Span(column.title, "dim")] for column in columns]
    body = [[_spans(cell) for cell in row] for row in rows]
    widths = [
        max(sum(display_width(span.text) for span in row[at]) for row in [titles, *body]) for at in range(len(columns))
    ]
    kept = _with_room(columns, widths, terminal.width)
    left_out = [column.title for at, column in enumerate(columns) if at not in kept]
    columns, widths = [columns[at] for at in kept], [widths[at] for at in kept]
    _fit(columns, widths, terminal.width)
    for row in [titles, *body]:
        cells = zip((row[at] for at in kept), columns, widths, strict=True)
        shown = [_set(terminal, spans, column, width) for spans, column, width in cells]
        terminal.write(GAP.join(shown).rstrip() + "\n")
    return left_out


def _with_room(columns: Sequence[Column], widths: Sequence[int], screen: int) -> list[int]:
    """The places of the columns that are shown."""
    kept = list(range(len(columns)))
    while True:
        least = [min(widths[at], columns[at].least) if columns[at].flexible else widths[at] for at in kept]
        spare = max(kept, key=lambda at: columns[at].spare)
        if sum(least) + len(GAP) * (len(kept) - 1) <= screen or not columns[spare].spare:
            return kept
        kept.remove(spare)


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


def room(terminal: Terminal, indent: int = 0) -> int:
    """Columns for a line of text that begins there."""
    return max(LEAST, min(terminal.width, WIDEST) - indent)


def print_hanging(
    terminal: Terminal, lines: Iterable[Line], *, indent: int, label: str = "", style: str = "dim"
) -> None:
    """Every line broken to fit; the first stands behind the label, the others below it."""
    head = Span(label.ljust(indent), style)
    for line in lines:
        for part in wrapped(line, room(terminal, indent)):
            terminal.line(head, *part)
            head = Span(" " * indent)


def wrapped(line: Sequence[Span], width: int) -> Iterator[Line]:
    """The line in as many as it takes, all indented as it is; a word that is wider than a line is cut."""
    words = list(_words(line))
    lead = words.pop(0) if words and words[0][0].text.isspace() else ()
    width = max(LEAST // 2, width - _width(lead))
    shown: list[Span] = []
    taken = 0
    for piece in (piece for word in words for piece in _cut(word, width)):
        size = _width(piece)
        if shown and taken + size > width:
            yield (*lead, *_ended(shown))
            shown, taken = [], 0
        if shown or not piece[0].text.isspace():
            shown += piece
            taken += size
    yield (*lead, *_ended(shown)) if shown else ()


def _cut(word: Line, width: int) -> Iterator[Line]:
    """The word itself where it fits."""
    if _width(word) <= width:
        yield word
        return
    piece: list[Span] = []
    taken = 0
    for span in word:
        for character in span.text:
            size = display_width(character)
            if taken + size > width:
                yield tuple(piece)
                piece, taken = [], 0
            piece.append(Span(character, span.style))
            taken += size
    yield tuple(piece)


def _width(spans: Iterable[Span]) -> int:
    return sum(display_width(span.text) for span in spans)


def _words(line: Sequence[Span]) -> Iterator[Line]:
    """White space, and what stands between it, in whatever styles."""
    word: list[Span] = []
    for span in line:
        # What a control character takes on the screen is known once it is made visible.
        text = safe(span.text.replace("\n", "⏎").replace("\t", " "))
        for piece in _WORD.findall(text):
            if piece.isspace():
                if word:
                    yield tuple(word)
                yield (Span(piece, span.style),)
                word = []
            else:
                word.append(Span(piece, span.style))
    if word:
        yield tuple(word)


def _ended(shown: list[Span]) -> Line:
    """Neighbours of one style in one; no white space at the end."""
    joined: list[Span] = []
    for span in shown:
        if joined and joined[-1].style == span.style:
            joined[-1] = Span(joined[-1].text + span.text, span.style)
        else:
            joined.append(span)
    while joined and not joined[-1].text.strip():
        joined.pop()
    if joined:
        joined[-1] = Span(joined[-1].text.rstrip(), joined[-1].style)
    return tuple(joined)
