"""``rewind prune``: delete old sessions, by age or until the store is small enough."""

import click

from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.options import when
from rewind.cli.screens.retention import print_pruning
from rewind.cli.screens.terminal import err, out
from rewind.errors import ExitCode, UsageError
from rewind.model.clock import SystemClock
from rewind.reading.retention import prune, rules_of
from rewind.views import store as views


@click.command("prune")
@click.option(
    "--older-than", "before", callback=when, metavar="WHEN", help="Sessions that started before then: 30d, 2026-11-01"
)
@click.option("--max-size", metavar="SIZE", help="The oldest, until all sessions together take no more: 500M, 20G")
@click.option(
    "--keep",
    multiple=True,
    metavar="WHICH",
    help="Not these: failed, interrupted, broken, ok, named, tagged, imported, pinned, tag=KEY[=VALUE], "
    "name=PATTERN (repeatable: any of them). Pinned and running ones always stay",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted")
@json_option
@common_options
@click.pass_obj
def command(
    app: App, before: float | None, max_size: str | None, keep: tuple[str, ...], dry_run: bool, as_json: bool
) -> int:
    """Delete old sessions: those of before WHEN, and the oldest as long as all together take more than SIZE.

    A limit that is not given is taken from the settings (keep_days, max_size, keep), which also hold after each
    run by themselves. Sizes are those on the disk, as du counts them.

    Exit code: 0 done, also if there was nothing to delete · 2 no limit is given or set, or one is not valid.

    \b
    Examples:
      rewind prune --older-than 30d --dry-run
      rewind prune --older-than 30d --keep failed --max-size 20G
      rewind prune --max-size 500M --keep tag=env=prod --keep 'name=release-*'
    """
    now = SystemClock().now()
    settings = app.settings(max_size=max_size)
    rules = rules_of(settings, now=now, before=before, keep=keep)
    if rules.before is None and rules.max_size is None:
        raise UsageError(
            "Nothing says what may be deleted: give --older-than or --max-size.",
            hint="rewind prune --older-than 30d --dry-run",
        )
    pruning = prune(settings.home, rules, dry_run=dry_run)
    if as_json:
        print_json(views.pruning(pruning))
    else:
        print_pruning(out(), err(), pruning, now=now)
    return ExitCode.OK
