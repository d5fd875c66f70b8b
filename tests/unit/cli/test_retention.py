"""``rm``, ``prune`` and ``pin`` as a person uses them, and the limits that hold by themselves after a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from rewind.model.clock import SystemClock
from rewind.model.ids import MatchKey, SessionId
from rewind.model.session import Lineage
from rewind.reading.retention import RetentionRules, prune, retain
from rewind.settings import KEEP_WORDS, read_settings
from rewind.store.deletion import size_on_disk
from unit.cli.shelf import Rewind, Shelf

DAY = 86_400.0
NOW = SystemClock().now()
OLD = "aaaaaaaa"
"""In the shelf that most tests use: forty days old, then a failed one, then two of today."""


@pytest.fixture
def filled(shelf: Shelf) -> Shelf:
    shelf.add(OLD, b"{}", started=NOW - 40 * DAY, name="first", tags={"env": "prod"})
    shelf.add("bbbbbbbb", b"{}", started=NOW - 35 * DAY, exit_code=3)
    shelf.add("cccccccc", b"{}", started=NOW - 2 * DAY, name="refund")
    shelf.add("dddddddd", b"{}", started=NOW - 60)
    return shelf


def ids(rewind: Rewind) -> list[str]:
    return [session["id"][0] for session in rewind("list", "--json").json()["sessions"]]


def size(shelf: Shelf, *sessions: str) -> int:
    """What these sessions take of the disk."""
    folders = (shelf.home / "sessions").iterdir()
    return sum(size_on_disk(folder) for folder in folders if folder.name[-8] in sessions)


# rm


def test_rm_deletes_what_is_named_in_any_way(rewind: Rewind, filled: Shelf) -> None:
    ran = rewind("rm", "last", "last~1", "aaaa")
    assert (ran.code, ran.talk) == (0, "")
    assert [line.split("  ")[:-1] for line in ran.text.splitlines()] == [
        ["Deleted dddddddd"],
        ["Deleted cccccccc", "refund"],
        ["Deleted aaaaaaaa", "first"],
    ]
    assert ids(rewind) == ["b"]


def test_rm_tells_in_json_what_went(rewind: Rewind, filled: Shelf) -> None:
    taken = size(filled, "a", "c")
    rewind("pin", "refund")
    shown = rewind("rm", "refund", OLD, "first", "--json").json()
    assert shown["schema"] == "rewind/rm@1"
    assert [(one["id"], one["name"], one["pinned"], one["forks"]) for one in shown["deleted"]] == [
        ("cccccccc", "refund", True, []),
        (OLD, "first", False, []),
    ], "once each, though named twice"
    assert shown["bytes"] == sum(one["bytes"] for one in shown["deleted"]) == taken


@pytest.mark.parametrize(
    ("refs", "code", "said"),
    [
        (["cccc", "nothing"], 3, "No session is called 'nothing'."),
        (["cccc:2"], 2, "rm takes whole sessions, not a step."),
        (["cccc", ""], 3, "No session is called ''."),
        ([], 2, "Missing argument"),
    ],
)
def test_rm_deletes_all_or_nothing(rewind: Rewind, filled: Shelf, refs: list[str], code: int, said: str) -> None:
    ran = rewind("rm", *refs)
    assert ran.code == code
    assert said in ran.talk
    assert ids(rewind) == ["d", "c", "b", "a"]


def test_rm_wants_four_characters_of_an_id_and_a_name_as_it_is(rewind: Rewind, filled: Shelf) -> None:
    ran = rewind("rm", "dddd", "bbb")
    assert (ran.code, len(ids(rewind))) == (2, 4)
    assert "'bbb' is too little of an id to delete by: give four characters or more." in ran.talk
    filled.add("eeeeeeee", b"{}", name="b")
    assert rewind("rm", "b", "bbbb").text.count("Deleted") == 2
    assert ids(rewind).count("b") == 0


def test_an_ambiguous_prefix_deletes_nothing(rewind: Rewind, filled: Shelf) -> None:
    filled.add("aaaabbbb", b"{}", started=NOW)
    ran = rewind("rm", "aaaa")
    assert ran.code == 3
    assert "names 2 sessions" in ran.talk
    assert len(ids(rewind)) == 5


def test_a_session_that_is_being_recorded_is_refused(rewind: Rewind, filled: Shelf) -> None:
    writer = filled.begin("eeeeeeee", started=NOW - 50 * DAY)
    ran = rewind("rm", OLD, "eeee")
    assert ran.code == 6
    assert ran.talk == (
        "rewind: eeeeeeee is being recorded right now. Nothing was deleted.\n"
        "  try: end the run first; then the session can be deleted\n"
    )
    assert rewind("prune", "--older-than", "30d", "--json").json()["kept"][0]["why"] == "running"
    writer.close()
    assert rewind("rm", "eeee").code == 0


def test_a_file_is_not_a_session_of_the_store(rewind: Rewind, filled: Shelf, tmp_path: Path) -> None:
    rewind("export", OLD, "--output", "a.rw")
    for command in ("rm", "pin"):
        ran = rewind(command, "a.rw")
        assert ran.code == 2
        assert "a.rw is a file, not a session in the store." in ran.talk
    assert (tmp_path / "a.rw").exists()


def test_forks_of_what_goes_are_named(rewind: Rewind, filled: Shelf) -> None:
    origin = Lineage(session=SessionId(OLD), step=1, key=MatchKey("rw1:0"))
    filled.add("eeeeeeee", b"{}", started=NOW - 10, forked_from=origin, command=("x" * 9000, '"forked_from":'))
    filled.add("ffffffff", b"{}", started=NOW - 5, forked_from=origin)
    forecast = rewind("prune", "--older-than", "30d", "--dry-run", "--json").json()
    assert forecast["deleted"][0]["forks"] == ["eeeeeeee", "ffffffff"]
    ran = rewind("rm", OLD, "ffff")
    assert "1 fork of aaaaaaaa stays, with a copy of the steps shared with it: eeeeeeee" in ran.text


def test_a_store_that_is_not_there_has_nothing_to_delete(rewind: Rewind, home: Path) -> None:
    assert rewind("rm", "last").code == 3
    ran = rewind("prune", "--older-than", "1d")
    assert (ran.code, ran.text) == (0, "")
    assert "0 sessions deleted" in ran.talk
    assert not home.exists()


def test_a_store_that_cannot_be_written_says_so(rewind: Rewind, filled: Shelf) -> None:
    (filled.home / ".deleted").write_text("a file is in the way")
    ran = rewind("rm", OLD)
    assert ran.code == 6
    assert "Not everything could be deleted" in ran.talk
    assert len(ids(rewind)) == 4


# a deletion that was killed


@pytest.mark.parametrize("command", [["list"], ["inspect", "dddd"], ["inspect", OLD], ["verify"], ["rm", "zzzz"]])
def test_whatever_comes_next_finishes_a_deletion(rewind: Rewind, filled: Shelf, command: list[str]) -> None:
    aside = filled.home / ".deleted"
    aside.mkdir()
    (folder,) = (filled.home / "sessions").glob(f"*-{OLD}")
    folder.rename(aside / folder.name)
    ran = rewind(*command)
    assert "bug" not in ran.talk
    assert not aside.exists()


# pin


def test_a_pinned_session_is_shown_as_such_and_stays(rewind: Rewind, filled: Shelf) -> None:
    assert rewind("pin", OLD, "last").text == "Pinned aaaaaaaa  first\nPinned dddddddd\n"
    for listing in (rewind("list"), rewind("list", "--limit", "0"), rewind("list", "--tree")):
        marked = [line for line in listing.text.splitlines() if "✓ ok · pinned" in line]
        assert [line.split()[0] for line in marked] == ["dddddddd", OLD]
    for shown in (rewind("list", "--json"), rewind("list", "--json", "--limit", "9")):
        assert [one["pinned"] for one in shown.json()["sessions"]] == [True, False, False, True]
    assert "pinned" in rewind("inspect", OLD).text
    pruned = rewind("prune", "--older-than", "0s", "--json").json()
    assert [(one["id"], one["why"]) for one in pruned["kept"]] == [(OLD, "pinned"), ("dddddddd", "pinned")]
    assert ids(rewind) == ["d", "a"]
    assert rewind("pin", "--remove", OLD, "--json").json() == {
        "schema": "rewind/pin@1",
        "sessions": [{"id": OLD, "name": "first", "pinned": False}],
    }
    rewind("prune", "--older-than", "30d")
    assert ids(rewind) == ["d"]


def test_one_unknown_name_pins_nothing(rewind: Rewind, filled: Shelf) -> None:
    assert rewind("pin", OLD, "nothing").code == 3
    assert not any(one["pinned"] for one in rewind("list", "--json").json()["sessions"])


# prune


def test_prune_by_age_says_what_goes_and_what_stays(rewind: Rewind, filled: Shelf) -> None:
    rewind("pin", OLD)
    filled.add("99999999", b"{}", started=NOW - 50 * DAY, name="older")
    forecast = rewind("prune", "--older-than", "30d", "--keep", "failed", "--dry-run")
    assert len(ids(rewind)) == 5, "nothing was deleted"
    lines = forecast.text.splitlines()
    assert lines[0].split() == ["id", "name", "age", "status", "size", "why"]
    assert lines[1].split()[:4] + lines[1].split()[-2:] == ["99999999", "older", "50", "d", "too", "old"]
    assert len(lines) == 2
    assert forecast.talk.startswith("1 session would be deleted, ")
    assert "4 sessions stay, " in forecast.talk
    assert forecast.talk.splitlines()[1].endswith(": 2 within the limits · 1 pinned · 1 failed")
    ran = rewind("prune", "--older-than", "30d", "--keep", "failed")
    assert ran.text == forecast.text
    assert ran.talk.startswith("1 session deleted, ")
    assert ids(rewind) == ["d", "c", "b", "a"]


@pytest.mark.parametrize(
    ("keep", "left"),
    [
        ((), "dc"),
        (("failed",), "dcb"),
        (("ok",), "dca"),
        (("named",), "dca"),
        (("tagged",), "dca"),
        (("tag=env",), "dca"),
        (("tag=env=prod",), "dca"),
        (("tag=env=test",), "dc"),
        (("name=F*",), "dca"),
        (("name=f",), "dc"),
        (("failed", "tag=env"), "dcba"),
        (("imported", "interrupted", "broken"), "dc"),
    ],
    ids=" ".join,
)
def test_prune_keeps_what_it_is_told_to(rewind: Rewind, filled: Shelf, keep: tuple[str, ...], left: str) -> None:
    options = [word for kept in keep for word in ("--keep", kept)]
    assert rewind("prune", "--older-than", "30d", *options).code == 0
    assert "".join(ids(rewind)) == left


def test_prune_by_size_deletes_the_oldest_and_no_more_than_it_must(rewind: Rewind, filled: Shelf) -> None:
    assert rewind("prune", "--max-size", f"{size(filled, *'abcd')}b").talk.startswith("0 sessions deleted")
    room = size(filled, *"bcd")
    shown = rewind("prune", "--max-size", f"{room}b", "--json").json()
    assert [(one["id"], one["why"]) for one in shown["deleted"]] == [(OLD, "too much")]
    assert shown["left"] == {"sessions": 3, "bytes": room}
    assert shown["over_bytes"] == 0
    assert rewind("prune", "--max-size", "1K", "--keep", "failed").talk.splitlines()[2].startswith("Still ")
    assert ids(rewind) == ["b"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Nothing says what may be deleted: give --older-than or --max-size."),
        (["--keep", "failed"], "Nothing says what may be deleted"),
        (["--older-than", "yesterday"], "'yesterday' is neither a span"),
        (["--max-size", "big"], "must be a size such as 500M or 20G, with its unit, not 'big'"),
        (["--max-size", "0"], "must be a size such as"),
        (["--max-size", "20"], "must be a size such as 500M or 20G, with its unit, not '20'"),
        (["--max-size", "-5"], "must be a size such as"),
        (["--older-than", "1d", "--keep", "fialed"], "'fialed' does not say which sessions to keep."),
        (["--older-than", "1d", "--keep", "tag="], "'tag=' does not say which sessions to keep."),
    ],
)
def test_a_limit_that_is_not_valid_deletes_nothing(
    rewind: Rewind, filled: Shelf, arguments: list[str], said: str
) -> None:
    ran = rewind("prune", *arguments)
    assert ran.code == 2
    assert said in ran.talk
    assert len(ids(rewind)) == 4


def test_the_settings_hold_where_nothing_else_is_given(
    rewind: Rewind, filled: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rewind]\nkeep-days = 30\nkeep = ["tag=env"]\n')
    assert [one["id"] for one in rewind("prune", "--dry-run", "--json").json()["deleted"]] == ["bbbbbbbb"]
    assert rewind("prune", "--dry-run", "--keep", "failed", "--json").json()["deleted"] == [], "lists add up"
    gone = rewind("prune", "--older-than", "1d", "--dry-run", "--json").json()["deleted"]
    assert [one["id"][0] for one in gone] == ["b", "c"], "what is given takes precedence"
    monkeypatch.setenv("REWIND_KEEP_DAYS", "1")
    assert len(rewind("prune", "--dry-run", "--json").json()["deleted"]) == 2


# after a run


def limited(home: Path, **values: str) -> Any:
    return read_settings(env={"REWIND_HOME": str(home), "HOME": "/nowhere", **values}, cwd=Path("/"))


def test_without_limits_nothing_goes_by_itself(filled: Shelf) -> None:
    assert retain(filled.home, limited(filled.home), now=NOW, began=NOW) is None
    assert len(list((filled.home / "sessions").iterdir())) == 4


def test_what_is_too_old_goes_by_itself(rewind: Rewind, filled: Shelf) -> None:
    settings = limited(filled.home, REWIND_KEEP_DAYS="30", REWIND_KEEP="failed")
    dropped = retain(filled.home, settings, now=NOW, began=NOW - 70)
    assert dropped is not None
    assert [one.session.id for one in dropped.gone] == [OLD]
    assert retain(filled.home, settings, now=NOW, began=NOW - 70) is None
    assert ids(rewind) == ["d", "c", "b"]


def test_the_run_itself_and_what_was_imported_never_go_by_themselves(rewind: Rewind, filled: Shelf) -> None:
    filled.add("eeeeeeee", b"{}", started=NOW - 90 * DAY, imported=True)
    dropped = retain(filled.home, limited(filled.home, REWIND_MAX_SIZE="1B"), now=NOW, began=NOW - 70)
    assert dropped is not None
    assert ids(rewind) == ["d", "e"]
    assert dropped.over > 0
    assert dropped.kept_because == {"imported": 1, "new": 1}
    pruned = prune(filled.home, RetentionRules(before=NOW - DAY))
    assert [one.session.id[0] for one in pruned.gone] == ["e"], "a person who asks gets what was asked for"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("keep-days = 0", "'keep_days' must be a number above 0, not 0"),
        ("keep-days = true", "'keep_days' must be a number above 0, not True"),
        ('keep-days = "30"', "'keep_days' must be a number above 0, not '30'"),
        ("max-size = false", "'max_size' must be a size such as 500M or 20G, with its unit, not False"),
        ("max-size = 20", "'max_size' must be a size such as 500M or 20G, with its unit, not 20"),
        ('max-size = "much"', "'max_size' must be a size such as 500M or 20G, with its unit, not 'much'"),
        ('keep = "failed"', "'keep' must be a list of strings"),
    ],
)
def test_limits_that_are_not_valid_are_named_with_their_file(
    rewind: Rewind, tmp_path: Path, table: str, said: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.rewind]\n{table}\n")
    ran = rewind("config")
    assert ran.code == 2
    assert f"{tmp_path / 'pyproject.toml'} [tool.rewind]: {said}" in ran.talk


def test_config_shows_the_limits(rewind: Rewind, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rewind]\nkeep-days = 7.5\nmax-size = "20G"\n')
    shown = {one["name"]: one["value"] for one in json.loads(rewind("config", "--json").data)["settings"]}
    assert (shown["keep_days"], shown["max_size"], shown["keep"]) == (7.5, 20 * 1024**3, [])


@pytest.mark.parametrize("command", [("record", "--", "touch", "ran"), ("list",), ("prune", "--older-than", "1d")])
def test_a_wrong_keep_in_the_settings_is_said_before_anything_is_run(
    rewind: Rewind, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rewind]\nkeep_days = 3\nkeep = ["failed", "fialed"]\n')
    ran = rewind(*command)
    assert (ran.code, not (tmp_path / "ran").exists()) == (2, True)
    assert "[tool.rewind]: 'keep': 'fialed' does not say which sessions to keep." in ran.talk


def test_every_word_that_keeps_is_in_the_help(rewind: Rewind) -> None:
    told = " ".join(rewind("prune", "--help").text.split())
    for word in KEEP_WORDS:
        assert f" {word}," in told, word
