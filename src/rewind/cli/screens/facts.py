"""States, facts and lineages, for people."""

import shlex
from collections.abc import Iterable, Sequence

from rewind.cli.screens.layout import LONGEST
from rewind.cli.screens.terminal import Span, Terminal
from rewind.model.outcome import Outcome, outcome_of
from rewind.model.session import Lineage, Session, Surroundings
from rewind.safe import safe_line
from rewind.text import NONE, duration, moment, plural


def status(session: Session) -> Span:
    """A sign and a word; colour only helps."""
    match outcome_of(session):
        case Outcome.OK:
            return Span("✓ ok", "green")
        case Outcome.FAILED:
            return Span(f"✗ exit {session.end.exit_code}" if session.end else "✗ failed", "red")
        case Outcome.RUNNING:
            return Span("● running", "cyan")
        case Outcome.INTERRUPTED:
            return Span("◐ interrupted", "yellow")
        case Outcome.BROKEN:
            return Span("! broken", "red")
        case Outcome.PROBE:
            return Span("◇ probe", "dim")


def print_facts(terminal: Terminal, facts: Iterable[tuple[str, str | Span]]) -> None:
    """Names and values, one a line: a value with a line break in it must not look like another fact."""
    known = list(facts)
    width = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        shown = value if isinstance(value, Span) else Span(value)
        line = Span(safe_line(shown.text, LONGEST), shown.style)
        terminal.line(Span(f"{name:<{width}}", "dim"), "  ", line)


def session_facts(
    session: Session, damage: Sequence[str] = (), surroundings: Surroundings | None = None
) -> list[tuple[str, str | Span]]:
    """The head of ``rewind inspect``."""
    start, end = session.start, session.end
    facts: list[tuple[str, str | Span]] = [("session", Span(session.id, "bold"))]
    if start.name:
        facts.append(("name", start.name))
    if session.pinned:
        facts.append(("pinned", "it stays until rewind rm deletes it"))
    if session.is_foreign:
        facts.append(("from", session.file or "an import; its command is shown, never run by itself"))
    facts += [
        ("command", shlex.join(start.command)),
        ("folder", start.cwd),
        ("started", moment(start.started) if start.dated else NONE),
        ("status", status(session)),
    ]
    if end is not None:
        facts.append(("took", duration(end.ended - start.started) if start.dated else NONE))
        good = end.exit_code == 0 or session.is_probe
        facts.append(("exit code", Span(str(end.exit_code), "" if good else "red")))
        if end.redactions:
            facts.append(("secrets", f"{plural(end.redactions, 'secret')} removed"))
        if end.broken:
            facts.append(("broken", Span(end.broken, "red")))
        facts += [("remark", Span(remark, "yellow")) for remark in end.remarks]
    if start.replay_of:
        facts.append(("replay of", start.replay_of))
    if start.part_of:
        facts.append(("part of", start.part_of))
    if start.forked_from is not None:
        origin = start.forked_from
        facts.append(("forked from", f"{origin.session}:{origin.step} · {changes(origin, 200)}"))
        before = ([*one.edits, *(["edited by hand"] if one.by_hand else [])] for one in origin.earlier)
        facts += [("changed before", ", ".join(edits)) for edits in before if edits]
    facts += [("tag", f"{key}={value}") for key, value in start.tags.items()]
    if surroundings is not None:
        facts += surroundings_facts(surroundings)
    facts += [("damage", Span(one, "red")) for one in damage]
    return facts


def surroundings_facts(surroundings: Surroundings) -> list[tuple[str, str | Span]]:
    """What a run stood on, as far as it is known."""
    facts: list[tuple[str, str | Span]] = []
    if surroundings.commit:
        branch = f" on {surroundings.branch}" if surroundings.branch else ""
        facts.append(("commit", f"{surroundings.commit[:12]}{branch}{_changed(surroundings)}"))
    if surroundings.locks:
        facts.append(("locks", " · ".join(f"{name} {digest[:8]}" for name, digest in surroundings.locks.items())))
    return facts


def _changed(surroundings: Surroundings) -> str:
    if not surroundings.dirty:
        return "" if surroundings.dirty is False else ", not known whether anything was changed"
    return ", with uncommitted changes" + (
        f" {surroundings.changes.partition(':')[2][:8]}" if surroundings.changes else ""
    )


_SHOWN = 60


def changes(lineage: Lineage, width: int = _SHOWN) -> str:
    """``system=You are…, temperature=0``: what a fork changed at its step."""
    edits = [*lineage.edits, *(["edited by hand"] if lineage.by_hand else [])]
    shown = ", ".join(safe_line(edit, width) for edit in edits) or "nothing changed"
    return shown + (f" · sample {lineage.sample}" if lineage.sample is not None else "")
