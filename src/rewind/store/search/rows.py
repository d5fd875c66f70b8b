"""A session's texts as rows of the search index: each text once, at the step where it first appears.

An agent repeats its whole conversation in every request, so nearly all of a request is known already.
"""

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rewind.errors import DamagedStore
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.ids import BlobId
from rewind.model.session import Status
from rewind.model.step import Step
from rewind.providers.catalogue import identify
from rewind.providers.texts import Passage, TextKind, answered_texts, asked_texts
from rewind.store.journal.reader import FolderReader

LONGEST = 256 * 1024
"""Characters of a text that are searched; the rest of it is there in the recording."""

SESSION = {
    "folder": "VARCHAR",
    "started": "DOUBLE",
    "read_to": "BIGINT",
    "done_to": "BIGINT",
    "ended": "BOOLEAN",
    "running": "BOOLEAN",
    "texts": "BIGINT",
    "unreadable": "BIGINT",
}
TEXT = {
    "folder": "VARCHAR",
    "started": "DOUBLE",
    "step": "BIGINT",
    "ts": "DOUBLE",
    "kind": "VARCHAR",
    "cut": "BOOLEAN",
    "text": "VARCHAR",
}
COLUMNS = {"row": "VARCHAR", **SESSION, **TEXT}

Row = dict[str, Any]


class SessionTexts:
    """The texts of one session, from the step after ``done_to`` on; the steps before are in the index already."""

    def __init__(self, folder: Path, *, read_to: int, done_to: int = 0, unreadable: int = 0) -> None:
        self._folder = folder
        self._read_to = read_to
        self._done_to = done_to
        self._unreadable = unreadable
        self._seen: set[bytes] = set()
        self._texts = 0
        self._problems = 0

    @property
    def name(self) -> str:
        return self._folder.name

    @property
    def done_to(self) -> int:
        return self._done_to

    def know(self, kind: str, text: str) -> None:
        """That text is in the index."""
        self._seen.add(_digest(kind, text))
        self._texts += 1

    def rows(self) -> Iterator[Row]:
        """A row for each text, and a last one for the session. Raises RewindError where there is no session to read."""
        with FolderReader(self._folder) as reader:
            recording = reader.recording()
            session = recording.session
            begun = {"folder": self.name, "started": _finite(session.start.started)}
            running = session.status is Status.RUNNING
            waiting = False
            for step in recording.steps:
                if step.index <= self._done_to:
                    continue
                for passage in self._new(self._passages(reader, step)):
                    yield {
                        "row": "text",
                        **begun,
                        "step": step.index,
                        "ts": _finite(step.request.ts),
                        **passage,
                    }
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
        yield from asked_texts(provider, request)
        if (response := step.response) is None:
            return
        if response.head is not None and (answered := self._bytes(reader, response.body)) is not None:
            yield from answered_texts(
                provider, request, HttpResponse(head=response.head, body=answered, chunks=())
            )
        if response.reason:
            yield Passage(TextKind.ERROR, response.reason)

    def _bytes(self, reader: FolderReader, name: BlobId) -> bytes | None:
        try:
            return reader.blob(name)
        except (DamagedStore, OSError):
            self._problems += 1
            return None

    def _new(self, passages: Iterator[Passage]) -> Iterator[Row]:
        for kind, whole in passages:
            text = fitting(whole[:LONGEST])
            digest = _digest(kind, text)
            if digest not in self._seen:
                self._seen.add(digest)
                self._texts += 1
                yield {"kind": kind, "cut": len(whole) > LONGEST, "text": text}


def fitting(text: str) -> str:
    """The text as DuckDB takes it: no lone surrogates, no NUL."""
    plain = text.isascii() and "\0" not in text
    return text if plain else text.encode(errors="replace").decode().replace("\0", "\ufffd")


def _digest(kind: str, text: str) -> bytes:
    return hashlib.blake2b(f"{kind} {text}".encode(), digest_size=16).digest()


def _finite(moment: float) -> float:
    return moment if isinstance(moment, int | float) and math.isfinite(moment) else 0.0
