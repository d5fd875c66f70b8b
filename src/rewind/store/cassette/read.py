"""Reading a cassette: a session is put together from records that may be anybody's."""

import os
import shlex
from dataclasses import field
from pathlib import Path
from typing import Any

from rewind.conversation.meaning import Meanings
from rewind.dataclass import dataclass
from rewind.errors import BadCassette, UsageError
from rewind.model.http import header
from rewind.model.ids import BlobId
from rewind.model.session import Recording, Session, SessionFile
from rewind.model.step import Step
from rewind.store.cassette import records
from rewind.store.cassette.bodies import MOST_OF_BODIES, BodyReader, sizes_in
from rewind.store.cassette.fields import Fields, bad, count, fields_of
from rewind.store.cassette.records import MOST_STEPS, OF_THE_SESSION
from rewind.store.cassette.references import References
from rewind.store.cassette.seal import MOST_TEXT, MemoryBudget, RawRecord, UnsealedCassette, unseal
from rewind.store.files import folder_name, read_at, reason
from rewind.store.journal.reader import status_of
from rewind.store.journal.writer import STREAMS
from rewind.wire.json_weight import value_weight

_ROOM = 1024 * 1024
"""What the references of a record may stand for besides its bodies."""
_OF_A_STEP = 8 * 1024
"""What a step takes besides its bodies, as most do. Only what is more counts as memory that is kept."""


def read_cassette_file(path: Path) -> SessionFile:
    """The session in that file, packed or not. Raises BadCassette."""
    try:
        with path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MOST_TEXT:
                raise BadCassette(f"It has {size:,} bytes, and a cassette has at most {MOST_TEXT:,}.", path=path)
            data = read_at(file.fileno(), size, 0)
    except OSError as error:
        raise BadCassette(f"It cannot be opened: {reason(error)}.", path=path) from error
    return read_cassette(data, file=str(path))


def read_cassette(data: bytes, *, file: str) -> SessionFile:
    """The session in that text, every byte of it checked. Raises BadCassette, and nothing else."""
    try:
        return _read(data, file)
    except BadCassette as problem:
        hint = problem.hint and problem.hint.replace("FILE", shlex.quote(file))
        raise problem.about(file, hint=hint) from problem
    except (RecursionError, OverflowError, MemoryError, UnicodeError) as error:
        raise BadCassette(f"It cannot be read ({error}).", path=file) from error


def _read(data: bytes, file: str) -> SessionFile:
    cassette = unseal(data)
    manifest = cassette.manifest
    if not 0 <= manifest.steps <= MOST_STEPS:
        bad(f"It claims to hold {manifest.steps:,} steps; a cassette holds at most {MOST_STEPS:,}.")
    if not 0 <= manifest.size <= MOST_OF_BODIES:
        bad(f"It claims to hold {manifest.size:,} bytes; a cassette holds at most {MOST_OF_BODIES:,}.")
    records = _Records()
    for record in cassette.records:
        records.take(record, cassette.memory)
    if len(records.steps) != manifest.steps:
        bad(f"It has {len(records.steps):,} steps, not {manifest.steps:,} as it says.")
    return _Reader(records, cassette).portable(file)


@dataclass(slots=True)
class _Records:
    """The records of a file, by what they are. None of them is read yet."""

    single: dict[str, RawRecord] = field(default_factory=dict)
    steps: dict[int, RawRecord] = field(default_factory=dict)
    small_print: dict[int | str, RawRecord] = field(default_factory=dict)

    def take(self, record: RawRecord, memory: MemoryBudget) -> None:
        """The first member says what it is. Kinds that are not known are left out: the format grows."""
        kind, key = record.first(memory)
        known: dict[Any, RawRecord] = self.single
        if kind in ("session", "surroundings", "end"):
            key = kind
        elif kind == "small_print":
            known = self.small_print
            key = key if key == OF_THE_SESSION else count({kind: key}, kind, least=1)
        elif kind == "step":
            known, key = self.steps, count({kind: key}, kind, least=1)
            if key < next(reversed(self.steps), 0):
                bad("Its steps are not in order.")
        else:
            return
        if known.setdefault(key, record) is not record:
            bad(f"It has the record {key!r} twice.")


@dataclass(frozen=True, slots=True)
class _ReadStep:
    """A step whose bodies have been read."""

    fields: Fields
    request: tuple[BlobId, int]
    answer: tuple[BlobId, int] | None


class _Reader:
    """Puts a session together from its records, in the order in which they were written.

    A record is read when it is its turn, and let go with its bodies made; what is referred to stays.
    """

    def __init__(self, records: _Records, cassette: UnsealedCassette) -> None:
        self._records = records
        self._memory = cassette.memory
        self._references = References(self._memory)
        self._bodies = BodyReader(self._references, cassette)
        self._small: dict[int | str, Fields] = {}
        """The small print that has been read, as it stands: what tells of bodies refers to nothing."""

    def portable(self, file: str) -> SessionFile:
        about = self._single("session") or bad("It does not say what was run.")
        around = self._single("surroundings")
        read_steps = [self._read_step(index, record) for index, record in self._records.steps.items()]
        last, streams = self._read_end()
        if self._bodies.left:
            self._bodies.remarks.append("its bodies are not as large, in all, as its first line says")
        small = self._whole_small_print(OF_THE_SESSION)
        start = records.session_in(about, small)
        end = None if last is None else records.end_in(last, small, streams)
        steps = tuple(self._step(step) for step in read_steps)
        try:
            folder = folder_name(start)
        except UsageError as error:
            bad(error.message)
        session = Session(start=start, end=end, status=status_of(end, running=False), folder=folder, file=file)
        surroundings = None if around is None else records.surroundings_in(around)
        recording = Recording(session=session, steps=steps, surroundings=surroundings)
        blobs = self._bodies.bodies
        return SessionFile(
            recording=recording,
            blobs=blobs,
            meanings=Meanings(steps, blobs, start.ignore),
            remarks=tuple(self._bodies.remarks),
        )

    def _single(self, kind: str) -> Fields | None:
        record = self._records.single.get(kind)
        if record is None:
            return None
        fields, weight = record.fields(self._memory)
        self._memory.keep(weight)
        return self._restored(record, fields, _ROOM)

    def _restored(self, record: RawRecord, fields: Fields, room: int) -> Fields:
        return fields_of(self._references.restored(fields, room), "A record") if record.marked else fields

    def _small_print(self, key: int | str) -> Fields:
        """As it stands, since it is needed first."""
        record = self._records.small_print.get(key)
        if record is None:
            bad(f"The small print of {key!r} is missing.")
        fields, _ = record.fields(self._memory)
        if fields.get("small_print") != key:
            bad(f"The small print of {key!r} belongs to another.")
        self._small[key] = fields
        return fields

    def _whole_small_print(self, key: int | str) -> Fields:
        fields = self._small.pop(key) if key in self._small else self._small_print(key)
        return self._restored(self._records.small_print[key], fields, _ROOM)

    def _with_bodies(self, record: RawRecord, sizes: int) -> tuple[Fields, dict[str, int]]:
        """What the record holds, and what each member takes; bodies of so many bytes stand in it."""
        fields, _ = record.fields(self._memory)
        self._bodies.begin(record.length)
        # Long texts are in pieces here and will be joined: then their characters are most of them.
        weights = {name: 0 if self._memory.light else max(value_weight(fields[name])) for name in fields}
        return self._restored(record, fields, _ROOM + sizes), weights

    def _read_step(self, index: int, record: RawRecord) -> _ReadStep:
        small = self._small_print(index)
        of_request, of_answer = small.get("request", {}), small.get("answer", {})
        fields, weights = self._with_bodies(record, sizes_in(of_request) + sizes_in(of_answer))
        if fields["step"] != index:
            bad("A step has two numbers.")
        asked = fields_of(fields.get("request"), "A request")
        self._references.name(f"request {index} headers", asked.get("headers"))
        request = self._body(f"request {index}", asked, of_request, weights["request"])
        answer = None
        if "answer" in fields:
            answer = self._body(f"answer {index}", fields["answer"], of_answer, weights["answer"])
        if not self._memory.light:
            # The bodies are made, and need not stay. They may be parts of others: nothing is taken out of those.
            fields = {name: _without_body(value) for name, value in fields.items()}
            self._memory.keep(max(sum(value_weight([fields, small])) - _OF_A_STEP, 0))
        return _ReadStep(fields, request, answer)

    def _body(self, name: str, fields: Any, small: Any, weight: int) -> tuple[BlobId, int]:
        body = fields_of(fields, "An answer").get("body")
        return self._bodies.body(name, body, fields_of(small, "Small print"), weight)

    def _read_end(self) -> tuple[Fields | None, dict[str, BlobId | None]]:
        record = self._records.single.get("end")
        if record is None:
            return None, {}
        small = self._small_print(OF_THE_SESSION)
        whole, weights = self._with_bodies(record, sum(sizes_in(small.get(stream)) for stream in STREAMS))
        fields = fields_of(whole["end"], "The end")
        streams: dict[str, BlobId | None] = {}
        for stream in STREAMS:
            body = fields.get(stream)
            # An object without anything in it is a stream in which nothing came.
            about = fields_of(small.get(stream, {}), "Small print")
            blob, _ = self._bodies.body(stream, body or None, about, weights["end"])
            streams[stream] = None if body is None else blob
        return fields, streams

    def _step(self, step: _ReadStep) -> Step:
        index = count(step.fields, "step", least=1)
        small = self._whole_small_print(index)
        request = records.request_in(step.fields, small, *step.request)
        self._bodies.unpack(f"request {index}", header(request.head.headers, "content-encoding"))
        if step.answer is None:
            return Step(request=request, response=None)
        answer = fields_of(small.get("answer"), "The small print of an answer")
        self._references.name(f"answer {index} headers", answer.get("headers"))
        times = fields_of(small.get("times"), "The times of an answer")
        response = records.answer_in(step.fields["answer"], answer, times, *step.answer)
        if response.head is not None:
            self._bodies.unpack(f"answer {index}", header(response.head.headers, "content-encoding"))
        return Step(request=request, response=response)


def _without_body(value: Any) -> Any:
    if type(value) is not dict or "body" not in value:
        return value
    return {name: inner for name, inner in value.items() if name != "body"}
