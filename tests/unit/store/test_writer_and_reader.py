"""A session written and read back: byte for byte, small on disk, private, and whatever happens to the process."""

import json
import os
import stat
from pathlib import Path

import pytest

from rewind.errors import EnvironmentProblem, NewerStore, UsageError
from rewind.model.http import Chunk
from rewind.model.session import Status
from rewind.model.step import NO_BYTES, Ending
from rewind.store.journal.totals import Totals
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library
from rewind.store.pack.bodies import BLOCK
from unit.store.making import ANSWER_HEAD, GrowingAgent, record, request, response, start


def test_a_session_comes_back_as_it_was_written(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path / "home", start())
    library = Library(tmp_path / "home")
    writer.request(request(1), b'{"q":1}')
    writer.request(request(2), b"")
    assert library.find("last").status is Status.RUNNING
    many = tuple(Chunk(1000 * n + n % 7, 3) for n in range(500))
    writer.response(2, response(ending=Ending.UPSTREAM_CUT, reason="reset", chunks=many), b"abc" * 500)
    part = writer.part(1, ANSWER_HEAD)
    part.append(10, b"one ")
    part.append(25, b"two")
    writer.response(1, response(chunks=()), None)
    writer.output("stdout", b"hello ")
    writer.output("stdout", b"world")
    writer.output("stdin", b"")
    writer.end(ended=99.0, exit_code=130, redactions=3, remarks=("noted",))
    assert writer.broken is None
    assert sorted(path.name for path in writer.folder.iterdir()) == ["journal.jsonl", "pack"]

    session = library.find("7f3a2b9c")
    assert session.start == start()
    assert session.status is Status.ENDED
    assert session.end is not None
    assert (session.end.exit_code, session.end.redactions, session.end.remarks) == (130, 3, ("noted",))
    with library.open(session) as reader:
        recording = reader.recording()
        assert recording.damage == ()
        first, second = recording.steps
        assert first.response is not None
        assert second.response is not None
        assert reader.blob(first.request.body) == b'{"q":1}'
        assert second.request.body == NO_BYTES
        assert reader.blob(first.response.body) == b"one two"
        assert first.response.chunks == (Chunk(10, 4), Chunk(25, 3))
        assert second.response.chunks == many
        assert second.response.ending is Ending.UPSTREAM_CUT
        assert reader.blob(second.response.body) == b"abc" * 500
        assert reader.output("stdout") == b"hello world"
        assert reader.output("stdin") == b""
        assert reader.output("stderr") is None
    assert library.verify(session) == ()
    assert library.totals(session) == Totals(
        steps=2, llm_calls=2, tokens_in=2400, tokens_out=160, peak_context=1200, cut=1, errors=0
    )


@pytest.mark.torture
def test_a_long_agent_takes_four_kilobytes_a_step(tmp_path: Path) -> None:
    agent = GrowingAgent()
    exchanges = [agent.turn() for _ in range(200)]
    session = record(tmp_path, exchanges)
    folder = tmp_path / "sessions" / session.folder
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{size / 200:.0f} bytes a step, of which the journal {(folder / 'journal.jsonl').stat().st_size / 200:.0f}")
    assert size <= 200 * 4096
    library = Library(tmp_path)
    with library.open(session) as reader:
        for step, (asked, answered) in zip(reader.recording().steps, exchanges, strict=True):
            assert step.response is not None
            assert reader.blob(step.request.body) == asked
            assert reader.blob(step.response.body) == answered
    with library.open(session) as reader:  # and the last one first
        assert reader.blob(step.request.body) == exchanges[-1][0]


def test_parallel_conversations_each_lean_on_their_own(tmp_path: Path) -> None:
    agents = [GrowingAgent(seed) for seed in range(8)]
    exchanges = [agent.turn() for _ in range(20) for agent in agents]
    session = record(tmp_path, exchanges)
    folder = tmp_path / "sessions" / session.folder
    assert sum(path.stat().st_size for path in folder.iterdir()) <= len(exchanges) * 4096
    assert Library(tmp_path).verify(session) == ()


@pytest.mark.torture
def test_bodies_of_many_megabytes_come_back(tmp_path: Path) -> None:
    image = os.urandom(BLOCK + 12345).hex()
    asked = json.dumps({"messages": [{"image": image}, {"image": image}]}).encode()
    answered = os.urandom(2 * BLOCK + 1)
    session = record(tmp_path, [(asked, answered), (asked, b"")])
    with Library(tmp_path).open(session) as reader:
        first = reader.recording().steps[0]
        assert first.response is not None
        assert reader.blob(first.request.body) == asked
        assert reader.blob(first.response.body) == answered
    assert Library(tmp_path).verify(session) == ()


def test_what_had_come_of_an_answer_is_kept_when_the_recorder_dies(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path, start())
    for index in (1, 2, 3):
        writer.request(request(index), b"asked")
    part = writer.part(1, ANSWER_HEAD)
    part.append(1500, b"data: 1\n\n")
    part.append(2500, b"data: 2\n\n")
    writer.part(2, ANSWER_HEAD)
    writer.output("stdout", b"so far")
    library = Library(tmp_path)
    with library.open(library.find("last")) as reader:
        assert [step.response for step in reader.recording().steps] == [None, None, None]  # still coming
    writer.close()
    with (writer.folder / "part.1").open("ab") as file:
        file.write(b"\x10\x00\x00\x00half a rec")
    session = library.find("last")
    assert session.status is Status.INTERRUPTED
    with library.open(session) as reader:
        first, second, third = (step.response for step in reader.recording().steps)
        assert first is not None
        assert second is not None
        assert (first.ending, first.head, first.body_size) == (Ending.INTERRUPTED, ANSWER_HEAD, 18)
        assert first.chunks == (Chunk(1500, 9), Chunk(2500, 9))
        assert (first.first_ms, first.ms) == (1.5, 2.5)
        assert (second.head, second.body) == (ANSWER_HEAD, NO_BYTES)
        assert third is None
        assert reader.output("stdout") == b"so far"
    with library.open(session) as reader:
        assert reader.blob(first.body) == b"data: 1\n\ndata: 2\n\n"
    assert library.verify(session) == ()
    assert library.totals(session).cut == 3


def test_a_late_piece_after_the_step_was_written_goes_nowhere(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path, start())
    writer.request(request(1), b"")
    part = writer.part(1, ANSWER_HEAD)
    part.append(1, b"x")
    writer.response(1, response(chunks=()), None)
    part.append(2, b"late")
    writer.end(ended=1.0, exit_code=0, redactions=0, remarks=())
    part.append(3, b"later")
    assert writer.broken is None
    assert Library(tmp_path).verify(Library(tmp_path).find("last")) == ()


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o777])
def test_only_the_owner_can_read_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    (tmp_path / "made").mkdir(mode=0o755)
    old = os.umask(umask)
    try:
        for home in (tmp_path / "made", tmp_path / f"new{umask}"):
            writer = SessionWriter.create(home, start())
            writer.request(request(1), b"asked")
            writer.part(1, ANSWER_HEAD).append(1, b"x")
            writer.output("stderr", b"x")
            writer.close()
    finally:
        os.umask(old)
    for home in (tmp_path / "made", tmp_path / f"new{umask}"):
        for path in (home, *home.rglob("*")):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_folder_of_other_things_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    tmp_path.chmod(0o755)
    SessionWriter.create(tmp_path, start()).close()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "sessions").stat().st_mode) == 0o700


def test_a_newer_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "format").write_text("rewind-store 2\n")
    for attempt in (lambda: SessionWriter.create(tmp_path, start()), lambda: Library(tmp_path).sessions()):
        with pytest.raises(NewerStore, match="format 2"):
            attempt()
    assert [path.name for path in tmp_path.iterdir()] == ["format"]


def test_a_home_that_cannot_be_one_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for home in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(EnvironmentProblem, match="file"):
            SessionWriter.create(home, start())
        with pytest.raises(EnvironmentProblem):
            Library(home).sessions()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_another_users_home_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(EnvironmentProblem, match="another user"):
        SessionWriter.create(tmp_path, start())
    assert list(tmp_path.iterdir()) == []


def test_planted_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    home = tmp_path / "home"
    home.mkdir()
    (home / "sessions").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentProblem):
        SessionWriter.create(home, start())
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    "hostile", ["../../x", "7F3A2B9C", "7f3a2b9", "7f3a2b9c\n", "", "CON", "a" * 300, "\0" * 8, "٣" * 8]
)
def test_what_is_no_id_makes_no_folder(tmp_path: Path, hostile: str) -> None:
    with pytest.raises(UsageError):
        SessionWriter.create(tmp_path / "home", start(id=hostile))
    with pytest.raises(UsageError):
        SessionWriter.create(tmp_path / "home", start(started=float("nan")))
    assert not (tmp_path / "home").exists()


def test_a_durable_session_is_the_same_session(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path, start(), durable=True)
    writer.request(request(1), b"asked")
    writer.response(1, response(), b"answered")
    writer.end(ended=2.0, exit_code=0, redactions=0, remarks=())
    assert Library(tmp_path).verify(Library(tmp_path).find("last")) == ()
