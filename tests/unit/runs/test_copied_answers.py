"""What a fork plays from its tape is kept in its own session: at once, whole, and however long it is."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewind.conversation.threads import Threads
from rewind.match.call import understand
from rewind.model.http import HttpResponse, RequestHead, ResponseHead
from rewind.model.ids import SessionId
from rewind.model.session import SessionStart
from rewind.model.step import Ending, Step, StepResponse
from rewind.runs import writer_thread as threads
from rewind.runs.recorded_steps import RecordedSteps
from rewind.runs.step_writer import StepWriter
from rewind.runs.writer_thread import WriterThread
from rewind.store.journal.reader import FolderReader
from rewind.store.journal.writer import SessionWriter

HEAD = RequestHead(
    method="POST",
    scheme="https",
    host="api.openai.com",
    port=443,
    target="/v1/chat/completions",
    headers=(("content-type", "application/json"),),
)
ANSWER = ResponseHead(status=200, reason="OK", headers=(("content-type", "application/json"),))
COMPLETE = StepResponse(ending=Ending.COMPLETE, head=ANSWER, ms=1.0)
QUESTION = b'{"model":"m","messages":[{"role":"user","content":"why?"}]}'


def new_session(home: Path, name: str) -> SessionWriter:
    start = SessionStart(id=SessionId(name), name=None, command=("x",), cwd="/", started=1.0, rewind_version="0")
    return SessionWriter.create(home, start)


def copied(thread: WriterThread, step: Step, answer: HttpResponse | None) -> None:
    step_writer = StepWriter(thread, 1.0, Threads(), (), lambda _subject, _text: None)
    step_writer.keep(HEAD, len(QUESTION), lambda: QUESTION, understand)
    step_writer.later(lambda writer: writer.copy(step, answer))


def end(thread: WriterThread) -> None:
    thread.close(lambda: thread.writer.end(ended=2.0, exit_code=0, redactions=0, remarks=()))


def test_a_long_answer_of_a_killed_session_is_copied(tmp_path: Path) -> None:
    killed = new_session(tmp_path, "7f3a2b9c")
    step_writer = StepWriter(WriterThread(killed), 1.0, Threads(), (), lambda _subject, _text: None)
    step_writer.keep(HEAD, len(QUESTION), lambda: QUESTION, understand)
    step_writer.writer_thread.close()
    part, pieces = killed.part(1, ANSWER), [os.urandom(1 << 20) for _ in range(17)]
    for at, piece in enumerate(pieces):
        part.append(at, piece)
    killed.answered(1, COMPLETE, None)
    killed.close()
    tape = RecordedSteps(FolderReader(killed.folder))
    (step,) = tape.recording.steps
    fork = WriterThread(new_session(tmp_path, "0a0b0c0d"))
    copied(fork, step, tape.answer(step))
    end(fork)
    assert fork.failure is None and fork.writer.lost == set()
    reader = FolderReader(fork.writer.folder)
    (kept,) = reader.recording().steps
    assert kept.bodies(reader.blob)[1] == b"".join(pieces)


def test_a_copy_that_fails_is_counted_as_lost(tmp_path: Path) -> None:
    def blocks() -> Iterator[bytes]:
        yield b"the beginning"
        raise RuntimeError("a bug")

    writer = new_session(tmp_path, "7f3a2b9c")
    with pytest.raises(RuntimeError, match="a bug"):
        writer.response(1, COMPLETE, blocks())
    assert writer.lost == {1}
    writer.close()


def test_what_was_played_is_kept_before_anything_is_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "QUIET_SECONDS", 1e6)
    base = new_session(tmp_path, "7f3a2b9c")
    thread = WriterThread(base)
    step_writer = StepWriter(thread, 1.0, Threads(), (), lambda _subject, _text: None)
    step_writer.keep(HEAD, len(QUESTION), lambda: QUESTION, understand)
    thread.when_quiet(lambda: base.response(1, COMPLETE, b"{}"))
    end(thread)
    tape = RecordedSteps(FolderReader(base.folder))
    (step,) = tape.recording.steps
    fork = WriterThread(new_session(tmp_path, "0a0b0c0d"))
    copied(fork, step, tape.answer(step))
    done = threading.Event()
    fork.later(done.set)
    assert done.wait(10)
    (seen,) = FolderReader(fork.writer.folder).recording().steps  # as a kill at this moment would leave it
    assert seen.response is not None and seen.response.tape == 1
    assert seen.bodies(FolderReader(fork.writer.folder).blob) == (QUESTION, b"{}")
    end(fork)
