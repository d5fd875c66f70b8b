"""A session from a file becomes a session of the store: whole, once, or not at all."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewind.errors import EnvironmentProblem
from rewind.model.ids import BlobId, blob_id
from rewind.model.session import SessionFile, Status
from rewind.store.cassette.read import read_cassette
from rewind.store.cassette.write import write_cassette
from rewind.store.files import GrowingFile
from rewind.store.imported_sessions import import_session
from rewind.store.library import Library
from unit.store.making import GrowingAgent, record, start
from unit.store.taping import Taped, ended, taped
from unit.store.test_cassette import PAIRS, rich


def portable_of(tape: Taped) -> SessionFile:
    return read_cassette(tape.cassette(), file="x.rw")


def exported(home: Path, session: str = start().id) -> bytes:
    library = Library(home)
    with library.open(library.find(session)) as reader:
        return write_cassette(reader.recording(), reader.blob)


def everything_under(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize(
    "tape",
    [
        rich(),
        taped(PAIRS, end=ended()),
        taped(PAIRS, end=ended(broken="disk full", stdout=blob_id(b""))),
        taped([*PAIRS, (b"{}", None)]),
        taped([]),
        taped([(bytes(range(256)) * 40, None), (b"", b"")]),
    ],
)
def test_what_is_kept_is_exported_to_the_same_bytes(tape: Taped, tmp_path: Path) -> None:
    portable = portable_of(tape)
    assert import_session(tmp_path, portable) is True
    assert exported(tmp_path) == tape.cassette()
    library = Library(tmp_path)
    session = library.find(start().id)
    assert session.start.imported and session.file is None
    assert session.status is portable.session.status
    assert library.verify(session) == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["format", "sessions"]


def test_times_are_those_of_the_recording(tmp_path: Path) -> None:
    import_session(tmp_path, portable_of(rich()))
    (journal,) = tmp_path.glob("sessions/*/journal.jsonl")
    times = [json.loads(line)["ts"] for line in journal.read_text().splitlines()]
    assert all(1794774177 <= ts < 1794774190 for ts in times)


def test_keeping_it_again_changes_nothing(tmp_path: Path) -> None:
    portable = portable_of(rich())
    import_session(tmp_path, portable)
    before = everything_under(tmp_path)
    assert import_session(tmp_path, portable) is False
    assert everything_under(tmp_path) == before


def test_a_session_that_was_recorded_here_is_known(tmp_path: Path) -> None:
    agent = GrowingAgent()
    session = record(tmp_path, [agent.turn() for _ in range(4)])
    portable = read_cassette(exported(tmp_path, session.id), file="x.rw")
    before = everything_under(tmp_path)
    assert not import_session(tmp_path, portable)
    assert everything_under(tmp_path) == before


@pytest.mark.parametrize(
    "other",
    [
        taped(PAIRS[:1], end=ended()),
        taped(PAIRS),
        taped(PAIRS, end=ended(exit_code=1)),
        taped(PAIRS, end=ended(), name="other"),
        taped([PAIRS[0], (PAIRS[1][0], b"changed")], end=ended()),
    ],
)
def test_another_session_of_that_id_is_never_touched(other: Taped, tmp_path: Path) -> None:
    import_session(tmp_path, portable_of(taped(PAIRS, end=ended())))
    before = everything_under(tmp_path)
    with pytest.raises(EnvironmentProblem, match="id 7f3a2b9c already"):
        import_session(tmp_path, portable_of(other))
    assert everything_under(tmp_path) == before


def test_two_sessions_live_side_by_side(tmp_path: Path) -> None:
    one, two = taped(PAIRS, end=ended()), taped(PAIRS, end=ended(), id="00000002")
    for tape in (one, two):
        import_session(tmp_path, portable_of(tape))
    assert exported(tmp_path) == one.cassette()
    assert exported(tmp_path, "00000002") == two.cassette()


@pytest.mark.parametrize("nth", range(1, 9))
def test_a_full_disk_leaves_nothing(nth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import_session(tmp_path, portable_of(taped([], id="00000001")))
    before = everything_under(tmp_path)
    appended = 0
    append = GrowingFile.append

    def fails(self: GrowingFile, data: bytes) -> None:
        nonlocal appended
        appended += 1
        if appended >= nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(self, data)

    with monkeypatch.context() as full:
        full.setattr(GrowingFile, "append", fails)
        with pytest.raises(EnvironmentProblem, match="No space left"):
            import_session(tmp_path, portable_of(taped(PAIRS, end=ended())))
    assert appended >= nth
    assert everything_under(tmp_path) == before


def test_bytes_that_are_missing_leave_nothing(tmp_path: Path) -> None:
    portable = portable_of(taped(PAIRS))
    blobs: dict[BlobId, Any] = dict(portable.blobs)
    blobs.pop(blob_id(PAIRS[1][1]))
    with pytest.raises(Exception, match="does not hold"):
        import_session(tmp_path, replace(portable, blobs=blobs))
    assert everything_under(tmp_path / "sessions") == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["format", "sessions"]


def test_an_imported_session_that_was_cut_off_is_interrupted(tmp_path: Path) -> None:
    import_session(tmp_path, portable_of(taped([*PAIRS, (b'{"q":"still?"}', None)])))
    session = Library(tmp_path).find("last")
    assert session.status is Status.INTERRUPTED
    with Library(tmp_path).open(session) as reader:
        assert [step.response is None for step in reader.recording().steps] == [False, False, True]
