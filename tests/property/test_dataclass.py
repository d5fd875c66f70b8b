"""Our ``@dataclass`` behaves as the standard library's does, and compiles nothing before it is used."""

import copy
import dataclasses
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rewind as package
import rewind.dataclass as ours

KINDS = ("required", "default", "factory", "not compared", "not shown", "not given")


def class_by(decorate: Any, kinds: list[str], options: dict[str, bool], base: type = object) -> Any:
    """A class with one field of each kind, made by that decorator."""
    namespace: dict[str, Any] = {"__annotations__": {}, "__qualname__": "Made", "__doc__": "A class."}
    for number, kind in enumerate(kinds):
        name = f"{'xyzuvw'[number]}{'' if base is object else '_more'}"
        namespace["__annotations__"][name] = int
        match kind:
            case "default":
                namespace[name] = number
            case "factory":
                namespace[name] = dataclasses.field(default_factory=lambda: [1])
            case "not compared":
                namespace[name] = dataclasses.field(default=4, compare=False)
            case "not shown":
                namespace[name] = dataclasses.field(default=5, repr=False)
            case "not given":
                namespace[name] = dataclasses.field(default=6, init=False)
    return decorate(**options)(type("Made", (base,), namespace))


def outcome(act: Any) -> Any:
    """What came of it, told apart from anything else that can come of it."""
    try:
        return act()
    except Exception as problem:  # noqa: BLE001 - whatever the standard library raises, ours must raise
        return type(problem), str(problem)


@settings(max_examples=100)
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=6),
    more=st.lists(st.sampled_from(KINDS[1:]), max_size=2),
    options=st.fixed_dictionaries({name: st.booleans() for name in ("eq", "frozen", "kw_only", "slots")}),
    values=st.lists(st.integers(), max_size=7),
    names=st.sets(st.sampled_from(["x", "y", "z", "u", "x_more", "other"])),
)
def test_a_class_behaves_as_the_standard_library_makes_it(
    kinds: list[str], more: list[str], options: dict[str, bool], values: list[int], names: set[str]
):
    seen = []
    for decorate in (ours.dataclass, dataclasses.dataclass):
        cls = class_by(decorate, sorted(kinds, key="required".__ne__), options)  # those without a default first
        cls = class_by(decorate, more, options, cls) if more else cls
        named = dict.fromkeys(names, 7)

        def make(cls: Any = cls, named: Any = named) -> Any:
            return cls(*values, **named)

        one, other = outcome(make), outcome(make)
        facts: list[object] = [repr(one), cls.__match_args__, [field.name for field in dataclasses.fields(cls)]]
        if not isinstance(one, tuple):
            facts += [
                one == other,
                one == 3,
                outcome(lambda one=one, other=other: hash(one) == hash(other)) if options["eq"] else None,
                repr(dataclasses.replace(one)),
                repr(copy.deepcopy(one)),
                dataclasses.asdict(one),
                outcome(lambda one=one: setattr(one, "x", 9)),
                outcome(lambda one=one: delattr(one, "x")),
                repr(one) if options["frozen"] else None,
            ]
        seen.append(facts)
    assert seen[0] == seen[1]


@ours.dataclass(frozen=True, slots=True)
class Pair:
    """Compared and hashed by one of its values, in words of its own."""

    left: int
    right: int = 0

    def __post_init__(self) -> None:
        if self.left < 0:
            raise ValueError("left of zero")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pair) and other.left == self.left

    def __hash__(self) -> int:
        return self.left

    def __repr__(self) -> str:
        return f"<{self.left}>"


def test_what_the_class_says_itself_stays():
    assert (Pair(1, 2), hash(Pair(5)), repr(Pair(3))) == (Pair(1, 3), 5, "<3>")
    with pytest.raises(ValueError, match="left of zero"):
        Pair(-1)


def test_a_value_takes_part_in_matches():
    match Pair(1, 2):
        case Pair(left, right):
            assert (left, right) == (1, 2)
        case _:
            pytest.fail("it is a pair")


def test_threads_may_make_the_first_value_together():
    for _ in range(50):
        cls = class_by(ours.dataclass, ["required", "factory"], {"frozen": True, "slots": True})
        made: list[object] = []
        ready = threading.Barrier(4)

        def make(cls: Any = cls, ready: Any = ready, made: Any = made) -> None:
            ready.wait()
            made.append(cls(1))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [cls(1)] * 4


def test_every_module_uses_it():
    """All but ``rewind.trace``, which agents import and which stands on the standard library alone."""
    root = Path(package.__file__).parent
    for path in root.rglob("*.py"):
        if path.relative_to(root).parts[0] not in ("trace", "dataclass.py"):
            assert not re.search(r"^from dataclasses import .*\bdataclass\b", path.read_text(), re.MULTILINE), path
