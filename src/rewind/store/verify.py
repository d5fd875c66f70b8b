"""Reads every byte of a session and names what is damaged."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from rewind.dataclass import dataclass
from rewind.errors import DamagedStore, SessionNotFound
from rewind.model.ids import BlobId, SessionId
from rewind.model.session import Session, Status
from rewind.store.journal.contents import Journal
from rewind.store.journal.reader import LONG_ANSWER, FolderReader, load_journal
from rewind.store.pack.bodies import PackReader
from rewind.store.pack.frames import FrameHeader, FrameRole


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One thing that is not as it was written."""

    session: SessionId
    where: str
    what: str


def verify_session(folder: Path) -> tuple[Damage, ...]:
    """What is damaged in a session. The unfinished last write of a killed recorder is not damage.

    Raises SessionNotFound if it is gone as a whole: then it was deleted.
    """
    session = SessionId(folder.name[-8:])
    try:
        journal, opened = load_journal(folder)
    except (DamagedStore, SessionNotFound) as problem:
        if not folder.is_dir():
            raise
        return (Damage(session=session, where="journal", what=problem.message),)
    return tuple(Damage(session=session, where=where, what=what) for where, what in _problems(folder, journal, opened))


def _problems(folder: Path, journal: Journal, session: Session) -> Iterator[tuple[str, str]]:
    yield from (("journal", note) for note in journal.damage)
    if journal.start is None:
        yield "journal", "the line that says what was run is gone"
    for step in sorted(journal.answers.keys() - journal.requests.keys()):
        yield f"step {step}", "its request line is gone"
    with FolderReader(folder) as reader:
        yield from (("parts", note) for note in reader.recording().damage if note.startswith("part."))
        try:
            pack = reader.pack()
        except DamagedStore as error:
            yield "pack", error.message
            return
        yield from _pack_problems(pack, journal, session)


def _pack_problems(pack: PackReader, journal: Journal, session: Session) -> Iterator[tuple[str, str]]:
    index = pack.index()
    yield from (("pack", note) for note in index.damage)
    for offset in index.offsets:
        if problem := pack.check(offset):
            yield "pack", problem
    size = index.scanned
    if session.status is Status.ENDED and (index.torn or journal.pack_size not in (None, size)):
        yield "pack", f"it should have {journal.pack_size} bytes, of which {size} make whole frames"
    for where, blob, length in _named_blobs(journal):
        try:
            read = sum(map(len, pack.stream(blob) if (length or 0) > LONG_ANSWER else pack.blocks(blob)))
        except DamagedStore as error:
            yield where, error.message
        else:
            if length is not None and read != length:
                yield where, f"it has {read} bytes, not {length}"
    if session.status in (Status.INTERRUPTED, Status.ENDED):
        yield from _unnamed(pack.headers().values(), journal)


def _named_blobs(journal: Journal) -> Iterator[tuple[str, BlobId, int | None]]:
    for step, request in sorted(journal.requests.items()):
        yield f"request of step {step}", request.body, request.body_size
    for step, answer in sorted(journal.answers.items()):
        if not answer.in_part:
            yield f"response of step {step}", answer.response.body, answer.response.body_size
        if answer.times is not None:
            yield f"arrival times of step {step}", answer.times, None
    for stream in ("stdin", "stdout", "stderr"):
        if (blob := getattr(journal.end, stream, None)) is not None:
            yield stream, blob, None


def _unnamed(headers: Iterable[FrameHeader], journal: Journal) -> Iterator[tuple[str, str]]:
    """Bytes are written before the line that names them, so a kill may leave some unnamed: the last answer, and
    requests that nobody has answered."""
    owners = [(header.role, header.step) for header in headers]
    named = {FrameRole.REQUEST: journal.requests.keys(), FrameRole.RESPONSE: journal.answers.keys()}
    orphans = [(role, step) for role, step in dict.fromkeys(owners) if role in named and step not in named[role]]
    if orphans and journal.end is None:
        answers = [step for role, step in orphans if role is FrameRole.RESPONSE][:-1]
        orphans = [(role, step) for role, step in orphans if step in answers]
    for role, step in orphans:
        yield ("journal", f"the pack holds a {role.name.lower()} of step {step} that no line names: lines are gone")
