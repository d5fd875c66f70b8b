"""``rewind inspect`` says what a run stood on, as far as it is known."""

import re
from dataclasses import replace

import pytest

from rewind.model.session import Surroundings
from unit.cli.shelf import Rewind, Shelf

CLEAN = Surroundings(commit="0123456789abcdef0123456789abcdef01234567", branch="main", dirty=False)


def keep(shelf: Shelf, found: Surroundings) -> None:
    writer = shelf.begin("7f3a2b9c")
    writer.surroundings(found)
    writer.end(ended=1_700_000_008.4, exit_code=0, redactions=0, remarks=())


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (CLEAN, "commit     0123456789ab on main"),
        (replace(CLEAN, branch=None), "commit     0123456789ab"),
        (
            replace(CLEAN, dirty=True, changes="sc1:fedcba9876543210"),
            "commit     0123456789ab on main, with uncommitted changes fedcba98",
        ),
        (replace(CLEAN, dirty=True), "commit     0123456789ab on main, with uncommitted changes"),
        (replace(CLEAN, dirty=None), "commit     0123456789ab on main, not known whether anything was changed"),
        (
            Surroundings(locks={"go.sum": "1111222233334444", "uv.lock": "5555666677778888"}),
            "locks      go.sum 11112222 · uv.lock 55556666",
        ),
    ],
)
def test_what_is_known_is_a_line_of_the_head(rewind: Rewind, shelf: Shelf, found: Surroundings, line: str) -> None:
    keep(shelf, found)
    assert line in rewind("inspect", "7f3a").text.splitlines()


def test_what_is_not_known_is_no_line(rewind: Rewind, shelf: Shelf) -> None:
    shelf.add("7f3a2b9c", b"{}")
    shown = rewind("inspect", "7f3a").text
    assert not re.search("^(commit|locks)", shown, re.MULTILINE)
    assert rewind("inspect", "7f3a", "--json").json()["surroundings"] is None


def test_programs_get_all_of_it(rewind: Rewind, shelf: Shelf) -> None:
    keep(shelf, replace(CLEAN, dirty=True, changes="sc1:fedcba9876543210", locks={"uv.lock": "5" * 16}))
    assert rewind("inspect", "7f3a", "--json").json()["surroundings"] == {
        "commit": CLEAN.commit,
        "branch": "main",
        "dirty": True,
        "changes": "sc1:fedcba9876543210",
        "locks": {"uv.lock": "5555555555555555"},
    }


def test_the_name_of_a_branch_cannot_steer_the_terminal(rewind: Rewind, shelf: Shelf) -> None:
    hostile = "\x1b]0;owned\x07\nstatus     ✓ ok\udcff"
    keep(shelf, replace(CLEAN, branch=hostile, locks={f"requirements{hostile}.txt": "1" * 16}))
    shown = rewind("inspect", "7f3a").text
    assert "\x1b" not in shown and "\x07" not in shown
    assert len(re.findall("^status", shown, re.MULTILINE)) == 1
