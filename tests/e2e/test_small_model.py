"""A real model that never repeats itself: recorded, replayed and compared, offline."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from support.lab import Lab
from support.script import Playbook, Request
from support.small_model.apis import SmallModelApis
from support.small_model.model import SmallModel

pytestmark = pytest.mark.e2e

RULE = "You work for a shop. Refund broken goods."


def test_two_runs_of_a_sampled_model_replay_word_for_word_and_part_where_they_decide_otherwise(
    small_model: SmallModel, lab: Callable[[Playbook], Lab]
) -> None:
    apis = SmallModelApis(small_model)
    shop = lab(apis)
    first, second = (shop.record("shop_agent.py", "openai", RULE).ok() for _ in range(2))
    assert first.stdout != second.stdout, "a sampled model does not repeat itself"
    replayed = shop.replay(second.session).ok()
    assert replayed.stdout == second.stdout

    found = shop.rewind("bisect", first.session, second.session, "--json")
    assert found.code in (0, 1), found.talk
    if first.lines[0]["action"] != second.lines[0]["action"]:
        assert found.code == 1
        assert json.loads(found.stdout)["step"] == {"good": 1, "bad": 1}


def test_a_stream_of_a_sampled_model_replays_word_for_word(
    small_model: SmallModel, lab: Callable[[Playbook], Lab]
) -> None:
    apis = SmallModelApis(small_model)
    recorded, _ = lab(apis).record_and_replay("shop_agent.py", "anthropic", RULE)
    called, said = apis.replies
    assert recorded.lines[0] == called.tools[0].arguments
    assert recorded.lines[1]["text"] == said.text


def test_a_seed_gives_the_same_series_of_answers_and_a_tool_is_taken_or_not(small_model: SmallModel) -> None:
    series = []
    for _ in range(2):
        with SmallModel(seed=7) as model:
            series.append([model.say("Tell me of the sea.", max_tokens=12).text for _ in range(2)])
    assert series[0] == series[1]
    assert series[0][0] != series[0][1]

    takes = {"type": "object", "properties": {"order": {"type": "integer"}}}
    tool = {"type": "function", "name": "look_up", "description": "Find an order", "parameters": takes}
    apis = SmallModelApis(small_model)
    answer = apis(request_of("/v1/responses", {"model": "m", "input": "Where is it?", "tools": [tool]}))
    (reply,) = apis.replies
    output = json.loads(answer.body)["output"]
    if reply.tools:
        assert [item["name"] for item in output] == ["look_up"]
        assert isinstance(json.loads(output[0]["arguments"])["order"], int)
    else:
        assert output[0]["content"][0]["text"] == reply.text


def request_of(target: str, body: dict[str, Any]) -> Request:
    """A request as the provider sees it."""
    data = json.dumps(body).encode()
    return Request(method="POST", target=target, headers=(), body=data, raw=b"", hit=1, nth=1, connection=1)
