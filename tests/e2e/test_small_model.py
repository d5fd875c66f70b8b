"""A real model that never repeats itself: recorded, replayed and compared, offline."""

import json
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from support.effort import ALL, effort
from support.lab import Lab
from support.script import Playbook, Request
from support.small_model.apis import SmallModelApis
from support.small_model.model import SmallModel

pytestmark = pytest.mark.e2e

RULE = "You work for a shop. Refund broken goods."


def test_runs_of_a_sampled_model_replay_word_for_word_and_part_only_where_they_decide_otherwise(
    small_model: SmallModel, lab: Callable[[Playbook], Lab]
) -> None:
    with SmallModel(seed=None if ALL else 14) as model:
        shop = lab(SmallModelApis(model))
        runs = [shop.record("shop_agent.py", "openai", RULE).ok() for _ in range(effort(2, 6))]
    assert len({run.stdout for run in runs}) > 1, "a sampled model does not repeat itself"
    assert shop.replay(runs[-1].session).ok().stdout == runs[-1].stdout
    for first, second in combinations(runs, 2):
        found = shop.rewind("bisect", first.session, second.session, "--json")
        verdict = json.loads(found.stdout)
        decisive = [one for one in verdict["partings"] if one["weight"] == "decisive"]
        assert verdict["diverges"] is bool(decisive), "other words alone are no parting"
        assert found.code == bool(decisive)
        actions = (first.lines[0]["action"], second.lines[0]["action"])
        if actions[0] != actions[1]:
            assert verdict["step"] == {"good": 1, "bad": 1}
            assert actions in [(change["before"], change["after"]) for change in decisive[0]["changes"]]
        for change in (change for one in decisive for change in one["changes"]):
            assert change["before"] != change["after"], "what is named does differ"


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
