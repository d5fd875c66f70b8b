"""Cassettes of tests: opened, written, and grown by what a later run recorded."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rewind.conversation.outline import answered_at
from rewind.dataclass import dataclass
from rewind.match.call import understand
from rewind.model.http import HttpRequest
from rewind.model.ids import BlobId, MatchKey
from rewind.model.message import Answered, Part, ToolResult, ToolUse
from rewind.model.session import Recording, Session, SessionFile, SessionStart
from rewind.model.step import Step, StepKind
from rewind.providers.telemetry import telemetry_of
from rewind.store.cassette.write import write_cassette, write_cassette_file
from rewind.store.journal.reader import FolderReader, SessionReader
from rewind.store.session_files import SessionFileReader, open_session_file

Blob = Callable[[BlobId], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """A recording, and where its bytes are."""

    recording: Recording
    blob: Blob

    @classmethod
    def on(cls, cassette: SessionFile) -> "RecordedRun":
        reader = SessionFileReader(cassette)
        return cls(recording=reader.recording(), blob=reader.blob)

    @classmethod
    def played_from(cls, cassette: SessionFile) -> "RecordedRun":
        """The same, where what its steps mean is hardly asked for."""
        reader = SessionFileReader(cassette)
        return cls(recording=reader.bare_recording() or reader.recording(), blob=reader.blob)

    def bodies(self, step: Step) -> tuple[bytes, bytes]:
        """Of the request and of its answer; an answer that never came is empty."""
        return step.bodies(self.blob)

    def answer(self, step: Step) -> bytes:
        return step.answer_body(self.blob)


class RunFolder:
    """The session folder of a run that may still go on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reader = FolderReader(folder)

    def recorded(self) -> RecordedRun:
        """All that is on the disk by now."""
        return RecordedRun(recording=self._reader.recording(), blob=self._reader.blob)

    def delete(self) -> None:
        self._reader.close()
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    os.unlink(entry.path)  # noqa: PTH108  two files after every test: every call counts
            self._folder.rmdir()
        except OSError:  # something else is in there
            shutil.rmtree(self._folder, ignore_errors=True)


def open_cassette(path: Path) -> SessionFile:
    """Raises BadCassette."""
    return open_session_file(str(path))


def tape_reader(cassette: SessionFile) -> SessionReader:
    """The cassette as a tape to play."""
    return SessionFileReader(cassette)


def save_cassette(path: Path, run: RecordedRun, *, shared: bool = False) -> None:
    """For its owner only, unless ``shared``: then the umask decides.

    Raises OSError, and EnvironmentProblem for a run that is too large to be read again.
    """
    data = write_cassette(run.recording, run.blob)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_cassette_file(path, data, shared=shared)


def live_steps(recording: Recording) -> list[Step]:
    """Those that the world answered."""
    return [step for step in recording.steps if step.response is not None and step.response.tape is None]


def without_telemetry(run: RecordedRun) -> RecordedRun:
    """The run as a file keeps it that is committed: uploads would change it with every recording, if only by the
    numbers of the other steps, and no replay needs them."""
    steps = [step for step in run.recording.steps if telemetry_of(step.request) is None]
    if len(steps) == len(run.recording.steps):
        return run
    return replace(run, recording=replace(run.recording, steps=_numbered(steps, after=())))


def as_if_live(run: RecordedRun) -> RecordedRun:
    """Every answer counts as the world's: a cassette may have been made of a replay."""
    steps = tuple(
        step if step.response is None else replace(step, response=replace(step.response, tape=None))
        for step in run.recording.steps
    )
    return replace(run, recording=replace(run.recording, steps=steps))


def extended(
    cassette: SessionFile, played: Sequence[Step], added: RecordedRun, *, hosts: Sequence[str] = ()
) -> RecordedRun:
    """All that the cassette has, and behind it what went live: a diff shows new lines only.

    ``played`` is the tape that the run had. What the cassette got beside it meanwhile, from a test that shares it, is
    not added twice. New steps follow the old ones in time, too, so nothing that is worked out from the order changes.
    """
    start = cassette.session.start
    before = SessionFileReader(cassette)
    recording = before.recording()
    meanwhile = _keys(recording.steps) - _keys(played)
    new = []
    for step in live_steps(added.recording):
        keyed = _under_rules_of(start, step, added.blob)
        if meanwhile[keyed.request.agents_key] > 0:
            meanwhile[keyed.request.agents_key] -= 1
        else:
            new.append(keyed)
    other = added.recording.session.start
    session = replace(
        cassette.session,
        start=replace(
            start,
            hosts=tuple(dict.fromkeys((*start.hosts, *other.hosts, *hosts))),
            all_hosts=start.all_hosts or other.all_hosts,
            key_variables=tuple(dict.fromkeys((*start.key_variables, *other.key_variables))),
        ),
    )
    steps = (*recording.steps, *_numbered(new, after=recording.steps))

    def blob(name: BlobId) -> bytes:
        return before.blob(name) if name in cassette.blobs else added.blob(name)

    return RecordedRun(recording=replace(recording, session=session, steps=steps), blob=blob)


# ── recorded again ───────────────────────────────────────────────────────────────────────────────────────────

_MEANT = ("content-type", "content-encoding")
"""Headers of an answer that say how it is read. Dates, ids, limits and waits are others in every recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAgain:
    """A run that takes the place of a cassette."""

    run: RecordedRun
    """With the exchanges of the cassette where those of the run say the same: a diff shows what did change."""
    unchanged: bool
    """Whether the run differs from the cassette in nothing but ids, times and headers that change every time."""


def recorded_again(cassette: SessionFile, run: RecordedRun) -> RecordedAgain:
    """Compares by match key and meaning: the ids that a provider draws for an answer do not count."""
    before = RecordedRun.on(cassette)
    waiting: dict[MatchKey, list[Step]] = {}
    for step in reversed(before.recording.steps):
        waiting.setdefault(step.request.agents_key, []).append(step)
    steps, then = [], []
    for step in run.recording.steps:
        known = waiting.get(step.request.agents_key, [])
        if known and _says_the_same(before, known[-1], run, step):
            old = known.pop()
            then.append(replace(old, request=replace(old.request, index=step.index)))
            # The order of time stays that of the run, whatever is new in it.
            steps.append(replace(old, request=replace(old.request, index=step.index, ts=step.request.ts)))
        else:
            then.append(step)
            steps.append(step)

    def blob(name: BlobId) -> bytes:
        return before.blob(name) if name in cassette.blobs else run.blob(name)

    made = RecordedRun(recording=replace(run.recording, steps=tuple(steps)), blob=blob)
    as_then = _at_the_time_of(cassette.session, replace(made.recording, steps=tuple(then)))
    unchanged = write_cassette(as_then, blob) == write_cassette(before.recording, before.blob)
    return RecordedAgain(run=made, unchanged=unchanged)


def _at_the_time_of(session: Session, recording: Recording) -> Recording:
    """The recording under the id, and with the times, of that session."""
    new, old = recording.session, session.start
    start = replace(new.start, id=old.id, started=old.started, rewind_version=old.rewind_version)
    end = new.end
    if end is not None and session.end is not None:
        end = replace(end, ended=session.end.ended, redactions=session.end.redactions)
    return replace(recording, session=replace(new, start=start, end=end))


def _says_the_same(before: RecordedRun, old: Step, run: RecordedRun, new: Step) -> bool:
    """Whether two steps of the same match key were answered alike."""
    then, now = old.response, new.response
    if then is None or now is None or then.head is None or now.head is None:
        return then == now
    if (then.ending, then.tape, then.head.status) != (now.ending, now.tape, now.head.status):
        return False
    if any(then.head.header(name) != now.head.header(name) for name in _MEANT):
        return False
    if before.answer(old) == run.answer(new):
        return True
    meant = _meaning(run, new) if new.request.kind is StepKind.LLM_CALL else None
    return meant is not None and meant == _meaning(before, old)


def _meaning(run: RecordedRun, step: Step) -> Answered | None:
    """What was answered, without the ids that the provider drew for it; ``None`` where that cannot be said."""
    answered = answered_at(step, *run.bodies(step))
    if answered is None or answered.note is not None or not answered.parts:
        return None
    return replace(
        answered,
        id="",
        parts=tuple(map(_without_id, answered.parts)),
        alternatives=tuple(tuple(map(_without_id, parts)) for parts in answered.alternatives),
    )


def _without_id(part: Part) -> Part:
    return replace(part, id="") if isinstance(part, ToolUse | ToolResult) else part


def _keys(steps: Iterable[Step]) -> "Counter[MatchKey]":
    return Counter(step.request.agents_key for step in steps)


def _numbered(steps: Sequence[Step], *, after: Sequence[Step]) -> tuple[Step, ...]:
    first = max((step.index for step in after), default=0) + 1
    return tuple(replace(step, request=replace(step.request, index=index)) for index, step in enumerate(steps, first))


def _under_rules_of(start: SessionStart, step: Step, blob: Blob) -> Step:
    """The match keys of one session are all made by its own rules."""
    request = HttpRequest(head=step.request.head, body=blob(step.request.body))
    key = understand(request, ignore=start.ignore, index=step.index).key
    return replace(step, request=replace(step.request, match_key=key))
