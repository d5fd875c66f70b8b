"""A replay that is attended to: stopped before its steps while a person looks, or ended once a step is through."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rewind.errors import UsageError
from rewind.model.clock import Clock
from rewind.model.session import Recording, step_in
from rewind.playback.decision import Serve
from rewind.playback.policies import StepByStep, UpTo
from rewind.playback.tape import Tape
from rewind.providers.telemetry import telemetry_of
from rewind.runs.child import stdin_kind
from rewind.runs.held_requests import Held, HeldRequests
from rewind.runs.replay_options import StepCommand, Stepping, StepThrough, Stop, Stopped, Until

GRACE_SECONDS = 3.0
"""Between asking an agent to end and making it."""
GLANCE_SECONDS = 0.05
"""How often it is looked whether the agent has ended by itself."""
LAST_WORDS_SECONDS = 0.05
"""What the agent printed before it asked is on its way; shown and compared, it comes first."""
PATIENCE_SECONDS = 1.0
"""How long parallel calls may lag behind one that was recorded after them."""


def check_step(recording: Recording, index: int) -> None:
    """Raises SessionNotFound for a step that is not there, UsageError for one that no replay comes to."""
    step = step_in(recording, index)
    session = recording.session.id
    if telemetry_of(step.request) is not None:
        raise UsageError(
            f"Step {index} of session {session} is telemetry: a replay answers it whenever it comes, without a stop.",
            hint=f"rewind inspect {recording.session.ref}",
        )
    if step.response is None:
        raise UsageError(
            f"Step {index} of session {session} was never answered: a replay cannot play it.",
            hint=f"rewind inspect {recording.session.ref}:{index}",
        )


class Agent(Protocol):
    """What is done with the agent's process here; see ``Child``."""

    def ended_within(self, seconds: float) -> bool: ...

    def end(self, grace: float) -> None: ...

    def wait(self) -> int: ...


class Unattended:
    """A replay that runs to its end by itself."""

    held_requests: HeldRequests | None = None
    stopped: Stopped | None = None
    """Set before the agent is told to end: what it says from then on does not count."""

    @property
    def unasked(self) -> int | None:
        """The step to stop at, where the run never came to it."""
        return None

    @property
    def left_out(self) -> tuple[int, ...]:
        """Steps that should have been played, and were not asked."""
        return ()

    def input(self, recorded: bytes | None) -> bytes | None:
        """What the agent is given to read; ``None`` for our own standard input."""
        return recorded

    def own_group(self, given: bytes | None) -> bool:
        """Whether the agent gets a process group of its own, so that it can be ended with all it started."""
        return False

    def through(self, child: Agent) -> int:
        """The exit code of the agent, once it has ended."""
        return child.wait()

    def close(self) -> None:
        """The gateway has ended."""


class SteppedReplay(Unattended):
    """One replay from the first request that is held to the end of the agent."""

    def __init__(self, stepping: Stepping, tape: Tape, *, clock: Clock, pace: float) -> None:
        self._stepping = stepping
        self._stop_rule: StepByStep | UpTo
        match stepping:
            case StepThrough(step=first):
                self._stop_rule = StepByStep(first)
            case Until(step=last):
                self._stop_rule = UpTo(tape, last)
        self.held_requests: HeldRequests = HeldRequests(self._stop_rule, put_back=tape.put_back, clock=clock, pace=pace)

    @property
    def unasked(self) -> int | None:
        return None if self._stop_rule.reached else self._stepping.step

    @property
    def left_out(self) -> tuple[int, ...]:
        return self._missing() if self.stopped is not None else ()

    def input(self, recorded: bytes | None) -> bytes | None:
        # A terminal that a person is asked on cannot be the agent's, too.
        shared = isinstance(self._stepping, StepThrough) and stdin_kind() == "tty"
        return b"" if recorded is None and shared else recorded

    def own_group(self, given: bytes | None) -> bool:
        # An agent that reads our terminal cannot have one: the terminal would stop it.
        return given is not None or stdin_kind() != "tty"

    def close(self) -> None:
        self.held_requests.close()

    def through(self, child: Agent) -> int:
        """The exit code of the agent, once it has ended: by itself, or by us."""
        try:
            while self.stopped is None and not child.ended_within(0):
                held = self.held_requests.next(GLANCE_SECONDS)
                if held is not None:
                    child.ended_within(LAST_WORDS_SECONDS)
                    self.stopped = self._look(held, child)
            if self.stopped is not None:
                child.end(GRACE_SECONDS)
        except BaseException:
            child.end(GRACE_SECONDS)  # whatever happened to whoever was asked: nobody will answer the agent
            child.wait()
            raise
        return child.wait()

    def _look(self, held: Held, child: Agent) -> Stopped | None:
        """``None`` to go on."""
        match self._stepping:
            case Until(step=last):
                self._let_others_catch_up(child)
                return Stopped(step=last, before=False)
            case StepThrough(ask=ask):
                return self._ask(ask, held, child)

    def _ask(self, ask: Callable[[Stop], StepCommand], held: Held, child: Agent) -> Stopped | None:
        assert isinstance(held.decision, Serve), "only steps are stopped before"
        step = held.decision.step
        stop = Stop(step=step, call=held.call, drifted=held.decision.drifted, agent_ended=lambda: child.ended_within(0))
        try:
            with _interruptible():
                move = ask(stop)
        except KeyboardInterrupt:
            return Stopped(step=step.index, before=True, interrupted=True)
        if move is StepCommand.QUIT:
            return Stopped(step=step.index, before=True)
        self.held_requests.go_on(freely=move is StepCommand.RUN_ON)
        return None

    def _let_others_catch_up(self, child: Agent) -> None:
        """Answers under way are seen through; steps that lag behind get a moment."""
        waited = 0.0
        while not child.ended_within(GLANCE_SECONDS) and (
            self.held_requests.answering or (self._missing() and waited < PATIENCE_SECONDS)
        ):
            waited += GLANCE_SECONDS

    def _missing(self) -> tuple[int, ...]:
        return self._stop_rule.missing() if isinstance(self._stop_rule, UpTo) else ()


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C is ours for a while, not the agent's."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
