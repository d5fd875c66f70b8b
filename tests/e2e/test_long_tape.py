"""The replay of a session whose journal is long: it is skimmed, and each step is read when it is played."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from rewind.match.call import understand
from rewind.model.http import Chunk, HttpRequest, RequestHead, ResponseHead
from rewind.model.ids import SessionId
from rewind.model.session import SessionStart
from rewind.model.step import Ending, Reading, StepRequest, StepResponse
from rewind.model.usage import Usage
from rewind.store.journal.reader import FolderReader
from rewind.store.journal.skim import skim
from rewind.store.journal.writer import SessionWriter
from support.cli import KEYS, run_rewind

pytestmark = pytest.mark.e2e

STEPS = 40
LONG = ("X-Filler", "f" * 120_000)
"""In the head of each recorded request: so is a short session long."""
ASKS = """
import json, sys, urllib.error, urllib.request
for text in sys.argv[1:]:
    request = urllib.request.Request(
        "https://api.openai.com/v1/chat/completions", text.encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            print(json.load(answer)["choices"][0]["message"]["content"], flush=True)
    except urllib.error.HTTPError as error:
        print(error.code, json.load(error)["error"]["message"][:60], flush=True)
"""
"""Sends each of its arguments, and prints what comes."""


def asked(number: int, *, indent: int | None = None) -> str:
    messages = [{"role": "user", "content": f"question {number}"}]
    return json.dumps({"model": "gpt-4o-mini", "messages": messages}, indent=indent)


def write(home: Path) -> Path:
    writer = SessionWriter.create(
        home,
        SessionStart(
            id=SessionId("7a9e0000"), name="long", command=("agent",), cwd="/", started=1.7e9, rewind_version="0"
        ),
    )
    place = {"host": "api.openai.com", "target": "/v1/chat/completions"}
    head = RequestHead(method="POST", scheme="https", port=443, headers=(LONG,), **place)
    for index in range(1, STEPS + 1):
        body = asked(index).encode()
        call = understand(HttpRequest(head=head, body=body), index=index)
        writer.request(
            StepRequest(index=index, ts=1.7e9, kind=call.provider.kind, provider="x", match_key=call.key, head=head),
            body,
        )
        answer = json.dumps({"choices": [{"message": {"role": "assistant", "content": f"answer {index}"}}]}).encode()
        headers = (("Content-Type", "application/json"), ("Content-Length", str(len(answer))))
        response = StepResponse(
            ending=Ending.COMPLETE,
            head=ResponseHead(status=200, reason="OK", headers=headers),
            chunks=(Chunk(1000, len(answer)),),
            ms=1.0,
            reading=Reading(model="gpt-4o-mini", usage=Usage(input=1000, output=100)),
        )
        writer.response(index, response, answer)
    writer.end(ended=1.7e9, exit_code=0, redactions=0, remarks=())
    return writer.folder


def test_a_long_session_replays_step_by_step(tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = write(home)
    with FolderReader(folder) as reader:
        assert reader.skimmed(skim) is not None

    def replayed(*texts: str) -> tuple[list[str], str, int]:
        command = ["replay", "long", "--", sys.executable, "-c", ASKS, *texts]
        done = run_rewind(command, home, KEYS)
        return done.stdout.decode().splitlines()[: len(texts)], done.stderr.decode(), done.code

    # To the byte, out of order; in other bytes that mean the same; and every step in one run.
    said, told, _ = replayed(asked(STEPS), asked(3), asked(7, indent=2))
    assert said == [f"answer {STEPS}", "answer 3", "answer 7"]
    assert f"3/{STEPS} steps replayed" in told and "saved $" in told
    said, told, _ = replayed(*(asked(number) for number in range(1, STEPS + 1)))
    assert said == [f"answer {number}" for number in range(1, STEPS + 1)]
    # Asked once more than it was recorded, and never recorded: refused, and the nearest is named.
    said, told, code = replayed(asked(5), asked(5), asked(99))
    assert said[0] == "answer 5" and not said[1].startswith("answer") and not said[2].startswith("answer")
    assert code == 4
    # Damage is told, and the other steps are played.
    path = folder / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")
    number = next(n for n, line in enumerate(lines) if line.startswith(b'{"kind":"step"') and b'"step":2,' in line)
    lines[number] = lines[number].replace(b"OK", b"KO")
    path.write_bytes(b"\n".join(lines))
    said, told, _ = replayed(asked(1), asked(2))
    assert said[0] == "answer 1" and not said[1].startswith("answer")
    assert "the recording is damaged" in told
    shutil.rmtree(home)
