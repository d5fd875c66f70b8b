"""Record and replay: one path, different policies."""

from collections.abc import Callable, Sequence

from rewind.match.call import Call
from rewind.match.miss import Miss
from rewind.match.nearest import RecordedCall, explain_miss
from rewind.model.http import HttpRequest, RequestHead
from rewind.model.ids import blob_id
from rewind.model.step import Step
from rewind.playback.decision import Decision, Forward, Policy, Refuse, Serve
from rewind.playback.tape import Tape


class RecordAll(Policy):
    """Everything goes to its origin."""

    def early(self, head: RequestHead) -> Forward | None:
        return Forward()

    def decide(self, call: Call) -> Decision:
        return Forward()


class RecordedCalls:
    """The steps of a tape as calls, understood when a miss has to be explained by them, and only once."""

    def __init__(
        self, tape: Tape, recall: Callable[[Step], Call], session: str, fork_at: int | None = None
    ) -> None:
        self._tape = tape
        self._recall = recall
        self._known: dict[int, Call] = {}
        self._session = session
        self._fork_at = fork_at

    def call(self, step: Step) -> Call:
        if step.index not in self._known:
            self._known[step.index] = self._recall(step)
        return self._known[step.index]

    def recorded(self, step: Step) -> RecordedCall:
        return RecordedCall(index=step.index, call=self.call(step), played=self._tape.played(step.index))

    def explain(self, call: Call, recorded: Sequence[RecordedCall]) -> Miss:
        return explain_miss(call, recorded, session=self._session, fork_at=self._fork_at)


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
        allow_drift: bool = False,
        on_miss_live: bool = False,
    ) -> None:
        self._tape = tape
        self._calls = RecordedCalls(tape, recall, session)
        self._allow_drift = allow_drift
        self._on_miss_live = on_miss_live

    def at_a_glance(self, request: HttpRequest) -> Serve | None:
        body = blob_id(request.body)
        key = self._tape.key_of_same_bytes(request.head, body)
        step = None if key is None else self._tape.take(key, body)
        return None if step is None else Serve(step=step)

    def decide(self, call: Call) -> Decision:
        step = self._tape.take(call.key, blob_id(call.request.body))
        if step is not None:
            return Serve(step=step)
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
        return self._calls.explain(call, [self._calls.recorded(step) for step in steps])
