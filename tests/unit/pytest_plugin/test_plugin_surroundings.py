"""What a test's children, its assertions, and a second pytest are given."""

import os

import pytest

from rewind.errors import RewindError
from rewind.pytest_plugin.observed import UnknownCost
from rewind.pytest_plugin.report import without_reports
from rewind.pytest_plugin.tested_run import joined

OURS = {"PYTHONPATH": "/hook", "NODE_OPTIONS": '--require "/hook.js"'}


def test_what_the_user_set_stands_beside_our_part() -> None:
    mine = {"PYTHONPATH": os.pathsep.join(("/a", "/b")), "NODE_OPTIONS": "--no-warnings"}
    assert joined(OURS, mine) == {
        "PYTHONPATH": os.pathsep.join(("/hook", "/a", "/b")),
        "NODE_OPTIONS": '--no-warnings --require "/hook.js"',
    }


def test_our_part_is_joined_once() -> None:
    assert joined(OURS, {}) == OURS
    assert joined(OURS, joined(OURS, {})) == OURS


def test_a_cost_that_nobody_knows_is_neither_something_nor_nothing() -> None:
    with pytest.raises(RewindError, match="not known: 2 calls have no price"):
        assert not UnknownCost(2)


@pytest.mark.parametrize("option", ["--junitxml", "--junit-xml", "--report-log", "--html"])
def test_recording_anew_writes_no_report(option: str) -> None:
    assert without_reports(["-q", option, "out", "-x"]) == ["-q", "-x"]
    assert without_reports(["-q", f"{option}=out", "-x"]) == ["-q", "-x"]
    assert without_reports(["-q", option]) == ["-q"]


def test_other_options_stay() -> None:
    words = ["--html-extra=1", "-k", "html", "tests"]
    assert without_reports(words) == words
