"""A session as a cassette: all of it comes back, and nothing of it is trusted."""

import json
import os
import re
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from rewind.errors import BadCassette, EnvironmentProblem, ExitCode
from rewind.model.http import Chunk, RequestHead, ResponseHead
from rewind.model.ids import MatchKey, SessionId, blob_id
from rewind.model.session import Edited, Lineage, Status, Surroundings
from rewind.model.step import NO_BYTES, Ending, Reading, StepKind
from rewind.model.usage import Usage
from rewind.store.cassette import bodies as cassette_bodies
from rewind.store.cassette import records as cassette_records
from rewind.store.cassette import seal as cassette_seal
from rewind.store.cassette.read import read_cassette, read_cassette_file
from rewind.store.cassette.seal import packed
from rewind.store.cassette.write import write_cassette, write_cassette_file
from rewind.store.library import Library
from support.repository import Repository
from unit.store.making import GrowingAgent, record, start
from unit.store.taping import (
    Taped,
    assert_comes_back,
    ended,
    exchange,
    records_in,
    resealed,
    sealed,
    steps_in,
    taped,
    taped_steps,
)

PAIRS = [(b'{"q":"why?"}', b'{"a":"so"}'), (b'{"q":"and?"}', b'{"a":"then"}')]


def rich() -> Taped:
    """A session that has everything a session can have."""
    origin = Lineage(
        session=SessionId("01234567"),
        step=2,
        key=MatchKey("rw1:aa"),
        edits=("system=Be brief", "@x"),
        by_hand=True,
        earlier=(Edited(key=MatchKey("rw1:bb"), edits=("model=a",)),),
        sample=3,
        probe=True,
    )
    output = b"\x1b[1mDone\x1b[0m\n"
    first, blobs = exchange(1, b'{"q":1}', b'{"a":2}')
    reading = Reading(
        model="m-2",
        text="Two\nlines",
        usage=Usage(input=0, output=7, cache_read=3, cache_write=4, reasoning=5, more={"web_searches": 2}, tier="flex"),
        error="overloaded",
        said="ra1:aa",
        note="half of it",
    )
    asked = replace(
        first.request,
        kind=StepKind.TOOL_CALL,
        thread=2,
        sketch="rs1:a-b",
        asked_key=MatchKey("rw1:cc"),
        note="too large to keep",
        model=None,
        head=RequestHead(
            method="CALL",
            scheme="tool",
            host="",
            port=0,
            target="look up",
            headers=(("A", "@size"), ("a", "x"), ("A", "@@"), ("Content-Length", "7")),
        ),
    )
    assert first.response is not None
    answered = replace(
        first.response,
        ending=Ending.UPSTREAM_CUT,
        reason="it broke off",
        tape=0,
        reading=reading,
        head=ResponseHead(status=503, reason="Ünavailable", headers=(("X", "é"), ("X", "2")), version="1.0"),
        trailers=(("T", "1"),),
        chunks=(Chunk(5, 3), Chunk(5, 0), Chunk(2, 4)),
        ms=12,
        first_ms=None,
    )
    unanswered = replace(first.request, index=7, body=NO_BYTES, body_size=0)
    refused = replace(answered, ending=Ending.NO_ANSWER, head=None, body=NO_BYTES, body_size=0, chunks=())
    steps = (
        replace(first, request=asked, response=answered),
        replace(first, request=replace(asked, index=3), response=refused),
        replace(first, request=unanswered, response=None),
    )
    end = ended(
        exit_code=-9,
        redactions=4,
        remarks=("one", "two\nlines"),
        broken="the disk is full",
        stdin=NO_BYTES,
        stdout=blob_id(output),
    )
    tape = taped_steps(
        [(step, blobs) for step in steps],
        end=end,
        tags={"@case": "7", "b": ""},
        key_variables=("OPENAI_API_KEY",),
        base_urls={"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"},
        hosts=("*.example",),
        all_hosts=True,
        ignore=("metadata.id",),
        stdin_kind="pipe",
        replay_of=SessionId("fedcba98"),
        forked_from=origin,
        command=("python", "agent \udce9.py", "--flag"),
        name="../../etc/passwd",
    )
    around = Surroundings(commit="c" * 40, branch="main", dirty=False, changes="sc1:1", locks={"uv.lock": "ab"})
    return Taped(replace(tape.recording, surroundings=around), {**tape.blobs, blob_id(output): output})


def test_everything_a_session_can_have_comes_back() -> None:
    portable = assert_comes_back(rich())
    assert portable.session.status is Status.BROKEN
    assert portable.session.file == "x.rw"
    assert portable.session.start.imported


@pytest.mark.parametrize(
    ("tape", "status"),
    [
        (taped(PAIRS, end=ended()), Status.ENDED),
        (taped(PAIRS, end=ended(broken="disk full")), Status.BROKEN),
        (taped(PAIRS), Status.INTERRUPTED),
        (taped([], end=ended(exit_code=3)), Status.ENDED),
        (taped([]), Status.INTERRUPTED),
    ],
)
def test_how_a_session_stands_comes_back(tape: Taped, status: Status) -> None:
    assert assert_comes_back(tape).session.status is status


def test_a_running_session_is_written_as_it_stands() -> None:
    tape = taped([*PAIRS, (b'{"q":"still?"}', None)])
    running = replace(tape.recording, session=replace(tape.recording.session, status=Status.RUNNING))
    assert write_cassette(running, tape.blobs.__getitem__) == tape.cassette()


def test_where_it_was_kept_is_no_part_of_it() -> None:
    tape = taped(PAIRS, end=ended())
    session = tape.recording.session
    moved = replace(session, folder="elsewhere", file="y.rw", start=replace(session.start, imported=True))
    assert write_cassette(replace(tape.recording, session=moved), tape.blobs.__getitem__) == tape.cassette()


def test_a_session_of_the_store_comes_out_the_same_each_time(tmp_path: Path) -> None:
    agent = GrowingAgent()
    session = record(tmp_path, [agent.turn() for _ in range(5)])
    texts = set()
    for _ in range(3):
        with Library(tmp_path).open(session) as reader:
            texts.add(write_cassette(reader.recording(), reader.blob))
    (text,) = texts
    portable = read_cassette(text, file="x.rw")
    with Library(tmp_path).open(session) as reader:
        assert portable.recording.steps == reader.recording().steps


def test_the_manifest_says_how_much_follows() -> None:
    data = taped(PAIRS, end=ended()).cassette()
    manifest = json.loads(data.split(b"\n", 1)[0])
    size = sum(len(body) for pair in PAIRS for body in pair)
    assert list(manifest) == ["rewind_cassette", "steps", "size", "sha256"]
    assert (manifest["rewind_cassette"], manifest["steps"], manifest["size"]) == (1, 2, size)


def test_the_small_print_stands_at_the_end_and_holds_what_always_differs() -> None:
    tape = taped(PAIRS, end=ended())
    kinds = [next(iter(record)) for record in records_in(tape.text())]
    assert kinds == ["session", "step", "step", "end", "small_print", "small_print", "small_print"]
    front = json.dumps(steps_in(tape.text()))
    for never in ("1794774179", "812.5", "rw1:", "sha256", "400250"):
        assert never not in front


def test_the_length_of_a_body_is_no_news() -> None:
    headers = (("Content-Length", "12"), ("X", "1"))
    made = [exchange(n, b'{"q":"wh%d?"}' % n, b"{}", asked_headers=headers) for n in (1, 2)]
    other = exchange(3, b'{"q":"longer"}', b"{}", asked_headers=headers)
    tape = taped_steps([*made, other])
    assert_comes_back(tape)
    first, _, third = steps_in(tape.text())
    assert first["request"]["headers"] == {"Content-Length": "@size", "X": "1"}
    assert third["request"]["headers"] == {"Content-Length": "12", "X": "1"}


@pytest.mark.parametrize(
    ("scheme", "host", "port", "target"),
    [
        ("https", "api.openai.com", 443, "/v1/chat?x=1#y"),
        ("http", "127.0.0.1", 8080, "/"),
        ("https", "::1", 8443, "/v1"),
        ("http", "h", 443, "/"),
        ("tool", "", 0, "name"),
        ("https", "a/b", 443, "/"),
        ("https", "h", 443, "*"),
        ("https", "h", 443, ""),
        ("https", "h:1", 443, "/"),
    ],
)
def test_an_address_comes_back(scheme: str, host: str, port: int, target: str) -> None:
    step, blobs = exchange(1, b"{}", b"{}")
    head = replace(step.request.head, scheme=scheme, host=host, port=port, target=target)
    assert_comes_back(taped_steps([(replace(step, request=replace(step.request, head=head)), blobs)]))


def test_what_a_journal_would_cut_is_cut(tmp_path: Path) -> None:
    step, blobs = exchange(1, b"{}", b"{}", reading=Reading(text="t" * 900, error="e" * 3000))
    data = taped_steps([(step, blobs)]).cassette()
    response = read_cassette(data, file="x.rw").recording.steps[0].response
    assert response is not None
    assert (len(response.reading.text), len(response.reading.error or "")) == (500, 2000)


# What is no cassette, or none any more.


def refused(data: bytes) -> BadCassette:
    with pytest.raises(BadCassette) as caught:
        read_cassette(data, file="some.rw")
    assert caught.value.exit_code is ExitCode.ENVIRONMENT
    assert caught.value.message.startswith("some.rw cannot be used. ")
    return caught.value


def test_a_newer_format_is_named_as_such() -> None:
    data = taped(PAIRS).cassette().replace(b'"rewind_cassette": 1', b'"rewind_cassette": 2')
    problem = refused(data)
    assert "newer Rewind" in problem.message
    assert problem.hint == "Upgrade Rewind: pip install --upgrade llm-rewind"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"{}",
        b"{}\n",
        b"hello",
        b"\0" * 100,
        b"version: 1\ninteractions: []\n",
        b'{"log": {"version": "1.2"}}',
        b"\x28\xb5\x2f\xfd",
        b'{"rewind_cassette": 0, "steps": 0, "size": 0, "sha256": "' + b"0" * 64 + b'"}\n',
        b'{"rewind_cassette": ' + b"9" * 5000 + b"}\n",
        b'{"rewind_cassette": 1' + b" " * 5000 + b'}\n{"session": "x"}\n',
    ],
)
def test_other_files_are_refused(data: bytes) -> None:
    refused(data)


def test_a_cut_or_changed_file_says_so_and_knows_what_git_does() -> None:
    data = taped(PAIRS).cassette()
    assert "changed or cut" in refused(data[:-10]).message
    assert "changed or cut" in refused(data + b" ").message
    assert "*.rw -text" in (refused(data.replace(b"\n", b"\r\n")).hint or "")
    conflict = data.replace(b"\n{", b"\n<<<<<<< HEAD\n{", 2)
    assert "merge conflict of git" in refused(conflict).message
    assert "git checkout --ours" in (refused(conflict).hint or "")
    assert "git lfs pull" in (refused(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n").hint or "")


@pytest.mark.process
def test_what_git_makes_of_two_recordings_is_named(tmp_path: Path) -> None:
    repository = Repository.create(tmp_path / "repository")
    repository.commit({"x.rw": taped(PAIRS).text()})
    repository.git("checkout", "--quiet", "-b", "other")
    repository.commit({"x.rw": taped([*PAIRS, (b'{"q":"more?"}', b'{"a":"no"}')]).text()})
    repository.git("checkout", "--quiet", "main")
    repository.commit({"x.rw": taped([(b'{"q":"else?"}', b'{"a":"no"}')]).text()})
    with pytest.raises(subprocess.CalledProcessError):
        repository.git("merge", "other")
    with pytest.raises(BadCassette) as caught:
        read_cassette_file(repository.folder / "x.rw")
    assert "x.rw cannot be used. It holds a merge conflict of git" in caught.value.message
    assert "(line 1)" in caught.value.message


def test_claims_beyond_the_limits_are_refused_at_once() -> None:
    about = '{"session": "7f3a2b9c", "name": null, "command": [], "cwd": ""}\n'
    ten = refused(sealed(about, steps=0, size=10_000_000_000))
    assert "claims to hold 10,000,000,000 bytes" in ten.message
    assert "claims to hold 1,000,000 steps" in refused(sealed(about, steps=1_000_000, size=0)).message
    refused(sealed(about, steps=-1, size=0))
    refused(sealed(about, steps=0, size=-1))
    refused(sealed(about, steps=3, size=0))


def test_a_body_that_claims_too_much_is_refused() -> None:
    data = taped([(b'{"q":1}', b'{"a":1}')]).cassette()
    claim = data.replace(b'"size": 7, "sha256"', b'"size": 9999999999, "sha256"')
    assert "whole number" in refused(resealed(claim)).message
    mb = b"x" * 1024 * 1024
    large = taped([(b'{"q":1}', b'{"a":"' + mb + mb + b'"}')]).cassette()
    assert "larger than it says" in refused(resealed(re.sub(rb'"size": 2\d{6}', b'"size": 9', large))).message


def test_sizes_and_digests_are_made_anew() -> None:
    tape = taped([(b'{"q":1}', b'{"a":1}')])
    data = tape.cassette()
    assert read_cassette(data, file="x.rw").remarks == ()
    for wrong, remark in (
        (data.replace(b'"size": 7, "sha256"', b'"size": 8, "sha256"', 1), "the body of request 1 has 7 bytes, not 8"),
        (data.replace(b'"size": 14', b'"size": 15'), "its bodies are not as large"),
        (data.replace(b'{"a":1}', b'{"a":22}').replace(b'"json": {"a": 1}', b'"json": {"a": 22}'), "answer 1 has 8"),
        (data.replace(b'"json": {"a": 1}', b'"json": {"a": 2}'), "the body of answer 1 does not have the SHA-256"),
    ):
        portable = read_cassette(resealed(wrong), file="x.rw")
        assert remark in " ".join(portable.remarks)
        for step in portable.recording.steps:
            for body in step.bodies(portable.blobs.__getitem__):
                assert blob_id(body) in portable.blobs


@pytest.mark.parametrize("depth", [150, 1_000, 100_000])
@pytest.mark.parametrize("bracket", ["[]", "{}"])
def test_deep_nesting_is_refused(depth: int, bracket: str) -> None:
    inner = "[" * depth + "]" * depth if bracket == "[]" else '{"a":' * depth + "1" + "}" * depth
    hostile = '{"session": "7f3a2b9c", "name": null, "command": [], "cwd": "", "@@x": ' + inner + "}\n"
    refused(sealed(hostile, steps=0, size=0))


@pytest.mark.parametrize(
    "session",
    [
        "../../../../etc",
        "7f3a2b9C",
        "7f3a2b9",
        "7f3a2b9c/",
        "7f3a2b9c\n",
        "..",
        "CON",
        "７f3a2b9c",
        "\0" * 8,
        "a" * 300,
        7,
        None,
    ],
)
def test_no_path_is_taken_from_inside(session: Any) -> None:
    data = taped(PAIRS).cassette()
    hostile = data.replace(b'"session": "7f3a2b9c"', b'"session": ' + json.dumps(session).encode())
    assert "session id" in refused(resealed(hostile)).message


def test_a_session_too_large_for_a_cassette_is_told_when_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = taped([(b'{"q":"why?"}', b'{"a":"%b"}' % (b"x" * 4000))])
    for module, name, most in (
        (cassette_bodies, "MOST_OF_A_BODY", 1000),
        (cassette_bodies, "MOST_OF_BODIES", 1000),
        (cassette_seal, "MOST_TEXT", 5000),
        (cassette_seal, "MOST_VALUES", 5),
    ):
        with monkeypatch.context() as less:
            less.setattr(module, name, most)
            with pytest.raises(EnvironmentProblem, match="cassette"):
                tape.cassette()
    assert cassette_records.MOST_STEPS == 100_000


# Files.


def test_a_file_is_written_whole_for_its_owner_or_as_the_umask_says(tmp_path: Path) -> None:
    data = taped(PAIRS).cassette()
    path = tmp_path / "cassettes" / "x.rw"
    before = os.umask(0o027)
    try:
        write_cassette_file(path, data)
        write_cassette_file(path.with_name("shared.rw"), data, shared=True)
    finally:
        os.umask(before)
    assert path.read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.with_name("shared.rw").stat().st_mode) == 0o640
    assert read_cassette_file(path).session.file == str(path)
    path.chmod(0o664)
    write_cassette_file(path, taped([]).cassette())
    assert stat.S_IMODE(path.stat().st_mode) == 0o664, "who made it readable meant it"
    assert sorted(found.name for found in path.parent.iterdir()) == ["shared.rw", "x.rw"]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken.rw").mkdir()
    (tmp_path / "taken.rw" / "inside").touch()
    with pytest.raises(EnvironmentProblem, match="Cannot write"):
        write_cassette_file(tmp_path / "taken.rw", b"x")
    with pytest.raises(EnvironmentProblem, match="Cannot write"):
        write_cassette_file(tmp_path / "taken.rw" / "inside" / "x.rw", b"x")
    assert [found.name for found in tmp_path.iterdir()] == ["taken.rw"]
    assert [found.name for found in (tmp_path / "taken.rw").iterdir()] == ["inside"]


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadCassette, match="cannot be opened"):
        read_cassette_file(tmp_path / "none.rw")
    with pytest.raises(BadCassette, match="cannot be opened"):
        read_cassette_file(tmp_path)
    path = tmp_path / "large.rw"
    with path.open("wb") as file:
        file.truncate(300 * 1024 * 1024)
    with pytest.raises(BadCassette, match="at most"):
        read_cassette_file(path)


def test_a_packed_cassette_is_the_same_text(tmp_path: Path) -> None:
    data = taped(PAIRS * 20).cassette()
    path = tmp_path / "x.rw.zst"
    write_cassette_file(path, data)
    assert zstandard.get_frame_parameters(path.read_bytes()).content_size == len(data)
    assert path.stat().st_size < len(data) / 3
    portable = read_cassette_file(path)
    assert write_cassette(portable.recording, portable.blobs.__getitem__) == data


def test_packed_cassettes_that_lie_are_refused() -> None:
    data = taped(PAIRS).cassette()
    whole = packed(data)
    for cut in (5, 8, len(whole) // 2, len(whole) - 1):
        refused(whole[:cut])
    refused(whole + whole)
    refused(whole + b"\0")
    unsaid = zstandard.ZstdCompressor(write_content_size=False).compress(data)
    assert "how large" in refused(unsaid).message
    bomb = zstandard.ZstdCompressor(level=1).compress(b"\0" * 300_000_000)
    assert "claims to unpack to 300,000,000" in refused(bomb).message
    # A frame header that claims 2**62 bytes.
    refused(b"\x28\xb5\x2f\xfd" + bytes([0b11100000]) + (2**62).to_bytes(8, "little") + b"\1\0\0")
    wide = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=True)
    stream = zstandard.ZstdCompressor(compression_params=wide).compress(b"\0" * 20_000_000)
    refused(stream)


def test_a_cassette_opens_like_a_session(tmp_path: Path) -> None:
    tape = taped(PAIRS, end=ended(stdout=blob_id(b"out\n")))
    tape = Taped(tape.recording, {**tape.blobs, blob_id(b"out\n"): b"out\n"})
    path = tmp_path / "x.rw"
    write_cassette_file(path, tape.cassette())
    library = Library(tmp_path / "no store")
    session = library.find(str(path))
    assert (session.id, session.start.imported, session.file) == (start().id, True, str(path))
    with library.open(session) as reader:
        assert [step.bodies(reader.blob) for step in reader.recording().steps] == PAIRS
        assert reader.blob(blob_id(b'{"a":"then"}')) == b'{"a":"then"}'
        assert (reader.output("stdout"), reader.output("stdin")) == (b"out\n", None)
        with pytest.raises(BadCassette, match="does not hold"):
            reader.blob(blob_id(b"other"))
    assert library.totals(session).steps == 2
    assert not (tmp_path / "no store").exists()


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    path, library = tmp_path / "x.rw", Library(tmp_path)
    for name in ("one", "two"):
        write_cassette_file(path, taped(PAIRS, name=name).cassette())
        assert library.find(str(path)).start.name == name


def test_many_large_bodies_are_not_all_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cassette_bodies, "_KEPT", 10)
    tape = taped([(b'{"q":"%d %b"}' % (n, b"x" * 500), b'{"a":"%d"}' % n) for n in range(9)])
    assert_comes_back(tape)
