"""Files that hold a session: which they are, and how each kind is read."""

import os
from functools import lru_cache
from pathlib import Path

from rewind.errors import BadCassette
from rewind.formats.recognise import FileKind, kind_by_ending
from rewind.model.ids import BlobId
from rewind.model.session import Recording, SessionFile
from rewind.model.step import NO_BYTES
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


class SessionFileReader(SessionReader):
    """A session from a file, which is in memory as a whole."""

    def __init__(self, portable: SessionFile) -> None:
        self._portable = portable

    def recording(self) -> Recording:
        return self._portable.recording

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
