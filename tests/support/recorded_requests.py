"""A recording in memory, for tests of what a tape answers."""

from typing import Any

from rewind.match.call import Call, understand
from rewind.model.http import HttpRequest, ResponseHead
from rewind.model.ids import blob_id
from rewind.model.step import Ending, Step, StepKind, StepRequest, StepResponse
from rewind.playback.policies import Replay
from rewind.playback.tape import Tape

HEAD = ResponseHead(status=200, reason="OK", headers=())


class Recorded:
    """A recording in memory: requests in the order they came, all answered."""

    def __init__(self, *requests: HttpRequest, unanswered: tuple[int, ...] = ()) -> None:
        self.calls = {index: understand(request, index=index) for index, request in enumerate(requests, 1)}
        self.steps = [self._step(index, call, index not in unanswered) for index, call in self.calls.items()]
        self.recalled: list[int] = []
        self.tape = Tape(self.steps)

    def _step(self, index: int, call: Call, answered: bool) -> Step:
        request = StepRequest(
            index=index,
            ts=0.0,
            kind=StepKind.LLM_CALL,
            provider=call.provider.name,
            match_key=call.key,
            head=call.request.head,
            body=blob_id(call.request.body),
        )
        response = StepResponse(ending=Ending.COMPLETE, head=HEAD, ms=1.0) if answered else None
        return Step(request=request, response=response)

    def recall(self, step: Step) -> Call:
        self.recalled.append(step.index)
        return self.calls[step.index]

    def replay(self, **options: Any) -> Replay:
        return Replay(self.tape, self.recall, session="7f3a2b9c", **options)
