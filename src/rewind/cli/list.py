"""``rewind list``: the recorded sessions, newest first."""

from collections.abc import Iterable, Iterator

import click

from rewind import views
from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.render import print_sessions, unique_prefixes
from rewind.cli.terminal import Span, err, out
from rewind.errors import ExitCode, SessionNotFound
from rewind.model.clock import SystemClock
from rewind.model.session import Session
from rewind.store.library import Library
from rewind.store.totals import Totals

SHOWN = 30


@click.command("list")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show the N newest (0: all; otherwise {SHOWN}, with --json all)",
)
@json_option
@common_options
@click.pass_obj
def command(app: App, limit: int | None, as_json: bool) -> int:
    """Show the recorded sessions, newest first.

    \b
    Examples:
      rewind list
      rewind list --limit 0
      rewind list --json | jq -r '.sessions[] | select(.exit_code != 0) | .id'
    """
    library = Library(app.home)
    if limit is None:
        limit = 0 if as_json else SHOWN
    # One more than asked for tells whether there are more.
    sessions = library.sessions(limit=limit + 1 if limit else None)
    more = bool(limit) and len(sessions) > limit
    shown = sessions[:limit] if limit else sessions
    rows = list(_rows(library, shown))
    if as_json:
        print_json(views.sessions(rows))
        return ExitCode.OK
    if not rows:
        err().line(f"No session is recorded in {app.home} yet.")
        err().line(Span("→ rewind record python agent.py · rewind demo", "dim"))
        return ExitCode.OK
    terminal = out()
    # What is unique among those shown need not be unique in the store.
    everyone = library.sessions() if more and terminal.colour else sessions
    prefixes = unique_prefixes(session.id for session in everyone)
    print_sessions(terminal, rows, now=SystemClock().now(), prefixes=prefixes)
    if more:
        err().line(Span(f"There are older ones: rewind list --limit {limit * 2}, or 0 for all", "dim"))
    return ExitCode.OK


def _rows(library: Library, sessions: Iterable[Session]) -> Iterator[tuple[Session, Totals]]:
    for session in sessions:
        try:
            yield session, library.totals(session)
        except SessionNotFound:
            continue  # removed since we looked; the others are still worth a list
