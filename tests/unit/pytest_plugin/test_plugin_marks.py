"""What a mark may say."""

from pathlib import Path
from typing import Any

import pytest

from rewind.pytest_plugin.marks import read_mark
from rewind.pytest_plugin.modes import BadOption, Mode


def test_a_cassette_is_named_by_position_or_by_name() -> None:
    assert read_mark(("a/b.rw",), {}, {}).cassette == "a/b.rw"
    assert read_mark((), {"cassette": Path("a/b.rw.zst")}, {}).cassette == "a/b.rw.zst"
    assert read_mark((), {}, {}).cassette is None


def test_what_a_mark_does_not_name_is_taken_from_the_config() -> None:
    defaults = {"ignore": ["metadata.id"], "hosts": "tools.example.com", "allow_drift": True}
    options = read_mark((), {"hosts": ["other.example.com"], "mode": "new"}, defaults)
    assert options.ignore == ("metadata.id",)
    assert options.hosts == ("other.example.com",)
    assert options.allow_drift
    assert options.mode is Mode.NEW


@pytest.mark.parametrize(
    ("args", "given", "says"),
    [
        (("a.rw", "b.rw"), {}, "takes one cassette, not 2"),
        (("a.rw",), {"cassette": "a.rw"}, "names its cassette twice"),
        (("a.yaml",), {}, "must be a path that ends in .rw or .rw.zst, not 'a.yaml'"),
        ((3,), {}, "must be a path"),
        (("a\0.rw",), {}, "must be a path"),
        ((), {"ignored": ["x"]}, "has no argument 'ignored'"),
        ((), {"allow_drift": "yes"}, "must be True or False"),
        ((), {"hosts": [1]}, "must be a list of strings"),
        ((), {"hosts": [""]}, "must be a list of strings"),
        ((), {"mode": "live"}, "it can be none, once"),
        ((), {"tools": "dead"}, "must be 'replay' or 'live'"),
    ],
)
def test_a_mark_that_makes_no_sense_is_told_why(args: tuple[Any, ...], given: dict[str, Any], says: str) -> None:
    with pytest.raises(BadOption) as problem:
        read_mark(args, given, {})
    assert says in problem.value.message


def test_a_typo_is_answered_with_the_nearest_argument() -> None:
    with pytest.raises(BadOption) as problem:
        read_mark((), {}, {"alow_drift": True})
    assert problem.value.message == "rewind_config has no argument 'alow_drift'."
    assert problem.value.hint == "Did you mean 'allow_drift'?"


def test_the_config_names_no_cassette() -> None:
    with pytest.raises(BadOption) as problem:
        read_mark((), {}, {"cassette": "a.rw"})
    assert problem.value.message == "rewind_config cannot name a cassette."
    assert "pytestmark" in (problem.value.hint or "")


def test_a_typo_in_the_config_is_not_answered_with_what_it_cannot_say() -> None:
    with pytest.raises(BadOption) as problem:
        read_mark((), {}, {"casette": "a.rw"})
    assert "cassette" not in (problem.value.hint or "")
