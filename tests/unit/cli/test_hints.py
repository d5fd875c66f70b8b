"""The next command that a screen names works as it is printed, whichever way the store was named."""

import re
import shlex
from pathlib import Path

import pytest

from rewind.cli.commands import COMMANDS
from rewind.errors import ExitCode
from unit.cli.shelf import Rewind, Shelf
from unit.cli.talks import STRICT, begin, refund

SCREENS = Path(__file__).resolve().parents[3] / "src" / "rewind" / "cli"
NAMED = re.compile(rf"(?:→|try:|[:·]) .*?(rewind (?:--home '[^']*' )?(?:{'|'.join(COMMANDS)})[^·\n]*)")
READING = ("inspect", "diff", "bisect", "list", "stats", "messages", "verify", "search")
A, B = "7f3a2b9c", "9b2c0d1e"

ASKED = (
    ("inspect", A),
    ("inspect", f"{A}:9"),
    ("inspect", A, "--context"),
    ("diff", A, B),
    ("bisect", A, B),
    ("bisect", A, f"{B}:1"),
    ("search", "refund"),
    ("stats", "--days", "1"),
    ("list", "--name", "nobody"),
    ("export", A, "-o", "run.rw"),
    ("export", f"{A}:1"),
    ("messages", A, "--upto", "9"),
    ("rm", f"{A}:1"),
    ("replay", "nobody"),
    ("verify", "nobody"),
)


@pytest.fixture
def there(tmp_path: Path) -> str:
    """The store of these sessions, which nothing but the command line names."""
    home = tmp_path / "another store"
    shelf = Shelf(home)
    refund(begin(shelf, A, name="refund-good")).end()
    refund(begin(shelf, B, name="refund-bad", minutes=12, system=STRICT), agrees=False).end(exit_code=1)
    return str(home)


@pytest.mark.parametrize("asked", ASKED, ids=" ".join)
def test_what_is_to_be_done_next_is_about_the_store_that_was_named(rewind: Rewind, there: str, asked: tuple[str, ...]):
    option = ("--home", there)
    ran = rewind(*option, *asked) if len(asked) % 2 else rewind(*asked, *option)
    commands = NAMED.findall(ran.talk)
    assert commands, ran.talk
    for command in commands:
        words = shlex.split(command)
        assert words[1:3] == list(option), command
        if words[3] in READING and not re.search("[A-Z]{4}|…|--prove", command):
            again = rewind(*words[1:])
            assert again.code in (ExitCode.OK, ExitCode.DIFFERENT), (command, again.talk)


@pytest.mark.parametrize("asked", [("inspect", A), ("inspect", f"{A}:9")], ids=" ".join)
def test_a_store_that_is_found_without_a_word_is_not_named(
    rewind: Rewind, there: str, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...]
):
    monkeypatch.setenv("REWIND_HOME", there)
    assert "--home" not in rewind(*asked).talk


def test_what_was_recorded_is_shown_as_it_is(rewind: Rewind, there: str):
    Shelf(Path(there)).add("0c0c0c0c", b"{}", answer=b'{"say": "rewind inspect last"}')
    ran = rewind("--home", there, "inspect", "0c0c0c0c:1", "--response")
    assert "rewind inspect last" in ran.text


def test_no_screen_names_a_command_on_its_own():
    ours = re.compile(rf"Span\(\s*f?\"[^\"]*\brewind (?:{'|'.join(COMMANDS)}) ")
    found = [f"{path.name}: {match[0]}" for path in SCREENS.rglob("*.py") for match in ours.finditer(path.read_text())]
    assert found == ['fork_runs.py: Span(f"→ rewind fork '], "a span that names a command is made by `hint`"
