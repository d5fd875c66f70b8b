"""What was deleted, what stays, and why, for people."""

from collections.abc import Iterable

from rewind.cli.screens.facts import status
from rewind.cli.screens.layout import Column, print_table
from rewind.cli.screens.terminal import Span, Terminal, err, hint
from rewind.model.clock import SystemClock
from rewind.model.session import Session
from rewind.reading.retention import Deletion, retain
from rewind.reading.retention import finish_deletions as finish_deletions
from rewind.settings import Settings
from rewind.text import NONE, age, plural, size

_COLUMNS = (
    Column("id"),
    Column("name", flexible=True),
    Column("age", right=True),
    Column("status"),
    Column("size", right=True),
    Column("why"),
)


def print_removal(terminal: Terminal, removal: Deletion) -> None:
    """What ``rewind rm`` did."""
    for one in removal.gone:
        name = f"  {one.session.start.name}" if one.session.start.name else ""
        pinned = " (it was pinned)" if one.session.pinned else ""
        terminal.line("Deleted ", Span(one.session.id, "bold"), f"{name}  {size(one.bytes)}{pinned}")
    _explain_forks(terminal, removal)


def print_pruning(table: Terminal, terminal: Terminal, pruning: Deletion, *, now: float) -> None:
    """What ``rewind prune`` deleted, as a table; what stays, and why."""
    if pruning.gone:
        print_table(
            table,
            _COLUMNS,
            [
                (
                    Span(one.session.id, "bold"),
                    one.session.start.name or NONE,
                    age(now - one.session.start.started),
                    status(one.session),
                    size(one.bytes),
                    one.why,
                )
                for one in pruning.gone
            ],
        )
    did = "would be deleted" if pruning.is_forecast else "deleted"
    terminal.line(f"{plural(len(pruning.gone), 'session')} {did}, {size(pruning.bytes)}")
    younger = pruning.left - len(pruning.kept)
    reasons = [*([f"{younger:,} within the limits"] if younger else []), *_reasons(pruning)]
    why = f": {' · '.join(reasons)}" if reasons else ""
    terminal.line(f"{plural(pruning.left, 'session stays', 'sessions stay')}, {size(pruning.left_bytes or 0)}{why}")
    if pruning.over:
        terminal.line(Span(f"Still {size(pruning.over)} too much: what is left is kept.", "yellow"))
    _explain_forks(terminal, pruning)
    if pruning.is_forecast and pruning.gone:
        terminal.line(hint("→ without --dry-run they are deleted; rewind pin ID keeps one"))


def print_pins(terminal: Terminal, sessions: Iterable[Session]) -> None:
    """What ``rewind pin`` did."""
    for session in sessions:
        name = f"  {session.start.name}" if session.start.name else ""
        terminal.line("Pinned " if session.pinned else "No longer pinned: ", Span(session.id, "bold"), name)


def say_what_was_dropped(settings: Settings, *, began: float, quiet: bool) -> None:
    """Hold the limits of the settings after a run, and say in one line what that came to."""
    dropped = retain(settings.home, settings, now=SystemClock().now(), began=began)
    if dropped is None or quiet:
        return
    limits = [
        *([f"keep_days {settings.keep_days:g}"] if settings.keep_days is not None else []),
        *([f"max_size {size(settings.max_size)}"] if settings.max_size is not None else []),
    ]
    sentence = f"{plural(len(dropped.gone), 'old session')} deleted, {size(dropped.bytes)} ({', '.join(limits)})"
    if dropped.over:
        sentence += f"; still {size(dropped.over)} too much, and kept: {', '.join(_reasons(dropped))}"
    err().line(hint(f"  {sentence} · rewind pin ID keeps one"))


def _reasons(deletion: Deletion) -> list[str]:
    return [f"{count:,} {why}" for why, count in deletion.kept_because.most_common()]


def _explain_forks(terminal: Terminal, deletion: Deletion) -> None:
    for parent, forks in deletion.forks.items():
        stay = "stays" if len(forks) == 1 else "stay"
        terminal.line(
            Span(
                f"{plural(len(forks), 'fork')} of {parent} {stay}, with a copy of the steps shared with it: "
                f"{', '.join(forks)}",
                "dim",
            )
        )
