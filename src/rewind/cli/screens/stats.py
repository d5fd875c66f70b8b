"""What the recorded calls come to, for people: a table, bars for the days, and what replays saved."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from rewind.cli.screens.layout import Cell, Column, print_table
from rewind.cli.screens.terminal import Span, Terminal, err, hint, out
from rewind.pricing.report import Day, Figures, Report
from rewind.reading.stats import UsageStats
from rewind.text import amount, dollars, number, plural

SHOWN = 30
"""Groups in the table; the others are summed up below it."""
_WIDEST_CHART = 90
_LEAST_CHART = 21
_NOT_TOLD = "(unknown)"
_SPARE = {"thinking": 6, "first ms": 5, "cached": 4, "p95 ms": 3, "retries": 2, "p50 ms": 1}
_FIGURES = tuple(
    Column(title, right=True, spare=_SPARE.get(title, 0))
    for title in (
        *("calls", "in", "cached", "out", "thinking", "cost"),
        *("p50 ms", "p95 ms", "first ms", "errors", "retries"),
    )
)


def print_stats(stats: UsageStats) -> None:
    """The screen of ``rewind stats``."""
    report = stats.report
    if not report.total.calls:
        err().line(f"No LLM call is recorded in {stats.home} {_when(report)}.")
        err().line(hint("→ rewind list · rewind stats --days 0"))
    else:
        _show(out(), report)
    if report.damaged_lines:
        lines = plural(report.damaged_lines, "damaged line")
        err().line(hint(f"{lines} not counted: rewind verify names them", "yellow"))
    uncounted = [plural(report.other_steps, "other step")] if report.other_steps else []
    uncounted += [plural(report.telemetry, "telemetry upload")] if report.telemetry else []
    if uncounted:
        err().line(Span(f"{' and '.join(uncounted)} not counted: not LLM calls", "dim"))
    if stats.price_warning:
        err().line(Span(stats.price_warning, "yellow"))


def _show(terminal: Terminal, report: Report) -> None:
    terminal.line(
        Span(plural(report.total.calls, "LLM call"), "bold"),
        f" in {plural(report.sessions, 'session')} {_when(report)}",
    )
    terminal.line()
    _print_groups(terminal, report)
    _print_chart(terminal, report)
    _print_money(terminal, report)


def _when(report: Report) -> str:
    return "on any day" if report.first is None else f"from {report.first} to {report.last} (UTC)"


def _print_groups(terminal: Terminal, report: Report) -> None:
    rows: list[Sequence[Cell]] = [
        [group.key or Span(_NOT_TOLD, "dim"), *_cells(group.figures)] for group in report.groups[:SHOWN]
    ]
    if len(report.groups) != 1:
        rows.append([Span("total", "bold"), *_cells(report.total)])
    left_out = print_table(terminal, (Column(report.by.value, flexible=True, least=16), *_FIGURES), rows)
    if left_out:
        terminal.line(Span(f"a wider screen also shows: {', '.join(left_out)}", "dim"))
    if (more := len(report.groups) - SHOWN) > 0:
        terminal.line(Span(f"{more:,} more are in the total: --json shows them all", "dim"))


def _cells(figures: Figures) -> list[Cell]:
    return [
        number(figures.calls),
        number(figures.tokens_in),
        number(figures.cache_read),
        number(figures.tokens_out),
        number(figures.reasoning),
        dollars(figures.cost, figures.unpriced),
        number(figures.ms_p50),
        number(figures.ms_p95),
        number(figures.first_ms_p50),
        Span(number(figures.errors), "red" if figures.errors else ""),
        Span(number(figures.retries), "yellow" if figures.retries else ""),
    ]


def _print_chart(terminal: Terminal, report: Report) -> None:
    """Calls and cost of each day; nothing where there is but one."""
    if not report.days:
        return
    first = report.first or report.days[0].day
    last = max(report.last, report.days[-1].day)
    room = min(terminal.width - len("  most: $99,999.99, 2026-11-16"), _WIDEST_CHART) - len("calls  ")
    if (last - first).days >= room:
        room = min(room, terminal.width - len("calls    most: $99,999.99, 2026-11-16 to 2026-11-16"))
    parts = list(spans(first, last, max(room, _LEAST_CHART)))
    if len(parts) < 2:
        return
    calls = [sum(day.calls for day in _within(report.days, part)) for part in parts]
    costs = [sum(day.cost or 0.0 for day in _within(report.days, part)) for part in parts]
    terminal.line()
    _print_bars(terminal, "calls", calls, f"{max(calls):,}", parts)
    if any(costs):
        _print_bars(terminal, "cost", costs, amount(max(costs)), parts)
    each = (parts[0][1] - parts[0][0]).days + 1
    days = f"{first} to {last}" + (f", each bar {each} days" if each > 1 else "")
    terminal.line(Span(f"{'days':<5}  {days}", "dim"))


def _within(days: Sequence[Day], part: tuple[date, date]) -> list[Day]:
    return [day for day in days if part[0] <= day.day <= part[1]]


def _print_bars(
    terminal: Terminal, title: str, values: Sequence[float], most: str, parts: Sequence[tuple[date, date]]
) -> None:
    at, until = parts[values.index(max(values))]
    when = f"{at}" if at == until else f"{at} to {until}"
    terminal.line(
        Span(f"{title:<5}", "dim"), "  ", Span(bars(values), "cyan"), "  ", Span(f"most: {most}, {when}", "dim")
    )


def _print_money(terminal: Terminal, report: Report) -> None:
    """What the table cannot say itself."""
    total, saved = report.total, report.saved
    terminal.line()
    if total.unpriced:
        terminal.line(Span(f"{plural(total.unpriced, 'call')} unpriced: their price or tokens are unknown", "yellow"))
    if saved.calls:
        tokens = plural(saved.tokens_in + saved.tokens_out, "token")
        cost = dollars(saved.cost, saved.unpriced)
        terminal.line(Span("Saved by replay: ", "green"), f"{plural(saved.calls, 'call')}, {tokens}, {cost}")
    else:
        terminal.line(Span("Saved by replay: nothing yet", "dim"))


BARS = "▁▂▃▄▅▆▇█"
NOTHING = " "


def bars(values: Sequence[float]) -> str:
    """One sign for each value. The highest is full, and what is more than nothing can be seen."""
    highest = max(values, default=0)
    return "".join(_bar(value / highest) if value > 0 else NOTHING for value in values)


def _bar(share: float) -> str:
    return BARS[min(int(share * len(BARS)), len(BARS) - 1)]


def spans(first: date, last: date, room: int) -> Iterator[tuple[date, date]]:
    """The days, each by itself; several together where there are more of them than room."""
    days = (last - first).days + 1
    size = -(-days // max(room, 1))
    while first <= last:
        end = min(first + timedelta(days=size - 1), last)
        yield first, end
        first = end + timedelta(days=1)
