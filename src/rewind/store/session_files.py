"""Files that hold a session: which they are, and how each kind is read."""

import os
import shlex
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from rewind.errors import BadCassette, SessionNotFound
from rewind.formats.recognise import ACCEPTED, BEGINNING, FileKind, is_recording, kind_by_ending, kind_of
from rewind.model.ids import BlobId
from rewind.model.session import Recording, SessionFile
from rewind.model.step import NO_BYTES, Step
from rewind.store.files import reason
from rewind.store.journal.reader import SessionReader
from rewind.store.journal.writer import Stream
from rewind.store.trace_files import open_trace


def names_session_file(ref: str) -> bool:
    """True if a reference looks like the path of a cassette or a trace."""
    return kind_by_ending(ref) in (FileKind.CASSETTE, FileKind.TRACE)


def is_session_file(ref: str) -> bool:
    """True if a reference is the path of a cassette or a trace that exists."""
    return names_session_file(ref) and Path(ref).is_file()


def not_a_session(ref: str) -> SessionNotFound | None:
    """What a file or folder of that path is, where it is no session by itself; ``None`` if there is none."""
    path, shown = Path(ref), repr(ref)
    try:
        if ref and path.is_dir():
            return SessionNotFound(
                f"No session is called {shown}; there is a folder of that name.",
                hint=f"rewind list shows the sessions; rewind import {shlex.quote(ref)} takes in recordings from it",
            )
        if not path.is_file():
            return None
        with path.open("rb") as file:
            beginning = file.read(BEGINNING)
    except (OSError, ValueError):  # too long for a path, or nobody's to read
        return None
    if not is_recording(beginning, path.name):
        return SessionNotFound(
            f"No session is called {shown}, and the file of that name is not a cassette, nor anything else to import.",
            hint=ACCEPTED,
        )
    kind = kind_of(beginning, path.name)
    named = {FileKind.CASSETTE: ", or named *.rw", FileKind.TRACE: ", or named *.jsonl"}
    return SessionNotFound(
        f"No session is called {shown}; the file of that name is {kind}, and can be used once it is "
        f"imported{'' if kind is None else named.get(kind, '')}.",
        hint=f"rewind import {shlex.quote(ref)}",
    )


def open_session_file(path: str) -> SessionFile:
    """The session in that file. Raises BadCassette."""
    try:
        status = os.stat(path)  # noqa: PTH116  only what tells two states of a file apart is wanted
    except OSError as error:
        raise BadCassette(f"It cannot be opened: {reason(error)}.", path=path) from error
    return _opened(path, (status.st_ino, status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=4)
def _opened(path: str, _state: tuple[int, ...]) -> SessionFile:
    if kind_by_ending(path) is FileKind.TRACE:
        from rewind.formats.trace.session import session_of_trace  # all lazily: most commands open no file

        return session_of_trace(open_trace(Path(path)))
    from rewind.store.cassette.read import read_cassette_file

    return read_cassette_file(Path(path))


def file_remarks(path: str) -> tuple[str, ...]:
    """What a file states otherwise than its bodies say. Raises BadCassette."""
    return remarks_on(open_session_file(path))


def remarks_on(portable: SessionFile) -> tuple[str, ...]:
    """The same for a file that is read already."""
    return (*portable.remarks, *(() if portable.meanings is None else portable.meanings.remarks()))


class SessionFileReader(SessionReader):
    """A session from a file, which is in memory as a whole. What its steps mean is made from its bodies."""

    def __init__(self, portable: SessionFile) -> None:
        self._portable = portable

    def recording(self, *, upto: int | None = None) -> Recording:
        stated, meanings = self._portable.recording, self._portable.meanings
        return stated if meanings is None else replace(stated, steps=meanings.steps(upto))

    def bare_recording(self) -> Recording | None:
        stated, meanings = self._portable.recording, self._portable.meanings
        if meanings is None or any(step.request.asked_key for step in stated.steps):
            return None
        return replace(stated, steps=meanings.bare_steps())

    def with_reading(self, step: Step) -> Step:
        meanings = self._portable.meanings
        return step if meanings is None else meanings.with_reading(step)

    def blob(self, blob: BlobId) -> bytes:
        if blob == NO_BYTES:
            return b""
        try:
            return self._portable.blobs[blob]
        except KeyError:
            raise BadCassette(f"It does not hold the bytes {blob}.") from None

    def output(self, stream: Stream) -> bytes | None:
        name = getattr(self._portable.session.end, stream, None)
        return None if name is None else self.blob(name)
