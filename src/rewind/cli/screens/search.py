"""What a search found, for people: each hit on one line, cut so that what was found is seen."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rewind.cli.screens.layout import GAP
from rewind.cli.screens.terminal import Span, Terminal, hint
from rewind.reading.search import SearchReport
from rewind.safe import display_width, safe
from rewind.text import age, plural

_LEAST = 24
"""Columns a snippet has at least, however narrow the screen."""
_BREAK = re.compile(r"\s*\n\s*")
_CUT = ("…", False)
_FOUND = "bold yellow"

Marks = Sequence[tuple[int, int]]
Character = tuple[str, bool]
"""A character as it may be shown, and whether it was looked for."""


def print_hits(terminal: Terminal, report: SearchReport, *, now: float) -> None:
    """``7f3a2b9c:4  2 h  assistant  … the words around …``."""
    hits = report.hits
    rows = [(f"{hit.session}:{hit.step}", age(now - hit.ts), hit.kind.replace("_", " ")) for hit in hits]
    places, ages, kinds = (max(map(display_width, column)) for column in zip(*rows, strict=True)) if rows else (0, 0, 0)
    room = max(_LEAST, terminal.width - places - ages - kinds - 3 * len(GAP))
    for hit, (place, ago, kind) in zip(hits, rows, strict=True):
        terminal.line(
            Span(place.ljust(places), "cyan"),
            GAP,
            Span(ago.rjust(ages), "dim"),
            GAP,
            kind.ljust(kinds),
            GAP,
            *snippet_spans(hit.snippet, hit.marks, room, from_start=hit.from_start, to_end=hit.to_end),
        )


def say_what_was_searched(terminal: Terminal, report: SearchReport) -> None:
    """What the hits cannot say themselves."""
    if report.hits:
        if report.more:
            terminal.line(Span(f"There are more: --limit {2 * report.limit}, or 0 for all", "dim"))
    elif report.index.sessions:
        terminal.line(_nothing(report))
    else:
        terminal.line(f"No session is recorded in {report.home} yet.")
    _say_what_is_missing(terminal, report)
    if report.hits:
        newest = report.hits[0]
        terminal.line(hint(f"→ rewind inspect {newest.session}:{newest.step}"))


def _nothing(report: SearchReport) -> str:
    wanted = " and ".join(map(repr, report.texts)) + (" in one text" if len(report.texts) > 1 else "")
    if report.narrowed:
        return f"Nothing there contains {wanted}. Drop --in, --session or --since to search more."
    return f"Nothing recorded contains {wanted}; {plural(report.index.sessions, 'session')} searched."


def _say_what_is_missing(terminal: Terminal, report: SearchReport) -> None:
    """What a search could not look into."""
    state = report.index
    if state.unreadable:
        bodies = plural(state.unreadable, "damaged body was", "damaged bodies were")
        terminal.line(hint(f"{bodies} not searched: rewind verify", "yellow"))
    if state.cut:
        texts = plural(state.cut, "long text is", "long texts are")
        terminal.line(Span(f"{texts} searched in the first {report.longest:,} characters only", "dim"))


def snippet_spans(text: str, marks: Marks, width: int, *, from_start: bool = True, to_end: bool = True) -> list[Span]:
    """The text around its first mark in at most that many columns, the marks in another style.

    A third of the room goes to what stands before, more where little stands after. ``from_start`` and ``to_end``
    tell whether the text is whole on that side; where it is not, or is cut here, stands ``…``.
    """
    cells = list(_cells(text, marks))
    first = next((at for at, (_, marked) in enumerate(cells) if marked), 0)
    before = max(width // 3, width - _width(cells[first:]) - (not to_end))
    begin = first - len(_fitting(cells[:first][::-1], before, whole=from_start))
    head = [_CUT] if begin > 0 or not from_start else []
    shown = _fitting(cells[begin:], width - len(head), whole=to_end)
    tail = [_CUT] if begin + len(shown) < len(cells) or not to_end else []
    return [
        Span("".join(sign for sign, _ in run), _FOUND if marked else "")
        for marked, run in groupby([*head, *shown, *tail], key=lambda cell: cell[1])
    ]


def _cells(text: str, marks: Marks) -> Iterator[Character]:
    """A line break is one sign, as in every preview."""
    at = 0
    for start, end in (*marks, (len(text), len(text))):
        for piece, marked in ((text[at:start], False), (text[start:end], True)):
            line = _BREAK.sub("⏎", piece).replace("\t", " ")
            yield from ((safe(character), marked) for character in line)
        at = end


def _fitting(cells: list[Character], width: int, *, whole: bool) -> list[Character]:
    """As many from the start as fit, with a column left for ``…`` where it will be needed."""
    if whole and _width(cells) <= width:
        return cells
    room = width - 1
    for count, (shown, _) in enumerate(cells):
        room -= display_width(shown)
        if room < 0:
            return cells[:count]
    return cells


def _width(cells: Iterable[Character]) -> int:
    return sum(display_width(shown) for shown, _ in cells)
