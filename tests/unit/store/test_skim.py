"""The journal of a long session is skimmed for a replay: the same steps, read one at a time, or it is read whole."""

import random
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from rewind.errors import DamagedStore
from rewind.model.http import Chunk
from rewind.model.ids import MatchKey
from rewind.model.step import Ending, Step
from rewind.playback.tape import Tape
from rewind.store.journal.lines import seal, unseal
from rewind.store.journal.reader import FolderReader, SkimmedRecording
from rewind.store.journal.skim import skim
from rewind.store.journal.writer import SessionWriter
from unit.store.making import record, request, response, start

EXCHANGES = [(b"asked %d" % index, b"answered %d" % index) for index in range(40)]


@pytest.fixture(autouse=True)
def every_journal_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewind.store.journal.reader._SHORT_JOURNAL", 0)


def folder_of(home: Path) -> Path:
    (folder,) = (home / "sessions").iterdir()
    return folder


def written(home: Path) -> Path:
    record(home, EXCHANGES)
    return folder_of(home)


def steps_of(skimmed: SkimmedRecording) -> tuple[Step, ...]:
    return tuple(skimmed.step(entry.step) for entry in skimmed.entries)


def test_a_skimmed_journal_has_the_steps_that_it_has_when_read_whole(tmp_path: Path) -> None:
    with FolderReader(written(tmp_path)) as reader:
        skimmed, whole = reader.skimmed(skim), reader.recording()
        assert skimmed is not None
        assert steps_of(skimmed) == whole.steps
        assert replace(skimmed.recording, steps=whole.steps) == whole
        assert [entry.key for entry in skimmed.entries] == [step.request.match_key for step in whole.steps]


def test_answers_in_any_order_and_of_many_chunks_are_found(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path, start())
    chunks = tuple(Chunk(n * 10, 1) for n in range(2000))
    for index in (1, 2, 3):
        writer.request(request(index), b"asked %d" % index)
    writer.response(3, response(), b"third")
    writer.response(1, response(chunks=chunks), b"x" * 2000)
    writer.request(request(4), b"never answered")
    writer.response(2, response(ending=Ending.UPSTREAM_CUT, reason="reset"), b"second")
    writer.end(ended=1.8e9, exit_code=0, redactions=0, remarks=())
    with FolderReader(folder_of(tmp_path)) as reader:
        skimmed = reader.skimmed(skim)
        assert skimmed is not None
        assert steps_of(skimmed) == tuple(step for step in reader.recording().steps if step.response is not None)


def test_a_tape_of_a_skimmed_journal_plays_what_that_of_a_read_one_plays(tmp_path: Path) -> None:
    with FolderReader(written(tmp_path)) as reader:
        skimmed, whole = reader.skimmed(skim), reader.recording()
        assert skimmed is not None
        read: list[int] = []

        def step(index: int) -> Step:
            read.append(index)
            return skimmed.step(index)

        long, short = Tape.of_entries(skimmed.entries, step), Tape(whole.steps)
        assert (len(long), long.indexes()) == (len(short), short.indexes())
        for wanted in (whole.steps[7], whole.steps[7], whole.steps[0]):
            head, body = wanted.request.head, wanted.request.body
            assert long.take_same_bytes(head, body) == short.take_same_bytes(head, body)
        assert read == [8, 1], "no more than what was played"
        for wanted in whole.steps:
            key, body = wanted.request.match_key, wanted.request.body
            assert long.take(key, body) == short.take(key, body)
        assert long.unplayed() == ()


@pytest.mark.parametrize("seed", range(25))
def test_a_damaged_journal_is_read_whole(tmp_path: Path, seed: int) -> None:
    chance, folder = random.Random(seed), written(tmp_path)
    path = folder / "journal.jsonl"
    with FolderReader(folder) as reader:
        whole = reader.recording().steps
    data = bytearray(path.read_bytes())
    at = chance.randrange(len(data))
    match seed % 5:
        case 0:
            data[at] ^= 1 << chance.randrange(8)
        case 1:
            del data[at : at + chance.randint(1, 2000)]
        case 2:
            data[at : at + 100] = bytes(100)
        case 3:
            lines = data.split(b"\n")
            one, other = chance.sample(range(len(lines) - 1), 2)
            lines[one], lines[other] = lines[other], lines[one]
            data = bytearray(b"\n".join(lines))
        case 4:
            lines = data.split(b"\n")
            lines.insert(chance.randrange(len(lines)), chance.choice(lines[:-1]))
            data = bytearray(b"\n".join(lines))
    path.write_bytes(data)
    with FolderReader(folder) as reader:
        skimmed = reader.skimmed(skim)
        assert skimmed is None or steps_of(skimmed) == whole


def test_a_line_that_says_something_else_under_a_right_checksum_is_refused_when_it_is_played(tmp_path: Path) -> None:
    folder = written(tmp_path)
    path = folder / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")
    number = next(n for n, line in enumerate(lines) if line.startswith(b'{"kind":"step"'))
    fields = unseal(lines[number])
    fields.pop("~", None)
    lines[number] = seal({**fields, "ms": "soon"})[:-1]
    path.write_bytes(b"\n".join(lines))
    with FolderReader(folder) as reader:
        skimmed = reader.skimmed(skim)
        assert skimmed is not None
        with pytest.raises(DamagedStore, match="step 1 in the journal cannot be understood"):
            skimmed.step(1)
        assert skimmed.step(2).index == 2


def test_what_is_out_of_the_ordinary_is_read_whole(tmp_path: Path) -> None:
    record(tmp_path / "killed", EXCHANGES, end=False)
    forked = SessionWriter.create(tmp_path / "forked", start())
    forked.request(request(1, asked_key=MatchKey("rw1:asked")), b"asked")
    forked.response(1, response(), b"answered")
    forked.end(ended=1.8e9, exit_code=0, redactions=0, remarks=())
    for name in ("killed", "forked"):
        with FolderReader(folder_of(tmp_path / name)) as reader:
            assert reader.skimmed(skim) is None


def test_a_skimmed_journal_takes_little_memory(tmp_path: Path) -> None:
    record(tmp_path, [(b"asked %d" % index, b"answered") for index in range(3000)])
    with FolderReader(folder_of(tmp_path)) as reader:
        tracemalloc.start()
        try:
            skimmed = reader.skimmed(skim)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert skimmed is not None
    assert held / len(skimmed.entries) < 700
