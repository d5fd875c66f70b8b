"""Since when a value is in use, and what code both runs stood on."""

from collections.abc import Iterator
from pathlib import Path

from rewind.cli.comparing import Side, moment_shown
from rewind.cli.progress import progress
from rewind.compare.cause import Cause, CauseKind
from rewind.compare.delta import Aspect
from rewind.compare.summary import lasting_value
from rewind.compare.versions import changed_locks, changed_versions, same_code, versions_of
from rewind.model.program import program_of
from rewind.model.session import SessionStart
from rewind.model.surroundings import Surroundings
from rewind.safe import safe_line
from rewind.store.catalog.since import Mark, Part, Seen, first_seen
from rewind.text import plural

_PARTS = {
    CauseKind.MODEL: (Part.MODEL, Aspect.MODEL),
    CauseKind.SNAPSHOT: (Part.SNAPSHOT, Aspect.SNAPSHOT),
    CauseKind.SYSTEM: (Part.SYSTEM, Aspect.SYSTEM),
    CauseKind.TOOLS: (Part.TOOLS, Aspect.TOOLS),
    CauseKind.PARAMETERS: (Part.SETTINGS, Aspect.PARAMETERS),
}
"""What stays once it is changed, so that its first use can be looked for."""
_NOBODYS_OWN = frozenset({CauseKind.MODEL, CauseKind.PARAMETERS})
"""Values that other agents may have used before: only runs of this one count."""
_MOST_VERSIONS = 4
_LONGEST_FACT = 80


def since_when(home: Path, cause: Cause, good: Side, bad: Side) -> Seen | None:
    """The first session with the new value; ``None`` where that is not known, or not a thing that lasts."""
    before, after = cause.since.a, cause.since.b
    if cause.kind not in _PARTS or before is None or after is None:
        return None
    if bad.session.file is not None:
        return None  # what this store holds says nothing of a run that came from elsewhere
    part, aspect = _PARTS[cause.kind]
    old, new = lasting_value(before, aspect), lasting_value(after, aspect)
    if new is None:
        return None
    asked = after.model_asked if cause.kind is CauseKind.SNAPSHOT else None
    agents = {_agent(side.session.start) for side in (good, bad)}
    with progress("sessions looked through") as show:
        return first_seen(
            home,
            Mark(part=part, value=new, asked=asked),
            old=old,
            until=bad.session,
            among=lambda start: cause.kind not in _NOBODYS_OWN or _agent(start) in agents,
            progress=show,
        )


def since_text(seen: Seen, good: Side, bad: Side) -> str:
    """``first seen 2026-11-15 09:14 UTC in 9b2c0d1e; last with the old one: 7f3a2b9c, 09:02 UTC``."""
    first = moment_shown(seen.ts)
    told = [f"first seen {first} in {_named(seen.session.id, good, bad)}"]
    if seen.last_without is not None:
        last = moment_shown(seen.last_without.ts)
        shown = last[11:] if last[:10] == first[:10] else last
        told.append(f"last with the old one: {_named(seen.last_without.session.id, good, bad)}, {shown}")
    if seen.after:
        told.append(f"{plural(seen.after, 'session')} later still had the old one")
    if seen.unread:
        told.append(f"{plural(seen.unread, 'earlier session')} cannot tell")
    return "; ".join(told)


def code_text(good: Side, bad: Side) -> str:
    """Commits, packages and lock files of both runs, as far as they are known."""
    return " · ".join(safe_line(fact, _LONGEST_FACT) for fact in _code(good, bad))


def _agent(start: SessionStart) -> str:
    return program_of(start.command)


def _named(session: str, good: Side, bad: Side) -> str:
    if session in (good.id, bad.id) and good.id != bad.id:
        return f"{session} (the {'good' if session == good.id else 'bad'} run)"
    return session


def _code(good: Side, bad: Side) -> Iterator[str]:
    one, other = (side.run.recording.surroundings for side in (good, bad))
    if text := _commits(one, other):
        yield f"git {text}"
    before, after = (versions_of(side.run.recording) for side in (good, bad))
    changed = changed_versions(before, after)
    yield from (f"{found.name} {found.before} → {found.after}" for found in changed)
    same = [f"{name} {version}" for name, version in before.items() if after.get(name) == version]
    if same:
        more = f" and {len(same) - _MOST_VERSIONS} more" if len(same) > _MOST_VERSIONS else ""
        yield ", ".join(same[:_MOST_VERSIONS]) + more + " in both"
    yield from (f"{name} changed" for name in changed_locks(one, other))


def _commits(one: Surroundings | None, other: Surroundings | None) -> str:
    known = [side is not None and side.commit is not None for side in (one, other)]
    if not any(known):
        return ""
    before, after = _commit(one), _commit(other)
    match same_code(one, other):
        case True:
            return f"{before} in both"
        case None if before == after:
            return f"{before} in both, not known whether it is the same"
        case False if before == after:
            return f"{before} in both, but not the same changes"
    return f"{before} → {after}"


def _commit(found: Surroundings | None) -> str:
    if found is None or found.commit is None:
        return "not known"
    return found.commit[:7] + (" + uncommitted changes" if found.dirty else "")
