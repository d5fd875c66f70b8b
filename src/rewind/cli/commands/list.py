"""``rewind list``: the recorded sessions, newest first."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import click

from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.screens.list import print_sessions
from rewind.cli.screens.terminal import Span, Terminal, err, out
from rewind.cli.since_option import since_option
from rewind.errors import EnvironmentProblem, ExitCode, SessionNotFound, UsageError
from rewind.model.clock import SystemClock
from rewind.model.ids import SessionId
from rewind.model.outcome import Outcome
from rewind.model.session import Session
from rewind.pricing.prices import Prices
from rewind.store.catalog.filters import Listed, Wanted
from rewind.store.catalog.totals import Totals
from rewind.store.library import Library
from rewind.text import SOME_UNKNOWN, plural
from rewind.views import session as views

SHOWN = 30


@click.command("list")
@click.option(
    "--name", metavar="NAME", help="Only sessions with NAME in their name, or a pattern: 'refund-*'"
)
@click.option("--model", metavar="MODEL", help="Only sessions that called a model of that name or pattern")
@since_option
@click.option(
    "--status",
    "statuses",
    type=click.Choice([outcome.value for outcome in Outcome]),
    multiple=True,
    help="Only sessions that came out so (repeatable: one of them)",
)
@click.option(
    "--tag",
    "tags",
    metavar="KEY[=VALUE]",
    multiple=True,
    help="Only sessions with this tag (repeatable: all of them)",
)
@click.option(
    "--text",
    "texts",
    metavar="TEXT",
    multiple=True,
    help="Only sessions in which 'rewind search TEXT' finds something (repeatable: all in one text)",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show the N newest (0: all; otherwise {SHOWN}, with --json all)",
)
@click.option("--all", "with_probes", is_flag=True, help="Probes of 'bisect --prove', too")
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

    Filters can be combined; a session must pass all of them. NAME and MODEL are looked for anywhere in the name, in
    capitals or not; with *, ? or [ they are a pattern for all of it.

    \b
    Examples:
      rewind list
      rewind list --status failed --since 7d
      rewind list --name 'refund-*' --model sonnet --tag env=prod
      rewind list --text "refund policy" --limit 0
      rewind list --tree --name refund
      rewind list --json | jq -r '.sessions[] | select(.cost_usd > 0.1) | .id'
    """
    limit = (0 if as_json else SHOWN) if limit is None else limit
    wanted = _wanted(app, name, model, since, statuses, tags, texts)
    wanted = replace(wanted, probes=with_probes or as_tree or bool(statuses))
    prices = app.prices
    found = (
        _newest(app, prices, wanted, limit)
        if limit and wanted.everything
        else _chosen(app, prices, wanted, limit)
    )
    if as_tree:
        found = replace(found, rows=[*found.rows, *_ancestors(app, prices, found.rows)])
    if as_json:
        print_json(views.sessions(found.rows))
        _say_what_is_left_out(err(), found)
        return ExitCode.OK
    if not found.rows:
        if not found.probes:
            _say_there_is_nothing(err(), app, wanted)
        _say_what_is_left_out(err(), found)
        return ExitCode.OK
    terminal = out()
    if as_tree:
        from rewind.cli.screens.list import print_tree  # lazily: the table is what is mostly asked for

        print_tree(terminal, found.rows, now=SystemClock().now())
        _explain(err(), found, limit, prices)
        return ExitCode.OK
    ids = Library(app.home).ids() if terminal.colour else ()
    print_sessions(terminal, found.rows, now=SystemClock().now(), ids=ids)
    _explain(err(), found, limit, prices)
    return ExitCode.OK


def _wanted(
    app: App,
    name: str | None,
    model: str | None,
    since: float | None,
    statuses: tuple[str, ...],
    tags: tuple[str, ...],
    texts: tuple[str, ...],
) -> Wanted:
    for option, given in (("--name", [name]), ("--model", [model]), ("--tag", tags), ("--text", texts)):
        if any(one is not None and not one.strip(" =") for one in given):
            raise UsageError(f"{option} is empty: it would say nothing about a session.")
    pairs = [tag.partition("=") for tag in tags]
    return Wanted(
        name=name,
        model=model,
        since=since,
        outcomes=frozenset(map(Outcome, statuses)),
        tags=tuple((key, value if equals else None) for key, equals, value in pairs),
        folders=_folders_with(app, texts) if texts else None,
    )


def _folders_with(app: App, texts: tuple[str, ...]) -> frozenset[str]:
    from rewind.cli.index_progress import search_index  # lazily: only this filter needs it

    with search_index(app.home) as index:
        return frozenset(index.sessions_with(*texts))


def _newest(app: App, prices: Prices, wanted: Wanted, limit: int) -> Listed:
    """Straight from the journals: the catalog would take longer to open than this takes."""
    library = Library(app.home)
    rows: list[tuple[Session, Totals]] = []
    probes = 0
    for session in library.newest():
        if session.is_probe and not wanted.probes:
            probes += 1
        elif limit and len(rows) == limit:
            return Listed(rows, more=True, probes=probes)
        else:
            with suppress(SessionNotFound):  # removed since we looked; the others are still worth a list
                rows.append((session, library.totals(session, prices)))
    return Listed(rows, probes=probes)


def _chosen(app: App, prices: Prices, wanted: Wanted, limit: int) -> Listed:
    # Lazily: the newest sessions are what is mostly asked for, and they need none of this.
    from rewind.cli.catalog_progress import catalog
    from rewind.store.catalog.listing import listed

    try:
        with catalog(app.home, prices) as open_catalog:
            return listed(open_catalog, app.home, wanted, limit)
    except EnvironmentProblem:
        # A store that cannot be written has no catalog, but its sessions can still be listed one by one.
        if not wanted.everything:
            raise
        return _newest(app, prices, wanted, limit)


def _ancestors(
    app: App, prices: Prices, rows: list[tuple[Session, Totals]]
) -> Iterator[tuple[Session, Totals]]:
    """The sessions that the others come from, and that are not among them; those that are gone are left out."""
    from rewind.cli.screens.list import parent_of

    library = Library(app.home)
    there = set(library.ids())
    seen = {session.id for session, _ in rows}
    waiting = [session for session, _ in rows]
    while waiting:
        parent = parent_of(waiting.pop())
        if parent is None or parent in seen or parent not in there:
            continue
        seen.add(SessionId(parent))
        with suppress(SessionNotFound):
            session = library.find(parent)
            yield session, library.totals(session, prices)
            waiting.append(session)


def _say_there_is_nothing(terminal: Terminal, app: App, wanted: Wanted) -> None:
    if wanted.everything or not Library(app.home).ids():
        terminal.line(f"No session is recorded in {app.home} yet.")
        terminal.line(Span("→ rewind record python agent.py · rewind demo", "dim"))
    else:
        terminal.line("No session passes all of these filters.")
        terminal.line(Span("→ rewind list", "dim"))


def _say_what_is_left_out(terminal: Terminal, found: Listed) -> None:
    if found.probes:
        are = "is" if found.probes == 1 else "are"
        terminal.line(Span(f"{plural(found.probes, 'probe')} {are} left out: --all, or --tree", "dim"))


def _explain(terminal: Terminal, found: Listed, limit: int, prices: Prices) -> None:
    """What the table cannot say itself."""
    if any(totals.unpriced and totals.cost is not None for _, totals in found.rows):
        terminal.line(
            Span(f"{SOME_UNKNOWN} some calls are left out: their price or their tokens are not known", "dim")
        )
    _say_what_is_left_out(terminal, found)
    if prices.warning:
        terminal.line(Span(prices.warning, "yellow"))
    if found.more:
        terminal.line(Span(f"There are older ones: --limit {limit * 2}, or 0 for all", "dim"))
