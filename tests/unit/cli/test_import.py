"""``rewind import``: files become sessions, each for itself."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from unit.cli.shelf import Rewind, Shelf
from unit.cli.talks import begin, refund


def two_cassettes(rewind: Rewind, shelf: Shelf) -> list[str]:
    for session, name in (("aaaa0001", "one"), ("bbbb0002", "two")):
        refund(begin(shelf, session, name=name)).end()
        assert rewind("export", name).code == 0
    return ["one.rw", "two.rw"]


def test_a_cassette_is_taken_in_and_taking_it_in_again_changes_nothing(rewind: Rewind, shelf: Shelf) -> None:
    two_cassettes(rewind, shelf)
    ran = rewind("import", "one.rw", "--home", "elsewhere")
    assert ran.code == 0
    assert "✓ imported aaaa0001  3 steps" in ran.text
    assert "→ rewind --home elsewhere inspect aaaa0001 · rewind --home elsewhere replay aaaa0001 -- COMMAND" in ran.talk
    again = rewind("import", "one.rw", "--home", "elsewhere")
    assert (again.code, "= already there aaaa0001" in again.text) == (0, True)
    shown = rewind("list", "--json", "--home", "elsewhere").json()["sessions"]
    assert [(one["id"], one["name"], one["imported"]) for one in shown] == [("aaaa0001", "one", True)]


def test_export_of_an_import_is_the_very_same_file(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    two_cassettes(rewind, shelf)
    rewind("import", "one.rw", "--home", "elsewhere")
    again = rewind("export", "one", "-o", "-", "--home", "elsewhere")
    assert again.data == (tmp_path / "one.rw").read_bytes()


def test_one_bad_file_does_not_stop_the_others(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    two_cassettes(rewind, shelf)
    bad = tmp_path / "bad.rw"
    bad.write_bytes((tmp_path / "one.rw").read_bytes().replace(b"8821", b"8822", 1))
    ran = rewind("import", "one.rw", "bad.rw", "two.rw", "--home", "elsewhere")
    assert ran.code == 6
    assert ran.text.count("✓ imported") == 2
    assert "bad.rw" in ran.talk
    told = rewind("import", "two.rw", "gone.rw", "--json", "--home", "elsewhere")
    assert told.code == 3
    rows = told.json()["files"]
    assert told.json()["schema"] == "rewind/import@1"
    assert [(row["id"], row["error"] is None) for row in rows] == [("bbbb0002", True), (None, False)]
    assert rows[0]["new"] is False
    assert len(rewind("list", "--json", "--home", "elsewhere").json()["sessions"]) == 2


def test_one_file_that_cannot_be_read_is_an_error_and_leaves_no_store(rewind: Rewind, tmp_path: Path) -> None:
    (tmp_path / "x.rw").write_text("no cassette\n")
    ran = rewind("import", "x.rw", "--home", "elsewhere")
    assert (ran.code, ran.text) == (6, "")
    assert ran.talk.startswith("rewind: ")
    assert rewind("import", "gone.rw").code == 3
    (tmp_path / "empty").mkdir()
    assert rewind("import", "empty").code == 3
    assert rewind("list", "--json", "--home", "elsewhere").json()["sessions"] == []


def test_a_name_may_be_given_to_one_file(rewind: Rewind, shelf: Shelf) -> None:
    files = two_cassettes(rewind, shelf)
    assert rewind("import", *files, "--name", "x").code == 2
    assert rewind("import", "one.rw", "--name", "the incident", "--home", "elsewhere").code == 0
    assert rewind("inspect", "the incident", "--home", "elsewhere").code == 0
    again = rewind("import", "one.rw", "--name", "new name", "--home", "elsewhere")
    assert again.code == 0
    assert "it already exists under the name 'the incident', so --name 'new name' was not used" in again.talk
    assert "not used" not in rewind("import", "one.rw", "--name", "the incident", "--home", "elsewhere").talk


def test_a_pipe_is_read_to_its_end(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    two_cassettes(rewind, shelf)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for data, code, told in (
        ((tmp_path / "one.rw").read_bytes(), 0, "✓ imported aaaa0001  3 steps"),
        (b"no cassette\n", 6, f"{pipe} cannot be used. It is not a file that Rewind can import."),
    ):
        writer = threading.Thread(target=pipe.write_bytes, args=(data,))
        writer.start()
        ran = rewind("import", str(pipe), "--home", "elsewhere")
        writer.join()
        assert (ran.code, told in ran.text + ran.talk) == (code, True), ran.talk
        assert "rewind-import-" not in ran.text + ran.talk


def test_a_folder_is_taken_in_whole_and_what_fails_is_named(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    two_cassettes(rewind, shelf)
    folder = tmp_path / "cassettes"
    (folder / "deeper" / ".hidden").mkdir(parents=True)
    (tmp_path / "one.rw").rename(folder / "one.rw")
    (tmp_path / "two.rw").rename(folder / "deeper" / "two.rw")
    (folder / "deeper" / ".hidden" / "three.har").write_text("{")
    (folder / "compose.yaml").write_text("services: {}\n")
    (folder / "rows.jsonl").write_text('{"a": 1}\n')
    (folder / "loop").symlink_to(folder)
    ran = rewind("import", "cassettes", "--home", "elsewhere")
    assert (ran.code, ran.text.count("✓ imported")) == (0, 2), ran.talk
    assert ran.talk.endswith(
        "2 recordings: 2 imported, 0 already there, 0 could not be read, 2 other files passed over\n"
    )
    (folder / "bad.rw").write_text("no cassette\n")
    again = rewind("import", "cassettes", "--home", "elsewhere")
    assert again.code == 6
    assert "cassettes/bad.rw cannot be used." in again.talk
    assert "3 recordings: 0 imported, 2 already there, 1 could not be read" in again.talk
    told = rewind("import", "cassettes", "--json", "--home", "elsewhere").json()
    assert [(row["file"], row["error"] is None) for row in told["files"]] == [
        ("cassettes/bad.rw", False),
        ("cassettes/one.rw", True),
        ("cassettes/deeper/two.rw", True),
    ]
    assert told["others"] == 2
    named = rewind("import", "cassettes", "--name", "x", "--home", "elsewhere")
    assert (named.code, "--name takes one file" in named.talk) == (2, True)


def test_the_store_itself_is_not_imported(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    two_cassettes(rewind, shelf)
    ran = rewind("import", ".", "--home", "elsewhere")
    again = rewind("import", ".", "--home", "elsewhere")
    assert (ran.code, again.code) == (0, 0)
    assert "2 recordings: 0 imported, 2 already there" in again.talk


def test_a_folder_without_recordings_is_said_to_be_one(rewind: Rewind, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("hello")
    ran = rewind("import", "notes")
    assert (ran.code, "'notes' is a folder that holds no file that can be imported." in ran.talk) == (3, True)


@pytest.mark.process
def test_dash_is_what_is_piped_in(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    two_cassettes(rewind, shelf)
    with (tmp_path / "one.rw").open("rb") as file:
        ran = subprocess.run(
            [sys.executable, "-m", "rewind", "import", "-", "--home", "elsewhere"],
            stdin=file,
            capture_output=True,
            cwd=tmp_path,
            check=False,
        )
    assert (ran.returncode, b"imported aaaa0001  3 steps" in ran.stdout) == (0, True), ran.stderr


def test_a_cassette_of_a_trace_is_not_advised_to_be_replayed(rewind: Rewind, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text(
        '{"ts": 1763197320.0, "run": "aaaa0001", "kind": "llm_call", "messages": [{"role": "user", "content": "Hi"}]}\n'
        '{"ts": 1763197321.0, "run": "aaaa0001", "kind": "final", "text": "Hello"}\n'
    )
    ran = rewind("export", "run.jsonl", "-o", "t.rw", "--redact", "Hello")
    assert (ran.code, "replay" in ran.talk) == (0, False), "nothing of a trace can be replayed"
    ran = rewind("import", "t.rw", "--home", "elsewhere")
    assert "rewind --home elsewhere messages" in ran.talk
    assert "replay" not in ran.talk
