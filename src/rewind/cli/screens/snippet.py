"""Some words of a long text on one line, cut so that what was found is seen."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rewind.cli.screens.table import display_width
from rewind.cli.screens.terminal import Span
from rewind.safe import safe

_BREAK = re.compile(r"\s*\n\s*")
_CUT = ("…", False)
_FOUND = "bold yellow"

Marks = Sequence[tuple[int, int]]
Cell = tuple[str, bool]
"""A character as it may be shown, and whether it was looked for."""


def snippet_spans(
    text: str, marks: Marks, width: int, *, from_start: bool = True, to_end: bool = True
) -> list[Span]:
    """The text around its first mark in at most that many columns, the marks in another style.

    A third of the room goes to what stands before, more where little stands after. ``from_start`` and ``to_end``
    tell whether the text is whole on that side; where it is not, or is cut here, stands ``…``.
    """
    cells = list(_cells(text, marks))
    first = next((at for at, (_, found) in enumerate(cells) if found), 0)
    before = max(width // 3, width - _width(cells[first:]) - (not to_end))
    begin = first - len(_fitting(cells[:first][::-1], before, whole=from_start))
    head = [_CUT] if begin > 0 or not from_start else []
    shown = _fitting(cells[begin:], width - len(head), whole=to_end)
    tail = [_CUT] if begin + len(shown) < len(cells) or not to_end else []
    return [
        Span("".join(sign for sign, _ in run), _FOUND if found else "")
        for found, run in groupby([*head, *shown, *tail], key=lambda cell: cell[1])
    ]


def _cells(text: str, marks: Marks) -> Iterator[Cell]:
    """A line break is one sign, as in every preview."""
    at = 0
    for start, end in (*marks, (len(text), len(text))):
        for piece, found in ((text[at:start], False), (text[start:end], True)):
            line = _BREAK.sub("⏎", piece).replace("\t", " ")
            yield from ((safe(character), found) for character in line)
        at = end


def _fitting(cells: list[Cell], width: int, *, whole: bool) -> list[Cell]:
    """As many from the start as fit, with a column left for ``…`` where it will be needed."""
    if whole and _width(cells) <= width:
        return cells
    room = width - 1
    for count, (shown, _) in enumerate(cells):
        room -= display_width(shown)
        if room < 0:
            return cells[:count]
    return cells


def _width(cells: Iterable[Cell]) -> int:
    return sum(display_width(shown) for shown, _ in cells)
