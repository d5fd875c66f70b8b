"""A session opened to be read, and understood as a whole."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from rewind.conversation.outline import Outline, outline_of
from rewind.errors import DamagedStore
from rewind.model.ids import BlobId
from rewind.model.session import Recording, Session
from rewind.model.step import NO_BYTES, Step
from rewind.reading.progress import OnProgress, ignored
from rewind.store.journal.reader import SessionReader
from rewind.store.journal.writer import STREAMS
from rewind.store.library import Library

Blob = Callable[[BlobId], bytes]
Half = Literal["request", "answer"]
HALVES: tuple[Half, Half] = ("request", "answer")


def find_session(home: Path, ref: str) -> Session:
    """The session of that id, name, prefix or file. Raises SessionNotFound or AmbiguousSession."""
    return Library(home).find(ref)


def open_session(home: Path, ref: str) -> SessionReader:
    """The same, opened."""
    library = Library(home)
    return library.open(library.find(ref))


def read_outline(
    reader: SessionReader, recording: Recording, on_progress: OnProgress = ignored, *, damage: list[str] | None = None
) -> Outline:
    """The run, understood; a body that is damaged counts as empty here, and ``damage`` is told which."""

    def bodies(step: Step) -> tuple[bytes, bytes]:
        request, problem = read_body_of(reader.blob, step, "request")
        answer, another = answer_to_look_at(reader, step)
        if damage is not None:
            damage.extend(filter(None, (problem, another)))
        return request or b"", answer or b""

    total = len(recording.steps)
    return outline_of(recording, bodies, lambda done: on_progress("steps read", done, total))


def read_body_of(blob: Blob, step: Step, half: Half) -> tuple[bytes | None, str | None]:
    """The bytes of one half of a step; or that they cannot be read. ``rewind verify`` says why."""
    try:
        return (blob(step.request.body) if half == "request" else step.answer_body(blob)), None
    except DamagedStore:
        return None, f"the {half} of step {step.index} cannot be read"


def answer_to_look_at(reader: SessionReader, step: Step) -> tuple[bytes | None, str | None]:
    """The answer of a step, of a very long one the beginning; or that it cannot be read."""
    try:
        return reader.to_look_at(step), None
    except DamagedStore:
        return None, f"the answer of step {step.index} cannot be read"


def without_damaged_bodies(recording: Recording, blob: Blob) -> Recording:
    """What can be read of a recording. A step whose answer is damaged has none; ``damage`` and its note say so."""
    damage: list[str] = []
    steps = tuple(_legible(step, blob, damage) for step in recording.steps)
    session, end = recording.session, recording.session.end
    if end is not None:
        stdin, stdout, stderr = (_legible_stream(name, getattr(end, name), blob, damage) for name in STREAMS)
        session = replace(session, end=replace(end, stdin=stdin, stdout=stdout, stderr=stderr))
    return replace(recording, session=session, steps=steps, damage=(*recording.damage, *damage))


def _legible(step: Step, blob: Blob, damage: list[str]) -> Step:
    request, response = step.request, step.response
    for half in HALVES:
        _, problem = read_body_of(blob, step, half)
        if problem is None:
            continue
        damage.append(problem)
        request = replace(request, note="; ".join(filter(None, (request.note, f"its {half} was damaged and is lost"))))
        if half == "request":
            request = replace(request, body=NO_BYTES, body_size=0)
        else:
            response = None
    return Step(request=request, response=response)


def _legible_stream(name: str, stream: BlobId | None, blob: Blob, damage: list[str]) -> BlobId | None:
    try:
        if stream is not None:
            blob(stream)
    except DamagedStore:
        damage.append(f"{name} cannot be read")
        return None
    return stream
