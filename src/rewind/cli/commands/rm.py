"""``rewind rm``: delete sessions, to the last byte."""

import click

from rewind.cli.app import App, common_options, complete_session, json_option, print_json
from rewind.cli.screens.retention import print_removal
from rewind.cli.screens.terminal import out
from rewind.errors import ExitCode
from rewind.reading.retention import remove
from rewind.views import store as views


@click.command("rm")
@click.argument("sessions", metavar="SESSION…", nargs=-1, required=True, shell_complete=complete_session)
@json_option
@common_options
@click.pass_obj
def command(app: App, sessions: tuple[str, ...], as_json: bool) -> int:
    """Delete each SESSION: its recording, its rows in the catalog and its words in the search index.

    Nothing is asked, and nothing comes back. If one of them is unknown, or is being recorded right now, none is
    deleted. Forks of a session stay, and replay without it: they have copies of the steps they share with it.

    Exit code: 0 deleted · 2 less than four characters of an id · 3 a session was not found · 6 one is
    being recorded, or the store cannot be written.

    \b
    Examples:
      rewind rm 7f3a
      rewind rm last last~1
      rewind list --name 'try-*' --json | jq -r '.sessions[].id' | xargs rewind rm
    """
    removal = remove(app.home, sessions)
    if as_json:
        print_json(views.removal(removal))
    else:
        print_removal(out(), removal)
    return ExitCode.OK
