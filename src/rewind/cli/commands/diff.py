"""``rewind diff``: what differs between two sessions, step by step."""

from contextlib import ExitStack

import click

from rewind.cli.app import App, common_options, json_option, print_json, session_argument
from rewind.cli.progress import progress_line
from rewind.cli.screens.diff import print_diff, print_warnings
from rewind.cli.screens.terminal import err, hint, out
from rewind.errors import ExitCode
from rewind.reading.compare import DIFF_ASPECTS, diff_sessions
from rewind.views import compare as views


@click.command("diff")
@session_argument("a", metavar="A[:STEP]")
@session_argument("b", metavar="B[:STEP]")
@click.option("--step", type=click.IntRange(min=1), metavar="N", help="Only step N of A and its counterpart in B")
@click.option(
    "--only",
    type=click.Choice(list(DIFF_ASPECTS)),
    multiple=True,
    metavar="ASPECT",
    help=f"Compare only this (repeatable); the exit code follows it, too: {', '.join(DIFF_ASPECTS)}",
)
@click.option("--stat", is_flag=True, help="Show only the summary, a ribbon and a line for each row")
@click.option("--full", is_flag=True, help="Fold nothing: show long texts and unchanged words in full")
@json_option
@common_options
@click.pass_obj
def command(
    app: App, a: str, b: str, step: int | None, only: tuple[str, ...], stat: bool, full: bool, as_json: bool
) -> int:
    """Show what differs between the sessions A and B, step by step.

    Steps are matched by what they say, not by their numbers. Ids, times, the order of parallel calls and the number
    of tries do not count as differences, but are reported. A change that repeats in every step is shown once. In
    texts, [-this-] is only in A and {+this+} only in B.

    A:4 B:5 compares exactly these two steps. A:4 B, like --step 4, shows step 4 of A and the step of B that matches.

    Exit code: 0 the same, except for ids and times · 1 different · 3 no such session or step.

    \b
    Examples:
      rewind diff last~1 last
      rewind diff good bad --stat
      rewind diff good bad --only system --only tools
      rewind diff 7f3a:4 9b2c:4 --full
    """
    with ExitStack() as stack:
        with progress_line() as on_progress:
            found = stack.enter_context(
                diff_sessions(app.home, a, b, step=step, only=only, prices=app.prices, on_progress=on_progress)
            )
        if as_json:
            print_json(views.diff(found))
        else:
            print_diff(out(), found, stat=stat, full=full)
        same = found.is_same()
    print_warnings(err(), found.sides)
    if found.whole and not (same or as_json):
        err().line(hint(f"→ where they part, and why: rewind bisect {found.a.ref} {found.b.ref}"))
    return ExitCode.OK if same else ExitCode.DIFFERENT
