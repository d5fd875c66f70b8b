"""What people type and see in their first hour: help, aliases, typos of steps, files that cannot be run, 80 columns."""

from pathlib import Path

import pytest

from rewind.cli.commands import COMMANDS
from rewind.safe import display_width
from unit.cli.shelf import Ran, Rewind, Shelf
from unit.cli.talks import begin, refund


@pytest.fixture
def recorded(shelf: Shelf) -> None:
    for session, name in (("aaaa0001", "refund-good"), ("bbbb0002", "refund-bad")):
        refund(begin(shelf, session, name=name)).end()


def both(ran: Ran) -> str:
    return ran.text + ran.talk


def test_help_is_a_command_too(rewind: Rewind) -> None:
    assert rewind("help").data == rewind("--help").data == rewind("help", "--help").data
    for name in ("record", "inspect"):
        assert rewind("help", name).data == rewind(name, "--help").data
    ran = rewind("help", "recrod")
    assert (ran.code, "rewind record" in ran.talk) == (2, True)


@pytest.mark.parametrize(("typed", "meant"), [("show", "inspect"), ("ls", "list")])
def test_what_people_type_for_a_command_is_that_command(rewind: Rewind, recorded: None, typed: str, meant: str) -> None:
    words = ["refund-good"] if meant == "inspect" else []
    assert rewind(typed, *words).data == rewind(meant, *words).data
    assert rewind("help", typed).data == rewind("help", meant).data


@pytest.mark.parametrize("step", ["abc", "1.x", "1..2", "", "١"])
@pytest.mark.parametrize("command", ["inspect", "replay", "export", "messages"])
def test_a_step_that_is_none_is_said_to_be_none(rewind: Rewind, recorded: None, command: str, step: str) -> None:
    ran = rewind(command, f"refund-good:{step}")
    assert ran.code == 3
    assert f"{step!r} is not a step of refund-good: steps are numbers, as in refund-good:1" in ran.talk
    assert "No session is called" not in ran.talk


def test_a_session_that_is_not_there_stays_one(rewind: Rewind, recorded: None) -> None:
    assert "No session is called 'nothing:abc'." in rewind("inspect", "nothing:abc").talk


def test_a_file_that_cannot_be_run_says_what_to_do(rewind: Rewind, tmp_path: Path) -> None:
    script = tmp_path / "agent.sh"
    script.write_text("echo hi\n")
    (tmp_path / "folder").mkdir()
    cases = {
        "./agent.sh": ("The file './agent.sh' is not executable.", "chmod +x ./agent.sh\n"),
        "agent.sh": ("The file 'agent.sh' is not executable.", "chmod +x agent.sh, then give it as ./agent.sh\n"),
        "./folder": ("The command './folder' is a folder.", "spelling"),
        "./gone": ("The command './gone' was not found.", "spelling"),
    }
    for word, (says, hint) in cases.items():
        ran = rewind("record", word)
        assert (ran.code, says in ran.talk, hint in ran.talk) == (2, True, True), ran.talk
    script.chmod(0o755)
    ran = rewind("record", "agent.sh")
    assert "a file of that name is in this folder." in ran.talk and "try: ./agent.sh" in ran.talk


def too_wide(ran: Ran, columns: int) -> list[str]:
    return [line for line in both(ran).splitlines() if display_width(line) > columns]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_narrow_screen(rewind: Rewind, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = rewind(name, "--help")
    assert ran.code == 0
    assert too_wide(ran, 80) == []


@pytest.mark.parametrize(
    "words",
    [
        ("stats",),
        ("stats", "--by", "day"),
        ("stats", "--by", "name"),
        ("list",),
        ("inspect", "refund-good"),
        pytest.param(("init",), marks=pytest.mark.process),
        ("search", "refund"),
        ("--help",),
    ],
    ids=lambda words: " ".join(words),
)
def test_tables_fit_a_narrow_screen(
    rewind: Rewind, recorded: None, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("REWIND_HOME", "store")
    days = ("--days", "0") if words[0] == "stats" else ()
    ran = rewind(*words, *days)
    assert ran.code == 0, ran.talk
    # A path is never broken: people copy it.
    assert [line for line in too_wide(ran, 80) if str(Path.cwd()) not in line] == []


@pytest.mark.parametrize("columns", [80, 100])
def test_pinned_sessions_and_their_steps_fit_a_narrow_screen(
    rewind: Rewind, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for number, code in enumerate((0, 3, 137)):
        talk = begin(shelf, f"{number}aaaaaaa", name="the-refund-of-an-order-" * number or None)
        refund(talk).end(exit_code=code, seconds=4711.2)
        assert rewind("pin", f"{number}aaaaaaa").code == 0
    for words in (["list"], ["list", "--tree"]):
        ran = rewind(*words)
        assert (ran.code, ran.text.count("pinned")) == (0, 3)
        assert [line for line in ran.text.splitlines() if display_width(line) > columns] == [], words
    for step in ("2", "1.1"):
        assert display_width(rewind("inspect", f"0aaaaaaa:{step}").text.splitlines()[0]) <= columns


def test_a_wider_screen_shows_all_of_stats(rewind: Rewind, recorded: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    narrow = rewind("stats", "--days", "0").text
    monkeypatch.setenv("COLUMNS", "140")
    wide = rewind("stats", "--days", "0").text
    assert "a wider screen also shows: " in narrow and "a wider screen" not in wide
    for title in ("thinking", "first ms", "cached", "p95 ms", "retries"):
        assert title in wide
    assert "$0.0" in narrow and "errors" in narrow


def test_help_uses_a_wider_screen(rewind: Rewind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert max(map(len, rewind("diff", "--help").text.splitlines())) > 90
