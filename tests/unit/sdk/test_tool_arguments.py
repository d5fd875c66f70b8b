"""What a tool was asked: by name, as JSON, the same for the same call."""

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from rewind.sdk.tool_calls import ArgumentBinder, ToolRequest


def asked(function: Callable[..., Any], *args: Any, ignore: tuple[str, ...] = (), **kwargs: Any) -> Any:
    request = ArgumentBinder(function, ignore).request(args, kwargs)
    return None if request is None else json.loads(request.body)["arguments"]


def search(query: str, limit: int = 10, *more: str, deep: bool = False, **rest: object) -> None: ...


def test_arguments_have_names_and_defaults_are_there() -> None:
    assert asked(search, "x") == {"query": "x", "limit": 10, "deep": False}
    assert asked(search, "x") == asked(search, query="x", limit=10)


def test_all_further_arguments_are_kept() -> None:
    assert asked(search, "x", 3, "a", "b", deep=True, lang="en") == {
        "query": "x",
        "limit": 3,
        "more": ["a", "b"],
        "deep": True,
        "lang": "en",
    }


class Desk:
    def lookup(self, order: str) -> None: ...

    def build(cls, order: str) -> None: ...  # noqa: N805  as a class method's function has it


@pytest.mark.parametrize("method", [Desk.lookup, Desk.build])
def test_whom_a_method_belongs_to_is_no_argument(method: Callable[..., Any]) -> None:
    assert asked(method, Desk(), "4711") == {"order": "4711"}


def test_ignored_arguments_do_not_count() -> None:
    assert asked(search, "x", ignore=("limit", "lang"), lang="en") == {"query": "x", "deep": False}


@dataclass
class Money:
    amount: Decimal
    owner: object


def test_what_is_no_json_becomes_text_or_fields_and_the_same_in_every_run() -> None:
    first, second = (asked(search, Money(Decimal("1.5"), object())) for _ in range(2))
    assert first["query"] == {"amount": "1.5", "owner": "<object object>"}
    assert first == second


def test_a_call_that_python_will_refuse_is_left_to_python() -> None:
    assert asked(search) is None
    assert asked(search, "x", limit=1, query="y") is None


def body(*args: Any, function: Callable[..., Any] = search) -> bytes:
    request = ArgumentBinder(function, ()).request(args, {})
    assert request is not None
    return request.body


class Talkative:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return "x" * 3000 + self.text


@dataclass
class Extended(OrderedDict[str, int]):
    more: int = 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Decimal("1"), "1"),
        (b"hi", "aGk="),
        ((1,), [1]),
        ({1}, [1]),
        ({1: "a"}, [[1, "a"]]),
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        (Money(Decimal("1"), None), {"amount": "1", "owner": None}),
        (Talkative("a"), Talkative("b")),
        (Extended({"a": 1}), Extended({"a": 2})),  # type: ignore[arg-type]
    ],
    ids=["Decimal", "bytes", "tuple", "set", "dict", "float", "bool", "zero", "object", "long", "content"],
)
def test_different_arguments_are_different_calls(one: Any, other: Any) -> None:
    assert body(one) != body(other)
    assert body(one) == body(one)


def test_what_a_keyword_collides_with_is_still_told_apart() -> None:
    def odd(a: int, /, **rest: int) -> None: ...

    bodies = {(ArgumentBinder(odd, ()).request((first,), {"a": 2}) or ToolRequest(body=b"")).body for first in (1, 5)}
    assert len(bodies) == 2


def test_objects_whose_text_says_nothing_are_named() -> None:
    request = ArgumentBinder(search, ()).request((object(), [Talkative("a")]), {})
    assert request is not None
    assert request.vague == ("object",)


def test_a_class_that_moves_to_a_module_makes_no_other_call() -> None:
    moved = type("Money", (Money,), {"__module__": "elsewhere", "__qualname__": "Money"})
    assert body(Money(Decimal("1"), None)) == body(moved(Decimal("1"), None))


def test_a_function_without_a_signature_has_its_arguments_in_order() -> None:
    assert json.loads(body("a", 1, function=dict.pop))["arguments"] == {"args": ["a", 1]}
