"""An answer is on disk before the agent sees its end; what it means follows, or is worked out when it is read."""

import asyncio
import json
import os
import shutil
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rewind.model.clock import SystemClock
from rewind.model.http import HttpRequest, HttpResponse, RequestHead, ResponseHead
from rewind.model.ids import SessionId
from rewind.model.message import Answered
from rewind.model.session import Recording, SessionStart
from rewind.model.step import Ending, Step
from rewind.playback.policies import RecordAll
from rewind.providers.api import Reader
from rewind.providers.catalogue import identify
from rewind.providers.hosts import HostRules
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.runs import writer_thread as threads
from rewind.runs.junction import Junction
from rewind.runs.step_writer import StepSummary
from rewind.runs.writer_thread import WriterThread
from rewind.store.catalog.database import Catalog, SessionQuery, find_sessions
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library
from rewind.store.verify import verify_session

KEY = "sk-live-0123456789abcdefghijklmnop"
JSON = (("content-type", "application/json"),)
EVENTS = (("content-type", "text/event-stream"), ("transfer-encoding", "chunked"))
HEAD = RequestHead(
    method="POST",
    scheme="https",
    host="api.openai.com",
    port=443,
    target="/v1/chat/completions",
    headers=(("content-type", "application/json"), ("authorization", f"Bearer {KEY}")),
)


def question(number: int, size: int = 100) -> bytes:
    text = f"question {number} with {KEY} " + "words " * (size // 6)
    return json.dumps({"model": "gpt-x", "messages": [{"role": "user", "content": text}]}).encode()


def whole_answer(number: int) -> bytes:
    said = {"role": "assistant", "content": f"answer {number}"}
    usage = {"prompt_tokens": 10 + number, "completion_tokens": 2}
    return json.dumps(
        {"id": "a", "model": "gpt-x-1", "choices": [{"index": 0, "message": said}], "usage": usage}
    ).encode()


def events(number: int) -> list[bytes]:
    pieces = [{"choices": [{"index": 0, "delta": {"content": f"{word}{number} "}}]} for word in ("a", "b", "c")]
    return [b"data: " + json.dumps(piece).encode() + b"\n\n" for piece in pieces] + [b"data: [DONE]\n\n"]


class Recorder:
    """A junction that writes a session, as ``record`` does."""

    def __init__(self, home: Path, *, durable: bool = False) -> None:
        start = SessionStart(
            id=SessionId("7f3a2b9c"), name=None, command=("x",), cwd="/", started=1.0, rewind_version="0"
        )
        self.writer = SessionWriter.create(home, start, durable=durable)
        self.writer_thread = WriterThread(self.writer)
        self.junction = Junction(
            policy=RecordAll(),
            rules=HostRules(("*",)),
            redactor=Redactor(Secrets()),
            clock=SystemClock(),
            online=True,
            writer_thread=self.writer_thread,
        )

    async def ask(self, number: int, *, streamed: bool = False, size: int = 100) -> None:
        exchange = self.junction.begin(HEAD)
        exchange.arrived(question(number, size))
        exchange.answer_began(ResponseHead(status=200, reason="OK", headers=EVENTS if streamed else JSON))
        for piece in events(number) if streamed else [whole_answer(number)]:
            exchange.answer_piece(piece, ends_chunk=True)
            if streamed and piece != b"data: [DONE]\n\n":
                exchange.about_to_show()
        await exchange.answer_ended(Ending.COMPLETE)

    def end(self) -> None:
        self.writer_thread.close(
            lambda: self.writer.end(ended=2.0, exit_code=0, redactions=0, remarks=self.junction.tally.remarks)
        )
        assert self.writer_thread.failure is None


@pytest.fixture
def never_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that can wait is done before the end."""
    monkeypatch.setattr(threads, "QUIET_SECONDS", 1e6)


def read(home: Path) -> tuple[Recording, list[bytes]]:
    library = Library(home)
    with library.open(library.find("7f3a2b9c")) as reader:
        recording = reader.recording()
        return recording, [body for step in recording.steps for body in step.bodies(reader.blob)]


def comparable(step: Step) -> Step:
    """Less what a session that was killed does not tell: its conversations, and where transfer chunks ended."""
    assert step.response is not None
    return replace(
        step, request=replace(step.request, thread=None), response=replace(step.response, chunks=(), first_ms=None)
    )


def kinds(home: Path, name: str = "journal.jsonl") -> list[str]:
    (journal,) = home.glob(f"sessions/*/{name}")
    return [json.loads(line)["kind"] for line in journal.read_bytes().splitlines()]


def ask_all(recorder: Recorder) -> None:
    async def run() -> None:
        await recorder.ask(1)
        await recorder.ask(2, streamed=True)
        await recorder.ask(3, size=200_000)

    asyncio.run(run())


@pytest.mark.usefixtures("never_quiet")
def test_what_was_kept_and_not_understood_when_the_recorder_died_is_understood_when_it_is_read(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    recorder = Recorder(whole)
    ask_all(recorder)
    shutil.copytree(whole, killed)  # the disk as a kill would leave it at this moment
    recorder.end()
    assert kinds(killed) == ["session"]
    told = kinds(killed, "journal.part")
    assert told == [*["asked", "answered"] * 2, "asked", "asked", "answered"], "a long request is told twice"
    assert not list(whole.glob("sessions/*/*part*")), "all of it is in the journal and the pack"
    expected, bodies = read(whole)
    found, kept = read(killed)
    assert found.damage == ()
    assert kept == bodies
    assert [comparable(step) for step in found.steps] == [comparable(step) for step in expected.steps]
    assert [step.response and step.response.reading.text for step in found.steps] == [
        "answer 1",
        "a2 b2 c2",
        "answer 3",
    ]
    assert verify_session(next((killed / "sessions").iterdir())) == ()
    assert KEY.encode() not in b"".join(path.read_bytes() for path in killed.rglob("*") if path.is_file())


@pytest.mark.parametrize("size", [100, 200_000])
@pytest.mark.usefixtures("never_quiet")
def test_what_was_asked_is_told_at_once_though_no_answer_ever_comes(tmp_path: Path, size: int) -> None:
    """A provider may be paid for it: a run that is killed while it waits must not say that it was free."""
    recorder = Recorder(tmp_path / "whole")
    recorder.junction.begin(HEAD).arrived(question(1, size))
    shutil.copytree(tmp_path / "whole", tmp_path / "at once")
    kept = threading.Event()
    recorder.writer_thread.ask(lambda: None, lambda _nothing: kept.set())
    assert kept.wait(10)
    shutil.copytree(tmp_path / "whole", tmp_path / "a moment later")
    recorder.end()
    for killed in ("at once", "a moment later"):
        library = Library(tmp_path / killed)
        with library.open(library.find("7f3a2b9c")) as reader:
            (step,) = reader.recording().steps
        assert (step.request.provider, step.response) == ("openai-chat", None)
    assert step.request.body_size == len(question(1, size))


@pytest.mark.usefixtures("never_quiet")
def test_steps_that_only_short_lines_tell_of_are_counted(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    ask_all(recorder)
    library = Library(tmp_path)
    running = library.find("7f3a2b9c")
    totals = library.totals(running)
    ((_, counted),) = find_sessions(Catalog(tmp_path), tmp_path, SessionQuery(), 10).rows
    recorder.end()
    for one in (totals, counted):
        assert (one.steps, one.llm_calls, one.cut, one.errors) == (3, 3, 0, 0)


def test_the_lines_with_the_meaning_follow_when_the_gateway_is_quiet(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)

    async def run() -> None:
        await recorder.ask(1)
        async with asyncio.timeout(10):
            while "step" not in kinds(tmp_path):  # noqa: ASYNC110  nobody announces it
                await asyncio.sleep(0.01)

    asyncio.run(run())
    recorder.end()
    assert kinds(tmp_path) == ["session", "request", "step", "end"]


def test_what_waits_to_be_understood_does_not_grow_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, never_quiet: None
) -> None:
    monkeypatch.setattr(threads, "MOST_WAITING", 100_000)
    recorder = Recorder(tmp_path)
    most = 0

    async def run() -> None:
        nonlocal most
        for number in range(1, 80):
            await recorder.ask(number, size=20_000)
            most = max(most, recorder.writer_thread._weight)

    asyncio.run(run())
    recorder.end()
    assert most < 1_000_000
    assert len(read(tmp_path)[0].steps) == 79


@pytest.mark.usefixtures("never_quiet")
def test_a_running_session_that_is_read_while_a_part_is_packed_is_not_called_damaged(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    asyncio.run(recorder.ask(1, streamed=True))
    (part,) = tmp_path.glob("sessions/*/part.1")
    part.unlink()  # as the writer does once the step is in the journal
    found, _ = read(tmp_path)
    assert found.damage == () and [step.response for step in found.steps] == [None]
    recorder.writer_thread.close()


def test_a_step_that_a_bug_kept_out_of_the_journal_is_told_by_its_short_lines_after_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_given: object, **_named: object) -> None:
        raise RuntimeError("a bug")

    recorder = Recorder(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(StepSummary, "request", bug)
        asyncio.run(recorder.ask(1))
        recorder.writer_thread.close(lambda: recorder.writer.end(ended=2.0, exit_code=0, redactions=0, remarks=()))
    assert isinstance(recorder.writer_thread.failure, RuntimeError)
    found, bodies = read(tmp_path)
    assert found.damage == () and bodies[1:] == [whole_answer(1)]


@pytest.mark.usefixtures("never_quiet")
def test_a_killed_session_is_read_though_a_step_of_it_cannot_be_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(tmp_path / "whole")
    ask_all(recorder)
    shutil.copytree(tmp_path / "whole", tmp_path / "killed")
    recorder.end()
    reader = type(identify(HEAD).reader)
    answered = reader.answered

    def bug(self: Reader, request: HttpRequest, response: HttpResponse) -> Answered:
        if b"answer 1" in response.body:
            raise TypeError("a bug")
        return answered(self, request, response)

    monkeypatch.setattr(reader, "answered", bug)
    found, bodies = read(tmp_path / "killed")
    assert bodies[1] == whole_answer(1)
    assert [step.response and step.response.reading.text for step in found.steps] == ["", "a2 b2 c2", "answer 3"]
    (damage,) = found.damage
    assert "step 1" in damage and "a bug" in damage


class Disk:
    """What a power cut would leave: of a file what was synced last, of a folder the names that were synced last."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._files: dict[int, bytes] = {}
        self._folders: dict[int, dict[str, tuple[int, bool]]] = {}
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, partial(self._synced, getattr(os, name)))

    def _synced(self, sync: Callable[[int], None], fd: int) -> None:
        sync(fd)
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            with os.scandir(fd) as entries:
                self._folders[found.st_ino] = {one.name: (one.inode(), one.is_dir()) for one in entries}
        else:
            self._files[found.st_ino] = Path(f"/dev/fd/{fd}").read_bytes()

    def after_a_cut(self, folder: Path, to: Path) -> Path:
        """That folder as it would be found, as a folder of its own."""
        self._restore(folder.stat().st_ino, to)
        return to

    def _restore(self, inode: int, to: Path) -> None:
        to.mkdir()
        for name, (inner, is_folder) in self._folders.get(inode, {}).items():
            if is_folder:
                self._restore(inner, to / name)
            else:
                (to / name).write_bytes(self._files.get(inner, b""))


@pytest.mark.parametrize("quiet", [False, True])
def test_a_durable_session_has_every_answer_whose_end_was_seen_after_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    monkeypatch.setattr(threads, "QUIET_SECONDS", 0.0 if quiet else 1e6)
    disk = Disk(monkeypatch)
    home = tmp_path / "made for it" / "home"
    recorder = Recorder(home, durable=True)
    kinds_of_answers: list[dict[str, Any]] = [{}, {"streamed": True}, {"size": 200_000}, {"streamed": True}]

    async def run() -> None:
        for number, kind in enumerate(kinds_of_answers, 1):
            await recorder.ask(number, **kind)
            disk.after_a_cut(tmp_path, tmp_path.parent / f"{tmp_path.name}-cut-{number}")

    asyncio.run(run())
    recorder.end()
    expected, bodies = read(home)
    for number in range(1, len(kinds_of_answers) + 1):
        found, kept = read(tmp_path.parent / f"{tmp_path.name}-cut-{number}" / "made for it" / "home")
        assert found.damage == ()
        assert kept == bodies[: 2 * number]
        assert [comparable(step) for step in found.steps] == [comparable(step) for step in expected.steps[:number]]
