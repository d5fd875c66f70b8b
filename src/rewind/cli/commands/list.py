"""``rewind list``: the recorded sessions, newest first."""

import click

from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.options import since_option
from rewind.cli.progress import progress_line
from rewind.cli.screens.list import explain_list, print_sessions, print_tree, say_there_is_nothing
from rewind.cli.screens.terminal import err, out
from rewind.errors import ExitCode
from rewind.model.clock import SystemClock
from rewind.model.outcome import Outcome
from rewind.reading.sessions import SessionFilter, list_sessions, session_ids
from rewind.views import session as views

SHOWN = 30


@click.command("list")
@click.option("--name", metavar="NAME", help="Only sessions with NAME in their name, or a pattern: 'refund-*'")
@click.option("--model", metavar="MODEL", help="Only sessions that called a model with this name, or a pattern")
@since_option
@click.option(
    "--status",
    "statuses",
    type=click.Choice([outcome.value for outcome in Outcome]),
    multiple=True,
    help="Only sessions with this status (repeatable: any of them)",
)
@click.option(
    "--tag", "tags", metavar="KEY[=VALUE]", multiple=True, help="Only sessions with this tag (repeatable: all of them)"
)
@click.option(
    "--text",
    "texts",
    metavar="TEXT",
    multiple=True,
    help="Only sessions where 'rewind search TEXT' finds something (repeatable: all in one text)",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show the N newest (0: all; default {SHOWN}, with --json all)",
)
@click.option("--all", "with_probes", is_flag=True, help="Include the probes of 'bisect --prove'")
@click.option("--tree", "as_tree", is_flag=True, help="Show forks under the sessions they come from")
@json_option
@common_options
@click.pass_obj
def command(
    app: App,
    name: str | None,
    model: str | None,
    since: float | None,
    statuses: tuple[str, ...],
    tags: tuple[str, ...],
    texts: tuple[str, ...],
    limit: int | None,
    with_probes: bool,
    as_tree: bool,
    as_json: bool,
) -> int:
    """Show the recorded sessions, newest first.

    Filters combine: a session must match all of them. NAME and MODEL match any part of a name, in upper or lower
    case; with *, ? or [ they are patterns for the whole name.

    \b
    Examples:
      rewind list
      rewind list --status failed --since 7d
      rewind list --name 'refund-*' --model sonnet --tag env=prod
      rewind list --text "refund policy" --limit 0
      rewind list --tree --name refund
      rewind list --json | jq -r '.sessions[] | select(.cost_usd > 0.1) | .id'
    """
    wanted = SessionFilter(name=name, model=model, since=since, statuses=statuses, tags=tags, texts=texts)
    if limit is None:
        limit = 0 if as_json else SHOWN
    with progress_line() as on_progress:
        listing = list_sessions(
            app.home,
            app.prices,
            wanted,
            limit=limit,
            probes=with_probes or as_tree,
            ancestors=as_tree,
            on_progress=on_progress,
        )
    terminal = out()
    if as_json:
        print_json(views.sessions(listing.rows))
    elif not listing.rows:
        say_there_is_nothing(err(), listing)
    elif as_tree:
        print_tree(terminal, listing.rows, now=SystemClock().now())
    else:
        ids = session_ids(app.home) if terminal.colour else ()
        print_sessions(terminal, listing.rows, now=SystemClock().now(), ids=ids)
    explain_list(err(), listing, as_json=as_json)
    return ExitCode.OK
