"""What two sessions come to side by side, for people: steps, tokens, cost, time, and a ribbon of all rows."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from rewind.cli.comparing import Side
from rewind.cli.screens.paragraph import print_hanging
from rewind.cli.screens.terminal import Span, Terminal
from rewind.compare.summary import Likeness, Summary
from rewind.store.catalog.totals import Totals
from rewind.text import UNKNOWN, amount, dollars, duration, plural
from rewind.views.compare import seconds_of, tokens_of

SIGNS = {
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
_INDENT = 8
_LONG_RUN = 12
"""Rows of one kind that the ribbon shows one by one; of more it says how many."""


def print_summary(
    terminal: Terminal, sides: Sequence[Side], summary: Summary, totals: Sequence[Totals]
) -> None:
    """What each of them comes to."""
    for side in sides:
        if not side.run.moves:
            terminal.line(Span(f"{side.id} has no steps", "yellow"))
    counts = summary.counts
    steps = (
        f"{summary.equal} equal",
        f"{summary.changed} changed",
        f"{counts[Likeness.ONLY_A]} only in a",
        f"{counts[Likeness.ONLY_B]} only in b",
    )
    print_hanging(terminal, [(Span(" · ".join(steps)),)], label="steps", indent=_INDENT)
    if asides := " · ".join(_asides(summary)):
        print_hanging(terminal, [(Span(asides, "dim"),)], indent=_INDENT)
    for label, text in _figures(sides, totals):
        print_hanging(terminal, [(Span(text),)], label=label, indent=_INDENT)


def print_ribbon(terminal: Terminal, kinds: Sequence[Likeness]) -> None:
    """A sign for each row, in order, and what the signs mean."""
    signs: list[Span] = []
    for kind, run in groupby(kinds):
        sign, style = SIGNS[kind]
        number = len(list(run))
        long = number > _LONG_RUN
        signs += [Span(f"{sign}×{number:,} ", style)] if long else [Span(f"{sign} ", style)] * number
    print_hanging(terminal, [tuple(signs)], indent=0)
    legend = (f"{SIGNS[kind][0]} {name}" for kind, name in _LEGEND.items() if kind in kinds)
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


def _figures(sides: Sequence[Side], totals: Sequence[Totals]) -> Iterator[tuple[str, str]]:
    yield "tokens", _change([tokens_of(one) for one in totals], lambda value: f"{value:,.0f}")
    shown = " → ".join(dollars(one.cost, one.unpriced) for one in totals)
    # A sum that some calls are missing from cannot be set against another.
    whole = [one.cost if not one.unpriced else None for one in totals]
    yield "cost", shown + _delta(whole, amount)
    yield "time", _change([seconds_of(side.session) for side in sides], duration)


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
