"""What a step means, as far as lists and comparisons want to know it without its bodies.

Whatever understanding comes to, nothing is raised: the bytes are kept, and a remark says what was not understood.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from rewind.conversation.sketch import said_of, sketch_of
from rewind.conversation.threads import ThreadPlace, Threads
from rewind.match.call import Call
from rewind.model.http import HttpResponse
from rewind.model.ids import MatchKey
from rewind.model.message import Answered, Asked
from rewind.model.step import Reading, StepKind, StepRequest, StepResponse
from rewind.providers.summary import short
from rewind.runs.answer_recording import AnswerRecorder

T = TypeVar("T")


class StepSummary:
    """Of one step: first its request is told, then its answer."""

    def __init__(
        self, index: int, threads: Threads, ignore: tuple[str, ...], remark: Callable[[str, str], None]
    ) -> None:
        self._index = index
        self._threads = threads
        self._ignore = ignore
        self._remark = remark
        self._call: Call | None = None
        self._asked = Asked()

    def request(
        self, call: Call, *, ts: float, asked_key: MatchKey | None = None, note: str | None = None
    ) -> StepRequest:
        """The asking half of the step; ``asked_key`` where the agent had asked something else."""
        self._call = call
        nothing: tuple[Asked, ThreadPlace | None, str | None] = (Asked(), None, None)
        asked, place, sketch = self._understood(lambda: self._place(call), nothing)
        self._asked = asked
        return StepRequest(
            index=self._index,
            ts=ts,
            kind=call.provider.kind,
            provider=call.provider.name,
            match_key=call.key,
            head=call.request.head,
            model=asked.model and asked.model[:200],
            thread=None if place is None else place.thread,
            sketch=sketch,
            asked_key=asked_key,
            note=note,
        )

    def reading(self, answer: AnswerRecorder | None, response: StepResponse) -> Reading:
        """What the answer says, in short."""
        if answer is None or response.head is None or self._call is None:
            return Reading()
        if answer.copy is None:
            return Reading(note="a long answer; read when it is looked at")
        whole = HttpResponse(head=response.head, body=b"".join(answer.copy), chunks=())
        return self._understood(lambda: self._short(whole), Reading())

    def heard(self, response: HttpResponse) -> None:
        """An answer whose reading is known: only the conversation has to be told."""
        self._understood(lambda: self._take_answer(response), Answered())

    def _short(self, whole: HttpResponse) -> Reading:
        answered = self._take_answer(whole)
        return replace(short(self._asked, answered), said=said_of(answered))

    def _place(self, call: Call) -> tuple[Asked, ThreadPlace | None, str | None]:
        asked = call.provider.asked(call.request)
        if call.provider.kind is not StepKind.LLM_CALL:
            return asked, None, None
        sketch = str(sketch_of(asked, call.provider, self._ignore))
        if asked.embeds:
            return asked, None, sketch
        return asked, self._threads.call(self._index, call.key, asked), sketch

    def _take_answer(self, response: HttpResponse) -> Answered:
        assert self._call is not None, "an answer follows a request"
        answered = self._call.provider.answered(self._call.request, response)
        self._threads.answer(self._index, answered)
        return answered

    def _understood(self, work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except Exception as error:  # noqa: BLE001  a codec's fault must not cost a step
            self._remark("a bug in Rewind", f"a step is kept, but was not understood: {error!r}")
            return otherwise
