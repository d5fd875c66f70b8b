"""Small files that stand for very much: refused in words, before the memory is spent. And large honest ones, read."""

import base64
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from rewind.errors import BadCassette, EnvironmentProblem
from rewind.formats.har import read_har
from rewind.formats.mitmproxy_flows import check_flows
from rewind.store.cassette import seal as cassette_seal
from rewind.store.cassette.read import read_cassette
from rewind.store.cassette.seal import is_light, packed
from rewind.store.cassette.write import write_cassette_file
from rewind.wire.json_weight import json_weight
from unit.store.making import GrowingAgent, words
from unit.store.taping import Taped, assert_comes_back, resealed, sealed, taped

MB = 1024 * 1024
MOST_RSS = 400 * MB
ABOUT = b'{"session": "7f3a2b9c", "name": null, "command": [], "cwd": ""}\n'
HAR = b'{"log": {"entries": [%b]}}'
VCR = b'{"interactions": [%b]}'
ENTRY = (
    b'{"request": {"method": "POST", "url": "https://a.example/", "postData": {"encoding": "base64", '
    b'"text": "%b"}}, "response": {"status": 200}}'
)
INTERACTION = b'{request: {method: GET, uri: "http://a.example/", body: "%b"}, response: {status_code: 200, body: a}}'


def zst(data: bytes) -> bytes:
    """As somebody without our limits would pack it."""
    return zstandard.ZstdCompressor(level=1).compress(data)


def with_body(inner: bytes) -> bytes:
    """One step whose request would be that value."""
    step = b'{"step": 1, "kind": "llm_call", "request": {"method": "GET", "body": {"json": %b}}}\n' % inner
    small = b'{"small_print": 1, "ts": 1, "key": "k", "request": {"size": 9, "sha256": ""}}\n'
    return sealed(ABOUT + step + small, steps=1, size=9)


def doubling(first: str, last: dict[str, Any]) -> bytes:
    """Every request is twice the one before, up to some 30 MB; many more are the last but for a number."""
    steps: list[Any] = []
    small: list[Any] = []
    total = 0

    def step(lines: list[Any], text: str) -> None:
        nonlocal total
        index, raw = len(steps) + 1, text.encode()
        body = {"text": [{"@lines": lines}] if steps else lines}
        asked = {"method": "POST", "url": "https://a.example/", "body": body}
        steps.append({"step": index, "kind": "llm_call", "provider": "x", "request": asked})
        told = {"size": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
        small.append({"small_print": index, "ts": 1.0, "key": "k", "request": told})
        total += len(raw)

    text = first
    step([text], text)
    while len(text) * 2 < 30 * MB:
        whole = {"@same": f"request {len(steps)} /0", "characters": [0, len(text)]}
        step([whole, whole], text := text + text)
    size = 15 * MB
    for number in range(24):
        span = {"@same": f"request {len(steps) - number} /0", **last}
        step([span, str(number)], f"{text[:size]}{number}")
    about = {"small_print": "session", "started": 1.0, "rewind_version": "1"}
    records = "".join(json.dumps(record) + "\n" for record in (*steps, about, *small))
    return sealed(ABOUT + records.encode(), steps=len(steps), size=total)


def deep(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


BOMBS: dict[str, Callable[[], bytes]] = {
    "millions of records.rw.zst": lambda: zst(sealed(b'{"a":1}\n' * 5_000_000, steps=0, size=0)),
    "records for no step.rw.zst": lambda: zst(sealed(b'{"a":1}\n' * 3_000_000, steps=0, size=0)),
    "records for many steps.rw.zst": lambda: zst(sealed(b'{"a":1}\n' * 58_000, steps=20_000, size=0)),
    "objects.rw.zst": lambda: zst(with_body(b"[" + b"{}," * (7 * MB) + b"1]")),
    "lists.rw.zst": lambda: zst(with_body(b"[" + b"[]," * (7 * MB) + b"1]")),
    "numbers.rw.zst": lambda: zst(with_body(b"[" + b"1," * (11 * MB) + b"1]")),
    "names.rw.zst": lambda: zst(with_body(b"{" + b"".join(b'"%x":1,' % n for n in range(2_500_000)) + b'"":1}')),
    "objects of a kind that nobody knows.rw": lambda: sealed(
        ABOUT + b'{"x": [' + b"{}," * (10 * MB) + b"1]}\n", steps=0, size=0
    ),
    "one wide text.rw.zst": lambda: zst(
        sealed(b'{"session": "' + b"a" * (23 * MB) + '😀"}\n'.encode(), steps=0, size=0)
    ),
    "a small file of long texts.rw": lambda: doubling("ab\n" * 350, {"characters": [0, 15 * MB]}),
    "a small file of many lines.rw": lambda: doubling("\n" * 1000, {"count": 15 * MB}),
    "claims 10 GB.rw": lambda: sealed(ABOUT, steps=0, size=10_000_000_000),
    "claims 10 GB.rw.zst": lambda: b"\x28\xb5\x2f\xfd\xe0" + (10_000_000_000).to_bytes(8, "little") + b"\1\0\0",
    "a body claims 10 GB.rw": lambda: resealed(with_body(b"1").replace(b'"size": 9,', b'"size": 10000000000,')),
    "deep.rw": lambda: with_body(deep(1_000)),
    "deep.rw.zst": lambda: zst(with_body(deep(1_000))),
    "deeper.rw": lambda: with_body(deep(1_000_000)),
    "objects.har": lambda: HAR % (b"{}," * (7 * MB) + b"1"),
    "lists in a text.har": lambda: HAR % (ENTRY % (b"[" + b"[]," * (7 * MB) + b"1]")),
    "deep.har": lambda: HAR % deep(1_000),
    "deeper.har": lambda: HAR % deep(1_000_000),
    "claims 10 GB.har": lambda: HAR % (ENTRY % b"").replace(b"200", b"10000000000"),
    "objects.json": lambda: VCR % (b"{}," * (7 * MB) + b"1"),
    "deep.json": lambda: VCR % deep(1_000),
    "claims 10 GB.json": lambda: (
        VCR % b'{"request": {"uri": "https://a.example/"}, "response": {"status": 10000000000}}'
    ),
    "lines.yaml": lambda: b"interactions:\n" + b"- a\n" * 1_500_000,
    "deep.yaml": lambda: b"interactions: " + deep(1_000),
    "deep by lines.yaml": lambda: b"interactions:\n" + b"- " * 1_000 + b"a",
    "one text many times.yaml": lambda: b"interactions:\n- &a " + INTERACTION % (b"x" * MB) + b"\n- *a" * 10_000,
}

READ_ALL = """
import json, resource, sys
from pathlib import Path
from rewind.errors import BadCassette
from rewind.formats.har import read_har
from rewind.formats.vcr import read_vcr
from rewind.store.cassette.read import read_cassette_file

def highest():
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))

for path in map(Path, sys.argv[1:]):
    try:
        if ".rw" in path.name:
            read_cassette_file(path)
        else:
            (read_har if path.suffix == ".har" else read_vcr)(path.read_bytes())
        words = "read"
    except BadCassette as problem:
        words = problem.message
    print(json.dumps([path.name, words, highest()]), flush=True)
"""


def outcomes(paths: list[Path]) -> Iterator[tuple[str, str, int]]:
    """Of each file: what became of it, and the most memory that the process had had by then."""
    child = subprocess.run(
        [sys.executable, "-c", READ_ALL, *map(str, paths)], stdout=subprocess.PIPE, timeout=120, check=True
    )
    for line in child.stdout.splitlines():
        name, said, most = json.loads(line)
        yield name, said, most


@pytest.mark.process
def test_no_small_file_takes_much_memory_before_it_is_refused(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in BOMBS]
    for path, make in zip(paths, BOMBS.values(), strict=True):
        path.write_bytes(make())
    found = list(outcomes(paths))
    assert [name for name, _, _ in found] == list(BOMBS)
    assert [name for name, said, _ in found if said == "read" or len(said) > 400] == []
    assert {name: most // MB for name, _, most in found if most > MOST_RSS} == {}


# What is honest, and large.


def streamed(steps: int, events: int) -> Taped:
    source = random.Random(3)
    pairs: list[tuple[bytes, bytes]] = []
    for number in range(steps):
        chunk = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "model": "gpt-4o"}
        texts = [words(source, 5) for _ in range(events)]
        choices = [[{"index": 0, "delta": {"content": text}, "finish_reason": None}] for text in texts]
        blocks = (f"data: {json.dumps({**chunk, 'choices': one})}\n\n" for one in choices)
        asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": words(source, 300)}]}
        pairs.append((json.dumps(asked).encode(), "".join(blocks).encode()))
    return taped(pairs)


@pytest.mark.torture
def test_a_long_session_with_large_bodies_is_read() -> None:
    agent = GrowingAgent(said=800_000, answered=400_000)
    tape = taped(agent.turn() for _ in range(4))
    data = tape.cassette()
    assert not is_light(data)
    portable = read_cassette(data, file="x.rw")
    assert portable.recording.steps == tape.recording.steps
    assert dict(portable.blobs) == tape.blobs


@pytest.mark.torture
def test_a_session_of_long_streams_is_read() -> None:
    tape = streamed(steps=20, events=1000)
    data = tape.cassette()
    assert not is_light(data)
    portable = read_cassette(data, file="x.rw")
    assert portable.recording.steps == tape.recording.steps
    assert dict(portable.blobs) == tape.blobs


@pytest.mark.torture
def test_an_archive_with_a_few_large_bodies_is_read() -> None:
    bodies = [random.Random(n).randbytes(7 * MB) for n in range(5)]
    entries = b", ".join(ENTRY % base64.b64encode(body) for body in bodies)
    assert len(entries) > 45 * MB
    assert [one.request.body for one in read_har(HAR % entries).exchanges] == bodies


def test_brackets_within_texts_weigh_nothing() -> None:
    text = json.dumps(["{[," * 400_000, '\\"' * 300_000, "\\" * 300_001])
    assert json_weight(text, 10_000) == json_weight('["","",""]', 0)
    assert json_weight(text, 10**9) > 10**8


def test_values_weigh_more_than_they_take() -> None:
    for one in ("{}", "[]", '{"a":1}', '[""]', "1", '"a"', "[1.5,2]"):
        text = "[" + ",".join([one] * 10_000) + "]"
        assert json_weight(text, 0) >= size_of(json.loads(text))


def size_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sys.getsizeof(value) + sum(map(size_of, inner))


# The writer knows what a reader refuses.


def test_what_would_not_be_read_is_not_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tape = streamed(steps=2, events=50)
    with monkeypatch.context() as less:
        less.setattr(cassette_seal, "MOST_MEMORY", 50_000)
        with pytest.raises(EnvironmentProblem, match="too large for a cassette"):
            tape.cassette()
    data = tape.cassette()
    with monkeypatch.context() as less:
        less.setattr(cassette_seal, "MOST_UNPACKED", 1000)
        less.setattr(cassette_seal, "MOST_TIMES", 2)
        with pytest.raises(EnvironmentProblem, match="shrink"):
            write_cassette_file(tmp_path / "x.rw.zst", data)
    assert os.listdir(tmp_path) == []
    assert read_cassette(packed(data), file="x").recording.steps == tape.recording.steps


def test_texts_made_of_references_are_bounded_for_reader_and_writer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source, said, pairs = random.Random(4), "", []
    for _ in range(9):
        said += "".join(words(source, 90) + "\n" for _ in range(40))
        pairs.append((json.dumps({"prompt": said}).encode(), b"{}"))
    tape = taped(pairs)
    data = tape.cassette()
    assert_comes_back(tape)
    monkeypatch.setattr(cassette_seal, "_JOINED_ANYWAY", 1000)
    assert_comes_back(tape)  # so much for each byte of a file is enough
    monkeypatch.setattr(cassette_seal, "_JOINED_A_BYTE", 6)
    write_cassette_file(tmp_path / "x.rw", tape.cassette())
    with pytest.raises(EnvironmentProblem, match="too large for a cassette"):
        write_cassette_file(tmp_path / "x.rw.zst", data)
    monkeypatch.setattr(cassette_seal, "_JOINED_A_BYTE", 1)
    with pytest.raises(BadCassette, match="references make up"):
        read_cassette(data, file="x")
    with pytest.raises(EnvironmentProblem, match="too large for a cassette"):
        tape.cassette()


# mitmproxy's form: a length, a colon, so many bytes, and the kind.


def netstring(value: Any) -> bytes:
    if isinstance(value, bytes):
        return b"%d:%b," % (len(value), value)
    inner = value if isinstance(value, list) else [one for pair in value.items() for one in pair]
    body = b"".join(map(netstring, inner))
    return b"%d:%b%b" % (len(body), body, b"]" if isinstance(value, list) else b"}")


def test_a_flow_of_too_many_values_is_refused_before_mitmproxy_reads_it() -> None:
    one = netstring({b"headers": [[b"a", b"b"]] * 10, b"none": [], b"content": b"1:]0:}" * 1000})
    check_flows(one * 300, 5000)
    check_flows(netstring({b"content": b'{"a":1}' * 5001, b"none": []}), 5000)
    many: list[Any]
    for many in ([b""] * 5000, [[]] * 5000, [{b"a": [b"b"]}] * 1250):
        with pytest.raises(BadCassette, match="more than 5,000 values"):
            check_flows(one + netstring({b"x": many}), 5000)
