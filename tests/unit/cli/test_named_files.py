"""A file given as SESSION that is none: what it is, and the next command, which works as printed."""

import json
import shlex
from pathlib import Path

import pytest

from rewind.errors import ExitCode
from unit.cli.shelf import Rewind, Shelf
from unit.cli.talks import begin, refund

A = "7f3a2b9c"
HAR = {"log": {"version": "1.2", "creator": {"name": "x", "version": "1"}, "entries": []}}
VCR = "interactions:\n- request:\n    uri: https://api.example/v1\nversion: 1\n"


@pytest.fixture
def cassette(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> bytes:
    refund(begin(shelf, A)).end()
    assert rewind("export", A, "-o", "whole.rw").code == 0
    return (tmp_path / "whole.rw").read_bytes()


@pytest.mark.parametrize("step", ["", ":1"])
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("notes.txt", b"hello\n", "not a cassette, nor anything else to import"),
        ("settings.yaml", b"colour: red\n", "not a cassette, nor anything else to import"),
        ("a b.har", json.dumps(HAR).encode(), "is a HAR file, and can be used once it is imported."),
        ("tape.yaml", VCR.encode(), "is a VCR cassette, and can be used once it is imported."),
        ("trace.log", b'{"kind": "user", "text": "Hi"}\n', "is a trace, and can be used once it is imported, or named"),
    ],
)
def test_a_file_that_is_no_session_is_said_to_be_what_it_is(
    rewind: Rewind, tmp_path: Path, name: str, content: bytes, said: str, step: str
) -> None:
    (tmp_path / name).write_bytes(content)
    ran = rewind("inspect", name + step)
    assert ran.code == ExitCode.NOT_FOUND
    assert said in ran.talk
    assert ("anything else" in said) or f"rewind import {shlex.quote(name)}" in ran.talk


def test_a_cassette_of_another_name_can_be_imported(rewind: Rewind, cassette: bytes, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(cassette)
    ran = rewind("inspect", "run.json")
    assert "a Rewind cassette, and can be used once it is imported, or named *.rw." in ran.talk
    assert rewind(*shlex.split(ran.talk.partition("try: rewind ")[2])).code == 0


def test_a_folder_is_said_to_be_one(rewind: Rewind, tmp_path: Path) -> None:
    (tmp_path / "tapes").mkdir()
    ran = rewind("inspect", "tapes")
    assert (ran.code, "there is a folder of that name" in ran.talk) == (ExitCode.NOT_FOUND, True)


@pytest.mark.parametrize("size", [0, 10, 300])
def test_an_empty_or_cut_cassette_has_a_next_command(
    rewind: Rewind, cassette: bytes, tmp_path: Path, size: int
) -> None:
    (tmp_path / "my run.rw").write_bytes(cassette[:size])
    ran = rewind("inspect", "my run.rw")
    assert ran.code == ExitCode.ENVIRONMENT
    command = "rewind export SESSION -o 'my run.rw' --force"
    assert command in ran.talk
    assert rewind(*shlex.split(command.replace("SESSION", A))[1:]).code == 0
    assert rewind("inspect", "my run.rw").code == 0


def test_another_tools_file_in_the_place_of_a_cassette_is_named(rewind: Rewind, tmp_path: Path) -> None:
    (tmp_path / "x.rw").write_text(json.dumps(HAR))
    ran = rewind("inspect", "x.rw")
    assert "It is a HAR file, not a cassette." in ran.talk
    assert "try: rewind import x.rw" in ran.talk


def test_a_merge_conflict_is_resolved_in_the_file_that_has_it(rewind: Rewind, cassette: bytes, tmp_path: Path) -> None:
    mixed = b"<<<<<<< HEAD\n" + cassette + b"=======\n" + cassette + b">>>>>>> other\n"
    (tmp_path / "my run.rw").write_bytes(mixed)
    assert "git checkout --ours 'my run.rw'" in rewind("inspect", "my run.rw").talk
