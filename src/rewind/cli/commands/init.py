"""``rewind init``: the store is prepared, and the user sees what can be recorded here."""

from pathlib import Path

import click

from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.screens.store import explain_setup, print_clients
from rewind.cli.screens.terminal import err, out
from rewind.errors import ExitCode, UsageError
from rewind.reading.setup import make_project_store, set_up
from rewind.settings import PROJECT_FOLDER
from rewind.views import store as views


@click.command("init")
@click.option("--project", is_flag=True, help=f"Keep the sessions of this folder in ./{PROJECT_FOLDER}")
@click.option("--ca", "with_ca", is_flag=True, help="Make a lasting certificate authority (a run has its own)")
@json_option
@common_options
@click.pass_obj
def command(app: App, project: bool, with_ca: bool, as_json: bool) -> int:
    """Prepare the store, and show which clients can be recorded on this machine.

    Nothing needs to be installed or trusted: each run has its own certificate authority, in memory. --ca is for
    pointing a browser or another machine at a gateway. It is safe to run this again.

    \b
    Examples:
      rewind init
      rewind init --project
      rewind init --ca
    """
    if project and app.home_flag is not None:
        raise UsageError("--project and --home both name a store: use one of them.")
    project_store = make_project_store(Path.cwd()) if project else None
    done = set_up(app.settings(), with_ca=with_ca)
    if as_json:
        print_json(views.setup(done))
    else:
        print_clients(out(), done)
    explain_setup(err(), done, project_store)
    return ExitCode.OK
