"""Record and replay: one path, different policies; and where a replay stops on its way."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from typing import Any, Protocol

from rewind.errors import DamagedStore
from rewind.match.call import Call
from rewind.match.miss import Miss
from rewind.match.nearest import RecordedCall, explain_miss
from rewind.match.renaming import Renaming
from rewind.model.http import HttpRequest, RequestHead
from rewind.model.ids import blob_id
from rewind.model.names import Renamed
from rewind.model.step import Step
from rewind.playback.decision import Decision, Forward, Policy, Refuse, Serve
from rewind.playback.renamed_steps import RenamedSteps
from rewind.playback.tape import Tape


class RecordAll(Policy):
    """Everything goes to its origin."""

    def early(self, head: RequestHead) -> Forward | None:
        return Forward()

    def decide(self, call: Call) -> Decision:
        return Forward()


_KEPT_BYTES = 32 * 1024 * 1024
"""Of the recorded requests that are kept understood."""


class RecordedCalls:
    """The steps of a tape as calls, understood when a request is not exact; those that were needed last are kept."""

    def __init__(
        self,
        tape: Tape,
        recall: Callable[[Step], Call],
        session: str,
        *,
        lenient: Callable[[], Renaming] | None,
        fork_at: int | None = None,
    ) -> None:
        """``lenient``, where fewer names may differ than could: to say of a miss that it differs in names alone."""
        self._tape = tape
        self._recall = recall
        self._known: dict[int, Call] = {}
        self._size = 0
        self._session = session
        self._fork_at = fork_at
        self._lenient = lenient

    def call(self, step: Step) -> Call:
        call = self._known.get(step.index)
        if call is None:
            call = self._known[step.index] = self._recall(step)
            self._size += len(call.request.body)
            while self._size > _KEPT_BYTES and len(self._known) > 1:
                self._size -= len(self._known.pop(next(iter(self._known))).request.body)
        return call

    def recorded(self, steps: Iterable[Step]) -> list[RecordedCall]:
        """The steps as calls, less those whose requests are damaged: nothing can be compared with them."""
        calls = []
        for step in steps:
            with suppress(DamagedStore):
                calls.append(RecordedCall(step.index, self.call(step), played=self._tape.played(step.index)))
        return calls

    def explain(self, call: Call, recorded: Sequence[RecordedCall]) -> Miss:
        miss = explain_miss(call, recorded, session=self._session, fork_at=self._fork_at)
        if self._lenient is None or miss.servable is None or miss.nearest_played:
            return miss
        nearest = next(one.call for one in recorded if one.index == miss.servable)
        return replace(miss, only_names=self._lenient().trial(nearest, call) is not None)


class Replay(Policy):
    """The tape answers; what it cannot answer is refused, or goes live where the user asked for that.

    ``recall`` gives a recorded step as a call; it is needed only when a miss has to be explained.
    """

    def __init__(
        self,
        tape: Tape,
        recall: Callable[[Step], Call],
        *,
        session: str,
        command: tuple[str, ...] = (),
        renaming: Callable[[], Renaming] | None = None,
        lenient: Callable[[], Renaming] | None = None,
        allow_drift: bool = False,
        on_miss_live: bool = False,
    ) -> None:
        """``command`` was given in place of the recorded one. Without ``renaming`` only exact requests are answered."""
        self._tape = tape
        self._command = command
        self._calls = RecordedCalls(tape, recall, session, lenient=lenient)
        self._renamed = None if renaming is None else RenamedSteps(tape, self._calls.call, renaming)
        self._allow_drift = allow_drift
        self._on_miss_live = on_miss_live

    def at_a_glance(self, request: HttpRequest) -> Serve | None:
        try:
            step = self._tape.take_same_bytes(request.head, blob_id(request.body))
        except DamagedStore:
            return None  # refused below, with what is wrong
        return None if step is None else self._serve(step)

    def _serve(self, step: Step) -> Serve:
        if self._renamed is not None:
            self._renamed.was_exact(step)
        return Serve(step=step)

    def frame_names(self, recorded: Any, sent: Any) -> tuple[Renamed, ...] | None:
        return None if self._renamed is None else self._renamed.frame_names(recorded, sent)

    def decide(self, call: Call) -> Decision:
        try:
            step = self._tape.take(call.key, blob_id(call.request.body))
        except DamagedStore as problem:
            return Refuse(reason=f"Rewind: what was recorded cannot be read: {problem.message}")
        if step is not None:
            return self._serve(step)
        if self._renamed is not None and (found := self._renamed.take(call)) is not None:
            return found.served(self._renamed.translated)
        if self._allow_drift and (drifted := self._drift(call)) is not None:
            return Serve(step=drifted, drifted=True)
        if self._on_miss_live:
            return Forward()
        miss = self._explain(call, self._tape.steps())
        return Refuse(reason=miss.reason, miss=miss)

    def _drift(self, call: Call) -> Step | None:
        nearest = self._explain(call, self._tape.unplayed()).servable
        return None if nearest is None else self._tape.take_step(nearest)

    def _explain(self, call: Call, steps: Sequence[Step]) -> Miss:
        return replace(self._calls.explain(call, self._calls.recorded(steps)), command=self._command)


# Stops: before each step from one on, or once one is through. They go by step, not by count: what a request matches
# decides, in whatever order parallel calls come.


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
        self._wanted = tuple(index for index in tape.indexes() if index <= last)

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
