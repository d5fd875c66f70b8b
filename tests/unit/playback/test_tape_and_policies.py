"""What should happen to a call: the tape's lanes, and the policies that ask them."""

import random
from typing import Any

import pytest

from rewind.match.call import understand
from rewind.model.http import HttpRequest
from rewind.model.ids import MatchKey, blob_id
from rewind.playback.decision import Forward, Refuse, Serve
from rewind.playback.policies import RecordAll, Replay
from rewind.playback.tape import Tape
from support.exchanges import request_of
from support.recorded_requests import Recorded


def question(text: str, **more: Any) -> HttpRequest:
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}], **more}
    return request_of(body)


def after_tool(call_id: str) -> HttpRequest:
    """A turn that carries a tool result; only the call's id differs between twins."""
    tool = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return request_of(
        {
            "model": "gpt-4o-mini",
            "messages": [
                {"role": "user", "content": "Look."},
                {"role": "assistant", "content": None, "tool_calls": [tool]},
                {"role": "tool", "tool_call_id": call_id, "content": "a cat"},
            ],
        }
    )


def served(policy: Replay, request: HttpRequest) -> int | None:
    """The step that answers, or ``None`` for a refusal."""
    decision = policy.decide(understand(request))
    return decision.step.index if isinstance(decision, Serve) else None


def refusal(policy: Replay, request: HttpRequest) -> Refuse:
    decision = policy.decide(understand(request))
    assert isinstance(decision, Refuse)
    return decision


# The tape


def test_the_nth_request_of_a_key_gets_the_nth_answer_of_that_key() -> None:
    recorded = Recorded(question("done?"), question("other"), question("done?"), question("done?"))
    policy = recorded.replay()
    assert [served(policy, question("done?")) for _ in range(4)] == [1, 3, 4, None]
    assert served(policy, question("other")) == 2


@pytest.mark.parametrize("seed", range(5))
def test_parallel_calls_may_come_in_any_order(seed: int) -> None:
    texts = [f"question {number % 4}" for number in range(12)]
    policy = Recorded(*map(question, texts)).replay()
    asked = list(enumerate(texts, 1))
    random.Random(seed).shuffle(asked)
    answered = {index: served(policy, question(text)) for index, text in asked}
    assert sorted(map(int, filter(None, answered.values()))) == list(range(1, 13)), "each answer is played once"
    for index, text in asked:
        step = answered[index]
        assert step is not None and texts[step - 1] == text, "nobody gets the answer to another question"


def test_the_order_of_keys_and_the_way_a_body_is_written_do_not_matter() -> None:
    policy = Recorded(question("hi", temperature=0)).replay()
    other = request_of(b'{ "temperature": 0, "messages": [{"content": "hi", "role": "user"}], "model": "gpt-4o-mini" }')
    assert served(policy, other) == 1


def test_twin_conversations_do_not_swap_their_answers() -> None:
    recorded = Recorded(after_tool("call_a"), after_tool("call_b"))
    assert recorded.calls[1].key == recorded.calls[2].key
    policy = recorded.replay()
    assert served(policy, after_tool("call_b")) == 2
    assert served(policy, after_tool("call_a")) == 1


def test_a_twin_with_a_new_id_gets_the_next_of_them() -> None:
    policy = Recorded(after_tool("call_a"), after_tool("call_b")).replay()
    assert [served(policy, after_tool(name)) for name in ("call_x", "call_y", "call_z")] == [1, 2, None]


def test_a_request_that_died_unanswered_has_nothing_to_play() -> None:
    recorded = Recorded(question("one"), question("two"), unanswered=(1,))
    assert len(recorded.tape) == 1
    assert served(recorded.replay(), question("one")) is None


def test_the_tape_knows_what_was_played() -> None:
    recorded = Recorded(question("one"), question("two"))
    served(recorded.replay(), question("two"))
    assert recorded.tape.count_played == 1
    assert recorded.tape.played(2) and not recorded.tape.played(1)
    assert [step.index for step in recorded.tape.unplayed()] == [1]
    assert [step.index for step in recorded.tape.steps()] == [1, 2]


def test_keys_may_be_made_anew_by_other_rules() -> None:
    steps = Recorded(question("one"), question("two")).steps
    tape = Tape(steps, key_of=lambda step: MatchKey("rw1:same"))
    taken = [tape.take(MatchKey("rw1:same"), blob_id(b"")) for _ in range(3)]
    assert [step.index if step else None for step in taken] == [1, 2, None]
    assert tape.take(steps[0].request.match_key, steps[0].request.body) is None
    other = Tape(steps, key_of=lambda step: MatchKey("rw1:same"))
    assert other.take_step(2).index == 2


# At a glance


def test_the_very_same_bytes_are_served_at_a_glance_in_their_order() -> None:
    recorded = Recorded(question("hi"), question("hi"))
    policy = recorded.replay()
    found = [policy.at_a_glance(question("hi")) for _ in range(3)]
    assert [serve.step.index if serve else None for serve in found] == [1, 2, None]
    assert recorded.recalled == []


def test_a_glance_does_not_take_another_address_or_another_body_for_the_same() -> None:
    policy = Recorded(question("hi")).replay()
    assert policy.at_a_glance(question("ho")) is None
    elsewhere = request_of(
        {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hi"}]}, target="/v1/responses"
    )
    assert policy.at_a_glance(elsewhere) is None


def test_a_glance_and_a_long_look_share_the_lane() -> None:
    policy = Recorded(question("hi"), question("hi")).replay()
    glanced = policy.at_a_glance(question("hi"))
    assert glanced is not None and glanced.step.index == 1
    assert served(policy, question("hi")) == 2
    assert policy.at_a_glance(question("hi")) is None


# Misses


def test_never_recorded_is_told_from_already_played() -> None:
    policy = Recorded(question("one"), question("two")).replay()
    assert served(policy, question("one")) == 1
    again = refusal(policy, question("one"))
    assert "already played" in again.reason and "Already played" in str(again.miss and again.miss.report)
    never = refusal(policy, question("three"))
    assert "never recorded" in never.reason and "Never recorded" in str(never.miss and never.miss.report)
    assert "messages[0].content" in never.reason


def test_a_miss_takes_nothing_from_the_tape() -> None:
    recorded = Recorded(question("one"))
    policy = recorded.replay()
    refusal(policy, question("two"))
    assert recorded.tape.count_played == 0
    assert served(policy, question("one")) == 1


def test_recorded_calls_are_read_only_for_a_miss_and_only_once() -> None:
    recorded = Recorded(question("one"), question("two"))
    policy = recorded.replay()
    served(policy, question("one"))
    assert recorded.recalled == []
    refusal(policy, question("three"))
    refusal(policy, question("four"))
    assert sorted(recorded.recalled) == [1, 2]


# Drift and live


def test_drift_is_served_only_where_it_is_allowed_and_is_marked() -> None:
    assert served(Recorded(question("What is the weather?")).replay(), question("How is the weather?")) is None
    recorded = Recorded(question("Tell me a joke."), question("What is the weather?"))
    policy = recorded.replay(allow_drift=True)
    decision = policy.decide(understand(question("How is the weather?")))
    assert isinstance(decision, Serve)
    assert decision.drifted and decision.step.index == 2
    exact = policy.decide(understand(question("Tell me a joke.")))
    assert isinstance(exact, Serve) and not exact.drifted


def test_a_drifted_answer_is_played_like_any_other_and_not_twice() -> None:
    recorded = Recorded(question("What is the weather?"))
    policy = recorded.replay(allow_drift=True)
    assert served(policy, question("How is the weather?")) == 1
    assert recorded.tape.count_played == 1
    assert served(policy, question("How was the weather?")) is None


def test_drift_never_serves_a_stream_to_who_did_not_ask_for_one() -> None:
    policy = Recorded(question("Hello there", stream=True)).replay(allow_drift=True)
    assert served(policy, question("Hello there!")) is None


def test_a_call_to_another_address_does_not_drift() -> None:
    policy = Recorded(question("Hello")).replay(allow_drift=True)
    embedding = request_of({"model": "text-embedding-3-small", "input": "Hello"}, target="/v1/embeddings")
    assert served(policy, embedding) is None


def test_a_miss_goes_live_where_that_was_asked_for_and_drift_comes_first() -> None:
    live = Recorded(question("one")).replay(on_miss_live=True)
    assert served(live, question("one")) == 1
    assert isinstance(live.decide(understand(question("one"))), Forward)
    both = Recorded(question("What is the weather?")).replay(on_miss_live=True, allow_drift=True)
    assert served(both, question("How is the weather?")) == 1


def test_a_replay_never_forwards_before_it_has_seen_the_body() -> None:
    head = question("one").head
    assert Recorded(question("one")).replay(on_miss_live=True).early(head) is None


def test_recording_forwards_everything_at_once() -> None:
    policy = RecordAll()
    assert isinstance(policy.early(question("one").head), Forward)
    assert isinstance(policy.decide(understand(question("one"))), Forward)
    assert policy.at_a_glance(question("one")) is None
