"""Bit rot: always noticed, always named, never handed out as if it were what was recorded."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewind.errors import DamagedStore, EnvironmentProblem
from rewind.model.http import Chunk
from rewind.model.ids import BlobId, MatchKey, SessionId
from rewind.model.session import Session, Status
from rewind.model.step import Ending
from rewind.reading.search import search
from rewind.reading.verify import verify
from rewind.store.journal.lines import seal, unseal
from rewind.store.journal.part import encode_record
from rewind.store.journal.reader import SessionReader
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library
from rewind.store.pack.bodies import PackReader
from rewind.store.pack.frames import HEADER_SIZE, FrameRole
from rewind.store.replays import note_replay
from rewind.views import session as views
from support.effort import in_short
from unit.store.making import ANSWER_HEAD, GrowingAgent, record, request, response, start

STEPS = 12


def flip(data: bytearray, source: random.Random) -> None:
    data[source.randrange(len(data))] ^= 1 << source.randrange(8)


def cut(data: bytearray, source: random.Random) -> None:
    del data[source.randrange(len(data)) :]


def cut_out(data: bytearray, source: random.Random) -> None:
    start = source.randrange(len(data))
    del data[start : start + source.randint(1, 900)]


def fill_with_zeros(data: bytearray, source: random.Random) -> None:
    start = source.randrange(len(data))
    size = min(source.randint(1, 900), len(data) - start)
    data[start : start + size] = bytes(size)


class Recorded:
    """A session whose files are damaged again and again."""

    def __init__(self, home: Path) -> None:
        agent = GrowingAgent()
        self.exchanges = [agent.turn() for _ in range(STEPS)]
        self.session: Session = record(home, self.exchanges)
        self.library = Library(home)
        self.folder = home / "sessions" / self.session.folder
        self.whole = {name: (self.folder / name).read_bytes() for name in ("journal.jsonl", "pack")}

    def damaged(self, name: str, hurt: bytes) -> int:
        """How many answers are lost by this. Fails if damage goes unnoticed or wrong bytes come back."""
        (self.folder / name).write_bytes(hurt)
        try:
            (session,) = self.library.sessions()
            noticed = self.library.verify(session)
            assert noticed or session.status is not Status.ENDED
            return STEPS - self._readable_answers(session)
        finally:
            (self.folder / name).write_bytes(self.whole[name])

    def _readable_answers(self, session: Session) -> int:
        readable = 0
        with self.library.open(session) as reader:
            for step in reader.recording().steps:
                asked, answered = self.exchanges[step.index - 1]
                assert self._read(reader, step.request.body) in (asked, None)
                if step.response is not None:
                    found = self._read(reader, step.response.body)
                    assert found in (answered, None)
                    readable += found is not None
        return readable

    def _read(self, reader: SessionReader, blob: BlobId) -> bytes | None:
        try:
            return reader.blob(blob)
        except DamagedStore:
            return None


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("damage"))


@pytest.mark.parametrize("harm", [flip, cut, cut_out, fill_with_zeros])
@pytest.mark.parametrize("name", ["journal.jsonl", "pack"])
def test_damage_is_noticed_and_no_wrong_byte_is_given(
    recorded: Recorded, name: str, harm: Callable[[bytearray, random.Random], None]
) -> None:
    source = random.Random(f"{name} {harm.__name__}")
    for _ in range(12):
        hurt = bytearray(recorded.whole[name])
        harm(hurt, source)
        if bytes(hurt) != recorded.whole[name]:
            lost = recorded.damaged(name, bytes(hurt))
            assert harm is not flip or lost <= 1


def test_a_flip_in_an_answers_frame_costs_that_answer_only(recorded: Recorded) -> None:
    pack = PackReader(recorded.folder / "pack")
    answers = [(at, header) for at, header in pack.headers().items() if header.role is FrameRole.RESPONSE]
    pack.close()
    assert len(answers) == STEPS
    for offset, header in answers[::4]:
        hurt = bytearray(recorded.whole["pack"])
        hurt[offset + header.frame_size - 5] ^= 4
        (recorded.folder / "pack").write_bytes(hurt)
        try:
            damage = recorded.library.verify(recorded.session)
            with recorded.library.open(recorded.session) as reader:
                for step in reader.recording().steps:
                    assert reader.blob(step.request.body) == recorded.exchanges[step.index - 1][0]
                    assert step.response is not None
                    if step.index == header.step:
                        with pytest.raises(DamagedStore, match=f"response of step {step.index}"):
                            reader.blob(step.response.body)
                    else:
                        assert reader.blob(step.response.body) == recorded.exchanges[step.index - 1][1]
        finally:
            (recorded.folder / "pack").write_bytes(recorded.whole["pack"])
        assert {each.where for each in damage} == {"pack", f"response of step {header.step}"}


def test_a_lost_file_is_named(recorded: Recorded) -> None:
    (recorded.folder / "pack").unlink()
    try:
        (damage,) = recorded.library.verify(recorded.session)
        assert "cannot be opened" in damage.what
        with recorded.library.open(recorded.session) as reader, pytest.raises(DamagedStore, match="cannot be opened"):
            reader.blob(reader.recording().steps[0].request.body)
    finally:
        (recorded.folder / "pack").write_bytes(recorded.whole["pack"])


def test_a_session_with_a_damaged_first_line_is_still_listed(recorded: Recorded) -> None:
    hurt = bytearray(recorded.whole["journal.jsonl"])
    hurt[30] ^= 1
    (recorded.folder / "journal.jsonl").write_bytes(hurt)
    try:
        (session,) = recorded.library.sessions()
        assert (session.id, session.start.started) == (recorded.session.id, recorded.session.start.started)
        assert recorded.library.find("7f3a").id == session.id
        assert any("what was run is gone" in each.what for each in recorded.library.verify(session))
    finally:
        (recorded.folder / "journal.jsonl").write_bytes(recorded.whole["journal.jsonl"])


def streamed(home: Path, **changes: Any) -> Session:
    """A session of answers with so many chunks that their times are in the pack."""
    writer = SessionWriter.create(home, start(**changes))
    for index in range(1, 5):
        body = b"data: %d\n\n" % index * 50
        writer.request(request(index), b'{"question": %d}' % index)
        chunks = tuple(Chunk(at * index, len(body) // 50) for at in range(50))
        writer.response(index, response(chunks=chunks), body)
    writer.end(ended=1794774186.5, exit_code=0, redactions=0, remarks=())
    (session,) = (found for found in Library(home).sessions() if found.folder == writer.folder.name)
    return session


@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: bytes(len(data))]
)
def test_a_pack_that_lost_the_times_of_streams_is_read_and_named(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    session = streamed(tmp_path)
    pack = tmp_path / "sessions" / session.folder / "pack"
    pack.write_bytes(damage(pack.read_bytes()))
    library = Library(tmp_path)
    assert any("step 4" in one.where for one in library.verify(session))
    with library.open(session) as reader:
        recording = reader.recording()
        assert any("arrival times of step 4" in one for one in recording.damage)
        last = recording.steps[-1].response
        assert last is not None
        with pytest.raises(DamagedStore, match="is damaged"):
            reader.blob(last.body)


def test_a_frame_that_claims_more_than_there_is_hides_none_behind_it(recorded: Recorded) -> None:
    """As where a block was written to the wrong place: its header is sound, and its length is not that of the file."""
    pack = PackReader(recorded.folder / "pack")
    headers = pack.headers()
    pack.close()
    largest, last = max(headers, key=lambda offset: headers[offset].frame_size), max(headers)
    whole = recorded.whole["pack"]
    header = whole[largest : largest + HEADER_SIZE]
    assert recorded.damaged("pack", whole[:last] + header + whole[last:]) == 0


def changed_line(home: Path, session: Session, number: int, **fields: Any) -> None:
    """Another value in a line, under a right checksum."""
    path = home / "sessions" / session.folder / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    kept = unseal(lines[number][:-1])
    lines[number] = seal(kept | fields)
    path.write_bytes(b"".join(lines))


ODD: tuple[Any, ...] = (None, True, 10**400, float("nan"), "x", [1], [[1]], {"x": 1})


@pytest.mark.parametrize("number", in_short([0, 1, 2, -1]))
def test_a_sound_line_of_another_shape_is_damage_and_no_more(tmp_path: Path, number: int) -> None:
    session = streamed(tmp_path)
    path = tmp_path / "sessions" / session.folder / "journal.jsonl"
    whole, library = path.read_bytes(), Library(tmp_path)
    for name in unseal(whole.splitlines()[number]):
        for odd in ODD:
            changed_line(tmp_path, session, number, **{name: odd})
            (listed,) = library.sessions()
            library.totals(listed, None)
            library.verify(listed)
            with library.open(listed) as reader:
                recording = reader.recording()
            assert len(recording.steps) >= 3, (name, odd)
            views.recording(recording)
            path.write_bytes(whole)


def test_a_line_that_stands_twice_or_elsewhere_or_belongs_to_another_session_is_named(tmp_path: Path) -> None:
    session, other = streamed(tmp_path), streamed(tmp_path, id=SessionId("0a1b2c3d"))
    path = tmp_path / "sessions" / session.folder / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    foreign = (tmp_path / "sessions" / other.folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for hurt, why in (
        ([*lines[:4], lines[2], *lines[4:]], "stands twice"),
        ([*lines[:3], lines[4], lines[3], *lines[5:]], "not where it was written"),
        ([*lines[:4], foreign[4], *lines[5:]], "belongs to another session"),
    ):
        path.write_bytes(b"".join(hurt))
        assert any(why in one.what for one in Library(tmp_path).verify(session)), why


def killed_before_understood(home: Path) -> Path:
    """The folder of a session whose only answer is complete, and still in its part."""
    writer = SessionWriter.create(home, start())
    writer.asked(writer.request_bytes(request(1, match_key=MatchKey("")), b"{}"))
    part = writer.part(1, ANSWER_HEAD)
    for at in range(4):
        part.append(at, b"piece %d" % at)
    writer.answered(1, response(chunks=()), None)
    writer.close()
    return writer.folder


def test_an_answer_whose_part_lost_its_end_is_not_taken_for_complete(tmp_path: Path) -> None:
    folder = killed_before_understood(tmp_path)
    part, library = folder / "part.1", Library(tmp_path)
    (session,) = library.sessions()
    assert not library.verify(session)
    part.write_bytes(part.read_bytes()[: -len(encode_record(3, b"piece 3"))])
    with library.open(session) as reader:
        (step,) = reader.recording().steps
        assert step.response is not None
        assert step.response.ending is Ending.INTERRUPTED
        assert reader.blob(step.response.body) == b"piece 0piece 1piece 2"
    assert [one.what for one in library.verify(session)] == ["part.1: it holds 21 of the 28 bytes of the answer"]
    part.unlink()
    assert library.verify(session)


def test_a_damaged_short_line_is_named(tmp_path: Path) -> None:
    folder = killed_before_understood(tmp_path)
    lines, library = folder / "journal.part", Library(tmp_path)
    (session,) = library.sessions()
    whole = lines.read_bytes()
    lines.write_bytes(whole[:-30])
    assert not library.verify(session)  # an unfinished write
    hurt = bytearray(whole)
    hurt[40] ^= 1
    lines.write_bytes(bytes(hurt))
    assert "journal.part line 1" in library.verify(session)[0].what
    lines.unlink()
    lines.mkdir()
    assert "journal.part cannot be read" in library.verify(session)[0].what


def test_one_session_that_cannot_be_opened_is_named_and_the_others_are_checked(tmp_path: Path) -> None:
    streamed(tmp_path)
    bad = streamed(tmp_path, id=SessionId("0a1b2c3d"))
    journal = tmp_path / "sessions" / bad.folder / "journal.jsonl"
    journal.unlink()
    journal.mkdir()
    found = verify(tmp_path)
    assert found.sessions == 2
    assert {one.session for one in found.damage} == {bad.id}
    assert search(tmp_path, ["question"]).index.sessions == 1


def test_a_pack_can_be_read_without_its_journal(recorded: Recorded) -> None:
    pack = PackReader(recorded.folder / "pack")
    found = {(header.role, header.step) for header in pack.headers().values()}
    pack.close()
    assert found == {(role, step) for role in (FrameRole.REQUEST, FrameRole.RESPONSE) for step in range(1, STEPS + 1)}


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir])
def test_what_is_no_file_in_the_place_of_a_derived_one_holds_nobody_up(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    streamed(tmp_path)
    for name in ("catalog.duckdb", "search.duckdb", "replays.jsonl"):
        (tmp_path / name).unlink(missing_ok=True)
        put(tmp_path / name)
    note_replay(tmp_path, ts=1.0, session="7f3a2b9c", steps=[1])
    if put is Path.mkdir:
        with pytest.raises(EnvironmentProblem, match=r"search\.duckdb"):
            search(tmp_path, ["question"])
        assert verify(tmp_path).catalog_problem
    else:
        assert search(tmp_path, ["question"]).index.sessions == 1
        assert verify(tmp_path).all_is_well
