"""``rewind pin``: keep sessions from being deleted by age or for room."""

import click

from rewind.cli.app import App, common_options, complete_session, json_option, print_json
from rewind.cli.screens.retention import print_pins
from rewind.cli.screens.terminal import out
from rewind.errors import ExitCode
from rewind.reading.retention import pin
from rewind.views import store as views


@click.command("pin")
@click.argument("sessions", metavar="SESSION…", nargs=-1, required=True, shell_complete=complete_session)
@click.option("--remove", "unpins", is_flag=True, help="Take the pin away again")
@json_option
@common_options
@click.pass_obj
def command(app: App, sessions: tuple[str, ...], unpins: bool, as_json: bool) -> int:
    """Keep each SESSION: neither 'rewind prune' nor a limit in the settings deletes it, only 'rewind rm' does.

    Exit code: 0 done · 3 a session was not found; then nothing is pinned.

    \b
    Examples:
      rewind pin last
      rewind pin --remove 7f3a
      rewind list --json | jq -r '.sessions[] | select(.pinned) | .id'
    """
    pinned = pin(app.home, sessions, pinned=not unpins)
    if as_json:
        print_json(views.pins(pinned))
    else:
        print_pins(out(), pinned)
    return ExitCode.OK
