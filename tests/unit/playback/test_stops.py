"""Where a replay stops: by step, in whatever order requests come."""

import pytest

from rewind.model.ids import MatchKey, blob_id
from rewind.model.step import Step
from rewind.playback.policies import Release, StepByStep, UpTo
from rewind.playback.tape import Tape
from unit.store.making import request, response

BODY = blob_id(b"")


def step(index: int, key: str = "", *, sent: str | None = None) -> Step:
    """``sent`` where a fork had changed what was asked."""
    asked = MatchKey(key or str(index))
    half = request(
        index, match_key=asked if sent is None else MatchKey(sent), asked_key=asked if sent else None, body=BODY
    )
    return Step(request=half, response=response())


def tape(count: int) -> Tape:
    return Tape([step(index) for index in range(1, count + 1)])


def test_before_the_step_is_asked_nothing_stops() -> None:
    stop_rule = StepByStep(3)
    assert [stop_rule.release(step(index)) for index in (1, 5, 2)] == [Release.AT_ONCE] * 3
    assert not stop_rule.reached


def test_from_the_step_on_all_stop_that_do_not_come_before_it_in_the_recording() -> None:
    stop_rule = StepByStep(3)
    turns = {index: stop_rule.release(step(index)) for index in (3, 4, 2, 6)}
    assert turns == {3: Release.LOOKED_AT, 4: Release.LOOKED_AT, 2: Release.AT_ONCE, 6: Release.LOOKED_AT}
    assert stop_rule.reached


def test_a_request_without_an_answer_is_not_stopped_at_but_waits_behind_others() -> None:
    assert StepByStep(1).release(None) is Release.IN_ORDER


def test_up_to_a_step_all_is_served_and_beyond_it_nothing() -> None:
    recorded = tape(4)
    stop_rule = UpTo(recorded, 2)
    taken = [recorded.take_step(index) for index in (1, 2, 3)]
    assert [stop_rule.release(one) for one in taken] == [Release.AT_ONCE, Release.AT_ONCE, Release.LOOKED_AT]
    assert stop_rule.release(None) is Release.LOOKED_AT, "also what was never recorded"


def test_a_later_step_that_comes_first_is_served_as_it_may_be_needed_on_the_way() -> None:
    recorded = tape(4)
    stop_rule = UpTo(recorded, 2)
    assert stop_rule.release(recorded.take_step(4)) is Release.AT_ONCE
    assert not stop_rule.reached


def test_until_all_before_it_were_asked_a_miss_is_a_miss() -> None:
    recorded = tape(4)
    stop_rule = UpTo(recorded, 3)
    recorded.take_step(3)
    assert stop_rule.reached and stop_rule.missing() == (1, 2)
    assert stop_rule.release(None) is Release.AT_ONCE
    assert stop_rule.release(recorded.take_step(2)) is Release.AT_ONCE
    assert stop_rule.release(recorded.take_step(4)) is Release.LOOKED_AT
    recorded.take_step(1)
    assert stop_rule.release(None) is Release.LOOKED_AT


# A step that was taken and not played


def test_a_step_that_is_put_back_is_found_again_in_its_place() -> None:
    recorded = Tape([step(1, "a"), step(2, "b"), step(3, "a"), step(4, "a")])
    first, third = (recorded.take(MatchKey("a"), BODY) for _ in range(2))
    assert first is not None and third is not None
    recorded.put_back(first)
    assert (recorded.count_played, recorded.played(1)) == (1, False)
    taken = [recorded.take(MatchKey("a"), BODY) for _ in range(3)]
    assert [one.index if one else None for one in taken] == [1, 4, None]


def test_putting_back_what_was_not_taken_changes_nothing() -> None:
    recorded = tape(1)
    (only,) = recorded.steps()
    recorded.put_back(only)
    assert recorded.take(MatchKey("1"), BODY) is only
    assert recorded.take(MatchKey("1"), BODY) is None


@pytest.mark.parametrize("key", ["asked", "sent"])
def test_a_step_that_a_fork_changed_is_found_again_by_both_its_keys(key: str) -> None:
    recorded = Tape([step(1, "asked", sent="sent")])
    taken = recorded.take(MatchKey("asked"), BODY)
    assert taken is not None
    recorded.put_back(taken)
    assert recorded.take(MatchKey(key), BODY) is taken
