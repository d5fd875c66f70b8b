"""Reading a cassette: a session is put together from records that may be anybody's."""

from dataclasses import dataclass, field
from typing import Any

from rewind.errors import BadCassette, UsageError
from rewind.model.ids import BlobId
from rewind.model.session import Portable, Recording, Session
from rewind.model.step import Step
from rewind.store.cassette.checks import Fields, bad, count, fields_of
from rewind.store.cassette.contents import MOST_OF_BODIES, Hearing, sizes_told
from rewind.store.cassette.parsing import Memory, Record, Source
from rewind.store.cassette.records import (
    MOST_STEPS,
    OF_THE_SESSION,
    answer_in,
    end_in,
    request_in,
    session_in,
    surroundings_in,
)
from rewind.store.cassette.references import References
from rewind.store.cassette.sealing import Opened, unseal
from rewind.store.journal.reader import status_of
from rewind.store.journal.writer import STREAMS, folder_name
from rewind.wire.json_weight import value_weight

_ROOM = 1024 * 1024
"""What the references of a record may stand for besides its bodies."""
_OF_A_STEP = 8 * 1024
"""What a step takes besides its bodies, as most do. Only what is more counts as memory that is kept."""


def read_cassette(data: bytes, *, file: str) -> Portable:
    """The session in that text, every byte of it checked. Raises BadCassette, and nothing else."""
    try:
        return _read(data, file)
    except BadCassette as problem:
        raise BadCassette(f"{file} cannot be used. {problem.message}", hint=problem.hint) from problem
    except (RecursionError, OverflowError, MemoryError, UnicodeError) as error:
        raise BadCassette(f"{file} cannot be used. It cannot be read ({error}).") from error


@dataclass(slots=True)
class _Records:
    """The records of a file, by what they are. None of them is read yet."""

    memory: Memory
    single: dict[str, Record] = field(default_factory=dict)
    steps: dict[int, Record] = field(default_factory=dict)
    small_print: dict[int | str, Record] = field(default_factory=dict)

    def take(self, record: Record) -> None:
        """The first member says what it is. Kinds that are not known are left out: the format grows."""
        kind, key = record.first(self.memory)
        if kind in ("session", "surroundings", "end"):
            _put(self.single, kind, record)
        elif kind == "small_print" and key == OF_THE_SESSION:
            _put(self.small_print, OF_THE_SESSION, record)
        elif kind == "small_print":
            _put(self.small_print, count({kind: key}, kind, least=1), record)
        elif kind == "step":
            index = count({kind: key}, kind, least=1)
            if index < max(self.last_step, 0):
                bad("Its steps are not in order.")
            _put(self.steps, index, record)

    @property
    def last_step(self) -> int:
        return next(reversed(self.steps), 0)


def _put(known: dict[Any, Record], key: int | str, record: Record) -> None:
    if known.setdefault(key, record) is not record:
        bad(f"It has the record {key!r} twice.")


def _read(data: bytes, file: str) -> Portable:
    opened = unseal(data)
    manifest = opened.manifest
    if not 0 <= manifest.steps <= MOST_STEPS:
        bad(f"It claims to hold {manifest.steps:,} steps; a cassette holds at most {MOST_STEPS:,}.")
    if not 0 <= manifest.size <= MOST_OF_BODIES:
        bad(f"It claims to hold {manifest.size:,} bytes; a cassette holds at most {MOST_OF_BODIES:,}.")
    records = _Records(opened.memory)
    for record in opened.records:
        records.take(record)
    if len(records.steps) != manifest.steps:
        bad(f"It has {len(records.steps):,} steps, not {manifest.steps:,} as it says.")
    return _Reader(records, opened).portable(file)


class _Reader:
    """Puts a session together from its records, in the order in which they were written.

    A record is read when it is its turn, and let go with its bodies made; what is referred to stays.
    """

    def __init__(self, records: _Records, opened: Opened) -> None:
        self._records = records
        self._memory = records.memory
        self._references = References(self._memory)
        self._hearing = Hearing(self._references, opened)
        self._small: dict[int | str, Fields] = {}
        """The small print that has been read, as it stands: what tells of bodies refers to nothing."""

    def portable(self, file: str) -> Portable:
        about = self._single("session") or bad("It does not say what was run.")
        around = self._single("surroundings")
        heard = [self._heard(index, record) for index, record in self._records.steps.items()]
        last, streams = self._heard_end()
        if self._hearing.left:
            bad("Its bodies are smaller than it says.")
        small = self._whole_small_print(OF_THE_SESSION)
        start = session_in(about, small)
        end = None if last is None else end_in(last, small, streams)
        steps = tuple(self._step(one) for one in heard)
        try:
            folder = folder_name(start)
        except UsageError as error:
            bad(error.message)
        session = Session(
            start=start, end=end, status=status_of(end, running=False), folder=folder, file=file
        )
        surroundings = None if around is None else surroundings_in(around)
        recording = Recording(session=session, steps=steps, surroundings=surroundings)
        return Portable(recording=recording, blobs=self._hearing.bodies)

    def _single(self, kind: str) -> Fields | None:
        record = self._records.single.get(kind)
        if record is None:
            return None
        fields, weight = record.fields(self._memory)
        self._memory.keep(weight)
        return self._restored(record, fields, _ROOM)

    def _restored(self, record: Record, fields: Fields, room: int) -> Fields:
        if record.marked:
            return fields_of(self._references.restored(fields, room), "A record")
        return fields

    def _small_print(self, key: int | str) -> Fields:
        """As it stands, since it is needed first."""
        record = self._records.small_print.get(key)
        if record is None:
            bad(f"The small print of {key!r} is missing.")
        fields, _ = record.fields(self._memory)
        if fields.get("small_print") != key:
            bad(f"The small print of {key!r} is that of another.")
        self._small[key] = fields
        return fields

    def _whole_small_print(self, key: int | str) -> Fields:
        fields = self._small.pop(key) if key in self._small else self._small_print(key)
        return self._restored(self._records.small_print[key], fields, _ROOM)

    def _heard(self, index: int, record: Record) -> "_Heard":
        small = self._small_print(index)
        of_request, of_answer = small.get("request", {}), small.get("answer", {})
        fields, sources = record.members(self._memory)
        if fields["step"] != index:
            bad("A step has two numbers.")
        fields = self._restored(record, fields, _ROOM + sizes_told(of_request) + sizes_told(of_answer))
        asked = fields_of(fields.get("request"), "A request")
        self._references.name(f"request {index} headers", asked.get("headers"))
        request = self._body(f"request {index}", asked, of_request, sources.of("request"))
        answer = None
        if "answer" in fields:
            answer = self._body(f"answer {index}", fields["answer"], of_answer, sources.of("answer"))
        if not self._memory.light:
            # The bodies are made, and need not stay. They may be parts of others: nothing is taken out of those.
            fields = {name: _without_body(value) for name, value in fields.items()}
            self._memory.keep(max(value_weight(fields) + value_weight(small) - _OF_A_STEP, 0))
        return _Heard(fields, request, answer)

    def _body(self, name: str, fields: Any, small: Any, source: Source) -> tuple[BlobId, int]:
        told = fields_of(fields, "An answer").get("body")
        return self._hearing.body(name, told, fields_of(small, "Small print"), source)

    def _heard_end(self) -> tuple[Fields | None, dict[str, BlobId | None]]:
        record = self._records.single.get("end")
        if record is None:
            return None, {}
        small = self._small_print(OF_THE_SESSION)
        room = sum(sizes_told(small.get(stream)) for stream in STREAMS)
        raw, sources = record.members(self._memory)
        whole = self._restored(record, raw, _ROOM + room)
        fields = fields_of(whole["end"], "The end")
        streams: dict[str, BlobId | None] = {}
        for stream in STREAMS:
            told = fields.get(stream)
            # An object without anything in it is a stream in which nothing came.
            blob, _ = self._hearing.body(
                stream, told or None, fields_of(small.get(stream, {}), "Small print"), sources.of("end")
            )
            streams[stream] = None if told is None else blob
        return fields, streams

    def _step(self, heard: "_Heard") -> Step:
        index = count(heard.fields, "step", least=1)
        small = self._whole_small_print(index)
        request = request_in(heard.fields, small, *heard.request)
        if heard.answer is None:
            return Step(request=request, response=None)
        answer = fields_of(small.get("answer"), "The small print of an answer")
        self._references.name(f"answer {index} headers", answer.get("headers"))
        times = fields_of(small.get("times"), "The times of an answer")
        return Step(request=request, response=answer_in(heard.fields["answer"], answer, times, *heard.answer))


def _without_body(value: Any) -> Any:
    if type(value) is not dict or "body" not in value:
        return value
    return {name: inner for name, inner in value.items() if name != "body"}


@dataclass(frozen=True, slots=True)
class _Heard:
    """A step whose bodies have been read."""

    fields: Fields
    request: tuple[BlobId, int]
    answer: tuple[BlobId, int] | None
