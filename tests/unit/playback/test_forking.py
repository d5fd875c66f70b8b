"""Fork: what is played, what goes live, and with which change, decided by step and not by count."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from rewind.match.call import understand
from rewind.model.http import HttpRequest, HttpResponse, ResponseHead
from rewind.model.ids import MatchKey, blob_id
from rewind.model.step import Step
from rewind.playback.decision import Decision, Forward, Put, Refuse, Serve, StopRun
from rewind.playback.fork_policy import ForkAt
from rewind.playback.tape import Tape
from support.exchanges import request_of
from support.recorded_requests import Recorded
from unit.playback.test_tape_and_policies import after_tool, question


class Marking:
    """Alterations that leave a mark, so that a test sees which of them was meant."""

    def __init__(self, *, substitutes: bool = False) -> None:
        self.substitutes = substitutes
        self.wanted: list[int] = []

    def played(self, index: int) -> Callable[[HttpRequest], None] | None:
        self.wanted.append(index)
        return None

    def before(self, request: HttpRequest) -> HttpRequest:
        return replace(request, body=b"before")

    def at_the_step(self, request: HttpRequest) -> HttpRequest:
        return replace(request, body=b"at the step")

    def afterwards(self, request: HttpRequest) -> HttpRequest:
        return replace(request, body=b"afterwards")

    def answer(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse(head=ResponseHead(status=200, reason="OK", headers=()), body=b"put in", chunks=())


class Fork:
    """A fork of a recording in memory."""

    def __init__(
        self,
        *requests: HttpRequest,
        at: int,
        on_miss_live: bool = False,
        allow_drift: bool = False,
        substitutes: bool = False,
    ) -> None:
        recorded = Recorded(*requests)
        self.steps = recorded.steps
        self.policy = ForkAt(
            Tape(recorded.steps, unanswered_from=at),
            recorded.recall,
            Marking(substitutes=substitutes),
            session="7f3a2b9c",
            at=at,
            on_miss_live=on_miss_live,
            allow_drift=allow_drift,
        )
        self._number = 0

    def decide(self, request: HttpRequest) -> Decision:
        self._number += 1
        return self.policy.decide(understand(request, index=self._number))

    def asks(self, request: HttpRequest) -> str:
        """What becomes of it, in a word."""
        match self.decide(request):
            case Serve(step=step):
                return f"step {step.index}"
            case Forward(change=change):
                assert change is not None
                return change(request).body.decode()
            case Put(answer=answer):
                return answer(request).body.decode()
            case Refuse():
                return "refused"
            case StopRun(reason=reason):
                return reason


def test_steps_before_the_cut_are_played_the_cut_is_changed_and_the_rest_goes_live() -> None:
    fork = Fork(*map(question, ("one", "two", "three", "four")), at=3)
    asked = [fork.asks(question(text)) for text in ("one", "two", "three", "four", "five")]
    assert asked == ["step 1", "step 2", "at the step", "afterwards", "afterwards"]
    assert fork.policy.was_asked and fork.policy.askings == [3]


@pytest.mark.parametrize("seed", range(8))
def test_parallel_calls_around_the_cut_go_by_step_whatever_their_order(seed: int) -> None:
    texts = ["one", "two", "three", "four"]
    order = random.Random(seed).sample(texts, 4)
    fork = Fork(*map(question, texts), at=3)
    became = {text: fork.asks(question(text)) for text in order}
    assert (became["one"], became["two"], became["three"]) == ("step 1", "step 2", "at the step")
    early = order.index("four") < order.index("three")
    assert became["four"] == ("before" if early else "afterwards")


def test_what_was_never_recorded_is_a_miss_before_the_cut_and_live_after_it() -> None:
    fork = Fork(question("one"), question("two"), at=2)
    refused = fork.decide(question("other"))
    assert isinstance(refused, Refuse)
    assert "never recorded" in refused.reason
    assert "rewind replay" not in str(refused.miss and refused.miss.report)
    assert fork.asks(question("two")) == "at the step"
    assert fork.asks(question("other")) == "afterwards"


def test_a_miss_before_the_cut_may_go_live() -> None:
    fork = Fork(question("one"), question("two"), at=2, on_miss_live=True)
    assert fork.asks(question("other")) == "before"
    assert not fork.policy.was_asked


def test_a_prefix_step_that_is_asked_after_the_cut_is_still_played() -> None:
    fork = Fork(question("one"), question("two"), at=2)
    assert [fork.asks(question("two")), fork.asks(question("one"))] == ["at the step", "step 1"]


def test_equal_requests_on_both_sides_of_the_cut_are_taken_in_their_order() -> None:
    fork = Fork(question("done?"), question("other"), question("done?"), question("done?"), at=3)
    asked = [fork.asks(question(text)) for text in ("done?", "other", "done?")]
    assert asked == ["step 1", "step 2", "at the step"]


def test_twins_around_the_cut_keep_their_own_step() -> None:
    fork = Fork(after_tool("call_a"), after_tool("call_b"), at=2)
    assert fork.asks(after_tool("call_b")) == "at the step"
    assert fork.asks(after_tool("call_a")) == "step 1"


def test_who_asks_the_cut_again_after_a_failure_means_the_same_request_edits_and_all() -> None:
    fork = Fork(question("one"), question("two"), at=1)
    for number in (1, 2, 3):
        assert fork.asks(question("one")) == "at the step"
        fork.policy.ended(number, good=False)
    assert fork.policy.askings == [1, 2, 3]


def test_an_equal_request_after_a_good_answer_is_another_call() -> None:
    fork = Fork(question("done?"), question("done?"), at=1)
    assert fork.asks(question("done?")) == "at the step"
    fork.policy.ended(1, good=True)
    assert [fork.asks(question("done?")) for _ in range(2)] == ["afterwards", "afterwards"]
    assert fork.policy.askings == [1]


def test_a_twin_of_the_cut_while_that_is_under_way_is_another_call_and_the_very_same_bytes_are_not() -> None:
    fork = Fork(after_tool("call_a"), after_tool("call_b"), at=1)
    assert fork.asks(after_tool("call_a")) == "at the step"
    assert fork.asks(after_tool("call_b")) == "afterwards", "only its ids tell them apart"
    assert fork.asks(after_tool("call_a")) == "at the step", "a client that gave up and asks again"


def test_a_failed_cut_that_is_asked_again_leaves_its_twin_in_the_prefix_alone() -> None:
    fork = Fork(after_tool("call_a"), after_tool("call_b"), at=2)
    assert fork.asks(after_tool("call_b")) == "at the step"
    fork.policy.ended(1, good=False)
    assert fork.asks(after_tool("call_b")) == "at the step"
    assert fork.asks(after_tool("call_a")) == "step 1"


def test_an_answer_is_put_in_once_and_asked_again_the_model_answers() -> None:
    fork = Fork(question("one"), at=1, substitutes=True)
    assert [fork.asks(question("one")) for _ in range(2)] == ["put in", "afterwards"]


# An agent whose requests drift


def clocked(time: int, *texts: str) -> HttpRequest:
    """An agent with the time in its prompt."""
    turns = [{"role": "user", "content": text} for text in texts]
    system = {"role": "system", "content": f"You are a clerk. Time: {time}"}
    return request_of({"model": "gpt-4o-mini", "messages": [system, *turns]})


RECORDED = [clocked(1, *"abc"[:count]) for count in (1, 2, 3)]


def test_a_changed_request_in_the_same_place_is_served_and_cut_where_drift_is_allowed() -> None:
    fork = Fork(*RECORDED, at=2, allow_drift=True)
    first = fork.decide(clocked(2, "a"))
    assert isinstance(first, Serve) and first.step.index == 1 and first.drifted
    assert [fork.asks(clocked(2, *texts)) for texts in ("ab", "abc")] == ["at the step", "afterwards"]
    assert fork.policy.drifted == [1, 2]


def test_a_drifted_cut_that_fails_is_asked_again_with_its_edits() -> None:
    fork = Fork(*RECORDED, at=1, allow_drift=True)
    assert fork.asks(clocked(2, "a")) == "at the step"
    fork.policy.ended(1, good=False)
    assert fork.asks(clocked(2, "a")) == "at the step"


def test_what_is_longer_or_shorter_than_any_step_has_not_drifted() -> None:
    fork = Fork(*RECORDED, at=2, allow_drift=True)
    assert fork.asks(clocked(2, "a", "b", "c", "d")) == "refused"
    assert not fork.policy.drifted


def test_what_went_live_unmatched_is_told_when_the_step_was_never_asked() -> None:
    fork = Fork(*RECORDED, at=2, on_miss_live=True)
    assert [fork.asks(clocked(2, *texts)) for texts in ("a", "ab", "abc")] == ["before"] * 3
    nearest = fork.policy.nearest_miss(fork.steps[1])
    assert nearest is not None and "differs in messages[0].content" in nearest.reason


def test_going_live_is_not_advised_where_the_step_could_never_match() -> None:
    fork = Fork(*RECORDED, at=2)
    refused = fork.decide(clocked(2, "a"))
    assert isinstance(refused, Refuse)
    assert "--on-miss live" not in str(refused.miss and refused.miss.report)
    assert "rewind fork 7f3a2b9c:2 --allow-drift" in str(refused.miss and refused.miss.report)
    assert r"ignore_text = ['Time: \S+']" in str(refused.miss and refused.miss.report)
    assert fork.asks(clocked(1, "a")) == "step 1"
    once_more = fork.decide(clocked(1, "a"))
    assert isinstance(once_more, Refuse)
    assert "rewind fork 7f3a2b9c:2 --on-miss live" in str(once_more.miss and once_more.miss.report), (
        "one call more does not part the runs"
    )


def test_when_it_is_over_nobody_is_answered() -> None:
    fork = Fork(question("one"), question("two"), at=2)
    fork.policy.over = "enough"
    assert fork.asks(question("one")) == "enough"


def test_a_step_that_was_never_answered_can_be_the_cut_but_not_a_prefix() -> None:
    recorded = Recorded(question("one"), question("two"), question("three"), unanswered=(1, 3))
    policy = ForkAt(Tape(recorded.steps, unanswered_from=3), recorded.recall, Marking(), session="7f3a2b9c", at=3)
    assert isinstance(policy.decide(understand(question("one"))), Refuse)
    assert isinstance(policy.decide(understand(question("two"))), Serve)
    assert isinstance(policy.decide(understand(question("three"))), Forward)


def test_a_run_that_never_asks_the_cut_can_tell_what_came_nearest() -> None:
    fork = Fork(question("How warm is it in Oslo?"), question("Tell me a joke."), at=2)
    fork.asks(question("Tell me a long joke."))
    assert fork.policy.unasked() == (1,)
    nearest = fork.policy.nearest_miss(fork.steps[1])
    assert nearest is not None
    assert "step 2 comes closest and differs in messages[0].content" in nearest.reason
    assert Fork(question("one"), at=1).policy.nearest_miss(fork.steps[0]) is None


# A tape with steps that a fork had changed


def changed(step: Step, asked: str) -> Step:
    return replace(step, request=replace(step.request, asked_key=MatchKey(asked)))


def test_a_step_that_was_changed_on_its_way_is_found_by_what_the_agent_sent() -> None:
    (plain,) = Recorded(question("as it went out")).steps
    tape = Tape([changed(plain, "rw1:asked")])
    taken = tape.take(MatchKey("rw1:asked"), blob_id(b"another body"))
    assert taken is not None and taken.index == 1
    assert tape.take(MatchKey("rw1:asked"), blob_id(b"")) is None
    assert tape.take(plain.request.match_key, plain.request.body) is None, "it was played already"


def test_an_agent_that_has_learned_the_change_finds_it_by_what_went_out() -> None:
    (plain,) = Recorded(question("as it went out")).steps
    tape = Tape([changed(plain, "rw1:asked")])
    assert tape.take(plain.request.match_key, plain.request.body) is not None
    assert tape.take(MatchKey("rw1:asked"), blob_id(b"")) is None


def test_who_really_asks_what_another_step_became_gets_its_own_answer() -> None:
    first, second = Recorded(question("same"), question("same")).steps
    tape = Tape([changed(first, "rw1:asked"), second])
    own = tape.take(second.request.match_key, second.request.body)
    edited = tape.take(MatchKey("rw1:asked"), blob_id(b""))
    assert own is not None and own.index == 2
    assert edited is not None and edited.index == 1
