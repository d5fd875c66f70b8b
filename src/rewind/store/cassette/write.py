"""The cassette: one session as text that can be read in a review, and checked to the last byte.

A stream of JSON values. The first line, the manifest, says how much follows and carries the SHA-256 of every other
byte. Then come the session, its steps and its end, and at last the small print. The format is in docs/formats.md.
"""

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import BinaryIO

from rewind.dataclass import dataclass
from rewind.errors import BadCassette, EnvironmentProblem, UsageError
from rewind.files import write_whole
from rewind.model.http import Headers, header
from rewind.model.ids import BlobId
from rewind.model.session import Recording, SessionEnd
from rewind.model.step import Step
from rewind.store.cassette import records
from rewind.store.cassette.bodies import MOST_OF_A_BODY, BodyWriter
from rewind.store.cassette.fields import Fields
from rewind.store.cassette.read import read_cassette
from rewind.store.cassette.records import MOST_STEPS, OF_THE_SESSION
from rewind.store.cassette.references import Layout
from rewind.store.cassette.seal import Manifest, is_light, most_joined, packed, seal, unpacked
from rewind.store.files import reason
from rewind.store.journal.writer import STREAMS


def write_cassette(
    recording: Recording, blob: Callable[[BlobId], bytes], before_step: Callable[[Step], None] = lambda _step: None
) -> bytes:
    """The session as text. The same session gives the same bytes. Raises EnvironmentProblem if it is too large.

    ``before_step`` is for who wants to look at each step as well, at a time when its bodies are at hand.
    """
    if len(recording.steps) > MOST_STEPS:
        raise EnvironmentProblem(
            f"The session has {len(recording.steps):,} steps; a cassette takes {MOST_STEPS:,}.",
            hint=f"Export some of them: rewind export {recording.session.id} --steps 1..{MOST_STEPS}",
        )
    start, end = recording.session.start, recording.session.end
    layout, bodies = Layout(), BodyWriter(blob)
    layout.add(records.session_record(start))
    if recording.surroundings is not None:
        layout.add(records.surroundings_record(recording.surroundings))
    small_print: list[Fields] = [{"small_print": OF_THE_SESSION, "started": start.started}]
    for step in recording.steps:
        before_step(step)
        record, small = _step_records(step, bodies)
        layout.add(record)
        small_print.append(small)
    if end is not None:
        record, small = _end_records(end, bodies)
        layout.add({"end": record})
        small_print[0] |= small
    small_print[0]["rewind_version"] = start.rewind_version
    for small in small_print:
        layout.add(small)
    data = seal(layout.text(), Manifest(steps=len(recording.steps), size=bodies.size))
    if layout.joined > most_joined(len(data)):
        raise _too_large("its texts repeat each other, and take too much memory when they are put together")
    if not is_light(data):
        _check_readable(data)
    return data


def check_sizes(recording: Recording) -> None:
    """Before a byte is read: what a cassette has no room for is not taken into memory either."""
    for step in recording.steps:
        sizes = {"request": step.request.body_size, "answer": 0 if step.response is None else step.response.body_size}
        for half, size in sizes.items():
            if size > MOST_OF_A_BODY:
                raise EnvironmentProblem(
                    f"The {half} of step {step.index} has {size:,} bytes: more than the {MOST_OF_A_BODY:,} that a "
                    "cassette takes.",
                    hint="Leave that step out, with --steps.",
                )


def _check_readable(data: bytes) -> None:
    """Whether a large one is too much for a reader is only known by reading it."""
    try:
        read_cassette(data, file="The cassette")
    except BadCassette as problem:
        raise _too_large(problem.message) from problem


def _too_large(why: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"The session is too large for a cassette: {why}",
        hint="Export some of its steps: rewind export ID --steps 1..100",
    )


def _step_records(step: Step, bodies: BodyWriter) -> tuple[Fields, Fields]:
    """The record of a step, and its small print."""
    request, response, index = step.request, step.response, step.index
    asked = records.request_record(request)
    body, small_body = bodies.body(f"request {index}", request.body, _coding(request.head.headers))
    if body:
        asked["body"] = body
    record = records.step_record(request) | {"request": asked}
    small: Fields = {"small_print": index, **records.request_small_print(request)}
    if small_body:
        small["request"] = small_body
    if response is not None:
        answered = records.answer_record(response)
        coding = _coding(response.head.headers) if response.head else None
        body, small_body = bodies.body(f"answer {index}", response.body, coding)
        if body:
            answered["body"] = body
        record["answer"] = answered
        small["answer"] = records.answer_small_print(index, response) | small_body
        small["times"] = records.times_of(response)
    return record, small


def _end_records(end: SessionEnd, bodies: BodyWriter) -> tuple[Fields, Fields]:
    record = records.end_record(end)
    small: Fields = {"ended": end.ended}
    for stream in STREAMS:
        blob: BlobId | None = getattr(end, stream)
        if blob is not None:
            record[stream], small[stream] = bodies.body(stream, blob, None)
    return record, small


def _coding(headers: Headers) -> str | None:
    return header(headers, "content-encoding") or None


def write_cassette_file(path: Path, data: bytes | Iterable[bytes], *, shared: bool = False) -> None:
    """Whole or not at all; packed if the name says so. Raises EnvironmentProblem.

    A new file is for its owner only, or where it is ``shared`` as the umask says; one that was there keeps its rights.
    """
    if path.name.endswith(".zst"):
        text = data if isinstance(data, bytes) else b"".join(data)
        data = packed(text)
        if most_joined(len(data)) < most_joined(len(text)):
            _check_readable(data)
    try:
        mode = None if shared else 0o600
        if path.is_file() and not path.is_symlink():
            mode = S_IMODE(path.stat().st_mode)
        write_whole(path, data, mode=mode)
    except OSError as error:
        raise EnvironmentProblem(f"Cannot write {path}: {reason(error)}.") from error


@dataclass(frozen=True, slots=True)
class WrittenData:
    """What was written, to a file or elsewhere."""

    size: int
    sha256: str


class CountedData:
    """Pieces of data, counted and hashed while they go by."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self._size, self._digest = 0, hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._size += len(piece)
            self._digest.update(piece)
            yield piece

    @property
    def written(self) -> WrittenData:
        return WrittenData(self._size, self._digest.hexdigest())

    def in_file(self, path: Path) -> WrittenData:
        """What the file holds to which they were written: it may have packed them."""
        if not path.name.endswith(".zst"):
            return self.written
        data = path.read_bytes()
        return WrittenData(len(data), hashlib.sha256(data).hexdigest())


def put_file(path: Path, pieces: Iterable[bytes], *, force: bool) -> None:
    """Write the file. Another file of that name is left alone, unless ``force``."""
    try:
        if path.exists() and not force:
            pieces = _as_in_the_file(path, pieces)
        write_cassette_file(path, pieces)
    except OSError as problem:
        raise EnvironmentProblem(f"{str(path)!r} cannot be written: {problem.strerror}.") from problem


def _as_in_the_file(path: Path, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, as long as the file holds the same. Raises UsageError."""
    with _opened(path) as there:
        for piece in pieces:
            if there.read(len(piece)) != piece:
                raise _holds_something_else(path)
            yield piece
        if there.read(1):
            raise _holds_something_else(path)


def _opened(path: Path) -> BinaryIO:
    """What the file says; packed by another version of the packer, it may say the same in other bytes."""
    if not path.name.endswith(".zst"):
        return path.open("rb")
    data = path.read_bytes()
    with suppress(BadCassette):
        data = unpacked(data)
    return io.BytesIO(data)


def _holds_something_else(path: Path) -> UsageError:
    return UsageError(
        f"{str(path)!r} already exists and holds something else.", hint="--force replaces it, -o FILE writes elsewhere"
    )
