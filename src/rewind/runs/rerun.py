"""What replay and fork share: a recorded command is run again, and its recording read while it runs."""

import contextlib
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rewind.errors import DamagedStore, EnvironmentProblem
from rewind.gateway.listener import somebody_waits
from rewind.match.call import Call, understand
from rewind.model.clock import SystemClock
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.ids import SessionId
from rewind.model.session import SessionStart
from rewind.model.step import Step
from rewind.playback.tape import Tape
from rewind.redaction.redactor import Redactor
from rewind.runs.outputs import Outputs
from rewind.runs.writer_thread import WriterThread
from rewind.store.journal.reader import SessionReader
from rewind.store.journal.writer import SessionWriter
from rewind.version import __version__

DUMMY_KEY = "rewind-replay-needs-no-key"
WARM_BYTES = 16 * 1024 * 1024
"""How many bytes of answers are read before anybody asks for them."""


def folder_of(start: SessionStart, verb: str) -> str:
    """Where the session was recorded. Raises EnvironmentProblem when that is no more."""
    if not Path(start.cwd).is_dir():
        raise EnvironmentProblem(
            f"The folder {start.cwd} that the session was recorded in is not there.",
            hint=f"Go where the agent is and give its command: rewind {verb} -- COMMAND",
        )
    return start.cwd


def request_of(reader: SessionReader, step: Step) -> HttpRequest:
    """The request as it was recorded."""
    return HttpRequest(head=step.request.head, body=reader.blob(step.request.body))


def recall(reader: SessionReader, ignore: tuple[str, ...]) -> Callable[[Step], Call]:
    """Recorded steps as calls."""

    def call_of(step: Step) -> Call:
        return understand(request_of(reader, step), ignore=ignore, index=step.index)

    return call_of


def answers(reader: SessionReader) -> Callable[[Step], HttpResponse | None]:
    """The recorded answers, with their bytes."""

    def answer_of(step: Step) -> HttpResponse | None:
        response = step.response
        if response is None or response.head is None:
            return None
        return HttpResponse(
            head=response.head,
            body=reader.blob(response.body),
            chunks=response.chunks,
            trailers=response.trailers,
        )

    return answer_of


def warm_up(reader: SessionReader, tape: Tape, listener: socket.socket) -> None:
    """Until the agent makes its first call, read answers from the disk, so that its calls need not wait for that."""
    reader.make_ready()
    size = 0
    for step in tape.steps():
        if size > WARM_BYTES or somebody_waits(listener):
            return
        if step.response is not None:
            size += step.response.body_size
            with contextlib.suppress(DamagedStore):  # told when that step is wanted
                reader.blob(step.response.body)


def begun_again(
    before: SessionStart, command: tuple[str, ...], redactor: Redactor, *, here: bool, ignore: tuple[str, ...]
) -> SessionStart:
    """The first line of a session that runs another's command; ``here``: in our folder, not in the recorded one."""
    return replace(
        before,
        id=SessionId(os.urandom(4).hex()),
        command=redactor.argv(command),
        cwd=str(Path.cwd()) if here else before.cwd,
        started=SystemClock().now(),
        rewind_version=__version__,
        ignore=ignore,
        replay_of=None,
        forked_from=None,
    )


class SessionRecording:
    """The run becomes a session of its own: what the tape answered and what went live, together."""

    def __init__(
        self, home: Path, start: SessionStart, redactor: Redactor, *, stdin: bytes | None = None
    ) -> None:
        """``stdin`` is what the agent is given to read, where that was recorded."""
        self.id = start.id
        self._redactor = redactor
        self.writer = SessionWriter.create(home, start)
        self.writer_thread = WriterThread(self.writer)
        self.outputs = Outputs(self.writer_thread, redactor)
        if stdin is not None:
            self.outputs.tee("stdin", stdin)

    def end(self, exit_code: int, remarks: tuple[str, ...]) -> None:
        self.outputs.finish()
        ended = SystemClock().now()
        count = self._redactor.count
        self.writer_thread.later(
            lambda: self.writer.end(ended=ended, exit_code=exit_code, redactions=count, remarks=remarks)
        )
        self.writer_thread.close()

    def abandon(self) -> None:
        """The command could not be started: nothing of it stays."""
        self.writer_thread.close()
        self.writer.abandon()

    @property
    def broken(self) -> str | None:
        """Why the session is not complete."""
        failure = self.writer_thread.failure
        return self.writer.broken or (f"a bug in Rewind: {failure!r}" if failure is not None else None)
