"""Brings into the search index what was recorded since it was last filled, batch by batch.

Each text is there once, at the step where it first appears: an agent repeats its whole conversation in every request,
so nearly all of a request is known already. Each batch is whole or not there at all, so a catch-up that is interrupted
goes on where it stopped.
"""

import hashlib
import json
import math
import os
import secrets
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from rewind.errors import DamagedStore, SessionNotFound
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.ids import BlobId
from rewind.model.message import Message
from rewind.model.session import Status
from rewind.model.step import Step
from rewind.providers.catalogue import identify
from rewind.providers.summary import Passage, TextKind, answered_texts, asked_texts
from rewind.store.derived import as_sql_text, columns, json_rows
from rewind.store.files import Progress, journal_size, open_private, session_folders
from rewind.store.journal.lines import Fields
from rewind.store.journal.reader import FolderReader, peek
from rewind.wire.chunks import common_run

LONGEST = 256 * 1024
"""Characters of a text that are searched; the rest of it is there in the recording."""

SESSION = columns(
    VARCHAR="folder", DOUBLE="started", BIGINT="read_to done_to texts unreadable", BOOLEAN="ended running"
)
TEXT = columns(VARCHAR="folder kind text", DOUBLE="started ts", BIGINT="step", BOOLEAN="cut")
_COLUMNS = {"row": "VARCHAR", **SESSION, **TEXT}
TABLES = {
    "sessions": SESSION,
    # Chosen by hand: left to itself DuckDB keeps long strings as they are, in four times the space.
    "texts": {**TEXT, "text": "VARCHAR USING COMPRESSION zstd"},
}
_CONVERSATIONS = 16
"""Conversations side by side whose last call is remembered."""
_BATCH = 8 * 1024 * 1024
"""Characters that are brought in at once, or one session where that is longer."""


class SessionTexts:
    """The texts of one session, from the step after ``done_to`` on; the steps before are in the index already."""

    def __init__(self, folder: Path, *, read_to: int, done_to: int = 0, unreadable: int = 0) -> None:
        self._folder = folder
        self._read_to = read_to
        self._done_to = done_to
        self._unreadable = unreadable
        self._seen: set[bytes] = set()
        self._lately: deque[tuple[Message, ...]] = deque(maxlen=_CONVERSATIONS)
        self._texts = 0
        self._problems = 0

    def mark_indexed(self, kind: str, text: str) -> None:
        """The index has that text already."""
        self._seen.add(_digest(kind, text))
        self._texts += 1

    def rows(self) -> Iterator[Fields]:
        """A row for each text, and a last one for the session. Raises RewindError where there is no session to read."""
        with FolderReader(self._folder) as reader:
            recording = reader.recording()
            session = recording.session
            begun = {"folder": self._folder.name, "started": _finite(session.start.started)}
            running = session.status is Status.RUNNING
            waiting = False
            for step in recording.steps:
                if step.index <= self._done_to:
                    continue
                for passage in self._new(self._passages(reader, step)):
                    ts = _finite(step.request.ts)
                    yield {"row": "text", **begun, "step": step.index, "ts": ts, **passage}
                # A step whose answer is still coming is read again next time, and all after it.
                waiting = waiting or (running and step.response is None)
                if not waiting:
                    self._done_to = step.index
                    self._unreadable += self._problems
                self._problems = 0
        yield {
            "row": "session",
            **begun,
            "read_to": self._read_to,
            "done_to": self._done_to,
            "ended": session.end is not None,
            "running": running,
            "texts": self._texts,
            "unreadable": self._unreadable,
        }

    def _passages(self, reader: FolderReader, step: Step) -> Iterator[Passage]:
        asked = self._bytes(reader, step.request.body)
        request = HttpRequest(head=step.request.head, body=asked or b"")
        provider = identify(request.head)
        yield from asked_texts(provider, request, self._known)
        if (response := step.response) is None:
            return
        if response.head is not None and (answered := self._answer(reader, step)) is not None:
            yield from answered_texts(provider, request, HttpResponse(head=response.head, body=answered, chunks=()))
        if response.reason:
            yield Passage(TextKind.ERROR, response.reason)

    def _known(self, messages: tuple[Message, ...]) -> int:
        """How many of the first messages were looked through at an earlier step, which this one repeats."""
        shared = 0
        for at, earlier in enumerate(self._lately):
            run = common_run(messages, 0, earlier, 0)
            shared = max(shared, run)
            if run and run == len(earlier):
                del self._lately[at]  # it goes on from this one
                break
        self._lately.appendleft(messages)
        return shared

    def _bytes(self, reader: FolderReader, name: BlobId) -> bytes | None:
        try:
            return reader.blob(name)
        except (DamagedStore, OSError):
            self._problems += 1
            return None

    def _answer(self, reader: FolderReader, step: Step) -> bytes | None:
        try:
            return reader.to_look_at(step)
        except (DamagedStore, OSError):
            self._problems += 1
            return None

    def _new(self, passages: Iterator[Passage]) -> Iterator[Fields]:
        for kind, whole in passages:
            text = as_sql_text(whole[:LONGEST])
            digest = _digest(kind, text)
            if digest not in self._seen:
                self._seen.add(digest)
                self._texts += 1
                yield {"kind": kind, "cut": len(whole) > LONGEST, "text": text}


def _digest(kind: str, text: str) -> bytes:
    return hashlib.blake2b(f"{kind} {text}".encode(), digest_size=16).digest()


def _finite(moment: float) -> float:
    return moment if isinstance(moment, int | float) and math.isfinite(moment) else 0.0


class _Known(NamedTuple):
    """What the index has of a session that has not ended."""

    read_to: int
    done_to: int
    running: bool
    unreadable: int


class _Grown(NamedTuple):
    """A session with something new."""

    folder: str
    size: int
    known: _Known | None


def fill(db: Any, home: Path, on_progress: Progress) -> int:
    """Catch up with all sessions; how many could not be opened."""
    sessions = home / "sessions"
    waiting = deque(_grown(db, home))
    total = len(waiting)
    lost = 0
    while waiting:
        with _rows_file(home) as (path, file):
            again: list[tuple[str, int]] = []
            size = 0
            while waiting and size < _BATCH:
                on_progress(total - len(waiting), total)
                folder, read_to, known = waiting.popleft()
                texts = _resumed(db, sessions / folder, read_to, known)
                begun = file.tell()
                try:
                    for row in texts.rows():
                        size += file.write(json.dumps(row) + "\n")
                except (SessionNotFound, DamagedStore) as problem:
                    file.seek(begun)  # texts without their session would never be forgotten
                    file.truncate()
                    # One that is gone meanwhile is not lost: the next catch-up forgets it.
                    lost += isinstance(problem, DamagedStore)
                    continue
                if known is not None:
                    again.append((folder, known.done_to))
            file.close()
            _insert(db, path, again)
    return lost


def _grown(db: Any, home: Path) -> list[_Grown]:
    """The sessions with something new, oldest first. Those that are gone are forgotten on the way."""
    query = "SELECT folder, read_to, done_to, running, unreadable FROM sessions WHERE NOT ended"
    known = {folder: _Known(*rest) for folder, *rest in db.execute(query).fetchall()}
    ended = {folder for (folder,) in db.execute("SELECT folder FROM sessions WHERE ended").fetchall()}
    there = session_folders(home)
    gone = (ended | known.keys()).difference(there)
    grown = []
    for folder in there:
        if folder in ended:  # who has ended writes no more: no need even to look
            continue
        was = known.get(folder)
        size = journal_size(home, folder)
        if was is not None and (size is None or size < was.read_to):
            gone.add(folder)  # a journal only grows; one that shrank is another one
            was = None
        if size is not None and (was is None or size > was.read_to or _has_died(home / "sessions" / folder, was)):
            grown.append(_Grown(folder, size, was))
    if gone:
        db.execute("BEGIN")
        for table in TABLES:
            db.execute(f"DELETE FROM {table} WHERE folder IN (SELECT unnest(?))", [list(gone)])  # noqa: S608
        db.execute("COMMIT")
    return grown


def _has_died(folder: Path, was: _Known) -> bool:
    """True if the recorder was alive at the last read and has exited since: it leaves parts of answers behind."""
    found = peek(folder) if was.running else None
    return found is not None and found[0].status is not Status.RUNNING


def _resumed(db: Any, folder: Path, read_to: int, known: _Known | None) -> SessionTexts:
    """The session from where the index has it."""
    if known is None:
        return SessionTexts(folder, read_to=read_to)
    texts = SessionTexts(folder, read_to=read_to, done_to=known.done_to, unreadable=known.unreadable)
    query = "SELECT kind, text FROM texts WHERE folder = ? AND step <= ?"
    for kind, text in db.execute(query, [folder.name, known.done_to]).fetchall():
        texts.mark_indexed(kind, text)
    return texts


@contextmanager
def _rows_file(home: Path) -> Iterator[tuple[Path, TextIO]]:
    """A private file for rows; DuckDB reads one large file in one go, and it is gone afterwards."""
    path = home / f".search-{secrets.token_hex(8)}.ndjson"
    try:
        with os.fdopen(open_private(path, os.O_WRONLY), "w", encoding="utf-8") as file:
            yield path, file
    finally:
        path.unlink(missing_ok=True)


def _insert(db: Any, rows: Path, again: list[tuple[str, int]]) -> None:
    """All of it or nothing. Names here are ours, not recorded ones."""
    session, text = (", ".join(f'"{name}"' for name in names) for names in (SESSION, TEXT))
    db.execute("BEGIN")
    for folder, done_to in again:
        db.execute("DELETE FROM sessions WHERE folder = ?", [folder])
        db.execute("DELETE FROM texts WHERE folder = ? AND step > ?", [folder, done_to])
    for statement in (
        f"CREATE TEMP TABLE fresh AS SELECT * FROM {json_rows(rows, _COLUMNS)}",  # noqa: S608
        f"INSERT INTO texts SELECT {text} FROM fresh WHERE \"row\" = 'text'",  # noqa: S608
        f"INSERT INTO sessions SELECT {session} FROM fresh WHERE \"row\" = 'session'",  # noqa: S608
        "DROP TABLE fresh",
        "COMMIT",
    ):
        db.execute(statement)
