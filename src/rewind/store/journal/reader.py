"""Reads one session back, whole or as far as it came."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from rewind.errors import DamagedStore, SessionNotFound
from rewind.model.http import Chunk
from rewind.model.ids import BlobId, blob_id
from rewind.model.session import Recording, Session, SessionEnd, SessionStart, Status
from rewind.model.step import NO_BYTES, Ending, Step, StepResponse
from rewind.pricing.spending import Pricing
from rewind.store.files import is_locked, is_pinned, open_to_read, read_at, read_file, reason, start_from_name
from rewind.store.journal.contents import Journal, read_journal, without_collector
from rewind.store.journal.lines import BadLine, Fields, fields_for_counting, unseal
from rewind.store.journal.part import SHORT_LINES, PartContents, read_part
from rewind.store.journal.records import AnswerLine, decode_times, session_end, session_start
from rewind.store.journal.totals import Totals, TotalsCounter, totals_from_fields
from rewind.store.journal.writer import Stream
from rewind.store.pack.bodies import PackReader, blocks_of

if TYPE_CHECKING:  # only the replay of a long session needs them
    from rewind.playback.tape import TapeEntry
    from rewind.store.journal.skim import Skim, SkimmedJournal

LONG_ANSWER = 8 * 1024 * 1024
LOOKED_AT = 4 * 1024 * 1024
"""Bytes of an answer longer than that which are looked at, to show it and to say what it means."""
_GLANCE = 8 * 1024
_AT_ONCE = 256 * 1024
_SHORT_JOURNAL = 4 * 1024 * 1024
"""A shorter one is read whole; so are some thousand steps."""
_LONGEST_LINE = 4 * 1024 * 1024


def peek(folder: Path) -> tuple[Session, Totals | None] | None:
    """A session from its first and last line only; the totals if it ended. ``None`` where there is no journal."""
    try:
        fd = open_to_read(folder / "journal.jsonl")
    except OSError:  # gone meanwhile, or never a session: a list goes on without it
        return None
    try:
        start = start_in(_first_line(fd), folder.name)
        end = _last_line(fd)
        running = end is None and is_locked(fd)
        if end is None and not running:
            end = _last_line(fd)  # it may have ended between the two looks; without a writer, this one is final
    finally:
        os.close(fd)
    last = None if end is None else session_end(end)
    status = status_of(last, running=running)
    session = Session(start=start, end=last, status=status, folder=folder.name, pinned=is_pinned(folder))
    return session, None if end is None else totals_from_fields(end.get("totals"))


def status_of(end: SessionEnd | None, *, running: bool) -> Status:
    if end is not None:
        return Status.BROKEN if end.broken else Status.ENDED
    return Status.RUNNING if running else Status.INTERRUPTED


def start_in(line: bytes, folder: str) -> SessionStart:
    """What a journal's first line says; where it is damaged, what the folder's name still tells."""
    try:
        return session_start(unseal(line))
    except BadLine:
        return start_from_name(folder)


def end_in(line: bytes) -> SessionEnd | None:
    """What the ``end`` line says, if the line is one."""
    try:
        fields = unseal(line)
        return session_end(fields) if fields.get("kind") == "end" else None
    except BadLine:
        return None


def _first_line(fd: int) -> bytes:
    size = _GLANCE
    while size <= _LONGEST_LINE:
        line, newline, _ = read_at(fd, size, 0).partition(b"\n")
        if newline:
            return line
        size *= 4
    return b""


def _last_line(fd: int) -> Fields | None:
    """The ``end`` line, if the last whole line is one."""
    total = os.fstat(fd).st_size
    size = min(_GLANCE, total)
    while True:
        lines = read_at(fd, size, total - size).split(b"\n")
        for line in reversed(lines[1:] if size < total else lines):
            try:
                fields = unseal(line)
                if fields.get("kind") != "end":
                    return None  # a sound line, but not the end
                session_end(fields)
            except BadLine:
                continue
            return fields
        if size == total or size >= _LONGEST_LINE:
            return None
        size = min(size * 4, total)


def load_journal(folder: Path) -> tuple[Journal, Session]:
    """The journal and the session it tells of. Raises SessionNotFound, or DamagedStore if it cannot be opened."""
    try:
        fd = open_to_read(folder / "journal.jsonl")
    except FileNotFoundError as error:
        raise SessionNotFound(f"The session in {folder.name} is not there any more.") from error
    except OSError as error:
        raise DamagedStore(f"The journal in {folder.name} cannot be opened: {reason(error)}.") from error
    try:
        running = is_locked(fd)
        problems: list[str] = []
        short_lines = read_short_lines(folder, problems)
        with open(fd, "rb", _AT_ONCE, closefd=False) as lines:
            journal = read_journal(lines, short_lines, run=folder.name[-8:])
        journal.damage += problems
    finally:
        os.close(fd)
    start = journal.start or start_from_name(folder.name)
    status = status_of(journal.end, running=running)
    pinned = is_pinned(folder)
    return journal, Session(start=start, end=journal.end, status=status, folder=folder.name, pinned=pinned)


def read_short_lines(folder: Path, damage: list[str] | None = None) -> bytes:
    """What stands beside the journal. To be read before it: what is no longer here is there."""
    try:
        return read_file(folder / SHORT_LINES)
    except FileNotFoundError:  # mostly there are none
        return b""
    except OSError as error:
        if damage is not None:
            damage.append(f"{SHORT_LINES} cannot be read: {reason(error)}")
        return b""


def count_totals(folder: Path, *, running: bool, pricing: Pricing | None = None) -> Totals:
    """Count the lines of a journal, reading no more of each than counting needs. Raises SessionNotFound."""
    short_lines = read_short_lines(folder)
    try:
        data = read_file(folder / "journal.jsonl")
    except OSError as error:
        raise SessionNotFound(f"The session in {folder.name} is not there any more.") from error
    counter = TotalsCounter(pricing)
    for fields in (*fields_for_counting(data), *fields_for_counting(short_lines)):
        counter.line(fields)
    return counter.totals(running=running)


class SkimmedRecording(NamedTuple):
    """A session whose steps are read one at a time."""

    recording: Recording
    """Without its steps."""
    entries: "Sequence[TapeEntry]"
    step: Callable[[int], Step]
    """Raises DamagedStore."""
    uses_tools: bool
    """Whether a model heard of the result of a tool."""


class SessionReader(ABC):
    """One session, opened: from the store, or from a file that holds one."""

    @abstractmethod
    def recording(self, *, upto: int | None = None) -> Recording:
        """All steps that can be read, and the names of what cannot. What steps behind ``upto`` mean is not wanted."""

    def bare_recording(self) -> Recording | None:
        """The steps without their match keys and meaning, where these would have to be worked out first."""
        return None

    def with_reading(self, step: Step) -> Step:
        """A step of the bare recording, with what its answer says in short."""
        return step

    def skimmed(self, skim: "Skim") -> SkimmedRecording | None:
        """The steps of a whole session, each to be read when it is played; ``None`` where that cannot be done."""
        return None

    @abstractmethod
    def blob(self, blob: BlobId) -> bytes:
        """The bytes of that name. Raises DamagedStore rather than give other bytes."""

    def blocks(self, blob: BlobId) -> Iterator[bytes]:
        """The same one after the other, for a body that is too long to be held."""
        yield from blocks_of(self.blob(blob))

    def to_look_at(self, step: Step) -> bytes:
        """The answer of a step; of a very long one only the beginning, which is enough to show it."""
        if step.response is None or step.response.body_size <= LONG_ANSWER:
            return step.answer_body(self.blob)
        found, size = [], 0
        for block in self.blocks(step.response.body):
            found.append(block)
            size += len(block)
            if size >= LOOKED_AT:
                break
        return b"".join(found)[:LOOKED_AT]

    @abstractmethod
    def output(self, stream: Stream) -> bytes | None:
        """What the agent read or wrote there; ``None`` when it was not recorded."""

    def make_ready(self) -> None:  # noqa: B027  a reader in memory has nothing to do
        """Do now what would otherwise delay the first body that is asked for."""

    def close(self) -> None:  # noqa: B027
        """Let go of the files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()


class FolderReader(SessionReader):
    """A session in the store. Bodies are read when asked for, and hash-checked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pack: PackReader | None = None
        self._journal: SkimmedJournal | None = None
        self._parts: dict[BlobId, bytes] = {}
        """Answers that were still coming when their recorder died, as far as their parts have been read."""
        self._parts_read: set[str] = set()

    def close(self) -> None:
        if self._pack is not None:
            self._pack.close()
            self._pack = None
        if self._journal is not None:
            self._journal.close()

    def make_ready(self) -> None:
        self.pack()

    @without_collector()
    def recording(self, *, upto: int | None = None) -> Recording:
        journal, session = load_journal(self._folder)
        damage = list(journal.damage)
        if journal.start is None:
            damage.append("journal: the line that says what was run is gone")
        steps = []
        for index, request in sorted(journal.requests.items()):
            answer = journal.answers.get(index)
            if answer is not None and not answer.in_part:
                response = self._with_chunks(index, answer, damage)
            elif answer is None and session.status is Status.RUNNING:
                response = None  # still coming
            else:
                response = self._from_part(index, answer, damage, running=session.status is Status.RUNNING)
            steps.append(Step(request=request, response=response))
        if journal.unread:
            steps = self._understood(steps, journal.unread, session.start.ignore, damage)
        damage += [
            f"journal: the request of step {n} is gone" for n in journal.answers.keys() - journal.requests.keys()
        ]
        return Recording(session=session, steps=tuple(steps), damage=tuple(damage), surroundings=journal.surroundings)

    def skimmed(self, skim: "Skim") -> SkimmedRecording | None:
        if (self._folder / SHORT_LINES).exists():  # its recorder still runs, or was killed
            return None
        path = self._folder / "journal.jsonl"
        try:
            with open(open_to_read(path), "rb", _AT_ONCE) as lines:  # noqa: PTH123  a descriptor
                if os.fstat(lines.fileno()).st_size < _SHORT_JOURNAL:
                    return None  # read whole while the agent starts up, so that its calls do not wait for that
                found = skim(path, lines, self._folder.name[-8:])
        except OSError:  # said in full where it is read whole
            return None
        if found is None:
            return None
        journal, entries = found
        self._journal = journal
        status = status_of(journal.end, running=False)
        session = Session(start=journal.start, end=journal.end, status=status, folder=self._folder.name)
        recording = Recording(session=session, steps=(), surroundings=journal.surroundings)
        return SkimmedRecording(recording, entries, self._skimmed_step, journal.uses_tools)

    def _skimmed_step(self, index: int) -> Step:
        assert self._journal is not None, "it was skimmed"
        request, answer = self._journal.step(index)
        return Step(request=request, response=self._with_chunks(index, answer, []))

    def _with_chunks(self, index: int, answer: AnswerLine, damage: list[str]) -> StepResponse:
        response = answer.response
        if answer.times is None:
            return response
        try:
            return replace(response, chunks=decode_times(self.pack().blob(answer.times)))
        except (DamagedStore, BadLine) as error:
            damage.append(f"the arrival times of step {index} cannot be read: {error}")
            whole = Chunk(round(response.ms * 1000), response.body_size)
            return replace(response, chunks=(whole,) if whole.size else ())

    def _understood(
        self, steps: list[Step], unread: set[int], ignore: tuple[str, ...], damage: list[str]
    ) -> list[Step]:
        """The steps, with the meaning of those that the journal has without it."""
        from rewind.conversation.meaning import Meanings  # lazily: only the last steps of a killed run need it

        bodies: dict[BlobId, bytes] = {}
        found: dict[int, Step] = {}
        for step in steps:
            if step.index in unread:
                names = [step.request.body, *([] if step.response is None else [step.response.body])]
                try:
                    bodies.update({name: self.blob(name) for name in names})
                    found[step.index] = step
                except DamagedStore as problem:
                    damage.append(f"what step {step.index} means cannot be worked out: {problem.message}")
        for index, step in found.items():
            try:
                (made,) = Meanings([step], bodies, ignore).steps()
            except Exception as error:  # noqa: BLE001  a codec's fault must not cost a session
                damage.append(f"what step {index} means cannot be worked out, for a bug in Rewind: {error!r}")
                continue
            # The conversation it belongs to takes all steps to tell.
            found[index] = replace(made, request=replace(made.request, thread=step.request.thread))
        return [found.get(step.index, step) for step in steps]

    def _from_part(
        self, index: int, answer: AnswerLine | None, damage: list[str], *, running: bool
    ) -> StepResponse | None:
        """What had come of an answer when its recorder died; all of it where a line says that it was complete."""
        found = self._interrupted(index, damage)
        if answer is None or (running and found is None):  # it has just been written, and is there at the next look
            return found
        told = answer.response
        if found is None or found.body_size != told.body_size:
            there = 0 if found is None else found.body_size
            damage.append(f"part.{index}: it holds {there:,} of the {told.body_size:,} bytes of the answer")
            return None if found is None else replace(found, reason="the rest of the answer is damaged")
        return replace(found, ending=told.ending, ms=told.ms, reason=told.reason, trailers=told.trailers)

    def _interrupted(self, index: int, damage: list[str]) -> StepResponse | None:
        """What had come of an answer when its recorder died."""
        contents = self._read_part(f"part.{index}", damage)
        if contents is None or contents.head is None:
            return None
        chunks = contents.chunks
        return StepResponse(
            ending=Ending.INTERRUPTED,
            head=contents.head,
            body=blob_id(contents.body),
            body_size=len(contents.body),
            chunks=chunks,
            ms=chunks[-1].at / 1000 if chunks else 0.0,
            first_ms=chunks[0].at / 1000 if chunks else None,
            reason="the recording stopped while the answer was coming",
        )

    def _read_part(self, name: str, damage: list[str]) -> PartContents | None:
        self._parts_read.add(name)
        try:
            contents = read_part(self._folder / name)
        except FileNotFoundError:
            return None
        except OSError as error:
            damage.append(f"{name} cannot be read: {reason(error)}")
            return None
        if contents.damage:
            damage.append(f"{name}: {contents.damage}")
        self._parts[blob_id(contents.body)] = contents.body
        return contents

    def pack(self) -> PackReader:
        """The session's pack, opened on first use. Raises DamagedStore."""
        if self._pack is None:
            try:
                self._pack = PackReader(self._folder / "pack")
            except OSError as error:
                if not self._folder.is_dir():
                    raise SessionNotFound(f"The session in {self._folder.name} was deleted meanwhile.") from error
                raise DamagedStore(f"The pack of {self._folder.name} cannot be opened: {reason(error)}.") from error
        return self._pack

    def blob(self, blob: BlobId) -> bytes:
        if blob == NO_BYTES:
            return b""
        if blob in self._parts:
            return self._parts[blob]
        try:
            return self.pack().blob(blob)
        except DamagedStore as problem:
            self._read_other_parts()
            if blob in self._parts:
                return self._parts[blob]
            session = self._folder.name[-8:]
            raise DamagedStore(
                f"Session {session} is damaged. {problem.message}", hint=f"rewind verify {session}"
            ) from problem

    def _read_other_parts(self) -> None:
        """For a name that the pack does not know: it may be that of an interrupted answer. Nothing here asks the pack,
        and each part is read once, so that a damaged pack costs no more than one look at each."""
        for path in self._folder.glob("part.*"):
            if path.name not in self._parts_read:
                self._read_part(path.name, [])

    def blocks(self, blob: BlobId) -> Iterator[bytes]:
        if blob == NO_BYTES or blob in self._parts:
            yield from blocks_of(self.blob(blob))
            return
        session = self._folder.name[-8:]
        try:
            yield from self.pack().stream(blob)
        except DamagedStore as problem:
            raise DamagedStore(
                f"Session {session} is damaged. {problem.message}", hint=f"rewind verify {session}"
            ) from problem
        except OSError as error:
            raise DamagedStore(f"The pack of session {session} cannot be read: {reason(error)}.") from error

    def output(self, stream: Stream) -> bytes | None:
        seen = peek(self._folder)  # the last line is enough, and it names the streams
        name = getattr(seen[0].end, stream, None) if seen is not None else None
        if name is not None:
            return self.blob(name)
        try:
            return read_file(self._folder / f"{stream}.part")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DamagedStore(f"{stream} of {self._folder.name} cannot be read: {reason(error)}.") from error
