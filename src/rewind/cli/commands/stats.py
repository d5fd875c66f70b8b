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
    help="Only the last N days, today included (0: all; otherwise 30)",
)
@click.option(
    "--by",
    type=click.Choice(GROUPINGS),
    default="model",
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
    with progress_line() as on_progress:
        found = usage_stats(
            app.home, app.prices, by=by, days=days, now=SystemClock().now(), on_progress=on_progress
        )
    if as_json:
        print_json(views.stats(found))
    else:
        print_stats(found)
    return ExitCode.OK
