"""While recording, a little meaning is written down; whatever becomes of it, the bytes are kept."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from rewind.model.clock import SystemClock
from rewind.model.http import RequestHead, ResponseHead
from rewind.model.ids import SessionId
from rewind.model.message import Asked
from rewind.model.session import Recording, SessionStart
from rewind.model.step import Ending
from rewind.model.usage import Usage
from rewind.playback.policies import RecordAll
from rewind.providers.anthropic.read import AnthropicReader
from rewind.providers.hosts import HostRules
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.runs.junction import Junction
from rewind.runs.writer_thread import WriterThread
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library

ASK = {"role": "user", "content": "Who are you?"}
ANSWER = {
    "type": "message",
    "id": "m",
    "model": "claude-x-1",
    "content": [{"type": "text", "text": "I am here."}],
    "usage": {"input_tokens": 7, "cache_read_input_tokens": 5, "output_tokens": 3},
}


def head(host: str = "api.anthropic.com", target: str = "/v1/messages") -> RequestHead:
    return RequestHead(method="POST", scheme="https", host=host, port=443, target=target, headers=())


def recorded(home: Path, *exchanges: tuple[RequestHead, Any, Any]) -> tuple[Recording, Junction]:
    """The exchanges, one after the other, as the junction writes them."""
    start = SessionStart(id=SessionId("7f3a2b9c"), name=None, command=("x",), cwd="/", started=1.0, rewind_version="0")
    writer = SessionWriter.create(home, start)
    writer_thread = WriterThread(writer)
    junction = Junction(
        policy=RecordAll(),
        rules=HostRules(("*",)),
        redactor=Redactor(Secrets()),
        clock=SystemClock(),
        online=True,
        writer_thread=writer_thread,
    )

    async def run() -> None:
        for asked, question, answer in exchanges:
            exchange = junction.begin(asked)
            exchange.arrived(json.dumps(question).encode())
            media = (("content-type", "application/json"),)
            exchange.answer_began(ResponseHead(status=200, reason="OK", headers=media))
            exchange.answer_piece(json.dumps(answer).encode(), ends_chunk=True)
            await exchange.answer_ended(Ending.COMPLETE)

    asyncio.run(run())
    writer_thread.close(lambda: writer.end(ended=2.0, exit_code=0, redactions=0, remarks=junction.tally.remarks))
    assert writer_thread.failure is None
    library = Library(home)
    with library.open(library.find("last")) as reader:
        return reader.recording(), junction


def test_model_tokens_by_kind_and_thread_are_in_the_journal(tmp_path: Path) -> None:
    later = [ASK, {"role": "assistant", "content": "I am here."}, {"role": "user", "content": "Why?"}]
    recording, _ = recorded(
        tmp_path,
        (head(), {"model": "claude-x", "messages": [ASK]}, ANSWER),
        (head(), {"model": "claude-x", "messages": [{"role": "user", "content": "Other."}]}, ANSWER),
        (head(), {"model": "claude-x", "messages": later}, ANSWER),
        (head("api.openai.com", "/v1/embeddings"), {"model": "e", "input": "a"}, {"data": []}),
    )
    assert [step.request.thread for step in recording.steps] == [1, 2, 1, None]
    assert [step.request.model for step in recording.steps] == ["claude-x", "claude-x", "claude-x", "e"]
    first = recording.steps[0].response
    assert first is not None
    assert first.reading.usage == Usage(input=12, output=3, cache_read=5)
    assert (first.reading.model, first.reading.text) == ("claude-x-1", "I am here.")


@pytest.mark.parametrize("broken", ["asked", "answered"])
def test_a_codec_that_fails_costs_no_step_and_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_: Any) -> Asked:
        raise ZeroDivisionError("no such thing")

    monkeypatch.setattr(AnthropicReader, broken, fail)
    recording, junction = recorded(tmp_path, (head(), {"model": "c", "messages": [ASK]}, ANSWER))
    (step,) = recording.steps
    assert step.response is not None and step.response.ending is Ending.COMPLETE
    assert step.response.body_size == len(json.dumps(ANSWER))
    (remark,) = junction.tally.remarks
    assert "a step was recorded, but could not be read" in remark
    assert "no such thing" in remark
