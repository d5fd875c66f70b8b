"""Recorders that are killed, disks that are full, many at once: what was acknowledged is there, and nothing is torn."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rewind.errors import EnvironmentProblem
from rewind.model.session import Session, Status
from rewind.store.journal.reader import FolderReader
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library
from rewind.store.verify import verify_session
from support.effort import in_short
from unit.store.making import ANSWER_HEAD, GrowingAgent, request, response, start

TESTS = Path(__file__).resolve().parents[2]

KILLED = """
import os, random, signal, sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from unit.store.making import *

def run(home, acks):
    agent, writer, index = GrowingAgent(), SessionWriter.create(home, start()), 0
    while True:
        index += 1
        asked, answered = agent.turn()
        writer.request(request(index), asked)
        part = writer.part(index, ANSWER_HEAD)
        for at in range(0, len(answered), 300):
            part.append(at, answered[at : at + 300])
        writer.response(index, response(chunks=()), None)
        os.write(acks, index.to_bytes(4, "big"))

source = random.Random()
for trial in range(30):
    home = Path(sys.argv[2]) / str(trial)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        run(home, write)
    os.close(write)
    acked = 0
    for _ in range(source.randint(1, 12)):
        acked = int.from_bytes(os.read(read, 4), "big")
    until = time.perf_counter() + source.random() * 0.003
    while time.perf_counter() < until:
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(read, 4):
        acked = int.from_bytes(more, "big")
    os.close(read)
    print(trial, acked, flush=True)
"""

CROWD = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from unit.store.making import *

agent = GrowingAgent(int(sys.argv[3]))
for nth in range(3):
    record(Path(sys.argv[2]), [agent.turn() for _ in range(15)], id=f"{int(sys.argv[3]):04x}{nth:04x}", name="crowd")
"""

SMALL_FILES = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from unit.store.making import *

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
agent, writer, kept = GrowingAgent(), SessionWriter.create(Path(sys.argv[2]), start()), 0
for index in range(1, 60):
    asked, answered = agent.turn()
    writer.request(request(index), asked)
    writer.response(index, response(), answered)
    kept += writer.broken is None
writer.end(ended=1.0, exit_code=0, redactions=0, remarks=())
print(json.dumps([kept, writer.broken]))
"""


def assert_kept(folder: Path, count: int) -> None:
    """The first so many exchanges of a growing agent are there, byte for byte, and nothing is damaged."""
    agent = GrowingAgent()
    with FolderReader(folder) as reader:
        recording = reader.recording()
        assert recording.damage == ()
        assert len(recording.steps) >= count
        for step in recording.steps:
            asked, answered = agent.turn()
            assert reader.blob(step.request.body) == asked
            if step.index <= count:
                assert step.response is not None
                assert reader.blob(step.response.body) == answered
            elif step.response is not None:
                assert answered.startswith(reader.blob(step.response.body))
    assert verify_session(folder) == ()


@pytest.mark.process
def test_a_killed_recorder_has_kept_every_acknowledged_step(tmp_path: Path) -> None:
    script = subprocess.run(
        [sys.executable, "-c", KILLED, str(TESTS), str(tmp_path)], stdout=subprocess.PIPE, check=True, timeout=100
    )
    trials = [tuple(map(int, line.split())) for line in script.stdout.decode().splitlines()]
    assert len(trials) == 30
    for trial, acked in trials:
        library = Library(tmp_path / str(trial))
        (session,) = library.sessions()
        assert session.status is Status.INTERRUPTED
        assert_kept(tmp_path / str(trial) / "sessions" / session.folder, acked)


@pytest.mark.process
def test_many_recorders_and_a_reader_do_not_disturb_each_other(tmp_path: Path) -> None:
    recorders = [subprocess.Popen([sys.executable, "-c", CROWD, str(TESTS), str(tmp_path), str(n)]) for n in range(3)]
    library = Library(tmp_path)
    seen: list[Session] = []
    while any(recorder.poll() is None for recorder in recorders):
        seen = library.sessions()
        for session in seen[:3]:
            assert session.start.name == "crowd"
            with library.open(session) as reader:
                recording = reader.recording()
                assert recording.damage == ()
                for step in recording.steps[-2:]:
                    reader.blob(step.request.body)
    assert [recorder.wait() for recorder in recorders] == [0] * 3
    sessions = library.sessions()
    assert len(sessions) == 9
    assert {session.status for session in sessions} == {Status.ENDED}
    assert all(library.verify(session) == () for session in sessions)


@pytest.mark.process
@pytest.mark.parametrize("limit", [3_000, 20_000, 60_001])
def test_a_full_disk_breaks_the_recording_and_nothing_else(tmp_path: Path, limit: int) -> None:
    script = subprocess.run(
        [sys.executable, "-c", SMALL_FILES, str(TESTS), str(tmp_path), str(limit)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    kept, broken = json.loads(script.stdout)
    assert "could not be written: File too large" in broken
    session = Library(tmp_path).find("last")
    assert session.status is Status.BROKEN
    assert session.end is not None
    assert session.end.broken == broken
    assert_kept(tmp_path / "sessions" / session.folder, kept)


class FaultyDisk:
    """``os.write`` that fails from the k-th call on, or only then; perhaps after half of the bytes."""

    def __init__(self, k: int, error: int, *, half: bool, for_good: bool) -> None:
        self.calls, self._k, self._error, self._half, self._for_good = 0, k, error, half, for_good
        self._write = os.write

    def write(self, fd: int, data: bytes) -> int:
        self.calls += 1
        if self.calls == self._k and self._half:
            return self._write(fd, data[: len(data) // 2])
        if self.calls == self._k + self._half or (self._for_good and self.calls > self._k):
            raise OSError(self._error, os.strerror(self._error))
        return self._write(fd, data)


def some_steps(writer: SessionWriter) -> int:
    """Steps 1 to 3 and an output; how many steps were kept."""
    agent, kept = GrowingAgent(), 0
    for index in range(1, 4):
        asked, answered = agent.turn()
        writer.request(request(index), asked)
        part = writer.part(index, ANSWER_HEAD)
        part.append(1, answered[:100])
        part.append(2, answered[100:])
        writer.response(index, response(chunks=()), None if index % 2 else answered)
        writer.output("stdout", b"out")
        kept += writer.broken is None
    writer.end(ended=1.0, exit_code=0, redactions=0, remarks=())
    return kept


def refuse(*_: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("for_good", in_short([False, True]))
@pytest.mark.parametrize("stuck", in_short([False, True]))
def test_whichever_write_fails_the_steps_before_it_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half: bool, for_good: bool, stuck: bool
) -> None:
    """``stuck``: what was half written cannot even be taken back."""
    k = 0
    failed = True
    while failed:
        k += 1
        home = tmp_path / str(k)
        disk = FaultyDisk(k, errno.ENOSPC, half=half, for_good=for_good)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", disk.write)
            if stuck:
                patch.setattr(os, "ftruncate", refuse)
            try:
                writer = SessionWriter.create(home, start())
            except EnvironmentProblem:
                assert Library(home).sessions() == []
                continue
            kept = some_steps(writer)
        failed = disk.calls >= k
        assert (writer.broken is not None) == failed
        session = Library(home).find("last")
        assert session.status in ((Status.BROKEN, Status.INTERRUPTED) if failed else (Status.ENDED,))
        assert_kept(home / "sessions" / session.folder, kept)
    assert k > 20


def test_a_read_only_home_is_refused_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", read_only)
    with pytest.raises(EnvironmentProblem, match=r"Cannot write to the store .*: Read-only file system"):
        SessionWriter.create(tmp_path / "home", start())
