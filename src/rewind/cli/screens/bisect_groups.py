"""Several good runs and several bad ones, for people: who said what, where they part, and what the bad ones share."""

from collections.abc import Sequence
from itertools import accumulate

from rewind.cli.comparing import Side
from rewind.cli.screens.causes import cause_lines, print_causes
from rewind.cli.screens.paragraph import Line, print_hanging, room
from rewind.cli.screens.table import display_width
from rewind.cli.screens.terminal import Span, Terminal
from rewind.compare.many import Column, Parting
from rewind.compare.move_result import saying_of
from rewind.compare.phrases import NO_STEP
from rewind.safe import safe_line
from rewind.text import plural
from rewind.views.bisect import shared_cause

_FACTS = 11
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BEFORE = 6
"""Columns before the parting that are shown where not all fit."""


def print_parting(terminal: Terminal, parting: Parting, goods: Sequence[Side], bads: Sequence[Side]) -> None:
    """The whole screen."""
    sign, headline = _headline(parting)
    print_hanging(terminal, [(headline,)], label=sign.text, indent=2, style=sign.style)
    terminal.line()
    _print_table(terminal, parting, [("good", side) for side in goods] + [("bad", side) for side in bads])
    terminal.line()
    if parting.at is not None:
        _print_answers(terminal, parting, parting.columns[parting.at])
        terminal.line()
    _print_shared(terminal, parting)


def _headline(parting: Parting) -> tuple[Span, Span]:
    runs = f"{plural(len(parting.goods), 'good run')}, {plural(len(parting.bads), 'bad run')}"
    if parting.at is not None:
        where = _label(parting.columns[parting.at])
        return Span("✗ ", "bold red"), Span(f"They part at step {where}: {runs}", "bold")
    if parting.shared:
        said = f"No answer tells them apart, but the bad runs share something: {runs}"
        return Span("≠ ", "bold yellow"), Span(said, "bold")
    return Span("✓ ", "bold green"), Span(f"Nothing tells them apart: {runs}", "bold")


def _label(column: Column) -> str:
    """The step of the first good run; where it made none, of the first run that did."""
    first = column.cells[0]
    if first is not None:
        return str(first.index)
    index = next(move.index for move in column.cells if move is not None)
    return f"{NO_STEP}/{index}"


# ── who said what ────────────────────────────────────────────────────────────────────────────────────────────


def _print_table(terminal: Terminal, parting: Parting, sides: Sequence[tuple[str, Side]]) -> None:
    """A row for each run, a column for each step; runs with the same letter said the same there."""
    names = [safe_line(side.session.start.name or "", 24) for _, side in sides]
    head = max(map(display_width, names)) + len("  good  7f3a2b9c  ") + 1
    start, end = _window(parting, room(terminal, head))
    labels = [_label(column) for column in parting.columns]
    widths = [max(2, len(label)) + 1 for label in labels]
    before, behind = "… " if start else "", " …" if end < len(labels) else ""

    def line(label: Span, cells: Sequence[Span], *, marks: bool = False) -> None:
        shown = [Span(cells[at].text.rjust(widths[at]), cells[at].style) for at in range(start, end)]
        if marks:
            terminal.write(terminal.text(label, " " * len(before), *shown).rstrip() + "\n")
        else:
            terminal.line(label, Span(before, "dim"), *shown, Span(behind, "dim"))

    line(Span("  step".ljust(head), "dim"), [Span(label, "dim") for label in labels])
    for number, ((side, opened), name) in enumerate(zip(sides, names, strict=True)):
        style = "green" if side == "good" else "red"
        text = f"  {side:<4}  {opened.id}  {name}"
        text += " " * (head - display_width(text))
        line(Span(text), [_cell(column, number, style, len(parting.goods)) for column in parting.columns])
    if parting.at is not None:
        line(
            Span(" " * head), [Span("^" if at == parting.at else "") for at in range(len(labels))], marks=True
        )


def _cell(column: Column, run: int, style: str, split: int) -> Span:
    answer = column.answers[run]
    if answer is None:
        return Span("·", "dim")
    letter = _LETTERS[answer] if answer < len(_LETTERS) else "*"
    told_apart = not set(column.answers[:split]) & set(column.answers[split:])
    return Span(letter, style if told_apart else "")


def _window(parting: Parting, width: int) -> tuple[int, int]:
    """The columns that fit, the one where the runs part among them."""
    widths = [max(2, len(_label(column))) + 1 for column in parting.columns]
    if sum(widths) <= width:
        return 0, len(widths)
    at = parting.at or 0
    start = max(0, at - _BEFORE)
    sums = list(accumulate(widths[start:]))
    fits = sum(total <= width - 4 for total in sums)
    return start, min(len(widths), start + max(1, fits))


def _print_answers(terminal: Terminal, parting: Parting, column: Column) -> None:
    """What each letter of the column stands for."""
    told = set()
    for run, move, answer in zip(parting.runs, column.cells, column.answers, strict=True):
        if answer in told:
            continue
        told.add(answer)
        letter = "·" if answer is None else _LETTERS[answer] if answer < len(_LETTERS) else "*"
        said = "(no such step)" if move is None else safe_line(str(saying_of(run, move)), 320)
        print_hanging(terminal, [(Span(said),)], label=f"  {letter}", indent=5, style="bold")


def _print_shared(terminal: Terminal, parting: Parting) -> None:
    """What all bad runs have and no good one, told by the first of either."""
    blocks: list[list[Line]] = []
    for shared in parting.shared:
        place = (
            "" if shared.column == parting.at else f"from step {_label(parting.columns[shared.column])} on"
        )
        title, *evidence = cause_lines(shared_cause(parting, shared), place)
        blocks.append([title, *((Span("  "), *line) for line in evidence)])
    if not blocks:
        blocks = [[(Span("nothing that was asked is the same in all bad runs and in no good one"),)]]
    print_causes(terminal, blocks, ("Shared", "Shared"), _FACTS)
