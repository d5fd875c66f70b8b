"""What differs between two sessions, for people: the screen of ``rewind diff``."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from rewind.cli.screens.difference import MOST, difference_lines
from rewind.cli.screens.facts import status
from rewind.cli.screens.layout import Line, print_hanging, room
from rewind.cli.screens.terminal import Span, Terminal, hint
from rewind.compare.align import Row
from rewind.compare.comparison import Comparison, Relation
from rewind.compare.delta import Aspect, Difference
from rewind.compare.phrases import ASPECT_NAMES, move_result, step_label
from rewind.compare.summary import Likeness, RowChange, Summary, likeness
from rewind.conversation.context import Fate, context_of
from rewind.dataclass import dataclass
from rewind.model.message import Asked
from rewind.model.session import Session, Status
from rewind.reading.compare import ComparedSession, SessionDiff
from rewind.safe import display_width, safe_line
from rewind.text import NONE, UNKNOWN, amount, dollars, duration, minute, plural
from rewind.views.compare import seconds_of, tokens_of

_SIGNS = {
    Likeness.SAME: ("=", "dim"),
    Likeness.VOLATILE: ("~", "dim"),
    Likeness.REWORDED: ("≈", "yellow"),
    Likeness.CHANGED: ("≠", "red"),
    Likeness.ONLY_A: ("−", "red"),
    Likeness.ONLY_B: ("+", "green"),
}
_LEGEND = {
    Likeness.SAME: "same",
    Likeness.VOLATILE: "only ids and times",
    Likeness.REWORDED: "reworded",
    Likeness.CHANGED: "changed",
    Likeness.ONLY_A: "only in a",
    Likeness.ONLY_B: "only in b",
}
_FIGURES_INDENT = 8
_LONG_RUN = 12
"""Rows of one kind that the ribbon shows one by one; of more it says how many."""
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
_ROWS_INDENT = 17
_MOST_CHANGES = 40
"""Groups of steps that are shown where not all are asked for."""
_MOST_ALONE = 6
"""Steps in a row that only one run made, and that are shown one by one."""
_LONGEST_NAME = 40
_MOST_DAMAGED = 8


def print_diff(terminal: Terminal, found: SessionDiff, *, stat: bool = False, full: bool = False) -> None:
    """The whole screen: a line for each row with ``stat``, nothing folded with ``full``."""
    print_sides(terminal, [("a", found.a.session), ("b", found.b.session)])
    terminal.line()
    if found.summary is not None:
        _print_summary(terminal, found, found.summary)
        terminal.line()
    screen = _Rows(terminal=terminal, found=found, full=full)
    if stat:
        screen.print_stat()
    elif found.is_same():
        screen.print_same()
    else:
        screen.print_changes()


def print_sides(terminal: Terminal, sides: Sequence[tuple[str, Session]]) -> None:
    """A line for each session, with what it is called here; a narrow screen does without when it began."""
    names = [safe_line(session.start.name or "", _LONGEST_NAME) for _, session in sides]
    name_width = max(map(display_width, names), default=0)
    states = [status(session) for _, session in sides]
    state_width = max(display_width(state.text) for state in states)
    label_width = max(len(label) for label, _ in sides)
    fits = label_width + name_width + state_width + len("2026-11-15 09:14 UTC") + 20 <= terminal.width
    for (label, session), name, state in zip(sides, names, states, strict=True):
        filler = " " * (name_width - display_width(name) + 2 if name_width else 0)
        began = " " * (state_width - display_width(state.text) + 2) + (
            minute(session.start.started) if session.start.dated else NONE
        )
        terminal.line(
            Span(f"  {label:<{label_width}}  ", "dim"),
            Span(session.id, "bold"),
            f"  {name}{filler}",
            state,
            Span(began if fits else "", "dim"),
        )


def print_warnings(terminal: Terminal, sides: Sequence[ComparedSession]) -> None:
    """What of the sessions is damaged, or still goes on. For when all that is shown has been read."""
    for side in {side.id: side for side in sides}.values():
        damage = [*side.run.recording.damage]
        if side.damaged:
            indexes = sorted(side.damaged)
            more = ", …" if len(indexes) > _MOST_DAMAGED else ""
            steps = ", ".join(map(str, indexes[:_MOST_DAMAGED])) + more
            damage.append(f"bodies of step{'s' * (len(indexes) > 1)} {steps} are damaged and count as empty here")
        for problem in damage:
            terminal.line(Span(f"{side.id}: {problem}; ", "yellow"), hint(f"rewind verify {side.ref}", "yellow"))
        if side.session.status is Status.RUNNING:
            steps = plural(side.steps, "step")
            terminal.line(Span(f"{side.id} is still running; compared as it stands, after {steps}", "yellow"))


# ── what they come to ───────────────────────────────────────────────────────────────────────────────────────────────


def _print_summary(terminal: Terminal, found: SessionDiff, summary: Summary) -> None:
    """What each of them comes to."""
    for side in found.sides:
        if not side.run.moves:
            terminal.line(Span(f"{side.id} has no steps", "yellow"))
    counts = summary.counts
    steps = (
        f"{summary.equal} equal",
        f"{summary.changed} changed",
        f"{counts[Likeness.ONLY_A]} only in a",
        f"{counts[Likeness.ONLY_B]} only in b",
    )
    print_hanging(terminal, [(Span(" · ".join(steps)),)], label="steps", indent=_FIGURES_INDENT)
    uploads = [total.telemetry for total in found.totals]
    telemetry = [f"telemetry uploads, not compared: {uploads[0]} → {uploads[1]}"] if any(uploads) else []
    if asides := " · ".join([*_asides(summary), *telemetry]):
        print_hanging(terminal, [(Span(asides, "dim"),)], indent=_FIGURES_INDENT)
    for label, text in _figures(found):
        print_hanging(terminal, [(Span(text),)], label=label, indent=_FIGURES_INDENT)


def _print_ribbon(terminal: Terminal, kinds: Sequence[Likeness]) -> None:
    """A sign for each row, in order, and what the signs mean."""
    signs: list[Span] = []
    for kind, run in groupby(kinds):
        sign, style = _SIGNS[kind]
        number = len(list(run))
        long = number > _LONG_RUN
        signs += [Span(f"{sign}×{number:,} ", style)] if long else [Span(f"{sign} ", style)] * number
    print_hanging(terminal, [tuple(signs)], indent=0)
    legend = (f"{_SIGNS[kind][0]} {name}" for kind, name in _LEGEND.items() if kind in kinds)
    print_hanging(terminal, [(Span(" · ".join(legend), "dim"),)], indent=0)


def _asides(summary: Summary) -> Iterator[str]:
    """What is no difference, or hardly one."""
    counts = summary.counts
    if volatile := counts[Likeness.VOLATILE]:
        yield f"{plural(volatile, 'step')} only in ids and times"
    if reworded := counts[Likeness.REWORDED]:
        yield f"{plural(reworded, 'answer')} only reworded"
    if summary.reordered:
        yield f"{plural(summary.reordered, 'step')} in another order"
    if summary.retried:
        yield f"{plural(summary.retried, 'step')} with more tries in one run"


def _figures(found: SessionDiff) -> Iterator[tuple[str, str]]:
    totals = found.totals
    yield "tokens", _change([tokens_of(total) for total in totals], lambda value: f"{value:,.0f}")
    shown = " → ".join(dollars(total.cost, total.unpriced) for total in totals)
    # A sum that some calls are missing from cannot be set against another.
    whole = [total.cost if not total.unpriced else None for total in totals]
    yield "cost", shown + _delta(whole, amount)
    yield "time", _change([seconds_of(side.session) for side in found.sides], duration)


def _change(values: Sequence[float | None], shown: Callable[[float], str]) -> str:
    both = " → ".join(UNKNOWN if value is None else shown(value) for value in values)
    return both + _delta(values, shown)


def _delta(values: Sequence[float | None], shown: Callable[[float], str]) -> str:
    a, b = values
    if a is None or b is None:
        return ""
    size = shown(abs(b - a))
    if size == shown(0):
        return " (no change)"
    return f" ({'+' if b > a else '−'}{size})"


# ── row by row ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Where rows are shown, and of what."""

    terminal: Terminal
    found: SessionDiff
    full: bool = False
    """Whether nothing is folded."""

    @property
    def comparison(self) -> Comparison:
        return self.found.comparison

    def print_same(self) -> None:
        """Where there is nothing to show, that is said."""
        rows, only = self.found.rows, self.found.only
        what = f"step {step_label(rows[0])}" if len(rows) == 1 else plural(len(rows), "step")
        volatile = any(likeness(self.comparison, row) is Likeness.VOLATILE for row in rows)
        but = f" in {', '.join(only)}" if only else ", except for ids and times" if volatile else ""
        self.terminal.line(Span("✓ ", "green"), f"the same{but}: {what}" if rows else "the same: no steps")

    def print_stat(self) -> None:
        """A ribbon, then a line for each row; rows of one kind that need no words share one."""
        rows = self.found.rows
        kinds = [likeness(self.comparison, row) for row in rows]
        _print_ribbon(self.terminal, kinds)
        self.terminal.line()
        keyed = [(self._stat_key(row), row) for row in rows]
        groups = [(kind, text, [row for _, row in run]) for (kind, text), run in groupby(keyed, key=itemgetter(0))]
        width = max((len(_steps(group)) for _, _, group in groups), default=0)
        for kind, text, group in groups:
            sign, style = _SIGNS[kind]
            number = f"{plural(len(group), 'step')}  " if len(group) > 1 else ""
            line = safe_line(f"{_steps(group):<{width}}  {number}{text}", room(self.terminal, 3))
            self.terminal.line(Span(f"{sign}  ", style), Span(line, "dim" if style == "dim" else ""))

    def print_changes(self) -> None:
        """The rows that differ, in order."""
        found = self.found
        left = list(_merged(found.rows, found.changes(), alone=not found.only))
        for number, (_, run) in enumerate(groupby(tuple(left), key=_group)):
            if number:
                self.terminal.line()
            if number >= _MOST_CHANGES and not self.full:
                more = plural(len(left), "more step")
                self.terminal.line(Span(f"… and {more} that differ: --full shows them, --stat a line each", "dim"))
                return
            group = list(run)
            del left[: len(group)]
            if isinstance(group[0], Row):
                self._print_alone([row for row in group if isinstance(row, Row)])
            else:
                self._print_group([change for change in group if isinstance(change, RowChange)])

    def _print_change(self, change: RowChange) -> None:
        """One row that differs: a heading, then aspect by aspect."""
        row = change.row
        sign, style = _SIGNS[likeness(self.comparison, row)]
        self.terminal.line(
            Span(f"{sign} ", style), Span(f"Step {step_label(row)}", "bold"), Span(_tries(row, change.relation), "dim")
        )
        counted = False
        for aspect in _ORDER:
            if aspect in change.repeated:
                self._hang(ASPECT_NAMES[aspect], [(Span(f"as at step {step_label(change.repeated[aspect])}", "dim"),)])
                continue
            own = [difference for difference in change.differences if difference.aspect is aspect]
            if own and aspect in _MESSAGES and not counted and row.a is not None and row.a.sketch is not None:
                self._hang("messages", [(Span(self._message_counts(row), "dim"),)])
                counted = True
            if own:
                self._hang(ASPECT_NAMES[aspect], [line for difference in own for line in self._lines(difference)])
        if change.relation.inherited:
            self._hang("", [(Span("the history differs as the steps before do", "dim"),)])

    def _print_group(self, changes: Sequence[RowChange]) -> None:
        """Rows in which nothing is new are told in one line."""
        first, last = changes[0], changes[-1]
        if first.differences:
            self._print_change(first)
            return
        sign, style = _SIGNS[Likeness.CHANGED]
        facts = (f"{ASPECT_NAMES[aspect]} as at step {step_label(row)}" for aspect, row in first.repeated.items())
        steps = f"{'Step' if first is last else 'Steps'} {_steps([first.row, last.row])}"
        self.terminal.line(Span(f"{sign} ", style), Span(steps, "bold"), Span(f"  {', '.join(facts)}", "dim"))

    def _print_alone(self, rows: Sequence[Row]) -> None:
        """Steps that only one run made, a line each."""
        hidden = 0 if self.full or len(rows) <= _MOST_ALONE else len(rows) - _MOST_ALONE
        for at, row in enumerate(rows):
            if hidden and at == _MOST_ALONE - 1:
                self.terminal.line(Span(f"  … {plural(hidden, 'step')}", "dim"))
            if hidden and _MOST_ALONE - 1 <= at < len(rows) - 1:
                continue
            sign, style = _SIGNS[likeness(self.comparison, row)]
            (move,) = row.moves
            head, where = f"Step {move.index}", f"  only in {'a' if row.b is None else 'b'}  "
            text = safe_line(self._said(row), room(self.terminal, len(head + where) + 2))
            self.terminal.line(Span(f"{sign} ", style), Span(head, "bold"), Span(where, "dim"), text)

    def _said(self, row: Row) -> str:
        side, move = (self.found.b, row.b) if row.b is not None else (self.found.a, row.a)
        assert move is not None, "a row has a move"
        return str(move_result(side.run, move))

    def _stat_key(self, row: Row) -> tuple[Likeness, str]:
        """Equal for rows that share a line."""
        kind = likeness(self.comparison, row)
        match kind:
            case Likeness.SAME | Likeness.VOLATILE:
                return kind, ""
            case Likeness.ONLY_A | Likeness.ONLY_B:
                return kind, "" if self.found.only else self._said(row)
        changed = self.comparison.relation(row).changed & self.found.aspects
        return kind, ", ".join(ASPECT_NAMES[aspect] for aspect in _ORDER if aspect in changed)

    def _lines(self, difference: Difference) -> list[Line]:
        most = None if self.full else MOST
        lines = difference_lines(difference, most=most)
        if difference.aspect is Aspect.TOOL_OUTPUT and difference.about:
            return [(Span(difference.about),), *lines]
        return lines

    def _hang(self, label: str, lines: Sequence[Line]) -> None:
        print_hanging(self.terminal, lines, label=f"  {label}", indent=_ROWS_INDENT)

    def _message_counts(self, row: Row) -> str:
        """How many messages there are, by what became of them."""
        assert row.a is not None and row.b is not None, "two moves are compared"
        messages = [
            message
            for message in self.comparison.differences(row)
            if message.aspect in _MESSAGES and message.noise is None
        ]
        counts = {fate: sum(message.fate is fate for message in messages) for fate in Fate}
        run = self.found.b.run
        asked, held = run.asked(row.b.index), run.held(row.b)
        entries = len(context_of(Asked(messages=(*held, *asked.messages))))
        here = sum(number for fate, number in counts.items() if fate is not Fate.DROPPED)
        shown = counts | {Fate.SAME: max(0, entries - here)}
        return ", ".join(f"{number} {fate.value}" for fate, number in shown.items() if number)


def _merged(rows: Sequence[Row], changes: Iterator[RowChange], *, alone: bool) -> Iterator[RowChange | Row]:
    """What differs, in the order of the rows; ``alone`` with the steps that only one run made."""
    coming = next(changes, None)
    for row in rows:
        if coming is not None and coming.row is row:
            yield coming
            coming = next(changes, None)
        elif alone and (row.a is None or row.b is None):
            yield row


def _group(change: RowChange | Row) -> object:
    """Equal for rows that are told together."""
    if isinstance(change, Row):
        return Likeness.ONLY_A if change.b is None else Likeness.ONLY_B
    if change.differences:
        return id(change)
    return tuple((aspect, id(earlier)) for aspect, earlier in change.repeated.items())


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
