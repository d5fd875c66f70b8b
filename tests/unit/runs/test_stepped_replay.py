"""Whoever attends to a replay: asks at each stop, lets parallel calls catch up, and always ends what was begun."""

import asyncio
from collections.abc import Callable

import pytest

from rewind.gateway.exchange import Pass, Verdict
from rewind.match.call import understand
from rewind.model.clock import SystemClock
from rewind.model.step import Step
from rewind.playback.decision import Serve
from rewind.playback.tape import Tape
from rewind.runs.replay_options import StepCommand, Stepping, StepThrough, Stop, Stopped, Until
from rewind.runs.stepped_replay import PATIENCE_SECONDS, SteppedReplay
from support.exchanges import request_of
from unit.store.making import request, response

CALL = understand(request_of({"model": "m", "messages": []}))
ENDED_BY_US = 143


class Agent:
    """A process that does something each time it is looked at, and ends when it has nothing left to do."""

    def __init__(self, *moments: Callable[[], object], idles: bool = False) -> None:
        self.moments = list(moments)
        self.idles = idles
        self.waited = 0.0
        self.code: int | None = None

    def ended_within(self, seconds: float) -> bool:
        self.waited += seconds
        if self.moments:
            self.moments.pop(0)()
        elif self.code is None and not self.idles:
            self.code = 0
        return self.code is not None

    def end(self, grace: float) -> None:
        self.code = ENDED_BY_US

    def wait(self) -> int:
        assert self.code is not None, "it was waited for although nothing would have ended it"
        return self.code


class Run:
    """A tape of six steps, attended to; requests come when a test says so."""

    def __init__(self, stepping: Stepping) -> None:
        self.tape = Tape(Step(request=request(index), response=response(ms=1.0)) for index in range(1, 7))
        self.stepped = SteppedReplay(stepping, self.tape, clock=SystemClock(), pace=0.0)
        self.served: list[int] = []
        self._loop = asyncio.new_event_loop()

    def ask(self, index: int) -> Verdict:
        async def come() -> Verdict:
            return self.stepped.held_requests.take(CALL, Serve(step=self.tape.take_step(index)), serve)

        def serve() -> Pass:
            self.served.append(index)
            return Pass()

        return self._loop.run_until_complete(come())

    def asking(self, *indices: int) -> list[Callable[[], object]]:
        return [lambda index=index: self.ask(index) for index in indices]  # type: ignore[misc]

    def settle(self) -> None:
        """Let the loop do what it was told to."""
        self._loop.run_until_complete(asyncio.sleep(0))

    def through(self, agent: Agent) -> int:
        try:
            return self.stepped.through(agent)
        finally:
            self._loop.close()
            self.stepped.held_requests.close()


def test_an_agent_that_asks_nothing_more_ends_by_itself() -> None:
    run = Run(Until(2))
    assert run.through(Agent(*run.asking(1, 2))) == 0
    assert run.stepped.stopped is None and run.stepped.unasked is None


def test_a_step_that_never_came_is_named() -> None:
    for stepping in (Until(2), StepThrough(2, lambda _stop: StepCommand.NEXT)):
        run = Run(stepping)
        assert run.through(Agent(*run.asking(1, 3))) == 0
        assert run.stepped.unasked == 2 and run.stepped.stopped is None


def test_what_is_asked_beyond_the_last_step_ends_the_agent() -> None:
    run = Run(Until(2))
    agent = Agent(*run.asking(1, 2, 3), idles=True)
    assert run.through(agent) == ENDED_BY_US
    assert run.stepped.stopped == Stopped(step=2, before=False)
    assert run.served == [1, 2] and run.tape.count_played == 2


def test_steps_that_lag_behind_get_a_moment() -> None:
    run = Run(Until(3))
    nothing: list[Callable[[], object]] = [lambda: None] * 5
    agent = Agent(*run.asking(1, 3, 4), *nothing, *run.asking(2), idles=True)
    assert run.through(agent) == ENDED_BY_US
    assert run.served == [1, 3, 2]
    assert run.stepped.left_out == ()
    assert agent.waited < PATIENCE_SECONDS, "no longer than needed"


def test_a_step_that_never_catches_up_is_not_waited_for_for_ever() -> None:
    run = Run(Until(3))
    agent = Agent(*run.asking(1, 3, 4), idles=True)
    assert run.through(agent) == ENDED_BY_US
    assert run.stepped.left_out == (2,)
    assert PATIENCE_SECONDS <= agent.waited < 2 * PATIENCE_SECONDS


def test_each_stop_is_shown_with_the_step_that_answers_it_until_told_to_run_on() -> None:
    shown: list[int] = []
    moves = iter([StepCommand.NEXT, StepCommand.RUN_ON])

    def ask(stop: Stop) -> StepCommand:
        assert stop.call is CALL and not stop.drifted and not stop.agent_ended()
        shown.append(stop.step.index)
        return next(moves)

    run = Run(StepThrough(2, ask))
    agent = Agent(*run.asking(1, 2), run.settle, *run.asking(3), run.settle, run.settle, *run.asking(4))
    assert run.through(agent) == 0
    assert shown == [2, 3]
    assert run.stepped.stopped is None


def test_to_quit_ends_the_agent_before_the_step() -> None:
    run = Run(StepThrough(2, lambda _stop: StepCommand.QUIT))
    assert run.through(Agent(*run.asking(1, 2), idles=True)) == ENDED_BY_US
    assert run.stepped.stopped == Stopped(step=2, before=True)
    assert run.served == [1] and run.tape.count_played == 1


def test_being_interrupted_while_asking_ends_the_agent() -> None:
    def ask(stop: Stop) -> StepCommand:
        raise KeyboardInterrupt

    run = Run(StepThrough(1, ask))
    assert run.through(Agent(*run.asking(1), idles=True)) == ENDED_BY_US
    assert run.stepped.stopped == Stopped(step=1, before=True, interrupted=True)


def test_a_fault_while_asking_does_not_leave_the_agent_behind() -> None:
    def ask(stop: Stop) -> StepCommand:
        raise OSError("the terminal is gone")

    run = Run(StepThrough(1, ask))
    agent = Agent(*run.asking(1), idles=True)
    with pytest.raises(OSError, match="the terminal is gone"):
        run.through(agent)
    assert agent.code == ENDED_BY_US
