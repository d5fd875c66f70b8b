"""``list``, ``inspect``, ``verify`` and ``config`` on stores of every condition."""

import gzip
import json
import re
from pathlib import Path

import pytest

from rewind.errors import ExitCode
from rewind.model.step import Ending, Reading
from unit.cli.shelf import Rewind, Shelf, a_request, an_answer

READERS = [
    ("list", "--json"),
    ("inspect", "7f3a", "--json"),
    ("inspect", "7f3a:1", "--json"),
    ("verify", "--json"),
    ("verify", "7f3a", "--json"),
    ("config", "--json"),
]

HOSTILE = "\x1b]0;owned\x07 \x1b[2J \x9b31m \x90dcs\x9c \r\x08 \u202e right \x7f"


def names_no_control(text: str) -> bool:
    return not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_an_empty_store_is_an_empty_list_and_how_to_begin(rewind: Rewind, home: Path):
    ran = rewind("list")
    assert (ran.code, ran.data) == (0, b"")
    assert "rewind record" in ran.talk
    assert rewind("list", "--json").json() == {"schema": "rewind/sessions@1", "sessions": []}
    assert not home.exists(), "looking must not make a store"


def test_an_empty_store_verifies(rewind: Rewind):
    assert rewind("verify", "--json").json()["sessions"] == 0


@pytest.mark.parametrize("arguments", READERS)
@pytest.mark.parametrize("colour", ["NO_COLOR", "FORCE_COLOR"])
def test_every_reader_gives_json_on_stdout_and_nothing_else(
    rewind: Rewind, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], colour: str
):
    shelf.add("7f3a2b9c", b'{"q": 1}')
    monkeypatch.setenv(colour, "1")
    ran = rewind(*arguments)
    assert ran.code == 0
    assert ran.json()["schema"].startswith("rewind/")
    assert ran.data.isascii()
    assert b"\x1b" not in ran.data


def test_the_list_is_newest_first_with_stable_columns(rewind: Rewind, shelf: Shelf):
    shelf.add("aaaaaaaa", b"{}", name="old", started=1_700_000_000.0)
    shelf.add("bbbbbbbb", b"{}", b"{}", name="new", started=1_700_000_100.0, exit_code=3)
    titles, first, second = rewind("list").text.splitlines()
    assert titles.split() == (
        ["id", "name", "age", "status", "steps", "llm", "threads", "tokens", "cost", "took", "tags", "command"]
    )
    assert first.split()[:2] == ["bbbbbbbb", "new"]
    assert re.search(r"✗ exit 3 +2 +2 +- +2,468 +— +0.0 s +- +python agent.py$", first)
    assert re.search(r"aaaaaaaa +old .* ✓ ok +1 +1 +- +1,234 +— +8.4 s +- +python agent.py$", second)


def test_the_limit_says_when_there_are_more(rewind: Rewind, shelf: Shelf):
    for number in range(3):
        shelf.add(f"{number}aaaaaaa", started=1_700_000_000.0 + number)
    limited = rewind("list", "--limit", "2")
    assert len(limited.text.splitlines()) == 3
    assert "--limit" in limited.talk
    assert len(rewind("list", "--limit", "0").text.splitlines()) == 4
    assert [row["id"][0] for row in rewind("list", "--json", "--limit", "2").json()["sessions"]] == ["2", "1"]


def test_the_unique_part_of_an_id_stands_out_on_a_screen(rewind: Rewind, shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    shelf.add("7f3a2b9c")
    shelf.add("7f000000", started=1_700_000_001.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1m7f3\x1b[0m\x1b[2ma2b9c\x1b[0m" in rewind("list").text


def test_a_session_that_was_never_ended_is_listed_as_interrupted(rewind: Rewind, shelf: Shelf):
    writer = shelf.begin("7f3a2b9c")
    writer.request(a_request(), b'{"q": 1}')
    writer.response(1, an_answer(2), b"{}")
    assert "● running" in rewind("list").text
    writer.close()
    assert "◐ interrupted" in rewind("list").text
    shown = rewind("inspect", "last")
    assert shown.code == 0
    assert "fine, thank you" in shown.text
    assert rewind("verify").code == 0


def test_a_session_head_says_what_ran_and_how_it_went(rewind: Rewind, shelf: Shelf):
    writer = shelf.begin("7f3a2b9c", name="refund", tags={"ticket": "4711"}, command=("python", "my agent.py"))
    writer.end(ended=1_700_000_008.4, exit_code=3, redactions=2, remarks=("one client went around",))
    shown = rewind("inspect", "7f3a").text
    for part in (
        "7f3a2b9c",
        "refund",
        "python 'my agent.py'",
        "/somewhere",
        "2023-11-14T22:13:20.000Z",
        "8.4 s",
        "2 secrets removed",
        "one client went around",
        "ticket=4711",
        "no steps",
    ):
        assert part in shown, part
    assert re.search(r"^exit code +3$", shown, re.MULTILINE)


def test_the_steps_are_a_row_each(rewind: Rewind, shelf: Shelf):
    writer = shelf.begin("7f3a2b9c")
    writer.request(a_request(1), b"{}")
    writer.response(1, an_answer(2), b"{}")
    writer.request(a_request(2), b"{}")
    error = an_answer(2, reading=Reading(error="too many requests"))
    writer.response(2, error, b"{}")
    writer.request(a_request(3), b"{}")
    cut = an_answer(1, ending=Ending.UPSTREAM_CUT, reason="the provider hung up", reading=Reading())
    writer.response(3, cut, b"{")
    writer.end(ended=1_700_000_008.4, exit_code=0, redactions=0, remarks=())
    titles, *rows = rewind("inspect", "last").text.splitlines()[-4:]
    assert titles.split() == ["#", "kind", "model", "in", "out", "cost", "ms", "first", "status", "text"]
    assert re.search(r"^1 +llm +small-model +1,200 +34 +— +12 +3 +200 +fine, thank you$", rows[0])
    assert re.search(r"✗ 200 +too many requests$", rows[1])
    assert re.search(r"200 upstream cut +the provider hung up$", rows[2])


def test_a_step_in_full_shows_both_halves(rewind: Rewind, shelf: Shelf):
    shelf.add("7f3a2b9c", b'{"question":"why?"}')
    shown = rewind("inspect", "last:1").text
    for part in (
        "7f3a2b9c:1",
        "POST https://api.example/v1/chat",
        "x-client: test",
        '  "question": "why?"',
        "HTTP/1.1 200 OK",
        '  "ok": true',
        "12.5 ms in all, first byte 3.0 ms, 12 bytes in 1 piece",
    ):
        assert part in shown, part
    assert "HTTP/1.1" not in rewind("inspect", "last:1", "--request").text
    assert "question" not in rewind("inspect", "last:1", "--response").text


def test_an_event_stream_is_shown_event_by_event(rewind: Rewind, shelf: Shelf):
    stream = b'event: delta\ndata: {"t": "a"}\n\ndata: [DONE]\n\n'
    writer = shelf.begin("7f3a2b9c")
    writer.request(a_request(), b"{}")
    writer.response(1, an_answer(len(stream), content_type="text/event-stream"), stream)
    writer.close()
    lines = rewind("inspect", "last:1", "--response").text.splitlines()
    assert '3.0 ms  delta  {"t": "a"}' in lines
    assert "3.0 ms  message  [DONE]" in lines


def test_raw_gives_the_very_bytes(rewind: Rewind, shelf: Shelf):
    asked, answered = b"\x00\xff\x1b[31m\r\n", gzip.compress(b"{}") + b"\x00tail"
    shelf.add("7f3a2b9c", asked, answer=answered)
    assert rewind("inspect", "last:1", "--raw").data == answered
    assert rewind("inspect", "last:1", "--raw", "--response").data == answered
    assert rewind("inspect", "last:1", "--raw", "--request").data == asked


def test_raw_on_a_screen_is_escaped(rewind: Rewind, shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    shelf.add("7f3a2b9c", b"{}", answer=HOSTILE.encode() + b"\xff")
    monkeypatch.setattr("_pytest.capture.EncodedFile.isatty", lambda self: True, raising=False)
    monkeypatch.setattr("_pytest.capture.CaptureIO.isatty", lambda self: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    shown = rewind("inspect", "last:1", "--raw").text
    assert names_no_control(shown)
    assert "owned" in shown


def test_nothing_that_was_recorded_can_steer_the_terminal(rewind: Rewind, shelf: Shelf):
    """Threat 15: every field of every command."""
    writer = shelf.begin("7f3a2b9c", name=HOSTILE, command=("sh", HOSTILE), cwd=HOSTILE, tags={HOSTILE: HOSTILE})
    head = a_request().head
    hostile_head = type(head)(
        method="POST", scheme="https", host="api.example", port=443, target="/" + HOSTILE, headers=((HOSTILE, HOSTILE),)
    )
    for index, content_type in enumerate(("text/plain", "text/event-stream", "application/json"), 1):
        writer.request(a_request(index, head=hostile_head, model=HOSTILE, note=HOSTILE), HOSTILE.encode())
        body = json.dumps({HOSTILE: HOSTILE}, ensure_ascii=False) if index == 3 else f"data: {HOSTILE}\n\n"
        answer = an_answer(
            len(body),
            content_type=content_type,
            ending=Ending.UPSTREAM_CUT,
            reason=HOSTILE,
            reading=Reading(model=HOSTILE, text=HOSTILE, error=HOSTILE if index == 2 else None, note=HOSTILE),
        )
        writer.response(index, answer, body.encode())
    writer.end(ended=1_700_000_008.4, exit_code=0, redactions=0, remarks=(HOSTILE,))
    for arguments in (
        ("list",),
        ("list", "--json"),
        ("inspect", "7f3a"),
        ("inspect", "7f3a", "--json"),
        *(("inspect", f"7f3a:{index}") for index in (1, 2, 3)),
        *(("inspect", f"7f3a:{index}", "--json") for index in (1, 2, 3)),
        ("verify", "7f3a"),
        ("inspect", HOSTILE + "x"),
        ("inspect", "7f3a:1", HOSTILE),
        (HOSTILE,),
        ("list", "--" + HOSTILE),
    ):
        ran = rewind(*arguments)
        assert names_no_control(ran.text), arguments
        assert names_no_control(ran.talk), arguments
        assert ran.code in (0, 2, 3), (arguments, ran.talk)


@pytest.mark.parametrize("arguments", [("inspect", "{}"), ("inspect", "{}:2"), ("verify", "{}"), ("replay", "{}")])
def test_an_unknown_session_is_an_error_with_the_nearest(rewind: Rewind, shelf: Shelf, arguments: tuple[str, ...]):
    shelf.add("7f3a2b9c", name="refund")
    ran = rewind(*(argument.format("refnd") for argument in arguments))
    assert ran.code == ExitCode.NOT_FOUND
    assert ran.data == b""
    assert "'refnd'" in ran.talk.splitlines()[0]
    assert "7f3a2b9c" in ran.talk
    assert "Traceback" not in ran.talk


def test_an_ambiguous_prefix_lists_the_candidates(rewind: Rewind, shelf: Shelf):
    shelf.add("7f3a2b9c")
    shelf.add("7f3b0000", started=1_700_000_001.0)
    ran = rewind("inspect", "7f3")
    assert ran.code == ExitCode.NOT_FOUND
    assert "7f3a2b9c" in ran.talk
    assert "7f3b0000" in ran.talk


@pytest.mark.parametrize("name", ["nope", "last", "7f3a", "last~3"])
def test_an_unknown_session_in_an_empty_store_is_an_error_too(rewind: Rewind, name: str):
    assert rewind("inspect", name).code == ExitCode.NOT_FOUND


def test_a_step_that_is_not_there_names_the_nearest(rewind: Rewind, shelf: Shelf):
    shelf.add("7f3a2b9c", b"{}", b"{}")
    ran = rewind("inspect", "last:9")
    assert ran.code == ExitCode.NOT_FOUND
    assert ran.talk == (
        "rewind: Session 7f3a2b9c has no step 9; it has 2, from 1 to 2.\n  try: rewind inspect 7f3a2b9c:2\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "last", "--raw"),
        ("inspect", "last:1", "--raw", "--json"),
        ("inspect", "last:1", "--raw", "--request", "--response"),
    ],
)
def test_options_that_contradict_each_other_are_refused(rewind: Rewind, shelf: Shelf, arguments: tuple[str, ...]):
    shelf.add("7f3a2b9c", b"{}")
    assert rewind(*arguments).code == ExitCode.USAGE


def test_a_damaged_journal_line_is_named_and_the_rest_is_shown(rewind: Rewind, shelf: Shelf):
    folder = shelf.add("7f3a2b9c", b'{"q": 1}', b'{"q": 2}')
    journal = folder / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"step", b"stop", 1)
    journal.write_bytes(b"".join(lines))
    before = journal.read_bytes()
    shown = rewind("inspect", "last")
    assert shown.code == 0
    assert re.search(r"^damage +journal line 3", shown.text, re.MULTILINE)
    assert re.search(r"^2 +llm", shown.text, re.MULTILINE)
    verified = rewind("verify")
    assert verified.code == ExitCode.ENVIRONMENT
    assert "7f3a2b9c" in verified.text
    assert "line 3" in verified.text
    (damage, *_) = rewind("verify", "--json").json()["damage"]
    assert damage["session"] == "7f3a2b9c"
    assert rewind("list").code == 0
    assert journal.read_bytes() == before


def test_a_lost_body_is_one_clear_sentence(rewind: Rewind, shelf: Shelf):
    folder = shelf.add("7f3a2b9c", b'{"q": 1}')
    pack = folder / "pack"
    pack.write_bytes(pack.read_bytes()[:20])
    ran = rewind("inspect", "last:1")
    assert ran.code == ExitCode.ENVIRONMENT
    assert ran.talk.startswith("rewind: ")
    assert "Traceback" not in ran.talk
    assert ran.data == b""
    assert rewind("inspect", "last").code == 0
    assert rewind("verify", "last").code == ExitCode.ENVIRONMENT


@pytest.mark.parametrize("arguments", [("list",), ("inspect", "last"), ("verify",), ("replay", "last")])
def test_a_store_of_a_newer_rewind_is_refused_and_left_alone(
    rewind: Rewind, shelf: Shelf, home: Path, arguments: tuple[str, ...]
):
    shelf.add("7f3a2b9c")
    (home / "format").write_text("rewind-store 999\n")
    before = sorted(home.rglob("*"))
    ran = rewind(*arguments)
    assert ran.code == ExitCode.ENVIRONMENT
    assert "999" in ran.talk
    assert "Traceback" not in ran.talk
    assert sorted(home.rglob("*")) == before


def test_a_store_that_is_a_file_is_refused(rewind: Rewind, home: Path):
    home.write_text("not a folder")
    ran = rewind("list")
    assert ran.code == ExitCode.ENVIRONMENT
    assert str(home) in ran.talk


def test_another_store_can_be_named_before_or_after_the_command(rewind: Rewind, shelf: Shelf, tmp_path: Path):
    shelf.add("7f3a2b9c")
    other = str(tmp_path / "other")
    assert rewind("list", "--json", "--home", other).json()["sessions"] == []
    assert rewind("--home", other, "list", "--json").json()["sessions"] == []
    assert len(rewind("list", "--json").json()["sessions"]) == 1


def test_config_shows_each_value_and_its_origin(
    rewind: Rewind, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "pyproject.toml").write_text('[tool.rewind]\nignore = ["metadata.id"]\n')
    monkeypatch.setenv("REWIND_UPSTREAM_PROXY", "http://me:secret@proxy:1")
    monkeypatch.setenv("REWIND_DURABEL", "1")
    ran = rewind("config")
    assert re.search(rf"^home +{re.escape(str(home))} +REWIND_HOME$", ran.text, re.MULTILINE)
    assert re.search(r"^ignore +metadata.id +\S+pyproject.toml \[tool.rewind\]$", ran.text, re.MULTILINE)
    assert re.search(r"^durable +false +default$", ran.text, re.MULTILINE)
    assert re.search(r"^match +renamed; in pytest fields +default$", ran.text, re.MULTILINE)
    assert "REWIND_DURABEL is set, but is not a setting. Did you mean REWIND_DURABLE?" in ran.talk
    settings = {row["name"]: row for row in rewind("config", "--json").json()["settings"]}
    assert settings["upstream_proxy"]["value"] == "http://me:***@proxy:1"
    assert settings["home"]["origins"] == [{"kind": "environment", "where": "REWIND_HOME"}]


@pytest.mark.parametrize("arguments", [("config",), ("list",), ("record", "true"), ("replay", "last")])
def test_bad_settings_stop_every_command_before_anything_happens(
    rewind: Rewind, home: Path, tmp_path: Path, arguments: tuple[str, ...]
):
    (tmp_path / "pyproject.toml").write_text("[tool.rewind]\nhots = []\n")
    ran = rewind(*arguments)
    assert ran.code == ExitCode.USAGE
    assert ran.talk == (f"rewind: {tmp_path}/pyproject.toml [tool.rewind] has no setting 'hots'.\n  try: 'hosts'\n")
    assert not home.exists()
