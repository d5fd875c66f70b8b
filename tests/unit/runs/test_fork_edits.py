"""The edits of a fork at work: at the step, before and after it, and over forks of forks."""

import json
from typing import Any

import pytest

from rewind.edit.edits import parse_edit
from rewind.errors import CannotEdit, UsageError
from rewind.model.http import HttpRequest
from rewind.runs.fork.edits import EarlierEdits, ForkEdits, ManualEdit, merged
from support.exchanges import request_of


def said(*texts: str, system: str = "You are a clerk.", **more: Any) -> HttpRequest:
    turns = [{"role": "user", "content": text} for text in texts]
    return request_of({"model": "m", **more, "messages": [{"role": "system", "content": system}, *turns]})


def system_of(request: HttpRequest) -> str:
    return str(json.loads(request.body)["messages"][0]["content"])


def test_before_the_step_nothing_is_changed_and_afterwards_the_edit_holds() -> None:
    editing = ForkEdits([parse_edit("system=Be kind.")])
    early = said("a")
    assert editing.before(early) is early
    assert system_of(editing.at_the_step(said("a", "b"))) == "Be kind."
    assert system_of(editing.afterwards(said("a", "b", "c"))) == "Be kind."
    other = said("x", system="You are a judge.")
    assert editing.afterwards(other) is other, "another agent is left alone"


def test_without_edits_the_very_same_request_goes_on() -> None:
    editing, request = ForkEdits([]), said("a")
    assert editing.before(request) is editing.at_the_step(request) is editing.afterwards(request) is request
    assert not editing.substitutes


def test_an_answer_that_is_put_in_lets_the_other_edits_hold() -> None:
    editing = ForkEdits([parse_edit("system=Be kind."), parse_edit("response=Hello.")])
    assert editing.substitutes
    answer = editing.answer(said("a"))
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == "Hello."
    assert system_of(editing.afterwards(said("a", "b"))) == "Be kind."


def test_what_earlier_forks_changed_is_changed_again_from_their_step_on() -> None:
    earlier = [
        EarlierEdits(2, (parse_edit("system+=One."),)),
        EarlierEdits(2, (parse_edit("system+=Two."),)),
        EarlierEdits(3, (parse_edit("temperature=0"),)),
    ]
    editing = ForkEdits([parse_edit("system+=Own.")], earlier=earlier)
    assert editing.played(1) is None
    first = said("a")
    assert editing.before(first) is first
    for step, request in ((2, said("a", "b")), (3, said("a", "b", "c"))):
        seen = editing.played(step)
        assert seen is not None
        seen(request)
    changed = json.loads(editing.before(said("a", "b", "c", "d")).body)
    assert changed["messages"][0]["content"] == "You are a clerk.\nOne.\nTwo."
    assert changed["temperature"] == 0
    at = json.loads(editing.at_the_step(said("a", "b", "c", "d")).body)
    assert (at["messages"][0]["content"], at["temperature"]) == ("You are a clerk.\nOne.\nTwo.\nOwn.", 0)
    after = json.loads(editing.afterwards(said("a", "b", "c", "d", "e")).body)
    assert (after["messages"][0]["content"], after["temperature"]) == ("You are a clerk.\nOne.\nTwo.\nOwn.", 0)


def test_what_must_not_go_out_is_asked_after_the_edit() -> None:
    def check(request: HttpRequest) -> None:
        if json.loads(request.body)["model"] == "dear":
            raise UsageError("too dear")

    editing = ForkEdits([parse_edit("model=dear")], check=check)
    editing.before(said("a"))
    with pytest.raises(UsageError, match="too dear"):
        editing.at_the_step(said("a"))


# By hand


def test_by_hand_only_what_was_changed_is_changed() -> None:
    shown = {"model": "m", "user": "REDACTEDxx", "messages": [{"id": "1", "content": "a"}, {"id": "2", "content": "b"}]}
    saved = {"model": "m", "user": "REDACTEDxx", "messages": [{"id": "1", "content": "a"}, {"id": "2", "content": "B"}]}
    live = {"model": "m", "user": "secret", "messages": [{"id": "7", "content": "a"}, {"id": "8", "content": "b"}]}
    changed = ManualEdit(shown, saved).apply(request_of(live))
    assert json.loads(changed.body) == live | {"messages": [{"id": "7", "content": "a"}, {"id": "8", "content": "B"}]}


@pytest.mark.parametrize(
    ("shown", "saved", "live", "expected"),
    [
        ({"a": 1}, {"a": 2}, {"a": 1}, {"a": 2}),
        ({"a": 1, "b": 1}, {"a": 1}, {"a": 1, "b": 1}, {"a": 1}),
        ({"a": 1}, {"a": 1, "b": 2}, {"a": 9}, {"a": 9, "b": 2}),
        ({"a": 1}, {"a": 2}, {"a": 1, "new": 3}, {"a": 2, "new": 3}),
        ([1, 2], [1, 2, 3], [1, 9], [1, 9, 3]),
        ([1, 2, 3], [1, 3], [7, 8, 9], [7, 9]),
        ([1, 2], [0, 1], [1], [0, 1]),
        ([1, 2], [1, 3], [9, 2], [9, 3]),
        ({"a": {"b": [1]}}, {"a": {"b": [2]}}, {"a": "gone"}, {"a": {"b": [2]}}),
        ("a", "b", "a", "b"),
    ],
)
def test_a_change_is_made_to_what_is_there(shown: Any, saved: Any, live: Any, expected: Any) -> None:
    assert merged(shown, saved, live) == expected


def test_a_body_that_is_no_json_cannot_be_edited_by_hand() -> None:
    with pytest.raises(CannotEdit):
        ManualEdit({"a": 1}, {"a": 2}).apply(request_of(b"not json"))
