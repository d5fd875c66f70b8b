"""Small cassettes that look harmless until somebody looks at one step: values, events and messages without end."""

import base64
import gzip
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zstandard

from rewind.errors import EnvironmentProblem
from support.effort import not_in_short, sample
from unit.store.taping import sealed, taped

MB = 1024 * 1024
MOST_RSS = 150 * MB
ABOUT = '{"session": "7f3a2b9c", "name": null, "command": [], "cwd": ""}\n'
URL = "https://api.openai.com/v1/chat/completions"
MESSAGE = {"role": "user", "content": "a"}


class Body(NamedTuple):
    """A body as a cassette shows it, and as it is."""

    shown: str
    raw: bytes
    small: str = ""
    headers: str = "{}"


def as_json(value: Any) -> Body:
    text = json.dumps(value, separators=(",", ":"))
    return Body(f'{{"json": {text}}}', text.encode())


def asking(messages: Any, **more: Any) -> Body:
    return as_json({"model": "m", "messages": messages, **more})


def as_text(raw: bytes) -> Body:
    return Body(json.dumps({"text": [raw.decode()]}), raw)


def as_packed(plain: bytes) -> Body:
    """Compressed bytes, of which the file does not show what they are."""
    raw = gzip.compress(plain, 9, mtime=0)
    small = f', "bytes": ["{base64.b64encode(raw).decode()}"]'
    return Body(f'{{"bytes": {len(raw)}}}', raw, small, '{"content-encoding": "gzip"}')


ANSWER = as_json({"choices": [{"message": {"role": "assistant", "content": "hi"}}]})


def cassette(exchanges: Iterable[tuple[Body, Body | None]]) -> bytes:
    steps, small, total = "", "", 0
    for index, (asked, answered) in enumerate(exchanges, 1):
        steps += f'{{"step": {index}, "kind": "llm_call", "provider": "openai-chat", "request": {{"method": "POST", '
        steps += f'"url": "{URL}", "headers": {asked.headers}, "body": {asked.shown}}}'
        small += f'{{"small_print": {index}, "ts": 1.0, "key": "k", "request": {{{_about(asked)}}}'
        total += len(asked.raw)
        if answered is not None:
            steps += f', "answer": {{"status": 200, "body": {answered.shown}}}'
            small += f', "answer": {{"version": "HTTP/1.1", "reason": "OK", "headers": {answered.headers}, '
            small += f'{_about(answered)}}}, "times": {{"ms": 1.0}}'
            total += len(answered.raw)
        steps, small = steps + "}\n", small + "}\n"
    session = '{"small_print": "session", "started": 1.0, "rewind_version": "1"}\n'
    return sealed(ABOUT + steps + session + small, steps=index, size=total)


def _about(body: Body) -> str:
    if not body.raw:
        return ""
    return f'"size": {len(body.raw)}, "sha256": "{hashlib.sha256(body.raw).hexdigest()}"{body.small}'


def doubling(most: int) -> list[tuple[Body, Body | None]]:
    """Every request has twice the messages of the one before."""
    found: list[tuple[Body, Body | None]] = [(asking([MESSAGE] * 64), ANSWER)]
    count, written = 64, json.dumps(MESSAGE, separators=(",", ":"))
    while count * 2 <= most:
        span = f'{{"@same": "request {len(found)} /messages", "count": {count}}}'
        count *= 2
        raw = f'{{"model":"m","messages":[{",".join([written] * count)}]}}'.encode()
        found.append((Body(f'{{"json": {{"model": "m", "messages": [{span}, {span}]}}}}', raw), ANSWER))
    return found


def many_alike(steps: int) -> list[tuple[Body, Body | None]]:
    """Each refers to the same many messages, and is another body all the same."""
    found = doubling(33_000)
    last, written = len(found), ",".join([json.dumps(MESSAGE, separators=(",", ":"))] * 32_768)
    span = f'{{"@same": "request {last} /messages", "count": 32768}}'
    for number in range(steps):
        raw = f'{{"model":"m{number}","messages":[{written}]}}'.encode()
        found.append((Body(f'{{"json": {{"model": "m{number}", "messages": [{span}]}}}}', raw), None))
    return found


def same_again(steps: int) -> list[tuple[Body, Body | None]]:
    found = doubling(66_000)
    again = Body(f'{{"same_as": "request {len(found)}"}}', b"")
    return [*found, *[(again, None)] * steps]


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3).compress(data)


EVENT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
FILES: dict[str, Callable[[], bytes]] = {
    "messages.rw.zst": lambda: zst(cassette([(asking([MESSAGE] * 400_000), ANSWER)])),
    "numbers.rw.zst": lambda: zst(cassette([(asking([1] * 4_000_000), ANSWER)])),
    "parts.rw.zst": lambda: zst(cassette([(asking([{**MESSAGE, "content": [{"text": ""}] * 500_000}]), ANSWER)])),
    "chains.rw.zst": lambda: zst(cassette([(asking([json.loads("[" * 80 + "]" * 80)] * 60_000), ANSWER)])),
    "events.rw.zst": lambda: zst(cassette([(asking([MESSAGE]), as_text(EVENT * 300_000))])),
    "empty events.rw.zst": lambda: zst(cassette([(asking([MESSAGE]), as_text(b"data: 1\n\n" * 2_000_000))])),
    "packed.rw": lambda: cassette([(as_packed(b"[" + b"1," * 30_000_000 + b"1]"), ANSWER)]),
    "packed answer.rw": lambda: cassette([(asking([MESSAGE]), as_packed(b'{"a":[' + b"{}," * 20_000_000 + b"1]}"))]),
    "doubling.rw": lambda: cassette(doubling(1_000_000)),
    "many alike.rw": lambda: cassette(many_alike(1000)),
    "few alike.rw": lambda: cassette(many_alike(30)),
    "same again.rw": lambda: cassette(same_again(2000)),
}
LOOK = """
import json, os, sys, time
from pathlib import Path
from rewind.cli.main import run

def highest():
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))

shown, sys.stdout = sys.stdout, open(os.devnull, "w")
for path in sys.argv[1:]:
    codes = [run([command, path + step]) for command, step in (("inspect", ":1"), ("inspect", ""), ("verify", ""))]
    print(json.dumps([Path(path).name, codes, highest()]), file=shown, flush=True)
"""


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_looking_at_a_step_takes_little_memory_whatever_the_file_unfolds_to(tmp_path: Path) -> None:
    names = sample(list(FILES), 3)
    for name in names:
        (tmp_path / name).write_bytes(FILES[name]())
    child = subprocess.run(
        [sys.executable, "-c", LOOK, *(str(tmp_path / name) for name in names)],
        capture_output=True,
        timeout=120,
        check=True,
        env={"REWIND_HOME": str(tmp_path / "store"), "PATH": ""},
    )
    found = [json.loads(line) for line in child.stdout.splitlines()]
    assert [name for name, _, _ in found] == names
    assert {name: codes for name, codes, _ in found if set(codes) not in ({6}, {0})} == {}
    assert "Traceback" not in child.stderr.decode()
    assert {name: most // MB for name, _, most in found if most > MOST_RSS} == {}


def test_an_export_names_the_step_whose_body_no_reader_would_take() -> None:
    dense = b"[" + b"1," * 2_000_000 + b"1]"
    with pytest.raises(EnvironmentProblem, match="answer 2 holds more values than a cassette takes"):
        taped([(b'{"q":1}', b'{"a":1}'), (b'{"q":2}', dense)]).cassette()


@not_in_short
def test_an_export_whose_bodies_are_too_much_together_is_refused() -> None:
    halves = [(b'{"q":%d}' % number, b"[%d" % number + b",1" * 900_000 + b"]") for number in range(6)]
    with pytest.raises(EnvironmentProblem, match="in all"):
        taped(halves).cassette()


def test_texts_full_of_commas_are_no_values() -> None:
    text = json.dumps({"csv": "1,2,{3,[4\\n" * 200_000}).encode()
    assert taped([(text, text)]).cassette()
