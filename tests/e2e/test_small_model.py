"""A real model that never repeats itself: recorded, replayed and compared, offline."""

import json
from collections.abc import Callable

import pytest

from support.lab import Lab
from support.script import Playbook
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
