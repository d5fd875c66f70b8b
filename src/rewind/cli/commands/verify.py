"""``rewind verify``: check every recorded byte and name what is damaged."""

import click

from rewind.cli.app import App, common_options, json_option, print_json, session_argument
from rewind.cli.progress import progress_line
from rewind.cli.screens.store import print_verification
from rewind.cli.screens.terminal import out
from rewind.errors import ExitCode
from rewind.reading.verify import verify
from rewind.views import store as views


@click.command("verify")
@session_argument(required=False, metavar="[SESSION]")
@json_option
@common_options
@click.pass_obj
def command(app: App, session: str | None, as_json: bool) -> int:
    """Check every recorded byte of SESSION, or of the whole store, and name what is damaged.

    Recordings are not changed. The catalog, which is derived from them, is brought up to date.

    Exit code: 0 everything is intact · 6 something is damaged.

    \b
    Examples:
      rewind verify
      rewind verify 7f3a --json
    """
    with progress_line() as on_progress:
        verification = verify(app.home, session, on_progress=on_progress)
    if as_json:
        print_json(views.verification(verification))
    else:
        print_verification(out(), verification)
    return ExitCode.OK if verification.all_is_well else ExitCode.ENVIRONMENT
