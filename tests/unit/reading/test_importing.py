"""One door for every file: what comes in, what is there already, and what is refused without a trace."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from rewind.errors import BadCassette
from rewind.formats.har import har_pieces
from rewind.reading import import_ as importing
from rewind.reading.import_ import import_file
from rewind.store.cassette.read import read_cassette
from rewind.store.cassette.write import write_cassette
from rewind.store.journal.reader import SessionReader
from rewind.store.library import Library

KEY = "sk-proj-Zx81kQm20Lw7Tr5YbNc4"


def cassette(*questions: str, host: str = "api.openai.com") -> bytes:
    rows: list[dict[str, Any]] = [
        {
            "request": {
                "method": "POST",
                "uri": f"https://{host}/v1/chat/completions",
                "headers": {"authorization": [f"Bearer {KEY}"], "content-type": ["application/json"]},
                "body": json.dumps({"model": "m", "messages": [{"role": "user", "content": question}]}),
            },
            "response": {
                "status": {"code": 200, "message": "OK"},
                "headers": {"Date": ["Sun, 05 May 2024 10:00:00 GMT"], "content-type": ["application/json"]},
                "body": {"string": json.dumps({"echo": f"{question} {KEY}"})},
            },
        }
        for question in questions
    ]
    return json.dumps({"version": 1, "interactions": rows}).encode()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "store"


def written(folder: Path, data: bytes, name: str = "test_refund.yaml") -> Path:
    file = folder / name
    file.write_bytes(data)
    return file


def opened(home: Path, ref: str) -> SessionReader:
    library = Library(home)
    return library.open(library.find(ref))


def test_a_cassette_of_another_tool_becomes_a_session_named_after_its_file(home: Path, tmp_path: Path) -> None:
    imported = import_file(home, written(tmp_path, cassette("one", "two", host="intern.example")))
    assert (imported.steps, imported.tool, imported.new) == (2, "vcrpy", True)
    with opened(home, "test_refund") as reader:
        recording = reader.recording()
        assert recording.damage == ()
        start = recording.session.start
        assert (start.id, start.imported, start.command) == (imported.session_id, True, ())
        assert start.hosts == ("intern.example",)
        assert (start.started, start.tags["source"]) == (1714903200.0, "vcrpy")
        assert b"two" in reader.blob(recording.steps[1].request.body)
        assert recording.session.end is not None and recording.session.end.remarks == imported.remarks


def test_nothing_secret_reaches_the_disk(home: Path, tmp_path: Path) -> None:
    import_file(home, written(tmp_path, cassette("one"), f"{KEY}.json"))
    for path in home.rglob("*"):
        assert KEY not in path.name
        assert path.is_dir() or KEY.encode() not in path.read_bytes()
    with opened(home, "last") as reader:
        step = reader.recording().steps[0]
        assert step.response is not None
        assert KEY.encode() not in reader.blob(step.response.body), "what is packed holds none either"


def test_the_same_file_again_is_there_already_whatever_it_is_called(home: Path, tmp_path: Path) -> None:
    first = import_file(home, written(tmp_path, cassette("one")))
    before = sorted(path.stat().st_mtime_ns for path in home.rglob("*"))
    second = import_file(home, written(tmp_path, cassette("one"), "other.yaml"), name="a name")
    assert (second.session_id, second.new, second.steps) == (first.session_id, False, 1)
    assert second.remarks == first.remarks
    assert sorted(path.stat().st_mtime_ns for path in home.rglob("*")) == before
    assert len(Library(home).ids()) == 1


def test_a_file_is_the_same_session_in_every_store(tmp_path: Path) -> None:
    file = written(tmp_path, cassette("one", "two"))
    texts = []
    for name in ("a", "b"):
        imported = import_file(tmp_path / name, file)
        with opened(tmp_path / name, imported.session_id) as reader:
            texts.append(write_cassette(reader.recording(), reader.blob))
    assert texts[0] == texts[1]


def test_another_session_that_has_the_id_by_chance_is_left_alone(home: Path, tmp_path: Path) -> None:
    data = cassette("one")
    wanted = hashlib.sha256(f"{hashlib.sha256(data).hexdigest()}/0".encode()).hexdigest()[:8]
    other = import_file(home, written(tmp_path, cassette("other")))
    (folder,) = (home / "sessions").iterdir()
    journal = folder / "journal.jsonl"
    taken = folder.with_name(folder.name.replace(other.session_id, wanted))
    folder.rename(taken)
    before = (taken / journal.name).read_bytes()
    imported = import_file(home, written(tmp_path, data))
    assert imported.new and imported.session_id != wanted
    assert (taken / journal.name).read_bytes() == before


def test_a_har_is_imported_and_what_we_write_of_it_is_imported_again(home: Path, tmp_path: Path) -> None:
    import_file(home, written(tmp_path, cassette("one", "two")))
    with opened(home, "last") as reader:
        har = b"".join(har_pieces(reader.recording(), reader.blob))
        bodies = [reader.blob(step.request.body) for step in reader.recording().steps]
    imported = import_file(home, written(tmp_path, har, "again.har"), name="again")
    assert (imported.tool, imported.steps) == ("HAR (rewind)", 2)
    with opened(home, "again") as reader:
        assert [reader.blob(step.request.body) for step in reader.recording().steps] == bodies


def test_our_own_cassette_comes_in_whatever_its_ending_and_its_name_can_be_changed(home: Path, tmp_path: Path) -> None:
    import_file(tmp_path / "origin", written(tmp_path, cassette("one")))
    with opened(tmp_path / "origin", "last") as reader:
        data = write_cassette(reader.recording(), reader.blob)
    file = written(tmp_path, data, "incident.txt")
    imported = import_file(home, file, name="incident")
    assert (imported.tool, imported.steps, imported.new) == ("rewind", 1, True)
    assert Library(home).find("incident").id == imported.session_id
    for name in (None, "another"):
        again = import_file(home, file, name=name)
        assert (again.session_id, again.new) == (imported.session_id, False)


def test_a_trace_comes_in_as_well(home: Path, tmp_path: Path) -> None:
    line = json.dumps({"kind": "tool_call", "ts": 1714903200.5, "run": "r1", "name": "lookup", "arguments": {"a": 1}})
    imported = import_file(home, written(tmp_path, line.encode() + b"\n", "run.jsonl"))
    assert (imported.tool, imported.new) == ("rewind trace", True)
    assert Library(home).find(imported.session_id).start.imported


def trace_of(*steps: tuple[str, dict[str, Any]]) -> bytes:
    lines = (
        {"kind": kind, "ts": 1714903200.0 + n, "run": "0a1b2c3d", **fields} for n, (kind, fields) in enumerate(steps)
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_a_trace_that_grew_since_its_import_is_another_session(home: Path, tmp_path: Path) -> None:
    began = trace_of(("llm_call", {"content": "one"}))
    first = import_file(home, written(tmp_path, began, "run.jsonl"))
    grown = trace_of(("llm_call", {"content": "one"}), ("final", {"text": "two"}))
    second = import_file(home, written(tmp_path, grown, "run.jsonl"), name="whole")
    assert (first.steps, second.steps, second.new) == (1, 2, True)
    assert {first.session_id, second.session_id} == set(Library(home).ids())
    for imported in (first, second):
        assert Library(home).find(imported.session_id).start.tags["run"] == "0a1b2c3d"
    assert Library(home).find("whole").id == second.session_id
    again = import_file(home, written(tmp_path, began, "copy.jsonl"))
    assert (again.session_id, again.new) == (first.session_id, False)


def test_what_a_trace_lacks_is_told_and_stays_with_the_session(home: Path, tmp_path: Path) -> None:
    cut = {"id": "a", "output": "the beg", "cut": {"output": "sha256:" + 64 * "0"}}
    data = b'{"kind":"note","ts":1,"run":"other"}\nbroken\n' + trace_of(
        ("tool_result", cut), ("final", {"text": "two"})
    )
    file = written(tmp_path, data, "run.jsonl")
    imported = import_file(home, file)
    others, broken, missing = imported.remarks
    assert others == "the file has 1 other run(s), not shown: other"
    assert broken.startswith("line 2: not JSON") and "the whole of 'output' is not there" in missing
    assert import_file(home, file).remarks == imported.remarks
    with opened(home, imported.session_id) as reader:
        recording = reader.recording()
        assert recording.session.end is not None and recording.session.end.remarks == imported.remarks
        copy = read_cassette(write_cassette(recording, reader.blob), file="copy.rw").session
    assert copy.end is not None and copy.end.remarks == imported.remarks


def test_what_a_trace_without_an_end_lacks_stays_with_the_session_too(home: Path, tmp_path: Path) -> None:
    file = written(tmp_path, trace_of(("llm_call", {"content": "one"})) + b"broken\n", "run.jsonl")
    imported = import_file(home, file)
    assert len(imported.remarks) == 1 and imported.remarks[0].startswith("line 2: not JSON")
    session = Library(home).find(imported.session_id)
    assert session.end is None and session.start.tags["damage"] == imported.remarks[0]
    assert import_file(home, file).remarks == imported.remarks


@pytest.mark.parametrize(
    ("data", "name", "says"),
    [
        (b"hello", "notes.txt", "is not a file that Rewind can import"),
        (b"", "empty.json", "is not a file that Rewind can import"),
        (b"{", "broken.har", "broken.har cannot be used. It is not a HAR file: it cannot be read as JSON."),
        (b"interactions: []", "empty.yaml", "holds no exchanges, so there is nothing to import"),
        (b"interactions: [{", "cut.yaml", "cannot be read as YAML"),
        (b"interactions: !!python/object/apply:os.system [true]", "evil.yaml", "asks for a Python object"),
        (b"x", "x.rw", ""),
    ],
)
def test_a_file_that_cannot_be_read_leaves_no_trace(
    home: Path, tmp_path: Path, data: bytes, name: str, says: str
) -> None:
    with pytest.raises(BadCassette) as problem:
        import_file(home, written(tmp_path, data, name))
    assert says in problem.value.message
    assert not home.exists()


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("test_refund.test_late.yaml", "test_refund.test_late"),
        ("TestCase.test_x[gpt-4.1-mini].yaml", "TestCase.test_x[gpt-4.1-mini]"),
        ("v1.2.json", "v1.2"),
        ("shop.example.HAR", "shop.example"),
        ("test_a.test_b", "test_a.test_b"),
        (".yaml", ".yaml"),
    ],
)
def test_a_name_with_dots_is_kept_whole(home: Path, tmp_path: Path, file: str, name: str) -> None:
    assert import_file(home, written(tmp_path, cassette("one"), file)).name == name


def test_a_file_whose_addresses_cannot_be_used_says_so(home: Path, tmp_path: Path) -> None:
    data = cassette("one", host="ok.example").replace(b"https://ok.example", b"ftp://ok.example")
    with pytest.raises(BadCassette, match="An interaction was left out: ftp is not HTTP"):
        import_file(home, written(tmp_path, data))


def test_what_is_accepted_is_named(home: Path, tmp_path: Path) -> None:
    with pytest.raises(BadCassette) as problem:
        import_file(home, written(tmp_path, b"hello", "notes.txt"))
    assert problem.value.hint is not None
    for ending in (".rw", ".jsonl", ".yaml", ".har", "mitmproxy"):
        assert ending in problem.value.hint


def test_a_folder_a_pipe_and_what_is_not_there_are_refused_without_waiting(home: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.har")
    for path in (tmp_path, tmp_path / "pipe.har", tmp_path / "nothing.har"):
        with pytest.raises(BadCassette):
            import_file(home, path)


def test_a_file_that_is_too_large_is_refused(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "FILE_LIMIT", 1024)
    with pytest.raises(BadCassette, match="is larger than"):
        import_file(home, written(tmp_path, cassette("x" * 2000)))
    assert not home.exists()


def test_a_file_with_too_many_exchanges_is_refused(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "MOST_EXCHANGES", 1)
    with pytest.raises(BadCassette, match="more than 1 exchanges"):
        import_file(home, written(tmp_path, cassette("one", "two")))
    assert not home.exists()
