"""A step on its way into the journal: what was asked, what was answered, and the little of its meaning that lists show.

All of it happens on the writer thread.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from rewind.conversation.threads import Threads
from rewind.match.call import Call
from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.ids import MatchKey
from rewind.model.step import Reading, Step, StepRequest, StepResponse
from rewind.runs.answer_recording import AnswerRecorder
from rewind.runs.step_summary import StepSummary
from rewind.runs.writer_thread import WriterThread

T = TypeVar("T")


class StepWriter:
    """One step, written on the writer thread of its run."""

    def __init__(
        self,
        writer_thread: WriterThread,
        ts: float,
        threads: Threads,
        ignore: tuple[str, ...],
        remark: Callable[[str, str], None],
    ) -> None:
        self.writer_thread = writer_thread
        self.index = writer_thread.next_index()
        self.written: StepRequest | None = None
        """The asking half, once it is in the journal."""
        self._ts = ts
        self._summary = StepSummary(self.index, threads, ignore, remark)

    # ── from the gateway's thread ────────────────────────────────────────────────────────────────────────

    def later(self, work: Callable[["StepWriter"], Any]) -> None:
        """Have this done, without waiting."""
        self.writer_thread.later(lambda: work(self))

    async def now(self, work: Callable[["StepWriter"], T]) -> T | None:
        """Have this done, and wait until it is; ``None`` when that failed, which the writer_thread keeps in mind."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T | None] = loop.create_future()

        def tell(result: T | None) -> None:
            # Once the gateway has ended nobody waits any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(done.set_result, result)

        self.writer_thread.ask(lambda: work(self), tell)
        return await done

    # ── writing: on the writer thread ─────────────────────────────────────────────────────────────────────

    def request(self, call: Call, asked_key: MatchKey | None, note: str | None) -> None:
        """``asked_key`` where the agent had asked something else."""
        self.written = self._summary.request(call, ts=self._ts, asked_key=asked_key, note=note)
        self.writer_thread.writer.request(self.written, call.request.body)

    def response(self, answer: AnswerRecorder | None, response: StepResponse) -> Reading:
        body = b"" if answer is None else answer.body
        response = replace(response, reading=self._summary.reading(answer, response))
        self.writer_thread.writer.response(self.index, response, body)
        return response.reading

    def copy(self, step: Step, response: HttpResponse | None) -> None:
        """The answer of a recorded step, which was played again."""
        assert step.response is not None, "there is something to copy"
        body = response.body if response is not None else b""
        self.writer_thread.writer.response(self.index, replace(step.response, tape=step.index), body)
        if response is not None:
            self._summary.heard(response)


def as_it_goes_out(changed: HttpRequest, kept: RequestHead) -> HttpRequest:
    """A changed request with its body counted, and of its headers those that were ``kept`` of the one that came."""
    names = {name.lower() for name, _ in kept.headers} - {"transfer-encoding", "trailer", "content-length"}
    headers = tuple(pair for pair in changed.head.headers if pair[0].lower() in names)
    length = ("Content-Length", str(len(changed.body)))
    return replace(changed, head=replace(changed.head, headers=(*headers, length)))
