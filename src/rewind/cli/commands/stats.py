"""``rewind stats``: what the recorded calls come to, by model, provider, day, name or command."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import click

from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.catalog_progress import catalog
from rewind.cli.screens.chart import bars, spans
from rewind.cli.screens.table import Cell, Column, print_table
from rewind.cli.screens.terminal import Span, Terminal, err, out
from rewind.errors import ExitCode
from rewind.model.clock import SystemClock
from rewind.pricing.report import By, Day, Figures, Report
from rewind.store.catalog.figures import report
from rewind.store.replays import served_again
from rewind.text import amount, dollars, number, plural
from rewind.views.store import stats as as_json_view

SHOWN = 30
"""Groups in the table; the others are summed up below it."""
_WIDEST_CHART = 90
_NOT_TOLD = "(not told)"
_FIGURES = (
    Column("calls", right=True),
    Column("in", right=True),
    Column("cached", right=True),
    Column("out", right=True),
    Column("thinking", right=True),
    Column("cost", right=True),
    Column("p50 ms", right=True),
    Column("p95 ms", right=True),
    Column("first ms", right=True),
    Column("errors", right=True),
    Column("retries", right=True),
)


@click.command("stats")
@click.option(
    "--days",
    type=click.IntRange(min=0, max=36_500),
    default=30,
    metavar="N",
    help="Only the last N days, today included (0: all; otherwise 30)",
)
@click.option(
    "--by",
    type=click.Choice([by.value for by in By]),
    default=By.MODEL.value,
    help="What the calls are put together by (otherwise model)",
)
@json_option
@common_options
@click.pass_obj
def command(app: App, days: int, by: str, as_json: bool) -> int:
    """Show what the recorded LLM calls come to: tokens, cost, latency, errors, and what replays saved.

    Days are those of UTC. Latencies are over the good answers. Answers that a replay served from a recording are not
    counted as calls; what they saved is told apart. A + behind a cost says that some calls are left out of it,
    because their price or their tokens are not known.

    \b
    Examples:
      rewind stats
      rewind stats --days 7 --by name
      rewind stats --by day --json | jq '.groups[] | [.day, .cost_usd]'
    """
    prices = app.prices
    today = datetime.fromtimestamp(SystemClock().now(), UTC).date()
    with catalog(app.home, prices) as open_catalog:
        found = report(
            open_catalog,
            by=By(by),
            first=today - timedelta(days=days - 1) if days else None,
            last=today,
            served_again=served_again(app.home),
        )
    if as_json:
        print_json(as_json_view(found, prices_of=prices.source, prices_date=prices.date))
        return ExitCode.OK
    if not found.total.calls:
        err().line(f"No LLM call is recorded in {app.home} {_when(found)}.")
        err().line(Span("→ rewind list · rewind stats --days 0", "dim"))
    else:
        _show(out(), found)
    if found.other_steps:
        err().line(Span(f"{plural(found.other_steps, 'other step')} not counted: no LLM calls", "dim"))
    if prices.warning:
        err().line(Span(prices.warning, "yellow"))
    return ExitCode.OK


def _show(terminal: Terminal, found: Report) -> None:
    terminal.line(
        Span(plural(found.total.calls, "LLM call"), "bold"),
        f" in {plural(found.sessions, 'session')} {_when(found)}",
    )
    terminal.line()
    _print_groups(terminal, found)
    _print_chart(terminal, found)
    _print_money(terminal, found)


def _when(found: Report) -> str:
    return "on any day" if found.first is None else f"from {found.first} to {found.last} (UTC)"


def _print_groups(terminal: Terminal, found: Report) -> None:
    rows: list[Sequence[Cell]] = [
        [group.key or Span(_NOT_TOLD, "dim"), *_cells(group.figures)] for group in found.groups[:SHOWN]
    ]
    if len(found.groups) != 1:
        rows.append([Span("total", "bold"), *_cells(found.total)])
    print_table(terminal, (Column(found.by.value, flexible=True, least=16), *_FIGURES), rows)
    if (more := len(found.groups) - SHOWN) > 0:
        terminal.line(Span(f"{more:,} more are in the total: --json has them all", "dim"))


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


def _print_chart(terminal: Terminal, found: Report) -> None:
    """Calls and cost of each day; nothing where there is but one."""
    if not found.days:
        return
    first = found.first or found.days[0].day
    last = max(found.last, found.days[-1].day)
    room = min(terminal.width, _WIDEST_CHART) - len("calls  ")
    parts = list(spans(first, last, room))
    if len(parts) < 2:
        return
    calls = [sum(day.calls for day in _within(found.days, part)) for part in parts]
    costs = [sum(day.cost or 0.0 for day in _within(found.days, part)) for part in parts]
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
        Span(f"{title:<5}", "dim"),
        "  ",
        Span(bars(values), "cyan"),
        "  ",
        Span(f"most: {most}, {when}", "dim"),
    )


def _print_money(terminal: Terminal, found: Report) -> None:
    """What the table cannot say itself."""
    total, saved = found.total, found.saved
    terminal.line()
    if total.unpriced:
        terminal.line(
            Span(
                f"{plural(total.unpriced, 'call')} unpriced: the price or the tokens are not known", "yellow"
            )
        )
    if saved.calls:
        tokens = plural(saved.tokens_in + saved.tokens_out, "token")
        cost = dollars(saved.cost, saved.unpriced)
        terminal.line(Span("Saved by replay: ", "green"), f"{plural(saved.calls, 'call')}, {tokens}, {cost}")
    else:
        terminal.line(Span("Saved by replay: nothing yet", "dim"))
