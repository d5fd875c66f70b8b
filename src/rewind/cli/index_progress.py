"""The search index as commands use it: how far it has caught up is shown, and what it could not read is said."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rewind.cli.progress import progress
from rewind.cli.screens.terminal import Span, Terminal
from rewind.store.search.index import IndexState, SearchIndex
from rewind.store.search.rows import LONGEST
from rewind.text import plural


@contextmanager
def search_index(home: Path) -> Iterator[SearchIndex]:
    """The index of that store. On a screen, a catch-up that takes long shows where it is."""
    with progress("sessions made searchable") as show:
        yield SearchIndex(home, progress=show)


def say_what_is_missing(terminal: Terminal, state: IndexState) -> None:
    """What a search could not look into."""
    if state.unreadable:
        bodies = plural(state.unreadable, "damaged body was", "damaged bodies were")
        terminal.line(Span(f"{bodies} not searched: rewind verify", "yellow"))
    if state.cut:
        texts = plural(state.cut, "long text is", "long texts are")
        terminal.line(Span(f"{texts} searched in the first {LONGEST:,} characters only", "dim"))
