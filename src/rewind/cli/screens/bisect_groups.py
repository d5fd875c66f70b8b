"""Several good runs and several bad ones, for people: the screen of ``rewind bisect --good … --bad …``."""

from collections.abc import Sequence
from itertools import accumulate

from rewind.cli.screens.difference import cause_lines, print_causes
from rewind.cli.screens.layout import Line, print_hanging, room
from rewind.cli.screens.terminal import Span, Terminal
from rewind.compare.groups import GroupFinding, MoveColumn
from rewind.compare.phrases import NO_STEP, move_result
from rewind.reading.bisect import GroupBisection
from rewind.reading.compare import ComparedSession
from rewind.safe import display_width, safe_line
from rewind.text import plural

_FACTS = 11
"""Columns of the labels."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BEFORE = 6
"""Columns before the parting that are shown where not all fit."""


def print_groups(terminal: Terminal, found: GroupBisection) -> None:
    """The screen of several good runs and several bad ones: who said what, where they part, what the bad ones share."""
    parting = found.parting
    sign, headline = _group_headline(parting)
    print_hanging(terminal, [(headline,)], label=sign.text, indent=2, style=sign.style)
    terminal.line()
    sides = [("good", side) for side in found.goods] + [("bad", side) for side in found.bads]
    _print_table(terminal, parting, sides)
    terminal.line()
    if parting.at is not None:
        _print_answers(terminal, parting, parting.columns[parting.at])
        terminal.line()
    _print_shared(terminal, parting)


def _group_headline(parting: GroupFinding) -> tuple[Span, Span]:
    runs = f"{plural(len(parting.goods), 'good run')}, {plural(len(parting.bads), 'bad run')}"
    if parting.at is not None:
        where = _column_label(parting.columns[parting.at])
        return Span("✗ ", "bold red"), Span(f"They part at step {where}: {runs}", "bold")
    if parting.shared:
        said = f"No answer tells them apart, but the bad runs share something: {runs}"
        return Span("≠ ", "bold yellow"), Span(said, "bold")
    return Span("✓ ", "bold green"), Span(f"Nothing tells them apart: {runs}", "bold")


def _column_label(column: MoveColumn) -> str:
    """The step of the first good run; where it made none, of the first run that did."""
    first = column.cells[0]
    if first is not None:
        return str(first.index)
    index = next(move.index for move in column.cells if move is not None)
    return f"{NO_STEP}/{index}"


def _print_table(terminal: Terminal, parting: GroupFinding, sides: Sequence[tuple[str, ComparedSession]]) -> None:
    """A row for each run, a column for each step; runs with the same letter said the same there."""
    names = [safe_line(side.session.start.name or "", 24) for _, side in sides]
    head = max(map(display_width, names)) + len("  good  7f3a2b9c  ") + 1
    start, end = _window(parting, room(terminal, head))
    labels = [_column_label(column) for column in parting.columns]
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
        line(Span(" " * head), [Span("^" if at == parting.at else "") for at in range(len(labels))], marks=True)


def _cell(column: MoveColumn, run: int, style: str, split: int) -> Span:
    answer = column.answers[run]
    if answer is None:
        return Span("·", "dim")
    letter = _LETTERS[answer] if answer < len(_LETTERS) else "*"
    told_apart = not set(column.answers[:split]) & set(column.answers[split:])
    return Span(letter, style if told_apart else "")


def _window(parting: GroupFinding, width: int) -> tuple[int, int]:
    """The columns that fit, the one where the runs part among them."""
    widths = [max(2, len(_column_label(column))) + 1 for column in parting.columns]
    if sum(widths) <= width:
        return 0, len(widths)
    at = parting.at or 0
    start = max(0, at - _BEFORE)
    sums = list(accumulate(widths[start:]))
    fits = sum(total <= width - 4 for total in sums)
    return start, min(len(widths), start + max(1, fits))


def _print_answers(terminal: Terminal, parting: GroupFinding, column: MoveColumn) -> None:
    """What each letter of the column stands for."""
    explained = set()
    for run, move, answer in zip(parting.runs, column.cells, column.answers, strict=True):
        if answer in explained:
            continue
        explained.add(answer)
        letter = "·" if answer is None else _LETTERS[answer] if answer < len(_LETTERS) else "*"
        said = "(no such step)" if move is None else safe_line(str(move_result(run, move)), 320)
        print_hanging(terminal, [(Span(said),)], label=f"  {letter}", indent=5, style="bold")


def _print_shared(terminal: Terminal, parting: GroupFinding) -> None:
    """What all bad runs have and no good one, shown by the first of either."""
    blocks: list[list[Line]] = []
    for shared in parting.shared:
        place = "" if shared.column == parting.at else f"from step {_column_label(parting.columns[shared.column])} on"
        title, *evidence = cause_lines(parting.as_cause(shared), place)
        blocks.append([title, *((Span("  "), *line) for line in evidence)])
    if not blocks:
        blocks = [[(Span("nothing in the requests is shared by all bad runs and absent from all good ones"),)]]
    print_causes(terminal, blocks, ("Shared", "Shared"), _FACTS)
