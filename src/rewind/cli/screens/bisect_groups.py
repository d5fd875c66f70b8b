"""Several good runs and several bad ones, for people: the screen of ``rewind bisect --good … --bad …``."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

from rewind.cli.screens.layout import Line, print_hanging, room
from rewind.cli.screens.terminal import Span, Terminal, hint
from rewind.compare.columns import MoveColumn
from rewind.compare.groups import GroupCause, GroupFinding, GroupVerdict, TestedFeature
from rewind.compare.phrases import NO_STEP, move_result
from rewind.compare.statistics import SplitEvidence
from rewind.reading.groups import GroupBisection
from rewind.safe import display_width, safe_line
from rewind.text import plural

_FACTS = 11
"""Columns of the labels."""
_LETTERS = "·BCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Of the decisions in a column, the most common one first."""
_BEFORE = 6
"""Columns before the parting that are shown where not all fit."""
_MOST_ROWS = 12
"""Rows of the map; runs that went the same way share one."""
_MOST_ANSWERS = 4
_MOST_TOGETHER = 8
_LONGEST_ANSWER = 150
_LONGEST_THING = 160


def print_groups(terminal: Terminal, found: GroupBisection) -> None:
    """Who decided what, where they part, and what tells good from bad."""
    parting = found.parting
    sign, headline = _headline(parting)
    print_hanging(terminal, [(headline,)], label=sign.text, indent=2, style=sign.style)
    terminal.line()
    _print_map(terminal, parting)
    terminal.line()
    if parting.at is not None:
        _print_answers(terminal, parting, parting.at)
    _print_causes(terminal, parting)
    if found.left_out:
        reasons = Counter(one.reason for one in found.left_out)
        told = "; ".join(f"{plural(count, 'run')}: {reason}" for reason, count in reasons.items())
        print_hanging(terminal, [(Span(told),)], label="Left out", indent=_FACTS)
    print_hanging(terminal, [(Span(_tested(parting), "dim"),)], label="Tested", indent=_FACTS)


def print_next_of_groups(terminal: Terminal, found: GroupBisection) -> None:
    """Two runs that stand for the others, in full."""
    parting = found.parting
    good, bad = found.goods[0], found.bads[0]
    if parting.causes:
        runs = parting.causes[0].runs
        with_it = [side for at, side in enumerate((*found.goods, *found.bads)) if at in runs]
        without = [side for at, side in enumerate((*found.goods, *found.bads)) if at not in runs]
        first, second = (with_it, without) if parting.causes[0].tested[0].is_in_bad else (without, with_it)
        bad = next((side for side in first if side in found.bads), bad)
        good = next((side for side in second if side in found.goods), good)
    terminal.line(hint(f"→ two of them in full: rewind bisect {good.ref} {bad.ref}"))


def _headline(parting: GroupFinding) -> tuple[Span, Span]:
    runs = f"{plural(len(parting.goods), 'good run')}, {plural(len(parting.bads), 'bad run')}"
    if parting.at is not None:
        where = _column_label(parting.columns[parting.at])
        return Span("✗ ", "bold red"), Span(f"They part at step {where}: {runs}", "bold")
    match parting.verdict:
        case GroupVerdict.CAUSE:
            said = f"No decision tells them apart, but something that was asked or given does: {runs}"
            return Span("≠ ", "bold yellow"), Span(said, "bold")
        case GroupVerdict.TOO_FEW:
            said = f"Not enough runs: {runs}; {_more(parting)}"
            return Span("? ", "bold yellow"), Span(said, "bold")
    return Span("✓ ", "bold green"), Span(f"Nothing tells them apart by more than chance: {runs}", "bold")


def _more(parting: GroupFinding) -> str:
    if parting.needed is None:
        return "hundreds more would not do"
    sides = zip(parting.needed, ("good", "bad"), strict=True)
    return "about " + " and ".join(f"{count} more {side}" for count, side in sides if count)


def _tested(parting: GroupFinding) -> str:
    test = parting.test
    deals = "in every way" if test.is_exact else "at random"
    patterns = plural(test.patterns, "pattern")
    return f"{patterns} of who has what; the labels dealt out {test.deals:,} times, {deals}, correct p for all of them"


# ── the map ──────────────────────────────────────────────────────────────────────────────────────────────────


def _column_label(column: MoveColumn) -> str:
    """The step of the first good run; where it made none, of the first run that did."""
    first = column.cells[0]
    if first is not None:
        return str(first.index)
    index = next(move.index for move in column.cells if move is not None)
    return f"{NO_STEP}/{index}"


def _letter(answer: int | None) -> str:
    """``·`` for what most decided, ``-`` where a run made no such step."""
    return "-" if answer is None else _LETTERS[answer] if answer < len(_LETTERS) else "*"


def _print_map(terminal: Terminal, parting: GroupFinding) -> None:
    """A row for the runs that went the same way, a column for each step; below, the columns that tell them apart."""
    labels = [_column_label(column) for column in parting.columns]
    widths = [max(2, len(label)) + 1 for label in labels]
    rows = [*_rows(parting, range(len(parting.goods)), "good", "green")]
    rows += _rows(parting, range(len(parting.goods), len(parting.runs)), "bad", "red")
    head = max(display_width(label) for label, answers, _ in rows if answers) + 2
    start, end = _window(widths, parting.at or 0, room(terminal, head))
    before, behind = "… " if start else "", " …" if end < len(labels) else ""

    def line(label: Span, cells: Sequence[Span]) -> None:
        shown = [Span(cells[at].text.rjust(widths[at]), cells[at].style) for at in range(start, end)]
        text = terminal.text(label, Span(before, "dim"), *shown, Span(behind, "dim"))
        terminal.write(text.rstrip() + "\n")

    line(Span("  step".ljust(head), "dim"), [Span(label, "dim") for label in labels])
    for label, answers, style in rows:
        if not answers:
            terminal.line(Span(label, "dim"))
            continue
        cells = [
            Span(_letter(answer), style if number in parting.deciding else "") for number, answer in enumerate(answers)
        ]
        line(Span(label + " " * (head - display_width(label))), cells)
    if parting.deciding:
        marks = ["^" if at == parting.at else "'" if at in parting.deciding else "" for at in range(len(labels))]
        before, behind = " " * len(before), ""
        line(Span(" " * head), [Span(mark) for mark in marks])


def _rows(
    parting: GroupFinding, runs: Sequence[int], side: str, style: str
) -> Iterator[tuple[str, tuple[int | None, ...], str]]:
    """Runs that went the same way share a row; the usual way first."""
    ways: dict[tuple[int | None, ...], list[int]] = {}
    for run in runs:
        ways.setdefault(tuple(column.answers[run] for column in parting.columns), []).append(run)
    ordered = sorted(ways.items(), key=lambda way: -len(way[1]))
    most = _MOST_ROWS // 2
    for answers, members in ordered[: most if len(ordered) > most else None]:
        session = parting.runs[members[0]].recording.session
        name = session.id if len(members) == 1 else f"×{len(members)}"
        yield f"  {side:<4}  {name}", answers, style
    if rest := ordered[most:]:
        yield f"  {side:<4}  ×{sum(len(members) for _, members in rest)}, each its own way", (), style


def _window(widths: Sequence[int], at: int, width: int) -> tuple[int, int]:
    """The columns that fit, the one where the runs part among them."""
    if sum(widths) <= width:
        return 0, len(widths)
    start = max(0, at - _BEFORE)
    fits = sum(total <= width - 4 for total in accumulate(widths[start:]))
    return start, min(len(widths), start + max(1, fits))


# ── what is decided, and what tells them apart ───────────────────────────────────────────────────────────────


def _print_answers(terminal: Terminal, parting: GroupFinding, at: int) -> None:
    """What the letters of the column stand for, the one that tells most first."""
    column = parting.columns[at]
    split = len(parting.goods)
    counts = Counter(column.answers)
    blocks: list[Line] = []
    for answer, _ in counts.most_common(_MOST_ANSWERS):
        runs = [run for run, one in enumerate(column.answers) if one == answer]
        move = column.cells[runs[0]]
        said = "(no such step)" if move is None else str(move_result(parting.runs[runs[0]], move))
        good = sum(run < split for run in runs)
        rates = f"{good} of {split} good, {len(runs) - good} of {len(column.answers) - split} bad: "
        blocks.append((Span(f"{_letter(answer)}  ", "bold"), Span(rates), Span(safe_line(said, _LONGEST_ANSWER))))
    if len(counts) > _MOST_ANSWERS:
        blocks.append((Span(f"… {plural(len(counts) - _MOST_ANSWERS, 'other decision')}", "dim"),))
    blocks.append((Span(_chance(parting.deciding[at].evidence), "dim"),))
    print_hanging(terminal, blocks, label=f"Step {_column_label(column)}", indent=_FACTS, style="bold")


def _print_causes(terminal: Terminal, parting: GroupFinding) -> None:
    match parting.verdict:
        case GroupVerdict.CAUSE:
            label, causes = ("Cause" if len(parting.causes) == 1 else "Causes"), parting.causes
        case GroupVerdict.PARTING:
            said = (
                "nothing that was asked or given tells them apart: the models chose otherwise, or it was not recorded"
            )
            print_hanging(terminal, [(Span(said),)], label="Cause", indent=_FACTS, style="bold")
            return
        case _:
            label, causes = "Nearest", parting.nearest
    for number, cause in enumerate(causes):
        lines = list(_cause_lines(parting, cause))
        print_hanging(terminal, lines, label=label if not number else "", indent=_FACTS, style="bold")
    if parting.verdict is GroupVerdict.NOTHING and parting.nearest:
        print_hanging(terminal, [(Span(f"if that goes on, {_more(parting)} would tell"),)], indent=_FACTS)


def _cause_lines(parting: GroupFinding, cause: GroupCause) -> Iterator[Line]:
    first, *others = cause.tested
    place = f": {safe_line(first.feature.shown_place, 60)}" if first.feature.shown_place else ""
    where = "" if cause.column == parting.at else f", from step {_column_label(parting.columns[cause.column])} on"
    yield Span(f"{cause.kind.value}{place}", "bold"), Span(where, "dim")
    yield Span("  "), _thing(first)
    yield Span(f"  {_rates(first)}"), Span(f" · {_chance(first.evidence)}", "dim")
    if others:
        yield (Span(f"  always together with {'it' if len(others) == 1 else 'it, and not to be told apart'}:", "dim"),)
        yield from _together(first, others[:_MOST_TOGETHER])
        if len(others) > _MOST_TOGETHER:
            yield (Span(f"    … and {len(others) - _MOST_TOGETHER} more", "dim"),)


def _together(first: TestedFeature, others: Sequence[TestedFeature]) -> Iterator[Line]:
    """What stands in one place in one line."""
    places: dict[str, list[TestedFeature]] = {}
    for one in others:
        kind = one.feature.kind.value if one.feature.kind is not None else ""
        named = ": ".join(word for word in (kind, one.feature.shown_place) if word)
        same = (one.feature.kind, one.feature.place) == (first.feature.kind, first.feature.place)
        places.setdefault("" if same else f"{named}: ", []).append(one)
    for named, things in places.items():
        between = [part for one in things for part in (Span("  "), _thing(one))]
        yield Span("    "), Span(named, "dim"), *between[1:]


def _thing(one: TestedFeature) -> Span:
    """What the bad runs have more often, with ``+``; what they lack, with ``−``."""
    text, is_in_bad = one.feature.text, one.is_in_bad
    if not is_in_bad and one.feature.opposite:
        text, is_in_bad = one.feature.opposite, True
    sign, style = ("+", "green") if is_in_bad else ("−", "red")
    return Span(f"{sign} {safe_line(text, _LONGEST_THING)}", style)


def _rates(one: TestedFeature) -> str:
    found = one.evidence
    good, bad = found.good_with, found.bad_with
    if not one.is_in_bad and one.feature.opposite:
        good, bad = found.good_without, found.bad_without
    goods, bads = found.good_with + found.good_without, found.bad_with + found.bad_without
    return f"in {bad} of {bads} bad runs, {good} of {goods} good ones"


def _chance(evidence: SplitEvidence) -> str:
    """The p of this one thing, and that which counts everything that was looked at."""
    alone, corrected = _p(evidence.p), _p(evidence.adjusted)
    return f"p {alone}" + ("" if alone == corrected else f", corrected {corrected}")


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"{value:.2g}"
