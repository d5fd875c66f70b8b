"""The log of replays, for the savings."""

import stat
from pathlib import Path

from rewind.store.replays import ServedAgain, note_replay, served_again


def test_every_served_step_of_every_replay_is_told_again(tmp_path: Path) -> None:
    note_replay(tmp_path, ts=1.0, session="7f3a2b9c", steps=[3, 1, 2, 7])
    note_replay(tmp_path, ts=2.0, session="9b2c0000", steps=[5])
    assert list(served_again(tmp_path)) == [
        ServedAgain(1.0, "7f3a2b9c", 1),
        ServedAgain(1.0, "7f3a2b9c", 2),
        ServedAgain(1.0, "7f3a2b9c", 3),
        ServedAgain(1.0, "7f3a2b9c", 7),
        ServedAgain(2.0, "9b2c0000", 5),
    ]
    assert stat.S_IMODE((tmp_path / "replays.jsonl").stat().st_mode) == 0o600
    assert b"[[1,3],[7,7]]" in (tmp_path / "replays.jsonl").read_bytes()


def test_a_replay_that_served_nothing_leaves_no_line(tmp_path: Path) -> None:
    note_replay(tmp_path, ts=1.0, session="7f3a2b9c", steps=[])
    assert list(tmp_path.iterdir()) == []
    assert list(served_again(tmp_path)) == []


def test_a_damaged_or_torn_line_is_passed_over(tmp_path: Path) -> None:
    log = tmp_path / "replays.jsonl"
    note_replay(tmp_path, ts=1.0, session="a", steps=[1])
    log.write_bytes(b"rubbish\n" + log.read_bytes().replace(b"replay", b"reploy"))
    note_replay(tmp_path, ts=2.0, session="b", steps=[2])
    log.write_bytes(log.read_bytes() + b'{"kind":"repl')
    assert list(served_again(tmp_path)) == [ServedAgain(2.0, "b", 2)]


def test_a_store_that_cannot_be_written_does_not_stop_a_replay(tmp_path: Path) -> None:
    note_replay(tmp_path / "gone", ts=1.0, session="a", steps=[1])
    (tmp_path / "replays.jsonl").mkdir()
    note_replay(tmp_path, ts=1.0, session="a", steps=[1])
    assert list(served_again(tmp_path)) == []
