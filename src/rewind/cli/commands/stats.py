"""``rewind stats``: what the recorded calls come to, by model, provider, day, name or command."""

import click

from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.progress import progress_line
from rewind.cli.screens.stats import print_stats
from rewind.errors import ExitCode
from rewind.model.clock import SystemClock
from rewind.reading.stats import GROUPINGS, usage_stats
from rewind.views import store as views


@click.command("stats")
@click.option(
    "--days",
    type=click.IntRange(min=0, max=36_500),
    default=30,
    metavar="N",
    help="Only the last N days, including today (0: all; default 30)",
)
@click.option("--by", type=click.Choice(GROUPINGS), default="model", help="What to group the calls by (default model)")
@json_option
@common_options
@click.pass_obj
def command(app: App, days: int, by: str, as_json: bool) -> int:
    """Show tokens, cost, latency and errors of the recorded LLM calls, and what replays saved.

    Days are UTC. Latencies count good answers only. Answers that a replay served from a recording do not count as
    calls; what they saved is shown separately. A + after a cost means that some calls are not in it: their price or
    tokens are unknown.

    \b
    Examples:
      rewind stats
      rewind stats --days 7 --by name
      rewind stats --by day --json | jq '.groups[] | [.day, .cost_usd]'
    """
    with progress_line() as on_progress:
        stats = usage_stats(app.home, app.prices, by=by, days=days, now=SystemClock().now(), on_progress=on_progress)
    if as_json:
        print_json(views.stats(stats))
    else:
        print_stats(stats)
    return ExitCode.OK
