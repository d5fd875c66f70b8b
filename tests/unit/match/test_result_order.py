"""Results of calls that ran side by side are the same in whatever order they were written."""

import json
from typing import Any

import pytest

from rewind.match.call import Call, understand
from rewind.match.facts import RunFacts
from rewind.match.outline import Outlines
from rewind.match.renaming import Renaming
from rewind.match.result_order import in_order_of
from rewind.match.written_times import RunClock
from rewind.model.http import HttpRequest, RequestHead
from rewind.model.names import MatchMode, Renamed

SHAPES = {
    "openai chat": lambda name, text: {"role": "tool", "tool_call_id": name, "content": text},
    "openai responses": lambda name, text: {"type": "function_call_output", "call_id": name, "output": text},
    "anthropic": lambda name, text: {"type": "tool_result", "tool_use_id": name, "content": text},
    "bedrock": lambda name, text: {"toolResult": {"toolUseId": name, "content": [{"text": text}]}},
    "gemini": lambda name, text: {"functionResponse": {"id": name, "name": "look", "response": {"result": text}}},
}


def call(items: list[Any]) -> Call:
    head = RequestHead(
        method="POST",
        scheme="https",
        host="models.example.com",
        port=443,
        target="/v1/agents",
        headers=(("content-type", "application/json"),),
    )
    return understand(HttpRequest(head=head, body=json.dumps({"items": items}).encode()))


def facts(began: float) -> RunFacts:
    return RunFacts(clock=RunClock(began=began, until=lambda: began + 20), folders={}, names={}, given="")


def names(then: list[Any], now: list[Any], mode: MatchMode = "renamed") -> tuple[Renamed, ...] | None:
    """In what they differ; ``None`` if in more than names."""
    trial = Renaming(facts(1_794_910_000.0), facts(1_795_169_200.0), mode=mode).trial(call(then), call(now))
    return None if trial is None else tuple(trial.pairs)


@pytest.mark.parametrize("shape", SHAPES)
def test_results_of_one_turn_may_stand_in_another_order_and_that_is_told(shape: str) -> None:
    result = SHAPES[shape]
    first, second, third = result("call_a1", "sunny"), result("call_b2", "42"), result("call_c3", "done")
    asked: list[Any] = [{"role": "user", "content": "go"}]
    then, now = [*asked, first, second, third], [*asked, third, first, second]
    found = Renamed("order of tool results", "call_a1, call_b2, call_c3", "call_c3, call_a1, call_b2")
    assert names(then, now) == (found,)
    assert Outlines(()).of(call(then)) == Outlines(()).of(call(now))
    assert names(then, now, "fields") is None


def test_each_turn_is_put_in_order_by_itself() -> None:
    first, second, third, fourth = (SHAPES["anthropic"](f"call_{name}", name) for name in "abcd")
    said = {"role": "assistant", "content": "and then"}
    then, now = [first, second, said, third, fourth], [second, first, said, fourth, third]
    assert in_order_of(then, now) == (
        then,
        [("call_a, call_b", "call_b, call_a"), ("call_c, call_d", "call_d, call_c")],
    )
    assert in_order_of(then, [second, first, said, third, third])[0] == [first, second, said, third, third]


@pytest.mark.parametrize("shape", SHAPES)
def test_another_result_of_a_call_is_another_request(shape: str) -> None:
    result = SHAPES[shape]
    then = [result("call_a1", "sunny"), result("call_b2", "rainy")]
    assert names(then, [result("call_a1", "rainy"), result("call_b2", "sunny")]) is None, "what they say is exchanged"
    assert names(then, [result("call_b2", "sunny"), result("call_a1", "rainy")]) is None
    assert names(then, [result("call_a1", "sunny"), result("call_a1", "sunny")]) is None


def test_results_of_different_turns_and_messages_keep_their_order() -> None:
    result = SHAPES["openai chat"]
    first, second = result("call_a1", "sunny"), result("call_b2", "42")
    said = {"role": "assistant", "content": "and then"}
    assert names([first, said, second], [second, said, first]) is None
    one, two = {"role": "user", "content": "one"}, {"role": "user", "content": "two"}
    assert names([one, two], [two, one]) is None
    assert Outlines(()).of(call([one, two])) != Outlines(()).of(call([two, one]))


def test_calls_whose_ids_are_drawn_anew_keep_the_outline_of_their_request() -> None:
    then = [SHAPES["openai chat"]("3b241101-e2bb-4255-8caf-4136c566a962", "sunny"),
            SHAPES["openai chat"]("f47ac10b-58cc-4372-a567-0e02b2c3d479", "windy")]  # fmt: skip
    now = [SHAPES["openai chat"]("9c858901-8a57-4791-81fe-4c455b099bc9", "sunny"),
           SHAPES["openai chat"]("16fd2706-8baf-433b-82eb-8c7fada847da", "windy")]  # fmt: skip
    assert Outlines(()).of(call(then)) == Outlines(()).of(call(now))
    assert names(then, now) is not None
