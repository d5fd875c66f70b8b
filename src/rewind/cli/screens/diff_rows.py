"""What differs in the rows of two sessions, for people."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rewind.cli.comparing import Side
from rewind.cli.screens.diff_summary import SIGNS, print_ribbon
from rewind.cli.screens.difference import MOST, difference_lines
from rewind.cli.screens.paragraph import Line, print_hanging, room
from rewind.cli.screens.terminal import Span, Terminal
from rewind.compare.align import Row
from rewind.compare.comparison import Comparison, Relation
from rewind.compare.delta import Aspect, Difference
from rewind.compare.move_result import saying_of
from rewind.compare.phrases import ASPECT_NAMES, step_label
from rewind.compare.summary import Likeness, RowChange, likeness
from rewind.conversation.context import Fate, context_of
from rewind.model.message import Asked
from rewind.safe import safe_line
from rewind.text import plural

_ORDER = (
    Aspect.SYSTEM,
    Aspect.INPUT,
    Aspect.TOOL_OUTPUT,
    Aspect.HISTORY,
    Aspect.TOOLS,
    Aspect.PARAMETERS,
    Aspect.MODEL,
    Aspect.SNAPSHOT,
    Aspect.ANSWER,
    Aspect.CALLS,
    Aspect.STATUS,
)
"""What is asked in the order in which a model reads it, then what comes back."""
_MESSAGES = frozenset({Aspect.INPUT, Aspect.TOOL_OUTPUT, Aspect.HISTORY})
_INDENT = 17
_MOST_CHANGES = 40
"""Groups of steps that are shown where not all are asked for."""
_MOST_ALONE = 6
"""Steps in a row that only one run made, and that are shown one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """Where rows are shown, and of what."""

    terminal: Terminal
    comparison: Comparison
    sides: Sequence[Side]
    full: bool = False
    """Whether nothing is folded."""

    def print_same(self, rows: Sequence[Row], only: Sequence[str]) -> None:
        """Where there is nothing to show, that is said; ``only`` names what was looked at, if not all was."""
        what = f"step {step_label(rows[0])}" if len(rows) == 1 else plural(len(rows), "step")
        volatile = any(likeness(self.comparison, row) is Likeness.VOLATILE for row in rows)
        but = f" in {', '.join(only)}" if only else ", but for ids and times" if volatile else ""
        self.terminal.line(Span("✓ ", "green"), f"the same{but}: {what}" if rows else "the same: no steps")

    def print_stat(self, rows: Sequence[Row], aspects: frozenset[Aspect], *, alone: bool) -> None:
        """A ribbon, then a line for each row; rows of one kind that need no words share one."""
        kinds = [likeness(self.comparison, row) for row in rows]
        print_ribbon(self.terminal, kinds)
        self.terminal.line()
        told = [(self._stat_key(row, aspects, alone=alone), row) for row in rows]
        groups = [
            (kind, text, [row for _, row in run])
            for (kind, text), run in groupby(told, key=lambda one: one[0])
        ]
        width = max((len(_steps(group)) for _, _, group in groups), default=0)
        for kind, text, group in groups:
            sign, style = SIGNS[kind]
            number = f"{plural(len(group), 'step')}  " if len(group) > 1 else ""
            line = safe_line(f"{_steps(group):<{width}}  {number}{text}", room(self.terminal, 3))
            self.terminal.line(Span(f"{sign}  ", style), Span(line, "dim" if style == "dim" else ""))

    def print_changes(self, rows: Sequence[Row], changes: Iterator[RowChange], *, alone: bool) -> None:
        """The rows that differ, in order; ``alone`` with the steps that only one run made."""
        left = list(_merged(rows, changes, alone=alone))
        for number, (_, run) in enumerate(groupby(tuple(left), key=_group)):
            if number:
                self.terminal.line()
            if number >= _MOST_CHANGES and not self.full:
                more = plural(len(left), "more step")
                self.terminal.line(
                    Span(f"… and {more} that differ: --full shows them, --stat a line each", "dim")
                )
                return
            group = list(run)
            del left[: len(group)]
            if isinstance(group[0], Row):
                self._print_alone([one for one in group if isinstance(one, Row)])
            else:
                self._print_group([one for one in group if isinstance(one, RowChange)])

    def print_change(self, change: RowChange) -> None:
        """One row that differs: a heading, then aspect by aspect."""
        row = change.row
        sign, style = SIGNS[likeness(self.comparison, row)]
        self.terminal.line(
            Span(f"{sign} ", style),
            Span(f"Step {step_label(row)}", "bold"),
            Span(_tries(row, change.relation), "dim"),
        )
        counted = False
        for aspect in _ORDER:
            if aspect in change.repeated:
                self._hang(
                    ASPECT_NAMES[aspect],
                    [(Span(f"as at step {step_label(change.repeated[aspect])}", "dim"),)],
                )
                continue
            own = [one for one in change.differences if one.aspect is aspect]
            if own and aspect in _MESSAGES and not counted and row.a is not None and row.a.sketch is not None:
                self._hang("messages", [(Span(self._message_counts(row), "dim"),)])
                counted = True
            if own:
                self._hang(ASPECT_NAMES[aspect], [line for one in own for line in self._lines(one)])
        if change.relation.inherited:
            self._hang("", [(Span("the history differs as the steps before do", "dim"),)])

    def _print_group(self, changes: Sequence[RowChange]) -> None:
        """Rows in which nothing is new are told in one line."""
        first, last = changes[0], changes[-1]
        if first.differences:
            self.print_change(first)
            return
        sign, style = SIGNS[Likeness.CHANGED]
        told = (
            f"{ASPECT_NAMES[aspect]} as at step {step_label(row)}" for aspect, row in first.repeated.items()
        )
        steps = f"{'Step' if first is last else 'Steps'} {_steps([first.row, last.row])}"
        self.terminal.line(Span(f"{sign} ", style), Span(steps, "bold"), Span(f"  {', '.join(told)}", "dim"))

    def _print_alone(self, rows: Sequence[Row]) -> None:
        """Steps that only one run made, a line each."""
        hidden = 0 if self.full or len(rows) <= _MOST_ALONE else len(rows) - _MOST_ALONE
        for at, row in enumerate(rows):
            if hidden and at == _MOST_ALONE - 1:
                self.terminal.line(Span(f"  … {plural(hidden, 'step')}", "dim"))
            if hidden and _MOST_ALONE - 1 <= at < len(rows) - 1:
                continue
            sign, style = SIGNS[likeness(self.comparison, row)]
            (move,) = row.moves
            head, where = f"Step {move.index}", f"  only in {'a' if row.b is None else 'b'}  "
            text = safe_line(self._said(row), room(self.terminal, len(head + where) + 2))
            self.terminal.line(Span(f"{sign} ", style), Span(head, "bold"), Span(where, "dim"), text)

    def _said(self, row: Row) -> str:
        side, move = (self.sides[1], row.b) if row.b is not None else (self.sides[0], row.a)
        assert move is not None, "a row has a move"
        return str(saying_of(side.run, move))

    def _stat_key(self, row: Row, aspects: frozenset[Aspect], *, alone: bool) -> tuple[Likeness, str]:
        """Equal for rows that share a line."""
        kind = likeness(self.comparison, row)
        match kind:
            case Likeness.SAME | Likeness.VOLATILE:
                return kind, ""
            case Likeness.ONLY_A | Likeness.ONLY_B:
                return kind, self._said(row) if alone else ""
        changed = self.comparison.relation(row).changed & aspects
        return kind, ", ".join(ASPECT_NAMES[aspect] for aspect in _ORDER if aspect in changed)

    def _lines(self, one: Difference) -> list[Line]:
        most = None if self.full else MOST
        lines = difference_lines(one, most=most)
        if one.aspect is Aspect.TOOL_OUTPUT and one.about:
            return [(Span(one.about),), *lines]
        return lines

    def _hang(self, label: str, lines: Sequence[Line]) -> None:
        print_hanging(self.terminal, lines, label=f"  {label}", indent=_INDENT)

    def _message_counts(self, row: Row) -> str:
        """How many messages there are, by what became of them."""
        assert row.a is not None and row.b is not None, "two moves are compared"
        found = [
            one for one in self.comparison.differences(row) if one.aspect in _MESSAGES and one.noise is None
        ]
        counts = {fate: sum(one.fate is fate for one in found) for fate in Fate}
        run = self.sides[1].run
        asked, held = run.asked(row.b.index), run.held(row.b)
        entries = len(context_of(Asked(messages=(*held, *asked.messages))))
        here = sum(number for fate, number in counts.items() if fate is not Fate.DROPPED)
        told = counts | {Fate.SAME: max(0, entries - here)}
        return ", ".join(f"{number} {fate.value}" for fate, number in told.items() if number)


def _merged(rows: Sequence[Row], changes: Iterator[RowChange], *, alone: bool) -> Iterator[RowChange | Row]:
    """What differs, in the order of the rows."""
    coming = next(changes, None)
    for row in rows:
        if coming is not None and coming.row is row:
            yield coming
            coming = next(changes, None)
        elif alone and (row.a is None or row.b is None):
            yield row


def _group(one: RowChange | Row) -> object:
    """Equal for rows that are told together."""
    if isinstance(one, Row):
        return Likeness.ONLY_A if one.b is None else Likeness.ONLY_B
    if one.differences:
        return id(one)
    return tuple((aspect, id(earlier)) for aspect, earlier in one.repeated.items())


def _steps(rows: Sequence[Row]) -> str:
    """``3``; ``4 / 5``; ``4–9`` for more than one."""
    first, last = rows[0], rows[-1]
    if first is last:
        return step_label(first)
    return "–".join(step_label(row).replace(" ", "") for row in (first, last))


def _tries(row: Row, relation: Relation) -> str:
    if not relation.retried or row.a is None or row.b is None:
        return ""
    return f"  ({plural(len(row.a.failures) + 1, 'try', 'tries')} in a, {len(row.b.failures) + 1} in b)"
