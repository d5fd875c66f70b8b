"""``rewind search``: where something was said, in everything recorded."""

import click

from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.options import since_option
from rewind.cli.progress import progress_line
from rewind.cli.screens.search import print_hits, say_what_was_searched
from rewind.cli.screens.terminal import err, out
from rewind.errors import ExitCode
from rewind.model.clock import SystemClock
from rewind.reading.search import TEXT_KINDS, search
from rewind.views import store as views

SHOWN = 20


@click.command("search")
@click.argument("texts", metavar="TEXT…", nargs=-1, required=True)
@click.option("--case", is_flag=True, help="Match upper and lower case: 'Paris' does not find 'paris'")
@click.option(
    "--in", "kinds", type=click.Choice(list(TEXT_KINDS)), multiple=True, help="Only in texts of this kind (repeatable)"
)
@click.option("--session", metavar="SESSION", help="Only in this session")
@since_option
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=SHOWN,
    metavar="N",
    help=f"Show the N newest (0: all; default {SHOWN})",
)
@json_option
@common_options
@click.pass_obj
def command(
    app: App,
    texts: tuple[str, ...],
    case: bool,
    kinds: tuple[str, ...],
    session: str | None,
    since: float | None,
    limit: int,
    as_json: bool,
) -> int:
    """Find TEXT in prompts, answers, thinking, tool calls and their results, errors and other HTTP bodies.

    TEXT matches as it is, anywhere in a text, in upper or lower case; there are no patterns. Several TEXTs must all
    occur in the same text; quote a phrase. A text that an agent repeats in many requests is found once, at the step
    where it first appears. The newest sessions come first.

    \b
    Examples:
      rewind search refund
      rewind search "refund policy" --in assistant --since 7d
      rewind search order_id 4711 --in tool
      rewind search timeout --json | jq -r '.hits[] | "\\(.session):\\(.step)"'
    """
    with progress_line() as on_progress:
        report = search(
            app.home, texts, case=case, kinds=kinds, session=session, since=since, limit=limit, on_progress=on_progress
        )
    if as_json:
        print_json(views.search(report))
    else:
        print_hits(out(), report, now=SystemClock().now())
        say_what_was_searched(err(), report)
    return ExitCode.OK
