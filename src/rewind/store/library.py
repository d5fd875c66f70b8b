"""Finds and opens recorded sessions. Never writes one; an absent store is an empty one."""

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from rewind.errors import AmbiguousSession, SessionNotFound
from rewind.model.clock import Clock, SystemClock
from rewind.model.session import Session, Status
from rewind.pricing.spending import Pricing
from rewind.store.files import FOLDER, Progress, check_home, open_to_read, session_folders
from rewind.store.journal.reader import FolderReader, SessionReader, count_totals, peek
from rewind.store.journal.totals import Totals, totals_of
from rewind.store.session_files import (
    SessionFileReader,
    is_session_file,
    names_session_file,
    not_a_session,
    open_session_file,
)
from rewind.store.verify import Damage, verify_session
from rewind.text import age

_LAST = re.compile(r"last(?:~(\d{1,9}))?", re.ASCII)
_SHOWN = 8
_NEAR = 500


class Library:
    """Find and open sessions."""

    def __init__(self, home: Path, *, clock: Clock | None = None) -> None:
        self._home = home
        self._sessions = home / "sessions"
        self._clock = clock or SystemClock()

    def sessions(self, limit: int | None = None) -> list[Session]:
        """Newest first. Reads two lines of each, and no more sessions than asked for."""
        return list(islice(self.newest(), limit))

    def newest(self) -> Iterator[Session]:
        """All sessions, newest first, each read when it is asked for."""
        return self._newest(self._folders())

    def find(self, ref: str) -> Session:
        """The session of that id, name or id prefix, or ``last``, ``last~1``, …, which probes do not count for; or the
        one in a cassette or trace of that path.

        A full id comes first, then a name (people call their runs "bad", which is hexadecimal), then a prefix. A replay
        that was kept is found by its id: ``last`` and the name keep meaning what was recorded.
        """
        if is_session_file(ref):
            return open_session_file(ref).session
        folders = self._folders()
        if found := _LAST.fullmatch(ref):
            back = int(found[1] or 0)
            runs = (session for session in self._recorded(folders) if not session.is_probe)
            if session := next(islice(runs, back, None), None):
                return session
        elif session := self._by_id(ref, folders) or self._by_name(ref, folders) or self._by_prefix(ref, folders):
            return session
        raise self._not_found(ref, folders)

    def open(self, session: Session) -> SessionReader:
        if session.file is not None:
            return SessionFileReader(open_session_file(session.file))
        return FolderReader(self._folder(session))

    def totals(self, session: Session, pricing: Pricing | None = None) -> Totals:
        """Its totals, counted by the rules of today; with prices, the cost too."""
        if session.file is not None:
            return totals_of(self.open(session).recording(), pricing)
        folder = self._folder(session)
        return count_totals(folder, running=session.status is Status.RUNNING, pricing=pricing)

    def ids(self) -> list[str]:
        """All ids, newest first: they are in the names of the folders."""
        return [folder[-8:] for folder in self._folders()]

    def verify(self, session: Session) -> tuple[Damage, ...]:
        if session.file is not None:
            return ()  # every byte of a file is checked when it is opened
        return verify_session(self._folder(session))

    def verify_all(self, on_progress: Progress) -> tuple[int, tuple[Damage, ...]]:
        """How many sessions there are, and what is damaged: also in those that cannot even be listed."""
        folders = self._folders()
        damage: list[Damage] = []
        for done, folder in enumerate(folders):
            on_progress(done, len(folders))
            with suppress(SessionNotFound):  # deleted since we looked: then nothing is damaged
                damage += verify_session(self._sessions / folder)
        return len(folders), tuple(damage)

    def _folder(self, session: Session) -> Path:
        """A name from outside is data; only one of our own form becomes a path."""
        if not FOLDER.fullmatch(session.folder):
            raise SessionNotFound(f"{session.folder[:80]!r} is not the folder of a session.")
        return self._sessions / session.folder

    def _folders(self) -> list[str]:
        """The sessions' folders, newest first: their names sort by time."""
        return session_folders(self._home)[::-1] if check_home(self._home) else []

    def _newest(self, folders: Iterable[str]) -> Iterator[Session]:
        for folder in folders:
            if (found := peek(self._sessions / folder)) is not None:
                yield found[0]

    def _recorded(self, folders: list[str]) -> Iterator[Session]:
        """Those that somebody recorded, newest first: neither replays, nor what a session beside them holds, too."""
        ids = {folder[-8:] for folder in folders}
        for folder in folders:
            found = peek(self._sessions / folder)
            if found is not None and not _is_mere_replay(*found) and found[0].start.part_of not in ids:
                yield found[0]

    def _by_id(self, ref: str, folders: list[str]) -> Session | None:
        if len(ref) != 8:
            return None
        return self._only(ref, [folder for folder in folders if folder.endswith("-" + ref.lower())])

    def _by_prefix(self, ref: str, folders: list[str]) -> Session | None:
        if not ref:
            return None
        return self._only(ref, [folder for folder in folders if folder[-8:].startswith(ref.lower())])

    def _by_name(self, ref: str, folders: list[str]) -> Session | None:
        """The newest of that name that is no replay of another, if there is one.

        Looks for its text in the first bytes, and only then reads the line."""
        replay: Session | None = None
        needles = {json.dumps(ref, ensure_ascii=plain).encode(errors="replace") for plain in (True, False)}
        for folder in folders:
            start = self._first_bytes(folder)
            if any(needle in start for needle in needles):
                found = peek(self._sessions / folder)
                if found is not None and found[0].start.name == ref:
                    if not _is_mere_replay(*found):
                        return found[0]
                    replay = replay or found[0]
        return replay

    def _first_bytes(self, folder: str) -> bytes:
        try:
            fd = open_to_read(self._sessions / folder / "journal.jsonl")
        except OSError:  # gone meanwhile: not the one we look for
            return b""
        try:
            return os.pread(fd, 4096, 0)
        finally:
            os.close(fd)

    def _only(self, ref: str, folders: list[str]) -> Session | None:
        candidates = list(islice(self._newest(folders), _SHOWN + 1))
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        shown = ", ".join(self._describe(session) for session in candidates[:_SHOWN])
        more = f" and {len(folders) - _SHOWN} more" if len(folders) > _SHOWN else ""
        raise AmbiguousSession(
            f"{ref!r} names {len(folders)} sessions: {shown}{more}.", hint="Give one more character of the id."
        )

    def _no_step(self, ref: str) -> SessionNotFound | None:
        """What is wrong with ``refund:abc`` where there is a session ``refund``."""
        before, colon, step = ref.rpartition(":")
        try:
            session = self.find(before) if colon and before else None
        except (SessionNotFound, AmbiguousSession):
            return None
        if session is None:
            return None
        return SessionNotFound(
            f"{step[:80]!r} is not a step of {before}: steps are numbers, as in {before}:1, and {before}:1.1 is the "
            "first tool call of step 1.",
            hint=f"See its steps: rewind inspect {shlex.quote(before)}",
        )

    def _describe(self, session: Session) -> str:
        name = f"{session.start.name!r}, " if session.start.name else ""
        return f"{session.id} ({name}{age(self._clock.now() - session.start.started)} ago)"

    def _not_found(self, ref: str, folders: list[str]) -> SessionNotFound:
        if (problem := self._no_step(ref)) is not None:
            return problem
        if (problem := not_a_session(ref)) is not None:
            return problem
        shown = repr(ref if len(ref) <= 80 else ref[:79] + "…")
        if names_session_file(ref):
            return SessionNotFound(
                f"There is no file {shown}, nor a session of that name.",
                hint="the path is taken from the current folder; rewind list shows the sessions in the store",
            )
        if not folders:
            return SessionNotFound(
                f"No session is called {shown}: none has been recorded yet.",
                hint="Record one: rewind record -- COMMAND",
            )
        by_word: dict[str, Session] = {}
        for session in islice(self._newest(folders), _NEAR):
            for word in (session.id, session.start.name):
                if word:
                    by_word.setdefault(word, session)
        near = get_close_matches(ref[:80], by_word, n=3, cutoff=0.5)
        nearest = ", ".join(dict.fromkeys(self._describe(by_word[word]) for word in near))
        return SessionNotFound(
            f"No session is called {shown}.",
            hint=(f"Nearest: {nearest}. " if nearest else "") + "See them all: rewind list",
        )


def _is_mere_replay(session: Session, totals: Totals | None) -> bool:
    """Whether this is another session once more. What ``mode="extend"`` has added to a recording is a recording itself;
    it is of a program's own process, whose output nobody keeps."""
    if session.start.replay_of is None:
        return False
    is_extended = session.end is not None and session.end.stdout is None
    return not (is_extended and totals is not None and totals.replayed < totals.steps)
