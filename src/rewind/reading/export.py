"""Export: a session is taken out of the store to be given away. What is taken along is looked through once more."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rewind.errors import SessionNotFound, UsageError
from rewind.model.ids import SessionId
from rewind.model.session import Recording, Session, Status
from rewind.model.step import Step
from rewind.reading.removal import Blob, Removed, without
from rewind.redaction.recording_texts import Change, Place, outline_texts, retold
from rewind.redaction.removal import Removal, compiled
from rewind.redaction.scan import Finding, Scan
from rewind.store.library import Library

Told = Callable[[int, int], None]
"""Hears how many steps are done, and of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A session ready to be written in any form."""

    source: Session
    """As it is in the store."""
    recording: Recording
    """What of it is given away."""
    blob: Blob
    removed: Removed
    """What the patterns took out."""
    findings: tuple[Finding, ...]
    """What looks like a secret in what is left."""
    left_out: int = 0
    """Steps that are not taken along."""

    @property
    def session(self) -> Session:
        return self.recording.session


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A cassette, not written yet."""

    data: bytes
    session_id: SessionId
    steps: int
    recorded_redactions: int
    """Secrets that were removed before anything of the session was written."""
    removed: Removed
    findings: tuple[Finding, ...]


def export_cassette(
    home: Path,
    ref: str,
    *,
    steps: tuple[int | None, int | None] | None = None,
    redact: tuple[str, ...] = (),
) -> Exported:
    """The session as a cassette, and what was found in it."""
    # Lazily: who only reads a session needs no writer of cassettes.
    from rewind.store.cassette.write import write_cassette

    with packed(home, ref, steps=steps, redact=redact) as package:
        end = package.source.end
        return Exported(
            data=write_cassette(package.recording, package.blob),
            session_id=package.session.id,
            steps=len(package.recording.steps),
            recorded_redactions=end.redactions if end is not None else 0,
            removed=package.removed,
            findings=package.findings,
        )


@contextmanager
def packed(
    home: Path,
    ref: str,
    *,
    steps: tuple[int | None, int | None] | None = None,
    redact: tuple[str, ...] = (),
    told: Told = lambda _done, _of: None,
) -> Iterator[Package]:
    """The session, less the steps outside ``steps`` and what ``redact`` matches; its bytes can be read meanwhile.

    Raises UsageError for a pattern or a session that is still being recorded, SessionNotFound, DamagedStore.
    """
    patterns = compiled(redact)
    library = Library(home)
    source = library.find(ref)
    if source.status is Status.RUNNING:
        raise UsageError(
            f"Session {source.id} is still being recorded.",
            hint=f"when it has ended: rewind export {source.id}",
        )
    with library.open(source) as reader:
        whole = reader.recording()
        recording = whole if steps is None else _only(whole, *steps)
        recording = replace(recording, session=replace(recording.session, file=None))
        blob: Blob = reader.blob
        removed, before = Removed(), recording
        if patterns:
            recording, blob, removed = without(recording, blob, Removal(patterns), told)
        if recording != before or len(recording.steps) < len(whole.steps):
            recording = _under_its_own_id(recording)
        yield Package(
            source=source,
            recording=recording,
            blob=blob,
            removed=removed,
            findings=findings_in(recording, blob, told),
            left_out=len(whole.steps) - len(recording.steps),
        )


def findings_in(
    recording: Recording, blob: Blob, told: Told = lambda _done, _of: None
) -> tuple[Finding, ...]:
    """What looks like a secret in anything of a recording."""
    scan = Scan()
    start, end = recording.session.start, recording.session.end

    def look(text: str, place: Place) -> str:
        short = place.path.removeprefix("session.").removeprefix("start.")
        scan.placed(text, replace(place, path=short), "session")
        return text

    scan.text(" ".join(start.command), "command line")
    outline_texts(recording, look)
    if end is not None:
        for stream, printed in (("stdin", end.stdin), ("stdout", end.stdout), ("stderr", end.stderr)):
            if printed is not None:
                scan.body(blob(printed), (), stream)
    for done, step in enumerate(recording.steps, 1):
        _scan_step(scan, step, blob)
        told(done, len(recording.steps))
    return scan.findings


def _scan_step(scan: Scan, step: Step, blob: Blob) -> None:
    """Bodies first: what is told in short besides them is best named by where it comes from."""
    head, response, index = step.request.head, step.response, step.index

    def look(where: str) -> Change:
        def placed(text: str, place: Place) -> str:
            scan.placed(text, place, where, step=index)
            return text

        return placed

    scan.text(head.url, "URL", step=index)
    scan.body(blob(step.request.body), head.headers, "request body", step=index)
    retold(step.request, look("request"))
    if response is not None:
        if response.head is not None:
            scan.body(blob(response.body), response.head.headers, "response body", step=index)
        retold(response, look("response"))


def _only(recording: Recording, first: int | None, last: int | None) -> Recording:
    """These steps, with their numbers. What was printed tells of the others, and no part of a run prints it."""
    known = [step.index for step in recording.steps]
    low, high = first or 1, last if last is not None else max(known, default=0)
    steps = tuple(step for step in recording.steps if low <= step.index <= high)
    session = recording.session
    if not steps:
        there = f"it has {len(known)}, from {known[0]} to {known[-1]}" if known else "it has none"
        asked = f"{low}" if low == last else f"from {low} on" if last is None else f"from {low} to {last}"
        raise SessionNotFound(
            f"Session {session.id} has no step {asked}; {there}.",
            hint=f"rewind inspect {session.ref}",
        )
    if len(steps) == len(known):
        return recording
    end = session.end and replace(session.end, stdout=None, stderr=None)
    return replace(recording, session=replace(session, end=end), steps=steps)


def _under_its_own_id(recording: Recording) -> Recording:
    """A changed session is another session: it can stand beside its source.

    The id is made of all that is left, not of the options: from a pattern's digest the pattern could be guessed.
    """
    session = recording.session
    told = (replace(session.start, imported=False), session.end, recording.surroundings)
    digest = hashlib.sha256(repr(told).encode("utf-8", "surrogatepass"))
    for step in recording.steps:
        digest.update(repr(step).encode("utf-8", "surrogatepass"))
    start = replace(session.start, id=SessionId(digest.hexdigest()[:8]))
    return replace(recording, session=replace(session, start=start))
