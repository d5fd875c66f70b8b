"""Where a replay stops on its way: before each step from one on, or once one is through.

It goes by step, not by count: what a request matches decides, in whatever order parallel calls come.
"""

from enum import Enum
from typing import Protocol

from rewind.model.step import Step
from rewind.playback.tape import Tape


class Release(Enum):
    """When a request gets what was decided for it."""

    AT_ONCE = "at once"
    """Whoever else is waiting."""
    IN_ORDER = "in order"
    """Behind those that wait."""
    LOOKED_AT = "looked at"
    """Not before somebody has looked at it."""


class StopRule(Protocol):
    """Where to stop."""

    def release(self, step: Step | None) -> Release:
        """``step`` answers the request; ``None`` where the tape has no answer.

        Asked when the request comes and, where it had to wait, once more when all before it are through.
        """
        ...


class StepByStep:
    """Stops before that step, and from then on before each that does not come before it in the recording."""

    def __init__(self, first: int) -> None:
        self.reached = False
        self._first = first

    def release(self, step: Step | None) -> Release:
        if step is None:
            return Release.IN_ORDER  # a miss is told at once, but does not overtake
        self.reached = self.reached or step.index == self._first
        return Release.LOOKED_AT if self.reached and step.index >= self._first else Release.AT_ONCE


class UpTo:
    """Stops at whatever is asked beyond that step, once it has been asked itself.

    A later step that is asked before that one is played: it may be what the agent needs to get there.
    """

    def __init__(self, tape: Tape, last: int) -> None:
        self._tape = tape
        self._last = last
        self._wanted = tuple(step.index for step in tape.steps() if step.index <= last)

    @property
    def reached(self) -> bool:
        return self._tape.played(self._last)

    def missing(self) -> tuple[int, ...]:
        """The steps up to that one that were not asked yet."""
        return tuple(index for index in self._wanted if not self._tape.played(index))

    def release(self, step: Step | None) -> Release:
        if not self.reached:
            return Release.AT_ONCE
        # A request that the tape cannot answer may be one of the missing steps, changed: then it is a miss.
        beyond = step.index > self._last if step is not None else not self.missing()
        return Release.LOOKED_AT if beyond else Release.AT_ONCE
