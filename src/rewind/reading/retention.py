"""What stays in a store and what goes: sessions deleted by name, by age or for room, and those that are pinned.

Deleting one deletes its bytes, its rows in the catalog and its words in the search index; see
:mod:`rewind.store.deletion`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from rewind.dataclass import dataclass
from rewind.errors import EnvironmentProblem, UsageError
from rewind.model.outcome import outcome_of
from rewind.model.session import Session, Status, split_step
from rewind.settings import Settings, check_keep
from rewind.store.deletion import QUICK, delete_sessions, set_pinned, size_on_disk
from rewind.store.deletion import finish_deletions as finish_deletions
from rewind.store.files import check_home, session_folders, start_from_name
from rewind.store.journal.reader import peek
from rewind.store.library import Library

DAY = 86_400
_FORK = re.compile(rb'"forked_from":\{"session":"([0-9a-f]{8})"')
_FIRST_LINE = 64 * 1024
_LEAST_OF_AN_ID = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRules:
    """What may go; without a moment and a size, nothing."""

    before: float | None = None
    """Sessions that started before that moment go."""
    max_size: int | None = None
    """Bytes: as long as the sessions take more, the oldest goes."""
    keep: tuple[str, ...] = ()
    """What stays all the same, in the words of ``prune --keep``. What is pinned, or runs, stays in any case."""

    def __post_init__(self) -> None:
        check_keep(self.keep)

    def why_kept(self, session: Session) -> str | None:
        """Why it stays, in one word; ``None`` if it may go."""
        if session.status is Status.RUNNING:
            return "running"
        if session.pinned:
            return "pinned"
        return next((word for word in self.keep if _keeps(word, session)), None)


def _keeps(word: str, session: Session) -> bool:
    start = session.start
    kind, _, wanted = word.partition("=")
    match kind:
        case "named":
            return start.name is not None
        case "tagged":
            return bool(start.tags)
        case "imported":
            return start.imported
        case "name":
            return fnmatchcase((start.name or "").lower(), wanted.lower())
        case "tag":
            key, equals, value = wanted.partition("=")
            return start.tags.get(key) == value if equals else key in start.tags
    return outcome_of(session).value == word


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSize:
    """A session that goes, or stays, and what it takes of the disk."""

    session: Session
    bytes: int
    why: str = ""
    """Why it goes, or stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What was deleted, or would be."""

    home: Path
    gone: tuple[SessionSize, ...] = ()
    """Oldest first, or in the order in which they were named."""
    forks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Session that goes → forks of it that stay, with their own copies of the steps that they share with it."""
    kept: tuple[SessionSize, ...] = ()
    """What would have gone, had no rule kept it."""
    left: int = 0
    """Sessions that stay, those included."""
    left_bytes: int | None = None
    """``None`` where nobody asked."""
    over: int = 0
    """Bytes beyond the size that was allowed, because what is left is kept."""
    is_forecast: bool = False

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.gone)

    @property
    def kept_because(self) -> Counter[str]:
        return Counter(one.why for one in self.kept)


def remove(home: Path, refs: Sequence[str]) -> Deletion:
    """Delete the sessions of these ids, names or prefixes: all, or none where one is unknown or being recorded."""
    chosen = _found(home, refs, "rm")
    if running := [session.id for session in chosen if session.status is Status.RUNNING]:
        are = "is" if len(running) == 1 else "are"
        raise EnvironmentProblem(
            f"{', '.join(running)} {are} being recorded right now. Nothing was deleted.",
            hint="end the run first; then the session can be deleted",
        )
    gone = tuple(SessionSize(session=session, bytes=_size(home, session.folder)) for session in chosen)
    return _carried_out(Deletion(home=home, gone=gone), even_pinned=True)


def pin(home: Path, refs: Sequence[str], *, pinned: bool = True) -> tuple[Session, ...]:
    """Say that these sessions are to stay, or need not any more. All of them, or none where one is unknown."""
    chosen = _found(home, refs, "pin")
    for session in chosen:
        set_pinned(home / "sessions" / session.folder, pinned=pinned)
    return tuple(replace(session, pinned=pinned) for session in chosen)


def prune(home: Path, rules: RetentionRules, *, dry_run: bool = False) -> Deletion:
    """Delete what the rules let go."""
    planned = _planned(home, rules, measure=True)
    return replace(_with_forks(planned), is_forecast=True) if dry_run else _carried_out(planned)


def retain(home: Path, settings: Settings, *, now: float, began: float, at_most: int = QUICK) -> Deletion | None:
    """After a run: delete what the settings let go; ``None`` where they say nothing.

    What was recorded since ``began`` stays, and so does what somebody imported: this is for what piles up by itself.
    Nobody should have to wait here, so derived files of more than ``at_most`` bytes are left for a later command.
    """
    rules = rules_of(settings, now=now)
    if rules.before is None and rules.max_size is None:
        return None
    rules = replace(rules, keep=(*rules.keep, "imported"))
    planned = _planned(home, rules, until=began, measure=rules.max_size is not None)
    return _carried_out(planned, at_most=at_most) if planned.gone or planned.over else None


def rules_of(
    settings: Settings, *, now: float, before: float | None = None, keep: tuple[str, ...] = ()
) -> RetentionRules:
    """The rules of the settings; what is given for this time takes precedence, and more may be kept."""
    if before is None and settings.keep_days is not None:
        before = now - settings.keep_days * DAY
    return RetentionRules(before=before, max_size=settings.max_size, keep=(*keep, *settings.keep))


def _found(home: Path, refs: Sequence[str], command: str) -> list[Session]:
    """The sessions of the store with these names, each once."""
    library = Library(home)
    found: dict[str, Session] = {}
    for ref in refs:
        ref, step = split_step(ref)
        if step is not None:
            raise UsageError(f"{command} takes whole sessions, not a step.", hint=f"rewind {command} {ref}")
        session = library.find(ref)
        if session.file is not None:
            raise UsageError(
                f"{session.file} is a file, not a session in the store.",
                hint="delete the file itself" if command == "rm" else "a file stays until you delete it",
            )
        if command == "rm" and len(ref) < _LEAST_OF_AN_ID and ref != session.start.name:
            raise UsageError(
                f"{ref!r} is too little of an id to delete by: give four characters or more. Nothing was deleted.",
                hint=f"rewind rm {session.id}",
            )
        found[session.folder] = session
    return list(found.values())


def _planned(home: Path, rules: RetentionRules, *, until: float | None = None, measure: bool) -> Deletion:
    """One look at each session, oldest first; ``measure`` says whether the size of what stays is wanted."""
    folders = session_folders(home) if check_home(home) else []
    sizes = {folder: _size(home, folder) for folder in folders} if measure else {}
    total = sum(sizes.values())
    gone: list[SessionSize] = []
    kept: list[SessionSize] = []
    for folder in folders:
        started = start_from_name(folder).started
        expired = rules.before is not None and started < rules.before
        too_much = rules.max_size is not None and total > rules.max_size
        if not (expired or too_much):
            break  # all others are younger, and there is room for them
        found = peek(home / "sessions" / folder)
        if found is None:
            continue
        one = SessionSize(session=found[0], bytes=sizes[folder] if measure else _size(home, folder))
        why_kept = "new" if until is not None and started >= until else rules.why_kept(one.session)
        if why_kept is not None:
            kept.append(replace(one, why=why_kept))
        else:
            gone.append(replace(one, why="too old" if expired else "too much"))
            total -= one.bytes
    return Deletion(
        home=home,
        gone=tuple(gone),
        kept=tuple(kept),
        left=len(folders) - len(gone),
        left_bytes=total if measure else None,
        over=0 if rules.max_size is None else max(0, total - rules.max_size),
    )


def _carried_out(planned: Deletion, *, even_pinned: bool = False, at_most: int | None = None) -> Deletion:
    deletion = _with_forks(planned)
    if not deletion.gone:
        return deletion
    folders = [one.session.folder for one in deletion.gone]
    stayed = delete_sessions(planned.home, folders, even_pinned=even_pinned, at_most=at_most)
    return replace(deletion, gone=tuple(one for one in deletion.gone if one.session.folder not in stayed))


def _with_forks(planned: Deletion) -> Deletion:
    return replace(planned, forks=_forks_that_stay(planned.home, planned.gone)) if planned.gone else planned


def _forks_that_stay(home: Path, gone: Iterable[SessionSize]) -> dict[str, tuple[str, ...]]:
    """Read from the first bytes of the sessions that began later: a fork names its parent there."""
    going = {one.session.folder for one in gone}
    parents, oldest = {folder[-8:] for folder in going}, min(going)
    forks: dict[str, list[str]] = {}
    for folder in session_folders(home):
        if folder <= oldest or folder in going:
            continue
        try:
            with (home / "sessions" / folder / "journal.jsonl").open("rb") as journal:
                found = _FORK.search(journal.readline(_FIRST_LINE))
        except OSError:  # gone meanwhile
            continue
        if found is not None and (parent := found[1].decode()) in parents:
            forks.setdefault(parent, []).append(folder[-8:])
    return {parent: tuple(children) for parent, children in forks.items()}


def _size(home: Path, folder: str) -> int:
    return size_on_disk(home / "sessions" / folder)
