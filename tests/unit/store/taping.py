"""Recordings in memory, and cassettes made of them, for the tests of cassettes."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from rewind.model.http import Chunk, Headers, ResponseHead
from rewind.model.ids import BlobId, blob_id
from rewind.model.session import Recording, Session, SessionEnd, SessionFile
from rewind.model.step import Step
from rewind.store.cassette.read import read_cassette
from rewind.store.cassette.write import write_cassette
from rewind.store.journal.reader import status_of
from unit.store.making import request, response, start

JSON_HEADERS: Headers = (("Content-Type", "application/json"),)


@dataclass(frozen=True, slots=True)
class Taped:
    """A recording with its bytes."""

    recording: Recording
    blobs: dict[BlobId, bytes]

    def cassette(self) -> bytes:
        return write_cassette(self.recording, self.blobs.__getitem__)

    def text(self) -> str:
        return self.cassette().decode()


def exchange(
    index: int,
    asked: bytes,
    answered: bytes | None,
    *,
    asked_headers: Headers = JSON_HEADERS,
    headers: Headers = JSON_HEADERS,
    **changes: Any,
) -> tuple[Step, dict[BlobId, bytes]]:
    """A step of those bytes; no answer for ``None``."""
    asking = request(index)
    asking = replace(
        asking, body=blob_id(asked), body_size=len(asked), head=replace(asking.head, headers=asked_headers)
    )
    if answered is None:
        return Step(request=asking, response=None), {blob_id(asked): asked}
    fields = {
        "head": ResponseHead(status=200, reason="OK", headers=headers),
        "body": blob_id(answered),
        "body_size": len(answered),
        "chunks": (Chunk(400_250, len(answered)),) if answered else (),
    }
    answer = response(**{**fields, **changes})
    return Step(request=asking, response=answer), {blob_id(asked): asked, blob_id(answered): answered}


def ended(**changes: Any) -> SessionEnd:
    fields: dict[str, Any] = {
        "ended": 1794774186.5,
        "exit_code": 0,
        "stdin": None,
        "stdout": None,
        "stderr": None,
        "redactions": 0,
    }
    return SessionEnd(**{**fields, **changes})


def taped(exchanges: Iterable[tuple[bytes, bytes | None]], *, end: SessionEnd | None = None, **changes: Any) -> Taped:
    """A session of those exchanges. It is interrupted unless it has an end."""
    made = [exchange(index, *pair) for index, pair in enumerate(exchanges, 1)]
    return taped_steps(made, end=end, **changes)


def taped_steps(
    made: Iterable[tuple[Step, dict[BlobId, bytes]]], *, end: SessionEnd | None = None, **changes: Any
) -> Taped:
    made = list(made)
    session = Session(start=start(**changes), end=end, status=status_of(end, running=False), folder="")
    blobs = {name: data for _, found in made for name, data in found.items()}
    return Taped(Recording(session=session, steps=tuple(step for step, _ in made)), blobs)


def again(portable: SessionFile) -> bytes:
    """The cassette of what a cassette holds."""
    return write_cassette(portable.recording, portable.blobs.__getitem__)


def assert_comes_back(tape: Taped) -> SessionFile:
    """Steps, bodies and text are the same after reading."""
    data = tape.cassette()
    portable = read_cassette(data, file="x.rw")
    assert portable.recording.steps == tape.recording.steps
    assert portable.recording.surroundings == tape.recording.surroundings
    assert portable.session.end == tape.recording.session.end
    assert replace(portable.session.start, imported=False) == tape.recording.session.start
    assert dict(portable.blobs) == {name: data for name, data in tape.blobs.items() if data}
    assert again(portable) == data
    return portable


def records_in(text: str | bytes) -> list[dict[str, Any]]:
    """The records behind the manifest, read as any JSON reader would."""
    source = text.decode() if isinstance(text, bytes) else text
    decoder, found, at = json.JSONDecoder(), [], source.index("\n") + 1
    while at < len(source):
        record, end = decoder.raw_decode(source, at)
        found.append(record)
        at = end + 1
    return found


def steps_in(text: str | bytes) -> list[dict[str, Any]]:
    return [record for record in records_in(text) if "step" in record]


def sealed(records: str | bytes, *, steps: int, size: int, number: int = 1) -> bytes:
    """A file around these records, with a hash that fits, as somebody without our writer would make it."""
    body = records if isinstance(records, bytes) else records.encode()
    begin = f'{{"rewind_cassette": {number}, "steps": {steps}, "size": {size}'.encode()
    return begin + b', "sha256": "' + hashlib.sha256(begin + body).hexdigest().encode() + b'"}\n' + body


def resealed(data: bytes) -> bytes:
    """A changed file, with a hash that fits again."""
    line, newline, body = data.partition(b"\n")
    begin, mark, _ = line.rpartition(b', "sha256"')
    if not newline or not mark:
        return data
    return begin + b', "sha256": "' + hashlib.sha256(begin + body).hexdigest().encode() + b'"}\n' + body
