"""Requests that wait for their turn: in order, without holding up the loop, and given back where nobody waits."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import pytest

from rewind.gateway.exchange import Decided, Hold, Pass, Verdict
from rewind.match.call import understand
from rewind.model.step import Step
from rewind.playback.decision import Decision, Refuse, Serve
from rewind.playback.policies import StepByStep, UpTo
from rewind.playback.tape import Tape
from rewind.runs.held_requests import HeldRequests
from support.exchanges import request_of
from unit.store.making import request, response

CALL = understand(request_of({"model": "m", "messages": []}))


@dataclass
class Still:
    """A clock that a test moves."""

    at: int = 0

    def now(self) -> float:
        return self.at / 1_000_000

    def ticks(self) -> int:
        return self.at


class Scene:
    """HeldRequests over a tape of steps, and the answers in the order in which they were given."""

    def __init__(self, first: int, *, last: int | None = None, pace: float = 0.0) -> None:
        self.tape = Tape(Step(request=request(index), response=response(ms=1.0)) for index in range(1, 7))
        self.clock = Still()
        stop_rule = StepByStep(first) if last is None else UpTo(self.tape, last)
        self.held_requests = HeldRequests(stop_rule, put_back=self.tape.put_back, clock=self.clock, pace=pace)
        self.given: list[int | None] = []

    def ask(self, index: int | None) -> Verdict:
        """A request that this step answers; ``None`` for one that none does."""
        decision: Decision = Refuse(reason="no") if index is None else Serve(step=self.tape.take_step(index))

        def carry() -> Decided:
            self.given.append(index)
            return Pass()

        return self.held_requests.take(CALL, decision, carry)

    def stop(self) -> int | None:
        """The step of the request to look at."""
        held = self.held_requests.next(0.001)
        assert held is None or held.step is not None
        return None if held is None or held.step is None else held.step.index


def held(verdict: Verdict) -> "asyncio.Future[Decided]":
    assert isinstance(verdict, Hold)
    return verdict.decided


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 10))


def test_what_comes_before_the_step_is_answered_at_once() -> None:
    async def play() -> None:
        scene = Scene(3)
        assert [scene.ask(index) for index in (1, 2, None)] == [Pass()] * 3
        assert scene.stop() is None

    run(play())


def test_those_that_come_while_one_is_looked_at_get_their_turn_in_order() -> None:
    async def play() -> None:
        scene = Scene(2)
        waiting = [held(scene.ask(index)) for index in (2, 4, None, 3)]
        assert scene.ask(1) == Pass(), "a step before it does not wait"
        assert [scene.stop(), scene.stop()] == [2, None], "one at a time"
        scene.held_requests.go_on()
        assert await waiting[0] == Pass()
        assert scene.stop() == 4
        assert scene.given == [1, 2] and not waiting[2].done(), "a miss does not overtake"
        scene.held_requests.go_on()
        await waiting[2]
        assert scene.stop() == 3
        assert scene.given == [1, 2, 4, None]
        scene.held_requests.go_on()
        await waiting[3]
        assert scene.ask(None) == Pass(), "nobody waits any more"
        assert held(scene.ask(5)) and scene.stop() == 5

    run(play())


def test_let_go_freely_all_that_wait_and_all_that_come_are_answered() -> None:
    async def play() -> None:
        scene = Scene(1)
        waiting = [held(scene.ask(index)) for index in (1, 2, 3)]
        assert scene.stop() == 1
        scene.held_requests.go_on(freely=True)
        await asyncio.gather(*waiting)
        assert scene.given == [1, 2, 3]
        assert scene.ask(4) == Pass() and scene.stop() is None

    run(play())


def test_whoever_gives_up_leaves_its_step_on_the_tape_and_is_known_when_it_comes_back() -> None:
    async def play() -> None:
        scene = Scene(1)
        first = held(scene.ask(1))
        assert scene.stop() == 1
        first.cancel()
        await settle()
        assert not scene.tape.played(1)
        again, second = held(scene.ask(1)), held(scene.ask(2))
        scene.held_requests.go_on()
        await again
        assert scene.stop() == 2, "the answer about step 1 was given"
        assert scene.given == [1] and not second.done()

    run(play())


def test_one_that_gives_up_behind_others_is_passed_over() -> None:
    async def play() -> None:
        scene = Scene(1)
        first, second, third = (held(scene.ask(index)) for index in (1, 2, 3))
        assert scene.stop() == 1
        second.cancel()
        await settle()
        scene.held_requests.go_on()
        await first
        assert scene.stop() == 3
        assert scene.given == [1] and not scene.tape.played(2) and not third.done()

    run(play())


def test_what_still_waits_at_the_end_was_not_played() -> None:
    async def play() -> None:
        scene = Scene(2)
        scene.ask(1)
        first, _ = held(scene.ask(2)), held(scene.ask(3))
        first.cancel()
        scene.held_requests.close()
        assert scene.tape.count_played == 1

    run(play())


def test_a_fault_while_carrying_out_reaches_whoever_waits() -> None:
    async def play() -> None:
        scene = Scene(1)

        def carry() -> Decided:
            raise KeyError("a bug")

        verdict = scene.held_requests.take(CALL, Serve(step=scene.tape.take_step(1)), carry)
        assert scene.stop() == 1
        scene.held_requests.go_on()
        with pytest.raises(KeyError):
            await held(verdict)

    run(play())


def test_slow_answers_are_known_to_be_under_way() -> None:
    scene = Scene(0, last=1, pace=2.0)  # every step took a millisecond
    scene.ask(1)
    assert scene.held_requests.answering
    scene.clock.at += 2_000
    assert not scene.held_requests.answering


def test_a_loop_that_has_ended_is_no_trouble() -> None:
    scene = Scene(1)

    async def play() -> None:
        scene.ask(1)

    run(play())
    scene.held_requests.go_on()
    scene.held_requests.close()
    assert scene.tape.count_played == 0
