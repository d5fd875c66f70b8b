"""A step on its way into the journal: what was asked, what was answered, and the little of its meaning that lists show.

All of it happens on the pen's thread. Whatever understanding comes to, the bytes are kept.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from rewind.conversation.sketch import said_of, sketch_of
from rewind.conversation.threads import Place, Threads
from rewind.match.call import Call
from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.ids import MatchKey
from rewind.model.message import Answered, Asked
from rewind.model.step import Reading, Step, StepKind, StepRequest, StepResponse
from rewind.providers.reading import short
from rewind.runs.answer import Answer
from rewind.runs.pen import Pen

T = TypeVar("T")


class Keeping:
    """One step, written with the pen of its run."""

    def __init__(
        self,
        pen: Pen,
        ts: float,
        threads: Threads,
        ignore: tuple[str, ...],
        remark: Callable[[str, str], None],
    ) -> None:
        self.pen = pen
        self.index = pen.next_index()
        self.written: StepRequest | None = None
        """The asking half, once it is in the journal."""
        self._ts = ts
        self._threads = threads
        self._ignore = ignore
        self._remark = remark
        self._call: Call | None = None
        self._asked = Asked()

    # ── from the gateway's thread ────────────────────────────────────────────────────────────────────────

    def later(self, work: Callable[["Keeping"], Any]) -> None:
        """Have this done, without waiting."""
        self.pen.later(lambda: work(self))

    async def now(self, work: Callable[["Keeping"], T]) -> T | None:
        """Have this done, and wait until it is; ``None`` when that failed, which the pen keeps in mind."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T | None] = loop.create_future()

        def tell(result: T | None) -> None:
            # Once the gateway has ended nobody waits any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(done.set_result, result)

        self.pen.ask(lambda: work(self), tell)
        return await done

    # ── writing: on the pen's thread ─────────────────────────────────────────────────────────────────────

    def request(self, call: Call, asked_key: MatchKey | None, note: str | None) -> None:
        """``asked_key`` where the agent had asked something else."""
        self._call = call
        nothing: tuple[Asked, Place | None, str | None] = (Asked(), None, None)
        asked, place, sketch = self._understood(lambda: self._place(call), nothing)
        self._asked = asked
        self.written = StepRequest(
            index=self.index,
            ts=self._ts,
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
        self.pen.writer.request(self.written, call.request.body)

    def response(self, answer: Answer | None, response: StepResponse) -> Reading:
        body = b"" if answer is None else answer.body
        response = replace(response, reading=self._read(answer, response))
        self.pen.writer.response(self.index, response, body)
        return response.reading

    def copy(self, step: Step, response: HttpResponse | None) -> None:
        """The answer of a recorded step, which was played again."""
        assert step.response is not None, "there is something to copy"
        body = response.body if response is not None else b""
        self.pen.writer.response(self.index, replace(step.response, tape=step.index), body)
        if response is not None:
            self._understood(lambda: self._take_answer(response), Answered())

    # ── understanding: for lists only ────────────────────────────────────────────────────────────────────

    def _read(self, answer: Answer | None, response: StepResponse) -> Reading:
        if answer is None or response.head is None or self._call is None:
            return Reading()
        if answer.copy is None:
            return Reading(note="a long answer; read when it is looked at")
        whole = HttpResponse(head=response.head, body=b"".join(answer.copy), chunks=())
        return self._understood(lambda: self._short(whole), Reading())

    def _short(self, whole: HttpResponse) -> Reading:
        answered = self._take_answer(whole)
        return replace(short(self._asked, answered), said=said_of(answered))

    def _place(self, call: Call) -> tuple[Asked, Place | None, str | None]:
        asked = call.provider.asked(call.request)
        if call.provider.kind is not StepKind.LLM_CALL:
            return asked, None, None
        sketch = str(sketch_of(asked, call.provider, self._ignore))
        if asked.embeds:
            return asked, None, sketch
        return asked, self._threads.call(self.index, call.key, asked), sketch

    def _take_answer(self, response: HttpResponse) -> Answered:
        assert self._call is not None, "an answer follows a request"
        answered = self._call.provider.answered(self._call.request, response)
        self._threads.answer(self.index, answered)
        return answered

    def _understood(self, work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except Exception as error:  # noqa: BLE001  a codec's fault must not cost a step
            self._remark("a bug in Rewind", f"a step is kept, but was not understood: {error!r}")
            return otherwise


def as_it_goes_out(changed: HttpRequest, kept: RequestHead) -> HttpRequest:
    """A changed request with its body counted, and of its headers those that were ``kept`` of the one that came."""
    names = {name.lower() for name, _ in kept.headers} - {"transfer-encoding", "trailer", "content-length"}
    headers = tuple(pair for pair in changed.head.headers if pair[0].lower() in names)
    length = ("Content-Length", str(len(changed.body)))
    return replace(changed, head=replace(changed.head, headers=(*headers, length)))
