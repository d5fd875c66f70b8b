"""One step of a long session: what is read for it, and that it is what reading everything would tell."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from rewind.model.ids import BlobId
from rewind.model.session import SessionStart
from rewind.reading.inspect import inspect_context, inspect_session, inspect_step
from rewind.reading.messages import conversation
from rewind.reading.prices import load_prices
from rewind.reading.thread_outline import outline_around
from rewind.store.journal.reader import FolderReader
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library
from unit.compare.chats import Chat, Tape, sketched

PRICES = load_prices({"small-model": {"input": 10, "output": 100}})
TASK = "Find every invoice of the customer that is older than a year, and say what each is about."


def recorded(home: Path, tape: Tape) -> str:
    """The run, in a store, as a recording writes it."""
    run = sketched(tape.run())
    start = SessionStart(
        id=run.recording.session.id, name=None, command=("agent",), cwd="/", started=1000.0, rewind_version="test"
    )
    writer = SessionWriter.create(home, start)
    for step in run.recording.steps:
        asked, answered = run.bodies(step)
        assert step.response is not None
        writer.request(step.request, asked)
        writer.response(step.index, step.response, answered)
    writer.end(ended=2000.0, exit_code=0, redactions=0, remarks=())
    return str(start.id)


def talks(kind: str, turns: int = 12) -> Tape:
    """Conversations side by side, of which each is told apart in another way."""
    source, tape = random.Random(kind), Tape()
    words = [f"{source.getrandbits(60):x}" for _ in range(400)]

    def some() -> str:
        return " ".join(source.choices(words, k=12))

    chats = [Chat(tape, prefix=f"toolu_{n}", system=f"Agent {n % 2}.").user(some()) for n in range(3)]
    for turn in range(turns):
        for chat in chats:
            if kind == "failures" and source.random() < 0.3:
                chat.fails()
            chat.says(some(), [("look", {"for": some()})])
            if kind == "edited":
                said, use = chat.messages[-1]["content"]
                chat.messages[-1] = {"role": "assistant", "content": [{**said, "text": said["text"] + "!"}, use]}
            if kind == "sub-agents" and turn % 4 == 1:
                helper = Chat(tape, prefix=f"toolu_{turn}{chat.prefix}", system="You help.").user(TASK + some())
                chat.messages[-1]["content"][1]["input"] = {"task": helper.messages[0]["content"]}
                helper.says(some(), [("read", {"page": turn})]).results(some()).says(some())
            chat.results(some())
            if kind == "window":
                chat.messages = chat.messages[-5:]
            if kind == "asked twice" and turn == 5:
                chat.says(some(), [("look", {"for": some()})])
                chat.messages.pop()
    return tape


@pytest.mark.parametrize("kind", ["plain", "failures", "edited", "sub-agents", "window", "asked twice"])
def test_a_step_stands_where_reading_everything_puts_it(kind: str, tmp_path: Path) -> None:
    session = recorded(tmp_path, talks(kind))
    whole = inspect_session(tmp_path, session, PRICES).outline
    library = Library(tmp_path)
    with library.open(library.find(session)) as reader:
        recording = reader.recording()
        for step in recording.steps:
            upto = replace(recording, steps=tuple(one for one in recording.steps if one.index <= step.index))
            assert outline_around(reader, upto, step.index).step(step.index) == whole.step(step.index), step.index


def test_a_step_of_a_long_session_is_read_without_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = recorded(tmp_path, talks("plain", turns=40))
    read: list[BlobId] = []
    real = FolderReader.blob

    def counted(self: FolderReader, blob: BlobId) -> bytes:
        read.append(blob)
        return real(self, blob)

    monkeypatch.setattr(FolderReader, "blob", counted)
    detail = inspect_step(tmp_path, session, 119, PRICES)
    assert detail.step.place is not None and detail.step.place.parent == 116
    assert len(read) <= 8, "of 240 bodies"
    read.clear()
    assert inspect_context(tmp_path, session, 119).since == 116
    assert len(read) <= 8
    read.clear()
    assert conversation(tmp_path, session, thread=2).step == 119
    assert len(read) <= 8
