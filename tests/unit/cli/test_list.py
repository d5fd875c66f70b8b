"""``rewind list``: outcome, cost and filters."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import rewind as package
from rewind.errors import ExitCode
from rewind.model.ids import MatchKey, SessionId
from rewind.model.session import Lineage
from rewind.model.step import Reading
from rewind.model.usage import Usage
from rewind.store.replays import note_replay
from unit.cli.shelf import Rewind, Shelf, a_request, an_answer

PRICES = '[tool.rewind.prices]\n"small-model" = { input = 10, output = 100 }\n'
SOURCES = str(Path(package.__file__).parents[1])


def ids(rewind: Rewind, *arguments: str) -> str:
    """The first digit of each session listed."""
    ran = rewind("list", "--json", *arguments)
    assert ran.code == 0, ran.talk
    return "".join(session["id"][0] for session in ran.json()["sessions"])


def test_cost_threads_and_tags_have_their_columns(rewind: Rewind, shelf: Shelf, tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text(PRICES)
    writer = shelf.begin("7f3a2b9c", name="refund", tags={"env": "prod", "urgent": ""})
    for index in (1, 2, 3):
        writer.request(a_request(index, thread=1 + index % 2), b"{}")
    writer.response(1, an_answer(2), b"{}")
    writer.response(2, an_answer(2, reading=Reading(error="overloaded")), b"{}")
    writer.response(3, an_answer(2, reading=Reading(model="stranger", usage=Usage(input=1))), b"{}")
    writer.end(ended=1_700_000_008.4, exit_code=0, redactions=0, remarks=())
    ran = rewind("list")
    row = ran.text.splitlines()[1]
    # 1,200 × $10 and 34 × $100 a million for step 1, $10 a million for step 3; step 2 failed inside a 200: unknown.
    cost = "$0.015+"
    assert re.search(
        rf"✓ ok · 1 error +3 +3 +2 +1,235 +{re.escape(cost)} +8.4 s +env=prod urgent +python agent.py$", row
    )


def test_a_sum_that_leaves_calls_out_is_marked_and_explained(rewind: Rewind, shelf: Shelf, tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text(PRICES)
    writer = shelf.begin("7f3a2b9c")
    for index, model in ((1, "small-model"), (2, "stranger")):
        writer.request(a_request(index, model=model), b"{}")
        usage = Usage(input=1000, output=10)
        writer.response(index, an_answer(2, reading=Reading(model=model, usage=usage)), b"{}")
    writer.end(ended=1_700_000_008.4, exit_code=0, redactions=0, remarks=())
    ran = rewind("list")
    assert " $0.011+ " in ran.text
    assert "+ some calls are not counted" in ran.talk
    (session,) = rewind("list", "--json").json()["sessions"]
    assert (session["cost_usd"], session["unpriced"], session["peak_context"]) == (0.011, 1, 1000)


def test_a_session_without_calls_has_no_cost_and_one_without_prices_an_unknown_one(rewind: Rewind, shelf: Shelf):
    shelf.add("aaaaaaaa", started=1_700_000_000.0)
    shelf.add("bbbbbbbb", b"{}", started=1_700_000_001.0)
    _, unpriced, empty = rewind("list").text.splitlines()
    assert re.search(r" 1,234 +— +", unpriced)
    assert re.search(r" 0 +0 +- +- +- +8.4 s", empty)
    assert rewind("list").talk == ""


def test_a_narrow_screen_keeps_the_columns_that_matter(rewind: Rewind, shelf: Shelf, monkeypatch: pytest.MonkeyPatch):
    shelf.add("7f3a2b9c", b"{}", name="refund", tags={"env": "prod"})
    monkeypatch.setenv("COLUMNS", "80")
    titles, row = rewind("list").text.splitlines()
    assert titles.split() == ["id", "name", "age", "status", "steps", "llm", "tokens", "cost", "command"]
    assert len(row) <= 80


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "4321"),
        (("--name", "REFUND"), "21"),
        (("--name", "refund-?"), "21"),
        (("--model", "small"), "42"),
        (("--since", "2023-11-15T00:00Z"), "43"),
        (("--status", "ok"), "31"),
        (("--status", "failed"), "2"),
        (("--status", "failed", "--status", "interrupted"), "42"),
        (("--tag", "env"), "21"),
        (("--tag", "env=prod", "--tag", "x"), "1"),
        (("--text", "Where is my order"), "4"),
        (("--text", "order", "--text", "paris"), ""),
        (("--name", "refund", "--status", "ok"), "1"),
        (("--name", "refund", "--limit", "1"), "2"),
    ],
)
def test_filters_choose_and_can_be_combined(rewind: Rewind, shelf: Shelf, arguments: tuple[str, ...], expected: str):
    shelf.add("1aaaaaaa", name="refund-1", tags={"env": "prod", "x": ""}, started=1_700_000_000.0)
    shelf.add("2aaaaaaa", b"{}", name="Refund-2", tags={"env": "test"}, started=1_700_000_060.0, exit_code=3)
    shelf.add("3aaaaaaa", started=1_700_100_000.0)
    asked = b'{"messages":[{"role":"user","content":"Where is my order, please?"}]}'
    writer = shelf.begin("4aaaaaaa", started=1_700_100_060.0)
    writer.request(a_request(), asked)
    writer.close()
    assert ids(rewind, *arguments) == expected
    shown = rewind("list", *arguments)
    assert [line[0] for line in shown.text.splitlines()[1:]] == list(expected)


def test_filters_that_nothing_passes_are_said(rewind: Rewind, shelf: Shelf):
    shelf.add("7f3a2b9c")
    ran = rewind("list", "--name", "nobody")
    assert (ran.code, ran.data) == (0, b"")
    assert ran.talk.startswith("No session matches all of these filters.\n")
    assert rewind("list", "--name", "nobody", "--json").json()["sessions"] == []


@pytest.mark.parametrize(
    "arguments",
    [("--name", "x"), ("--status", "ok"), ("--tag", "a=b"), ("--text", "x"), ("--since", "7d"), ("--limit", "0")],
)
def test_a_filter_on_no_store_is_an_empty_list(rewind: Rewind, home: Path, arguments: tuple[str, ...]):
    ran = rewind("list", *arguments)
    assert (ran.code, ran.data) == (0, b"")
    assert "No session is recorded" in ran.talk
    assert rewind("list", "--json", *arguments).json() == {"schema": "rewind/sessions@1", "sessions": []}
    assert not home.exists()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--since", "yesterday"), "yesterday"),
        (("--since", "5"), "'5'"),
        (("--status", "good"), "good"),
        (("--tag", ""), "--tag is empty"),
        (("--tag", "="), "--tag is empty"),
        (("--name", " "), "--name is empty"),
        (("--text", ""), "--text is empty"),
    ],
)
def test_a_filter_that_makes_no_sense_is_one_sentence(
    rewind: Rewind, home: Path, arguments: tuple[str, ...], part: str
):
    ran = rewind("list", *arguments)
    assert ran.code == ExitCode.USAGE
    assert part in ran.talk.splitlines()[0]
    assert ran.data == b""
    assert not home.exists()


def test_the_journals_and_the_catalog_list_alike(rewind: Rewind, shelf: Shelf, tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text(PRICES)
    for number in range(3):
        shelf.add(f"{number}aaaaaaa", *[b"{}"] * number, started=1_700_000_000.0 + number)
    shelf.begin("3aaaaaaa", started=1_700_000_009.0).close()
    straight = rewind("list", "--json", "--limit", "9").json()
    assert len(straight["sessions"]) == 4
    assert rewind("list", "--json").json() == straight


def test_a_store_that_cannot_be_written_is_listed_all_the_same(rewind: Rewind, shelf: Shelf, home: Path):
    shelf.add("7f3a2b9c", b"{}")
    (home / "catalog.lock").mkdir()
    assert ids(rewind) == "7"
    ran = rewind("list", "--status", "ok")
    assert ran.code == ExitCode.ENVIRONMENT
    assert "catalog" in ran.talk


@pytest.mark.process
def test_the_newest_are_listed_without_a_database(home: Path, shelf: Shelf):
    shelf.add("7f3a2b9c", b"{}")
    code = f"""
import sys
sys.path.insert(0, {SOURCES!r})
from rewind.cli.main import run
assert run(["list", "--home", {str(home)!r}]) == 0
print([name for name in ("duckdb", "concurrent.futures", "asyncio", "ssl") if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.endswith("[]\n")


def test_only_as_many_journals_are_opened_as_are_shown(rewind: Rewind, shelf: Shelf, home: Path):
    for number in range(5):
        shelf.add(f"{number}aaaaaaa", started=1_700_000_000.0 + number)
    oldest = sorted((home / "sessions").iterdir())[0] / "journal.jsonl"
    oldest.unlink()
    oldest.mkdir()  # opening it would be told
    assert ids(rewind, "--limit", "2") == "43"


def test_replays_do_not_disturb_the_list(rewind: Rewind, shelf: Shelf, home: Path):
    shelf.add("7f3a2b9c", b"{}")
    note_replay(home, ts=1_700_000_100.0, session="7f3a2b9c", steps=[1])
    assert ids(rewind) == "7"


# Probes


def with_probes(shelf: Shelf) -> None:
    """A run, two probes of it that Rewind ended, and a run that failed."""
    shelf.add("aaaaaaaa", b"{}", started=1_700_000_000.0)
    origin = Lineage(session=SessionId("aaaaaaaa"), step=1, key=MatchKey("rw1:x"), probe=True)
    for at, name in enumerate(("b1b1b1b1", "b2b2b2b2")):
        shelf.add(name, b"{}", started=1_700_000_100.0 + at, exit_code=143, forked_from=origin)
    shelf.add("cccccccc", b"{}", started=1_700_000_050.0, exit_code=143)


def test_probes_are_left_out_of_the_list_and_that_is_said(rewind: Rewind, shelf: Shelf) -> None:
    with_probes(shelf)
    for arguments in ((), ("--limit", "0"), ("--name", "*"), ("--json",)):
        ran = rewind("list", *arguments)
        if arguments != ("--name", "*"):
            assert "cccccccc" in ran.text and "aaaaaaaa" in ran.text
            assert "2 probes are left out: --all, or --tree" in ran.talk, arguments
        assert "b1b1b1b1" not in ran.text
    assert ids(rewind, "--limit", "1") == "c", "they take nobody's place"


def test_probes_are_shown_as_what_they_are_where_they_are_asked_for(rewind: Rewind, shelf: Shelf) -> None:
    with_probes(shelf)
    assert ids(rewind, "--all") == ids(rewind, "--all", "--limit", "0") == "bbca"
    assert ids(rewind, "--status", "probe") == "bb"
    assert ids(rewind, "--status", "failed") == "c"
    assert ids(rewind, "--tree") == "bbca"
    for arguments in (("--all",), ("--tree",)):
        lines = [line for line in rewind("list", *arguments).text.splitlines() if "b1b1b1b1" in line]
        assert "◇ probe" in lines[0] and "143" not in lines[0]
    shown = rewind("inspect", "b1b1b1b1").text
    assert re.search(r"^status +◇ probe$", shown, re.MULTILINE)
    (told,) = [one for one in rewind("list", "--all", "--json").json()["sessions"] if one["id"] == "b1b1b1b1"]
    assert (told["outcome"], told["exit_code"], told["forked_from"]["probe"]) == ("probe", 143, True)


def test_last_never_means_a_probe(rewind: Rewind, shelf: Shelf) -> None:
    with_probes(shelf)
    for name, meant in (("last", "cccccccc"), ("last~1", "aaaaaaaa")):
        assert rewind("inspect", name, "--json").json()["session"]["id"] == meant
    assert rewind("inspect", "last~2").code == ExitCode.NOT_FOUND
    assert rewind("inspect", "b2b2", "--json").json()["session"]["id"] == "b2b2b2b2"
