"""``rewind search``: where something was said, in everything recorded."""

import click

from rewind.cli.app import App, common_options, json_option, print_json
from rewind.cli.index_progress import say_what_is_missing, search_index
from rewind.cli.screens.snippet import snippet_spans
from rewind.cli.screens.table import GAP, display_width
from rewind.cli.screens.terminal import Span, Terminal, err, out
from rewind.cli.since_option import since_option
from rewind.errors import ExitCode, UsageError
from rewind.model.clock import SystemClock
from rewind.providers.texts import TextKind
from rewind.store.library import Library
from rewind.store.search.index import Found, Hit, Query
from rewind.text import age, plural
from rewind.views.store import search as as_json_view

SHOWN = 20
_LEAST = 24
"""Columns a snippet has at least, however narrow the screen."""
_GROUPS = {
    "system": (TextKind.SYSTEM,),
    "user": (TextKind.USER,),
    "assistant": (TextKind.ASSISTANT,),
    "thinking": (TextKind.THINKING,),
    "tool": (TextKind.TOOL_DEFINITION, TextKind.TOOL_USE, TextKind.TOOL_RESULT),
    "error": (TextKind.ERROR,),
    "http": (TextKind.HTTP,),
}


@click.command("search")
@click.argument("texts", metavar="TEXT…", nargs=-1, required=True)
@click.option("--case", is_flag=True, help="Capitals count: 'Paris' does not find 'paris'")
@click.option(
    "--in",
    "groups",
    type=click.Choice(list(_GROUPS)),
    multiple=True,
    help="Only in texts of this kind (repeatable)",
)
@click.option("--session", metavar="SESSION", help="Only in this session")
@since_option
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=SHOWN,
    metavar="N",
    help=f"Show the N newest (0: all; otherwise {SHOWN})",
)
@json_option
@common_options
@click.pass_obj
def command(
    app: App,
    texts: tuple[str, ...],
    case: bool,
    groups: tuple[str, ...],
    session: str | None,
    since: float | None,
    limit: int,
    as_json: bool,
) -> int:
    """Find TEXT in prompts, answers, thinking, tool calls and their results, errors and other HTTP bodies.

    TEXT is looked for as it stands, anywhere in a text, in capitals or not; there are no patterns. Of several TEXTs all
    must occur in the same text; quote a phrase. A text that an agent repeats in many requests is found once, at
    the step where it first appears. The newest sessions come first.

    \b
    Examples:
      rewind search refund
      rewind search "refund policy" --in assistant --since 7d
      rewind search order_id 4711 --in tool
      rewind search timeout --json | jq -r '.hits[] | "\\(.session):\\(.step)"'
    """
    if not all(text.strip() for text in texts):
        raise UsageError(
            "There is nothing to search for: TEXT is empty.", hint='rewind search "refund policy"'
        )
    query = Query(
        texts=texts,
        case=case,
        kinds=tuple(kind for group in groups for kind in _GROUPS[group]),
        folder=Library(app.home).find(session).folder if session else None,
        since=since,
        limit=limit,
    )
    with search_index(app.home) as index:
        found = index.search(query)
    if as_json:
        print_json(as_json_view(found))
        return ExitCode.OK
    _print_hits(out(), found.hits, now=SystemClock().now())
    _talk(err(), app, query, found)
    return ExitCode.OK


def _print_hits(terminal: Terminal, hits: tuple[Hit, ...], *, now: float) -> None:
    """``7f3a2b9c:4  2 h  assistant  … the words around …``."""
    rows = [(f"{hit.session}:{hit.step}", age(now - hit.ts), hit.kind.replace("_", " ")) for hit in hits]
    places, ages, kinds = (
        (max(map(display_width, column)) for column in zip(*rows, strict=True)) if rows else (0, 0, 0)
    )
    room = max(_LEAST, terminal.width - places - ages - kinds - 3 * len(GAP))
    for hit, (place, ago, kind) in zip(hits, rows, strict=True):
        terminal.line(
            Span(place.ljust(places), "cyan"),
            GAP,
            Span(ago.rjust(ages), "dim"),
            GAP,
            kind.ljust(kinds),
            GAP,
            *snippet_spans(hit.snippet, hit.marks, room, from_start=hit.from_start, to_end=hit.to_end),
        )


def _talk(terminal: Terminal, app: App, query: Query, found: Found) -> None:
    if found.hits:
        if found.more:
            terminal.line(Span(f"There are older ones: --limit {2 * query.limit}, or 0 for all", "dim"))
    elif found.index.sessions:
        terminal.line(_nothing(query, found.index.sessions))
    else:
        terminal.line(f"No session is recorded in {app.home} yet.")
    say_what_is_missing(terminal, found.index)
    if found.hits:
        newest = found.hits[0]
        terminal.line(Span(f"→ rewind inspect {newest.session}:{newest.step}", "dim"))


def _nothing(query: Query, sessions: int) -> str:
    wanted = " and ".join(map(repr, query.texts)) + (" in one text" if len(query.texts) > 1 else "")
    if query.kinds or query.folder or query.since is not None:
        return f"Nothing there contains {wanted}. Without --in, --session and --since more is searched."
    return f"Nothing recorded contains {wanted}; {plural(sessions, 'session')} searched."
