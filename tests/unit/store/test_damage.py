"""Bit rot: always noticed, always named, never handed out as if it were what was recorded."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from rewind.errors import DamagedStore
from rewind.model.ids import BlobId
from rewind.model.session import Session, Status
from rewind.store.journal.reader import SessionReader
from rewind.store.library import Library
from rewind.store.pack.bodies import PackReader
from rewind.store.pack.frames import FrameRole
from unit.store.making import GrowingAgent, record

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
    answers = [frame for frame in pack.index().frames.values() if frame.header.role is FrameRole.RESPONSE]
    pack.close()
    assert len(answers) == STEPS
    for frame in answers[::4]:
        hurt = bytearray(recorded.whole["pack"])
        hurt[frame.offset + frame.header.frame_size - 5] ^= 4
        (recorded.folder / "pack").write_bytes(hurt)
        try:
            damage = recorded.library.verify(recorded.session)
            with recorded.library.open(recorded.session) as reader:
                for step in reader.recording().steps:
                    assert reader.blob(step.request.body) == recorded.exchanges[step.index - 1][0]
                    assert step.response is not None
                    if step.index == frame.header.step:
                        with pytest.raises(DamagedStore, match=f"response of step {step.index}"):
                            reader.blob(step.response.body)
                    else:
                        assert reader.blob(step.response.body) == recorded.exchanges[step.index - 1][1]
        finally:
            (recorded.folder / "pack").write_bytes(recorded.whole["pack"])
        assert {each.where for each in damage} == {"pack", f"response of step {frame.header.step}"}


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


def test_a_pack_can_be_read_without_its_journal(recorded: Recorded) -> None:
    pack = PackReader(recorded.folder / "pack")
    found = {(frame.header.role, frame.header.step) for frame in pack.index().frames.values()}
    pack.close()
    assert found == {(role, step) for role in (FrameRole.REQUEST, FrameRole.RESPONSE) for step in range(1, STEPS + 1)}
