"""Answers are read before they are asked for: some before the first call, the rest while the gateway is idle."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rewind.gateway.listener import listen
from rewind.model.clock import SystemClock
from rewind.model.ids import BlobId
from rewind.providers.hosts import HostRules
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.runs import recorded_steps
from rewind.runs.gateway_thread import BackgroundGateway
from rewind.runs.junction import Junction
from rewind.runs.recorded_steps import RecordedSteps
from rewind.store.journal.reader import SessionReader
from rewind.store.library import Library
from unit.store.making import record

ANSWERS = [b'{"answer":%d}' % number for number in range(6)]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[SessionReader]:
    session = record(tmp_path, [(b'{"ask":%d}' % number, answer) for number, answer in enumerate(ANSWERS)])
    with Library(tmp_path).open(session) as reader:
        yield reader


def count_reads(reader: SessionReader, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one with each body that is read."""
    reads: list[str] = []
    read = reader.blob

    def counted(blob: BlobId) -> bytes:
        reads.append(blob)
        return read(blob)

    monkeypatch.setattr(reader, "blob", counted)
    return reads


def test_a_client_that_waits_is_kept_from_its_answer_by_the_first_reads_alone(
    reader: SessionReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_steps, "WARM_STEPS", 2)
    reads = count_reads(reader, monkeypatch)
    steps = RecordedSteps(reader, only_played=True)
    tape = steps.tape()
    with closing(listen(0)) as listener, closing(socket.create_connection(listener.getsockname())):
        ahead = steps.warm_up(tape, listener)
        assert len(reads) == 2
        steps.answer(tape.take_step(tape.indexes()[4]))  # asked for before its turn
        assert len(reads) == 3
        assert len(list(ahead)) == 3, "one that was played is not read again"
    assert len(reads) == 6
    answers = [steps.answer(tape.step(index)) for index in tape.indexes() if not tape.played(index)]
    assert len(reads) == 6, "nothing is read again"
    assert [answer.body for answer in answers if answer is not None] == ANSWERS[:4] + ANSWERS[5:]


def test_an_answer_that_is_asked_for_again_is_read_again(
    reader: SessionReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = count_reads(reader, monkeypatch)
    steps = RecordedSteps(reader, only_played=True)
    tape = steps.tape()
    with closing(listen(0)) as listener:
        list(steps.warm_up(tape, listener))
    step = tape.step(tape.indexes()[0])
    assert steps.answer(step) == steps.answer(step)
    assert len(reads) == len(ANSWERS) + 1


def test_a_gateway_does_what_there_is_to_do_while_nobody_asks() -> None:
    done, everything = [], threading.Event()

    def work() -> Iterator[int]:
        for number in range(100):
            done.append(number)
            yield number
        everything.set()

    junction = Junction(
        rules=HostRules(("example.com",)), redactor=Redactor(Secrets()), clock=SystemClock(), online=False
    )
    gateway = BackgroundGateway(listen(0), junction, _NoCertificates(), None, idle_work=work())
    gateway.start()
    try:
        assert everything.wait(30)
    finally:
        gateway.stop()
    assert done == list(range(100))


class _NoCertificates:
    def server_context(self, host: str) -> ssl.SSLContext:
        raise NotImplementedError

    def sni_context(self, unknown: object) -> ssl.SSLContext:
        raise NotImplementedError
