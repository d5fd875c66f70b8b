"""What the model read at a step, for people: every message with its size, and what became of it since before."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from rewind.cli.screens.terminal import Span, Terminal
from rewind.conversation.context import ContextChange, ContextEntry, Fate
from rewind.safe import safe_line
from rewind.text import plural

SHOWN = 600
"""Characters of a message that are shown; what is longer is folded in the middle."""

SIGNS = {
    Fate.SAME: ("=", "dim"),
    Fate.ADDED: ("+", "green"),
    Fate.DROPPED: ("−", "red"),
    Fate.CHANGED: ("~", "yellow"),
    Fate.TRUNCATED: ("✂", "yellow"),
    Fate.INJECTED: ("!", "yellow"),
    Fate.REORDERED: ("↕", "yellow"),
}


def print_context(terminal: Terminal, entries: Sequence[ContextEntry], *, full: bool) -> None:
    """All that the model read, in order."""
    total = sum(entry.size for entry in entries)
    for entry in entries:
        share = f"{entry.size / total:.0%}" if total else ""
        terminal.line(
            Span(_title(entry), "bold"),
            f"  {plural(entry.size, 'character')}  ",
            Span(share, "dim"),
            Span(_place(entry), "dim"),
        )
        _print_text(terminal, entry.text, full=full)
        terminal.line()
    terminal.line(Span(f"{plural(len(entries), 'entry', 'entries')}, {plural(total, 'character')}", "dim"))


def print_changes(terminal: Terminal, changes: Sequence[ContextChange], before: int, *, full: bool) -> None:
    """What became of the context since step ``before``; runs of unchanged entries are folded."""
    for change in changes if full else _folded(changes):
        if isinstance(change, int):
            terminal.line(Span(f"= {plural(change, 'entry', 'entries')} as in step {before}", "dim"))
            terminal.line()
            continue
        sign, style = SIGNS[change.fate]
        terminal.line(
            Span(f"{sign} {change.fate.value}", style),
            "  ",
            Span(_title(change.entry), "bold"),
            f"  {_sizes(change)}",
            Span("  the model's own answer" if change.own_answer else "", "dim"),
            Span(_place(change.entry), "dim"),
        )
        if change.fate is not Fate.SAME or full:
            _print_change(terminal, change, full=full)
        terminal.line()
    terminal.line(Span(_summary(changes), "dim"))


def folded(text: str, limit: int = SHOWN) -> str:
    """A long text with its middle taken out, and how much that was."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters …\n{text[-half:]}"


def _title(entry: ContextEntry) -> str:
    return safe_line(f"{entry.what} {entry.label}".rstrip(), 80)


def _place(entry: ContextEntry) -> str:
    return "" if entry.place == entry.what else f"  {entry.place}"


def _sizes(change: ContextChange) -> str:
    if change.fate is Fate.TRUNCATED:
        return f"{change.kept:,} characters kept, {change.lost:,} lost"
    if change.before is not None:
        return f"{change.before.size:,} → {plural(change.entry.size, 'character')}"
    return plural(change.entry.size, "character")


def _print_change(terminal: Terminal, change: ContextChange, *, full: bool) -> None:
    if change.fate is Fate.TRUNCATED and change.before is not None:
        _print_text(terminal, change.entry.text, full=full)
        terminal.line(Span("lost:", "dim"))
        _print_text(terminal, change.before.text[change.kept :], full=full, style="red")
    elif change.fate is Fate.CHANGED and change.before is not None:
        was, now = (
            (change.before.text, change.entry.text) if full else _around_change(change.before.text, change.entry.text)
        )
        _print_text(terminal, was, full=full, style="red", mark="- ")
        _print_text(terminal, now, full=full, style="green", mark="+ ")
    else:
        _print_text(terminal, change.entry.text, full=full)


def _around_change(was: str, now: str, around: int = 80) -> tuple[str, str]:
    """Both texts from shortly before their first difference to shortly after their last one."""
    most = min(len(was), len(now))
    start = next((at for at in range(most) if was[at] != now[at]), most)
    end = next((at for at in range(most - start) if was[-1 - at] != now[-1 - at]), most - start)
    first = max(0, start - around)

    def cut(text: str) -> str:
        last = min(len(text), len(text) - end + around)
        return ("…" if first else "") + text[first:last] + ("…" if last < len(text) else "")

    return cut(was), cut(now)


def _print_text(terminal: Terminal, text: str, *, full: bool, style: str = "", mark: str = "  ") -> None:
    for line in (text if full else folded(text)).split("\n"):
        terminal.line(Span(mark + line, style))


def _folded(changes: Iterable[ContextChange]) -> Iterator[ContextChange | int]:
    """The changes, and in place of each run of unchanged entries how many they are."""
    for same, run in groupby(changes, key=lambda change: change.fate is Fate.SAME):
        if same:
            yield sum(1 for _ in run)
        else:
            yield from run


def _summary(changes: Sequence[ContextChange]) -> str:
    counts = Counter(change.fate for change in changes)
    return ", ".join(f"{counts[fate]} {fate.value}" for fate in Fate if counts[fate]) or "nothing was read"
