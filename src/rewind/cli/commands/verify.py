"""``rewind verify``: hash every recorded byte again and name what is damaged."""

import click

from rewind.cli.app import App, common_options, json_option, print_json, session_argument
from rewind.cli.progress import progress
from rewind.cli.screens.terminal import Span, Terminal, out
from rewind.errors import ExitCode, RewindError
from rewind.store.catalog.catalog import Catalog, CatalogState
from rewind.store.library import Library
from rewind.store.verify import Damage
from rewind.text import plural
from rewind.views import store as views


@click.command("verify")
@session_argument(required=False, metavar="[SESSION]")
@json_option
@common_options
@click.pass_obj
def command(app: App, session: str | None, as_json: bool) -> int:
    """Hash every byte of SESSION, or of the whole store, again and name what is damaged.

    Nothing is changed. The catalog, which is derived from the journals, is brought up to date as well.

    \b
    Exit code: 0 all is as it was written · 6 something is damaged.

    \b
    Examples:
      rewind verify
      rewind verify 7f3a --json
    """
    library = Library(app.home)
    chosen = [library.find(session)] if session else library.sessions()
    found: list[Damage] = []
    with progress("sessions checked") as show:
        for done, one in enumerate(chosen):
            show(done, len(chosen))
            found += library.verify(one)
    state, problem = (None, None) if session else _catalog(app)
    if as_json:
        print_json(views.verification(len(chosen), found, state, problem))
    else:
        _show(out(), len(chosen), found, state, problem)
    return ExitCode.ENVIRONMENT if found or problem else ExitCode.OK


def _catalog(app: App) -> tuple[CatalogState | None, str | None]:
    """Bring the catalog up to date: its state, or why that failed."""
    try:
        return Catalog(app.home).catch_up(), None
    except RewindError as problem:
        return None, problem.message


def _show(
    terminal: Terminal,
    checked: int,
    found: list[Damage],
    catalog: CatalogState | None,
    problem: str | None,
) -> None:
    for damage in found:
        terminal.line(
            Span("✗ damaged", "red"), f"  {damage.session}  {damage.what}  ", Span(damage.where, "dim")
        )
    if found:
        hurt = len({damage.session for damage in found})
        terminal.line(f"{hurt} of {plural(checked, 'session')} damaged; the others are as they were written")
    else:
        terminal.line(Span("✓ ", "green"), f"{plural(checked, 'session')} as written")
    if catalog is not None:
        state = "rebuilt" if catalog.rebuilt else "up to date"
        terminal.line(
            f"catalog {state}: {plural(catalog.sessions, 'session')}, {plural(catalog.steps, 'step')}"
        )
    if problem is not None:
        terminal.line(Span("✗ catalog: ", "red"), problem)
