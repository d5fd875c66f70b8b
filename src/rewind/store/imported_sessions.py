"""Sessions from files become sessions of the store: whole, or not at all."""

import os
import secrets
import shutil
from dataclasses import replace
from pathlib import Path

from rewind.conversation.meaning import without_meaning
from rewind.errors import EnvironmentProblem
from rewind.model.ids import MatchKey
from rewind.model.session import Recording, SessionFile
from rewind.model.step import Step
from rewind.store.files import IMPORTING, make_private_folder, prepare_home, reason
from rewind.store.journal.lines import Fields
from rewind.store.journal.records import end_fields, request_fields, response_fields, session_fields
from rewind.store.journal.writer import STREAMS, SessionWriter
from rewind.store.library import Library
from rewind.store.session_files import SessionFileReader


def import_session(home: Path, portable: SessionFile) -> bool:
    """Put the session into the store, marked as one that came in a file. Raises EnvironmentProblem.

    False if the very same session was there already.
    """
    session = portable.session
    if (there := _same_id(home, portable.recording)) is not None:
        if there:
            return False
        raise EnvironmentProblem(
            f"Another session has the id {session.id} already, and it is not the same as this one.",
            hint=f"rewind inspect {session.id}; every command also opens the file itself, without an import",
        )
    sessions = prepare_home(home)
    aside = home / f"{IMPORTING}{os.getpid()}-{secrets.token_hex(8)}"
    try:
        make_private_folder(aside)
        folder = _written(aside, portable)
        folder.rename(sessions / folder.name)
    except OSError as error:
        raise EnvironmentProblem(f"Cannot write a session to {sessions}: {reason(error)}.") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return True


def _same_id(home: Path, recording: Recording) -> bool | None:
    """Whether the session of that id in the store is this one; ``None`` where there is none."""
    library = Library(home)
    if recording.session.id not in library.ids():
        return None
    with library.open(library.find(recording.session.id)) as reader:
        other = reader.recording()
    return not other.damage and _content(other) == _content(recording)


def _content(recording: Recording) -> tuple[object, ...]:
    """All that a copy of it must have, as a journal has it. Bodies are named by their hashes."""
    session = recording.session
    end = None if session.end is None else end_fields(session.end, {}, 0)
    return (
        session_fields(replace(session.start, imported=True)),
        recording.surroundings,
        [_lines(step) for step in recording.steps],
        end,
    )


def _lines(step: Step) -> tuple[Fields, Fields | None]:
    """What happened, without what it means: that is worked out from the bodies, by each Rewind as well as it can."""
    step = without_meaning(step)
    request = replace(step.request, match_key=MatchKey(""))
    answer = None if step.response is None else response_fields(step.index, 0.0, step.response, None)
    return request_fields(request), answer


class _RecordedTime:
    """A clock that tells when things happened, not when they are copied."""

    def __init__(self, now: float) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def ticks(self) -> int:
        return round(self.time * 1_000_000)


def _written(home: Path, portable: SessionFile) -> Path:
    """The folder of the session, in a store of its own."""
    recording, reader = portable.recording, SessionFileReader(portable)
    start, end = recording.session.start, recording.session.end
    clock = _RecordedTime(start.started)
    writer = SessionWriter.create(home, replace(start, imported=True), clock=clock)
    try:
        if recording.surroundings is not None:
            writer.surroundings(recording.surroundings)
        for step in recording.steps:
            writer.request(step.request, reader.blob(step.request.body))
            if (answer := step.response) is not None:
                clock.time = step.ended
                writer.response(step.index, answer, reader.blob(answer.body))
        if end is not None:
            for stream in STREAMS:
                if (data := reader.output(stream)) is not None:
                    writer.output(stream, data)
            writer.end(
                ended=end.ended,
                exit_code=end.exit_code,
                redactions=end.redactions,
                remarks=end.remarks,
                broken=end.broken,
            )
    finally:
        writer.close()
    if writer.broken is not None:
        raise EnvironmentProblem(f"The session {start.id} could not be written: {writer.broken}.")
    return writer.folder
