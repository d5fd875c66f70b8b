"""A session opened to be read, and understood as a whole."""

from pathlib import Path

from rewind.conversation.outline import Outline, outline_of
from rewind.errors import DamagedStore
from rewind.model.ids import BlobId
from rewind.model.session import Recording, Session
from rewind.reading.progress import OnProgress, ignored
from rewind.store.journal.reader import SessionReader
from rewind.store.library import Library


def find_session(home: Path, ref: str) -> Session:
    """The session of that id, name, prefix or file. Raises SessionNotFound or AmbiguousSession."""
    return Library(home).find(ref)


def open_session(home: Path, ref: str) -> SessionReader:
    """The same, opened."""
    library = Library(home)
    return library.open(library.find(ref))


def read_outline(reader: SessionReader, recording: Recording, on_progress: OnProgress = ignored) -> Outline:
    """The run, understood; a body that is damaged counts as empty here, and is named where it is asked for."""

    def blob(name: BlobId) -> bytes:
        try:
            return reader.blob(name)
        except DamagedStore:
            return b""

    total = len(recording.steps)
    return outline_of(recording, lambda step: step.bodies(blob), lambda done: on_progress("steps read", done, total))
