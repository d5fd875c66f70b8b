"""Answers that no gateway records, in a journal or in a cassette: a replay refuses them; no client hangs or breaks."""

import hashlib
import json
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewind.model.step import Step
from rewind.store.cassette.write import write_cassette
from rewind.store.journal.lines import seal, unseal
from rewind.store.library import Library
from support.cli import Result, run_rewind
from support.provider import FakeProvider
from support.script import Answer, Request

pytestmark = pytest.mark.e2e

HOST = "api.openai.com"
AGENT = """
import http.client, os, sys
name, _, port = os.environ["HTTP_PROXY"].split("//")[1].rpartition("@")[2].strip("/").rpartition(":")
for number in range(int(sys.argv[1])):
    line = http.client.HTTPConnection(name, int(port), timeout=15)
    try:
        line.request("POST", f"http://api.openai.com/v1/odd/{number}", b"{}")
        answer = line.getresponse()
        print(number, answer.status, answer.read() == b"answer" or answer.getheader("x-rewind-miss"), flush=True)
    except Exception as error:
        print(number, type(error).__name__, flush=True)
"""
STATUSES = (0, 100, 101, 150, 199)
HEADERS: tuple[list[list[str]], ...] = (
    [["A", "b\r\nContent-Length: 0"]],
    [["A", "€"]],
    [["Content-Length", "6"], ["Content-Length", "600"]],
    [["Content-Length", "600"]],
    [["Transfer-Encoding", "notchunked"]],
)
CALLS = len(STATUSES) + len(HEADERS)
REFUSED = range(len(STATUSES) + 2)
"""The others can be played: their bodies end where they end."""


def play(_request: Request) -> Answer:
    return Answer(pieces=(b"answer",))


@pytest.fixture
def session(tmp_path: Path) -> str:
    with FakeProvider(play) as provider:
        to = f"--connect-to={HOST}:80:127.0.0.1:{provider.port}"
        agent = [sys.executable, "-S", "-c", AGENT, str(CALLS)]
        return run_rewind(["record", to, "--", *agent], tmp_path / "store", cwd=tmp_path).ok().session


def odd_line(number: int, fields: dict[str, Any]) -> dict[str, Any]:
    if number < len(STATUSES):
        return fields | {"status": STATUSES[number]}
    return fields | {"head": fields["head"] | {"headers": HEADERS[number - len(STATUSES)]}}


def check(done: Result) -> None:
    assert done.code == 4, done.talk
    for line in done.text.splitlines():
        number, status, said = line.split(" ", 2)
        if int(number) in REFUSED:
            assert status == "424", line
            assert "cannot be" in said, line
        else:
            assert (status, said) == ("200", "True"), line
    assert len(done.text.splitlines()) == CALLS


def test_odd_answers_in_a_journal_are_refused(session: str, tmp_path: Path) -> None:
    (journal,) = (tmp_path / "store").glob("sessions/*/journal.jsonl")
    lines = [unseal(line) for line in journal.read_bytes().splitlines()]
    odd = [odd_line(line["step"] - 1, line) if line["kind"] == "step" else line for line in lines]
    journal.write_bytes(b"".join(map(seal, odd)))
    check(run_rewind(["replay", session], tmp_path / "store", cwd=tmp_path, timeout=60))
    for words in (
        ["inspect", session],
        ["export", session, "--har", "-o", "-"],
        ["export", session, "--markdown", "-o", "-"],
    ):
        assert run_rewind(words, tmp_path / "store", cwd=tmp_path).code == 0, words


def odd_step(step: Step) -> Step:
    number = step.index - 1
    assert step.response is not None
    assert step.response.head is not None
    head = step.response.head
    if number < len(STATUSES):
        head = replace(head, status=STATUSES[number])
    elif number not in REFUSED:
        head = replace(head, headers=tuple((name, value) for name, value in HEADERS[number - len(STATUSES)]))
    return replace(step, response=replace(step.response, head=head))


def test_odd_answers_in_a_cassette_are_refused(session: str, tmp_path: Path) -> None:
    library = Library(tmp_path / "store")
    with library.open(library.find(session)) as reader:
        recording = reader.recording()
        odd = replace(recording, steps=tuple(map(odd_step, recording.steps)))
        (tmp_path / "odd.rw").write_bytes(write_cassette(odd, reader.blob))
    command = [sys.executable, "-S", "-c", AGENT, str(CALLS)]
    done = run_rewind(["replay", "odd.rw", "--json", "--", *command], tmp_path / "store", cwd=tmp_path, timeout=60)
    assert done.code == 4, done.talk
    assert json.loads(done.stdout)["played"] == CALLS - len(STATUSES)


LONG = b"".join(random.Random(number).randbytes(1 << 20) for number in range(10))
READER = """
import hashlib, http.client, os
name, _, port = os.environ["HTTP_PROXY"].split("//")[1].rpartition("@")[2].strip("/").rpartition(":")
line = http.client.HTTPConnection(name, int(port), timeout=15)
line.request("POST", "http://api.openai.com/v1/long", b"{}")
try:
    answer = line.getresponse()
    print(answer.status, hashlib.sha256(answer.read()).hexdigest())
except (http.client.HTTPException, OSError) as error:
    print("broken off")
"""


def test_a_long_answer_breaks_off_where_it_is_damaged_and_is_refused_where_a_part_is_gone(tmp_path: Path) -> None:
    with FakeProvider(lambda _request: Answer(pieces=(LONG,))) as provider:
        to = f"--connect-to={HOST}:80:127.0.0.1:{provider.port}"
        agent = [sys.executable, "-S", "-c", READER]
        recorded = run_rewind(["record", to, "--", *agent], tmp_path / "store", cwd=tmp_path).ok()
    assert hashlib.sha256(LONG).hexdigest() in recorded.text
    (pack,) = (tmp_path / "store").glob("sessions/*/pack")
    whole = pack.read_bytes()
    middle = len(whole) // 2
    for hurt, said in (
        (whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :], "broken off\n"),
        (whole[:middle] + whole[middle:].replace(b"RWP1", b"RWP2"), "424 "),
    ):
        pack.write_bytes(hurt)
        done = run_rewind(["replay", recorded.session], tmp_path / "store", cwd=tmp_path, timeout=60)
        assert done.text.startswith(said), done.text
        assert done.code == 4, done.talk
        assert "damaged" in done.talk
