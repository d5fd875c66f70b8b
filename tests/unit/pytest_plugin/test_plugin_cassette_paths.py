"""Names of cassettes: the same everywhere, safe everywhere, different for different tests."""

import enum
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.pytest_plugin.cassette_paths import _text, default_path, safe_name

FILE = Path("/project/tests/test_refund.py")


class Colour(enum.Enum):
    RED = 1


class Light(enum.Enum):
    RED = 1


def name(**params: Any) -> str:
    indices = dict.fromkeys(params, 0)
    return default_path(FILE, test="test_it", params=params, indices=indices).name


def test_a_test_finds_its_cassette_beside_its_file() -> None:
    assert default_path(FILE, test="test_it") == Path("/project/tests/cassettes/test_refund/test_it.rw")


def test_classes_are_part_of_the_name() -> None:
    found = default_path(FILE, classes=("TestOuter", "TestInner"), test="test_it")
    assert found.name == "TestOuter.TestInner.test_it.rw"


def test_the_order_of_parameters_does_not_matter() -> None:
    one = default_path(FILE, test="test_it", params={"b": 2, "a": "x"}, id="2-x")
    other = default_path(FILE, test="test_it", params={"a": "x", "b": 2}, id="x-2")
    assert one == other
    assert one.name == "test_it--a=x--b=2.rw"


def test_values_are_told_in_words() -> None:
    assert name(a=1.5, b=None, c=True, d=Colour.RED, e=int) == "test_it--a=1.5--b=None--c=True--d=Colour.RED--e=int.rw"


def test_values_with_the_same_words_have_other_names() -> None:
    names = [name(a=value) for value in (1, "1", "~1", "a b", "a_b", "a/b", "", None, "None")]
    assert len(set(names)) == len(names)
    assert name(a="1") == "test_it--a=~1.rw"


def test_an_object_without_a_text_of_its_own_goes_by_its_place() -> None:
    found = default_path(FILE, test="t", params={"a": object(), "b": 1}, indices={"a": 3, "b": 0}, id="a3-1")
    assert found.name == "t--a=item3--b=1.rw"


def test_members_of_two_enums_have_other_names() -> None:
    assert name(a=Colour.RED) != name(a=Light.RED)


@pytest.mark.parametrize(
    "value",
    [lambda: 1, Mock(), Mock(name="x"), [object()], {"a": (Mock(),)}, {object()}],
    ids=["function", "mock", "named mock", "list", "dict", "set"],
)
def test_a_value_whose_text_is_not_its_own_goes_by_its_place(value: Any) -> None:
    found = default_path(FILE, test="t", params={"a": value, "b": 1}, indices={"a": 2, "b": 0})
    assert found.name == "t--a=item2--b=1.rw"


def test_a_value_that_holds_itself_goes_by_its_place() -> None:
    value: list[Any] = []
    value.append(value)
    assert name(a=value) == "test_it--a=item0.rw"


def test_a_local_function_goes_by_its_place() -> None:
    def local() -> None: ...

    assert name(a=local) == "test_it--a=item0.rw"


NAMES_OF_SETS = """
from dataclasses import dataclass
from pathlib import Path
from rewind.pytest_plugin.cassette_paths import default_path

@dataclass
class Case:
    tags: set[str]

words = "one two three four five six".split()
for value in (set(words), frozenset(words), [(set(words),)], {"a": frozenset(words)}, Case(set(words))):
    print(default_path(Path("t.py"), test="t", params={"a": value, "b": 1}).name)
"""


@pytest.mark.process
def test_a_set_has_the_same_name_in_every_process() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", NAMES_OF_SETS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for seed in ("1", "2", "3")
    ]
    assert told[0] == told[1] == told[2]
    assert len(set(told[0])) == 5


@given(
    st.recursive(
        st.integers() | st.text(), lambda one: st.lists(one) | st.tuples(one) | st.dictionaries(st.text(), one)
    )
)
def test_a_value_without_sets_is_written_as_python_writes_it(value: Any) -> None:
    assert _text(value) == repr(value)


def test_the_id_that_the_user_gave_names_the_only_parameter() -> None:
    found = default_path(FILE, test="t", params={"case": {"big": "dict"}}, indices={"case": 0}, id="refund")
    assert found.name == "t--case=refund.rw"


def test_a_long_name_is_cut_and_still_its_own() -> None:
    one, other = name(a="x" * 500), name(a="x" * 501)
    assert one != other
    assert max(len(one), len(other)) <= 103
    assert one.startswith("test_it--a=xxx")


@pytest.mark.parametrize("evil", ["../../etc/passwd", "/etc/passwd", "..", ".", "", "a\0b", "con:", "-rf", "\n", "é"])
def test_no_name_leaves_its_folder(evil: str) -> None:
    for path in (default_path(FILE, test=evil), default_path(FILE, test="t", params={"a": evil})):
        assert path.parent == Path("/project/tests/cassettes/test_refund")
        assert path.resolve() == path
        assert path.name.isascii()
        assert path.name.isprintable()
        assert not path.name.startswith((".", "-"))


@given(st.text())
def test_any_text_is_a_safe_name(text: str) -> None:
    found = safe_name(text)
    assert found
    assert len(found) <= 100
    assert set(found) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.=+~-")
    assert found[0] not in ".-"


@given(st.text(), st.text())
def test_two_texts_are_two_names(one: str, other: str) -> None:
    assert (safe_name(one) == safe_name(other)) == (one == other)
