"""Import: a file that holds a session, or what another tool recorded, becomes a session of the store."""

import hashlib
import os
import stat
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from rewind.errors import BadCassette
from rewind.formats.exchanges import ForeignRecording
from rewind.formats.recognise import ACCEPTED, BEGINNING, FileKind, kind_of
from rewind.formats.trace.session import DIGEST_TAG, digest_of, kept_as, remarks_of, session_of_trace
from rewind.model.ids import SessionId
from rewind.model.session import Portable, Session
from rewind.reading.adopt import Origin, adopted
from rewind.store.cassette.read import read_cassette_file
from rewind.store.files import reason
from rewind.store.imported_sessions import import_session
from rewind.store.library import Library
from rewind.store.trace_files import open_trace

FILE_LIMIT = 256 * 1024 * 1024
"""Other tools' files are read whole."""
MOST_EXCHANGES = 100_000
_TRACE = "rewind trace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What came of a file."""

    session_id: str
    steps: int
    tool: str
    """What wrote the file: ``rewind``, ``rewind trace``, ``vcrpy``, ``HAR (mitmproxy)``, ``mitmproxy`` …"""
    new: bool
    """False when the very same session was there already, and nothing was written."""
    remarks: tuple[str, ...] = ()
    """What a reader should know of what could not be taken over as it was."""


def import_file(home: Path, path: Path, *, name: str | None = None) -> Imported:
    """Read the file, whatever tool wrote it, and keep it as a session; ``name`` in place of its own.

    Raises BadCassette for a file that cannot be read; the store is untouched then.
    """
    kind = kind_of(_beginning(path), path.name)
    match kind:
        case None:
            raise BadCassette(f"{path} is no file that Rewind can import.", hint=ACCEPTED)
        case FileKind.CASSETTE:
            return _import_own(home, read_cassette_file(path), name)
        case FileKind.TRACE:
            return _import_trace(home, path, name)
        case _:
            return _import_foreign(home, path, kind, name)


def _import_trace(home: Path, path: Path, name: str | None) -> Imported:
    """A trace that has grown since its import is another session: both stay, and neither changes."""
    file = open_trace(path)
    portable = session_of_trace(file)
    digest = digest_of(file, portable)
    session_id, there = _place(Library(home), digest)
    if there is None:
        portable = kept_as(portable, session_id, digest, name)
        import_session(home, portable)
    return Imported(
        session_id=session_id,
        steps=len(portable.recording.steps),
        tool=_TRACE,
        new=there is None,
        remarks=remarks_of(there or portable.session),
    )


def _import_own(home: Path, portable: Portable, name: str | None) -> Imported:
    recording = portable.recording
    session = recording.session
    library = Library(home)
    if session.id in library.ids():
        # What somebody called it here does not make it another session.
        name = library.find(session.id).start.name
    elif name is None:
        name = session.start.name
    session = replace(session, start=replace(session.start, name=name))
    new = import_session(home, replace(portable, recording=replace(recording, session=session)))
    return Imported(session_id=session.id, steps=len(recording.steps), tool="rewind", new=new)


def _import_foreign(home: Path, path: Path, kind: FileKind, name: str | None) -> Imported:
    data = _whole(path)
    digest = hashlib.sha256(data).hexdigest()
    try:
        foreign = _read(kind, data)
    except BadCassette as problem:
        raise BadCassette(f"{path}: {problem.message}", hint=problem.hint) from problem
    if not foreign.exchanges:
        raise BadCassette(f"{path} holds no exchange, so there is nothing to import.")
    if len(foreign.exchanges) > MOST_EXCHANGES:
        raise BadCassette(f"{path} holds more than {MOST_EXCHANGES:,} exchanges.")
    session_id, there = _place(Library(home), digest)
    steps = len(foreign.exchanges)
    if there is not None:
        remarks = () if there.end is None else there.end.remarks
        return Imported(session_id=session_id, steps=steps, tool=foreign.tool, new=False, remarks=remarks)
    origin = Origin(
        id=session_id,
        name=name or path.name.partition(".")[0] or path.name,
        tags={"source": foreign.tool, DIGEST_TAG: digest[:16]},
    )
    portable = adopted(foreign, origin, os.environ)
    new = import_session(home, portable)
    end = portable.session.end
    assert end is not None, "what was adopted has ended"
    return Imported(
        session_id=portable.session.id, steps=steps, tool=foreign.tool, new=new, remarks=end.remarks
    )


def _read(kind: FileKind, data: bytes) -> ForeignRecording:
    # Each reader is loaded with its file: most imports need none of the others.
    match kind:
        case FileKind.HAR:
            from rewind.formats.har import read_har

            return read_har(data)
        case FileKind.FLOWS:
            from rewind.formats.mitmproxy_flows import read_flows

            return read_flows(data)
        case _:
            from rewind.formats.vcr import read_vcr

            return read_vcr(data)


def _place(library: Library, digest: str) -> tuple[SessionId, Session | None]:
    """The id that this file always gets, and the session that it has become already.

    Ids are short: where another session has it by chance, the next one is taken.
    """
    taken = set(library.ids())
    for attempt in count():
        session_id = SessionId(hashlib.sha256(f"{digest}/{attempt}".encode()).hexdigest()[:8])
        if session_id not in taken:
            return session_id, None
        there = library.find(session_id)
        if there.start.tags.get(DIGEST_TAG) == digest[:16]:
            return session_id, there
    raise AssertionError("counting has no end")


def _beginning(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadCassette(f"{path} is not a file.", hint=ACCEPTED)
        with path.open("rb") as file:
            return file.read(BEGINNING)
    except OSError as error:
        raise BadCassette(f"{path} cannot be opened: {reason(error)}.") from error


def _whole(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_LIMIT + 1)
    except OSError as error:
        raise BadCassette(f"{path} cannot be opened: {reason(error)}.") from error
    if len(data) > FILE_LIMIT:
        raise BadCassette(
            f"{path} is larger than {FILE_LIMIT // 1024 // 1024} MB, which Rewind does not read."
        )
    return data
