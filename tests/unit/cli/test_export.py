"""``rewind export``: what is written, what is taken out, and what is said about secrets."""

import hashlib
import json
import shlex
from pathlib import Path

import pytest

from rewind.reading.export import ExportOptions, export_session
from unit.cli.shelf import Rewind, Shelf
from unit.cli.talks import begin, refund, use

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def a_run(shelf: Shelf, session: str = "9b2c0d1e", name: str | None = "refund") -> None:
    refund(begin(shelf, session, name=name)).end()


def a_leak(shelf: Shelf, session: str = "9b2c0d1e") -> None:
    """A tool gives back a key that nobody knew."""
    talk = begin(shelf, session, name="leak").says("Look it up.")
    talk.hears("I will.", use("lookup", order="8821")).brings(f"token={KEY}").hears("Found it.")
    talk.end()


def test_a_session_becomes_a_cassette_named_after_it(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    a_run(shelf)
    ran = rewind("export", "refund")
    assert ran.code == 0
    assert ran.data == b""
    assert "Exported 9b2c0d1e to refund.rw  (3 steps" in ran.talk
    assert "nothing else looks like a secret" in ran.talk
    assert "→ rewind replay refund.rw -- COMMAND · rewind import refund.rw" in ran.talk
    assert rewind("inspect", "refund.rw", "--json").json()["session"]["id"] == "9b2c0d1e"


def test_a_name_is_never_a_path(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    a_run(shelf, name="../../etc/pass wd\n")
    assert rewind("export", "9b2c0d1e").code == 0
    assert [path.name for path in tmp_path.glob("*.rw")] == ["etc-pass-wd.rw"]
    a_run(shelf, "aaaa0001", name="..")
    assert rewind("export", "aaaa0001").code == 0
    assert (tmp_path / "aaaa0001.rw").is_file()


def test_a_file_that_holds_something_else_is_left_alone(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    a_run(shelf)
    file = tmp_path / "refund.rw"
    file.write_text("my own notes")
    ran = rewind("export", "refund")
    assert (ran.code, file.read_text()) == (2, "my own notes")
    assert "--force" in ran.talk
    assert rewind("export", "refund", "--force").code == 0
    written = file.read_bytes()
    assert rewind("export", "refund").code == 0, "the same again is no other file"
    assert file.read_bytes() == written
    for _ in range(2):
        assert rewind("export", "refund", "-o", "x.rw.zst").code == 0
    (tmp_path / "x.rw.zst").write_text("my own notes")
    assert rewind("export", "refund", "-o", "x.rw.zst").code == 2


def test_the_form_follows_the_ending_and_dash_is_stdout(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    a_run(shelf)
    assert json.loads(rewind("export", "refund", "-o", "-", "--har").data)["log"]["entries"]
    pieces: list[bytes] = []
    exported = export_session(shelf.home, "refund", ExportOptions(output="-"), put=pieces.append)
    assert rewind("export", "refund", "-o", "-").data == b"".join(pieces)
    assert exported.written is not None
    assert exported.written.sha256 == hashlib.sha256(b"".join(pieces)).hexdigest()
    assert rewind("export", "refund", "-o", "-", "--markdown").text.startswith("# Session 9b2c0d1e · `refund`\n")
    for name, begins in (
        ("a.har", b"{"),
        ("a.md", b"# Session"),
        ("a.rw", b'{"rewind'),
        ("a.rw.zst", b"\x28\xb5\x2f\xfd"),
    ):
        assert rewind("export", "refund", "-o", name).code == 0
        assert (tmp_path / name).read_bytes().startswith(begins)
    assert rewind("inspect", "a.rw.zst:2").code == 0
    (tmp_path / "incidents").mkdir()
    assert rewind("export", "refund", "-o", "incidents").code == 0
    assert (tmp_path / "incidents" / "refund.rw").is_file()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-o", "x.txt"), "does not end in .rw"),
        (("--har", "--markdown"), "one of them"),
        (("-o", "-", "--json"), "one of them"),
        (("--steps", "b..c"), "not a valid range of steps"),
        (("--steps", "5..3"), "ends before it begins"),
        (("--steps", ".."), "not a valid range of steps"),
        (("--redact", "("), "not a valid regular expression"),
    ],
)
def test_what_makes_no_sense_is_said_and_nothing_is_written(
    rewind: Rewind, shelf: Shelf, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    a_run(shelf)
    ran = rewind("export", "refund", *arguments)
    assert (ran.code, told in ran.talk) == (2, True), ran.talk
    assert not list(tmp_path.glob("*.rw"))


def test_an_unknown_session_a_step_and_a_missing_file_are_named(rewind: Rewind, shelf: Shelf) -> None:
    a_run(shelf)
    assert rewind("export", "nope").code == 3
    ran = rewind("export", "refund:2")
    assert (ran.code, "rewind export refund --steps 2" in ran.talk) == (2, True)
    ran = rewind("inspect", "gone.rw")
    assert (ran.code, "There is no file 'gone.rw'" in ran.talk) == (3, True)
    ran = rewind("export", "refund", "--steps", "7..9")
    assert (ran.code, "no step from 7 to 9; it has 3, from 1 to 3" in ran.talk) == (3, True)
    assert "no step from 9 on; it has 3" in rewind("export", "refund", "--steps", "9..").talk
    assert "no step 9; it has 3" in rewind("export", "refund", "--steps", "9").talk


def test_a_range_of_steps_keeps_their_numbers_and_has_an_id_of_its_own(rewind: Rewind, shelf: Shelf) -> None:
    a_run(shelf)
    told = rewind("export", "refund", "--steps", "2..", "-o", "part.rw", "--json").json()
    assert (told["schema"], told["steps"], told["left_out"]) == ("rewind/export@1", 2, 1)
    assert told["source"] == "9b2c0d1e" != told["id"]
    shown = rewind("inspect", "part.rw", "--json").json()
    assert [step["index"] for step in shown["steps"]] == [2, 3]
    again = rewind("export", "refund", "--steps", "2..3", "-o", "same.rw", "--json").json()
    assert (again["id"], again["sha256"]) == (told["id"], told["sha256"])
    whole = rewind("export", "refund", "--steps", "1..", "-o", "all.rw", "--json").json()
    assert whole["id"] == "9b2c0d1e"


def test_json_tells_what_the_file_holds(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    a_run(shelf)
    told = rewind("export", "refund", "--json").json()
    data = (tmp_path / "refund.rw").read_bytes()
    assert (told["file"], told["bytes"]) == ("refund.rw", len(data))
    assert told["sha256"] == hashlib.sha256(data).hexdigest()
    assert told["findings"] == []


def test_an_unknown_secret_is_told_by_its_place_and_never_shown(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    a_leak(shelf)
    ran = rewind("export", "leak", "--json")
    assert ran.code == 0
    [finding] = ran.json()["findings"]
    assert finding == {
        "step": 2,
        "where": "request body",
        "path": "messages[2].content[0].content",
        "kind": "GitHub token",
        "excerpt": "ghp_… (40 characters)",
        "places": 1,
    }
    assert KEY not in ran.text + ran.talk
    assert KEY[8:] not in ran.text + ran.talk
    assert "--redact 'gh[pousr]_[A-Za-z0-9]{30,}'" in ran.talk
    assert KEY.encode() in (tmp_path / "leak.rw").read_bytes(), "findings are told, never rewritten"


def test_strict_secrets_write_nothing(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    a_leak(shelf)
    ran = rewind("export", "leak", "--strict-secrets")
    assert (ran.code, "Nothing was written" in ran.talk) == (1, True)
    told = rewind("export", "leak", "--strict-secrets", "--json")
    assert (told.code, told.json()["file"], len(told.json()["findings"])) == (1, None, 1)
    assert not list(tmp_path.glob("*.rw"))
    hinted = ran.talk.split("to remove them: rewind ")[1].splitlines()[0]
    assert hinted == "export leak --strict-secrets --redact 'gh[pousr]_[A-Za-z0-9]{30,}'"
    assert rewind("export", "leak", "--strict-secrets", "--redact", "gh[pousr]_[A-Za-z0-9]{30,}").code == 0
    assert KEY.encode() not in (tmp_path / "leak.rw").read_bytes()


def test_what_is_redacted_is_in_no_form_of_the_export(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    a_leak(shelf)
    for form in ("x.rw", "x.har", "x.md"):
        assert rewind("export", "leak", "--redact", KEY, "-o", form).code == 0
        assert KEY.encode() not in (tmp_path / form).read_bytes()
        assert b"REDACTEDxxx" in (tmp_path / form).read_bytes()


def test_a_redacted_session_has_keys_that_fit_what_is_left(rewind: Rewind, shelf: Shelf) -> None:
    a_leak(shelf)
    ran = rewind("export", "leak", "--redact", KEY, "-o", "x.rw", "--json")
    told = ran.json()["redactions"]
    assert told == {
        "while_recording": 0,
        "removed": 1,
        "by_step": [{"step": 2, "count": 1}],
        "elsewhere": 0,
        "will_miss": [2],
        "answers_changed": [],
        "unread": [],
        "unmatched": [],
    }
    assert "step 2 will miss in a replay: the agent itself sends what was removed" in ran.talk
    before = rewind("inspect", "leak", "--json").json()["steps"]
    after = rewind("inspect", "x.rw", "--json").json()["steps"]
    assert before[0]["match_key"] == after[0]["match_key"]
    assert before[1]["match_key"] != after[1]["match_key"]
    recomputed = rewind("diff", "leak:2", "x.rw:2", "--json")
    assert recomputed.code == 1


def test_what_the_model_said_first_may_be_redacted_without_a_miss(rewind: Rewind, shelf: Shelf) -> None:
    talk = begin(shelf, "9b2c0d1e").says("Who am I?")
    talk.hears("You are ACME-778-2210.").says("Thanks.").hears("Goodbye.").end()
    told = rewind("export", "9b2c", "--redact", "ACME-[0-9-]+", "-o", "x.rw", "--json").json()
    assert told["redactions"]["removed"] == 2
    assert told["redactions"]["will_miss"] == []


def test_a_pattern_that_finds_nothing_changes_nothing(rewind: Rewind, shelf: Shelf) -> None:
    a_run(shelf)
    plain = rewind("export", "refund", "-o", "-").data
    assert rewind("export", "refund", "--redact", "no-such-thing", "-o", "-").data == plain


def test_a_cassette_is_exported_like_any_session(rewind: Rewind, shelf: Shelf, tmp_path: Path) -> None:
    a_run(shelf)
    rewind("export", "refund")
    ran = rewind("export", "refund.rw", "-o", "-")
    assert ran.data == (tmp_path / "refund.rw").read_bytes()


def test_hints_name_the_file_where_the_store_does_not_know_the_session(
    rewind: Rewind, shelf: Shelf, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refund(begin(shelf, "aaaa0001", name="good")).end()
    refund(begin(shelf, "bbbb0002", name="bad"), agrees=False).end()
    for name in ("good", "bad"):
        rewind("export", name, "-o", f"my {name}.rw")
    monkeypatch.setenv("REWIND_HOME", str(home.parent / "empty"))
    ran = rewind("bisect", "my good.rw", "my bad.rw")
    assert ran.code == 1
    assert "rewind diff 'my good.rw' 'my bad.rw'" in ran.talk
    assert "rewind fork 'my bad.rw':2" in ran.talk
    assert " -- COMMAND" in ran.talk
    ran = rewind("inspect", "my bad.rw:9")
    assert (ran.code, "rewind inspect 'my bad.rw':2" in ran.talk) == (3, True)


def test_a_pattern_that_takes_for_ever_is_given_up(
    rewind: Rewind, shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(shelf, "9b2c0d1e").says("a" * 64 + "!").hears("No.").end()
    monkeypatch.setattr("rewind.reading.export.PATIENCE_SECONDS", 0.3)
    ran = rewind("export", "9b2c", "--redact", "(a+)+$")
    assert (ran.code, "for one step. Nothing was written." in ran.talk) == (2, True)
    assert not list(tmp_path.glob("*.rw"))


@pytest.mark.parametrize("output", ["missing/run.rw", "missing/", "a/b c/run.har"])
def test_a_folder_that_is_not_there_is_not_made_up(rewind: Rewind, shelf: Shelf, tmp_path: Path, output: str) -> None:
    refund(begin(shelf, "aaaa0001")).end()
    ran = rewind("export", "aaaa0001", "-o", output)
    folder = output.rpartition("/")[0]
    assert (ran.code, f"There is no folder {folder!r}." in ran.talk) == (2, True)
    command = shlex.split(ran.talk.partition("try: ")[2])
    assert command == ["mkdir", "-p", folder]
    assert not (tmp_path / folder).exists()


@pytest.mark.parametrize("flag", ["--har", "--markdown"])
@pytest.mark.parametrize("name", ["run.har", "run.md", "run.rw", "run.rw.zst", "RUN.HAR"])
def test_a_form_is_not_written_under_the_name_of_another(
    rewind: Rewind, shelf: Shelf, tmp_path: Path, flag: str, name: str
) -> None:
    refund(begin(shelf, "aaaa0001")).end()
    ran = rewind("export", "aaaa0001", flag, "-o", name)
    fits = name.lower().endswith({"--har": ".har", "--markdown": ".md"}[flag])
    assert (ran.code, (tmp_path / name).exists()) == ((0, True) if fits else (2, False))
    if not fits:
        other = shlex.split(ran.talk.partition("try: ")[2].partition(",")[0])
        assert rewind("export", "aaaa0001", flag, *other).code == 0
