"""A step on its way into the journal: what was asked, what was answered, and the little of its meaning that lists show.

An answer is redacted as it comes, and safe on disk before the agent sees it. The agent waits for bytes and short lines
only; meaning is worked out when the gateway is quiet. Whatever it comes to, nothing is raised: the bytes are kept, and
a remark says what was not understood.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Any, TypeVar

from rewind.conversation.sketch import said_of, sketch_of
from rewind.conversation.threads import ThreadPlace, Threads
from rewind.dataclass import dataclass
from rewind.match.call import Call
from rewind.model.http import Chunk, Headers, HttpRequest, HttpResponse, RequestHead, ResponseHead
from rewind.model.ids import MatchKey
from rewind.model.message import Answered, Asked
from rewind.model.step import Reading, Step, StepKind, StepRequest, StepResponse
from rewind.providers.catalogue import identify
from rewind.providers.summary import LONG_ANSWER, READ_LIMIT, short
from rewind.redaction.redactor import Redactor
from rewind.runs.writer_thread import WriterThread
from rewind.store.journal.part import PartFile

MOST_CHUNKS = 100_000
JOINED_CHUNK = 64 * 1024
"""Of an answer in more chunks than those, further ones are joined until they are so long."""
SHORT_WORK = 64 * 1024
"""Bytes that the gateway's own thread keeps in less time than another thread takes to be woken."""


@dataclass(slots=True)
class ChunkDraft:
    """When each chunk of a body came, and how long it is."""

    chunks: list[Chunk] = field(default_factory=list)
    first_at: int | None = None
    size: int = 0
    _open: int = 0
    """Bytes of a transfer chunk whose end has not come yet."""

    def piece(self, at: int, size: int, *, ends_chunk: bool) -> None:
        """Some bytes came at that time (microseconds since the request was complete)."""
        if self.first_at is None and size:
            self.first_at = at
        self.size += size
        self._open += size
        if ends_chunk and self._open and (len(self.chunks) < MOST_CHUNKS or self._open >= JOINED_CHUNK):
            self.chunks.append(Chunk(at, self._open))
            self._open = 0

    def finish(self, at: int) -> tuple[Chunk, ...]:
        """All chunks; one that broke off in the middle counts as far as it came."""
        if self._open:
            self.chunks.append(Chunk(at, self._open))
            self._open = 0
        return tuple(self.chunks)


class AnswerRecorder:
    """One answer on its way to the store, from its head to its last byte."""

    def __init__(self, head: ResponseHead, redactor: Redactor) -> None:
        self.head = redactor.response_head(head)
        self._chunks = ChunkDraft()
        self.copy: list[bytes] | None = []
        """The redacted bytes again, for reading their meaning; ``None`` when they are too many."""
        self._stream = redactor.stream(head)
        self._waiting: list[bytes] = []
        self._part: PartFile | None = None
        self._replacement: bytes | None = None

    @property
    def body(self) -> bytes | None:
        """The bytes to write; ``None`` when the part has them."""
        if self._replacement is not None:
            return self._replacement
        return None if self._part is not None else b"".join(self._waiting)

    def piece(self, at: int, data: bytes, *, ends_chunk: bool) -> None:
        self._chunks.piece(at, len(data), ends_chunk=ends_chunk)
        self._keep(self._stream.feed(data))

    def secure(self, writer_thread: WriterThread, index: int, at: int) -> None:
        """Put all that is settled into the part."""
        if self._stream.withheld:
            if self._part is not None:
                self._part.discard()
                self._part = None
            return
        if self._part is None:
            self._part = writer_thread.writer.part(index, self.head)
        data = b"".join(self._waiting)
        self._waiting.clear()
        if data:
            self._part.append(at, data)

    def finish(self, at: int, response: StepResponse, trailers: Headers) -> StepResponse:
        """No more will come: ``response``, completed with what came."""
        self._keep(self._stream.finish())
        chunks = self._chunks.finish(at)
        self._replacement = self._stream.replacement
        if self._replacement is not None:
            self.copy = [self._replacement]
            if len(self._replacement) != self._chunks.size:  # compressed anew: the old pieces do not fit it
                chunks = (Chunk(at, len(self._replacement)),)
        elif self._part is not None:
            self._part.append(at, b"".join(self._waiting))
        first = self._chunks.first_at
        return replace(
            response, head=self.head, chunks=chunks, trailers=trailers, first_ms=None if first is None else first / 1000
        )

    def _keep(self, data: bytes) -> None:
        if data:
            self._waiting.append(data)
            if self.copy is not None:
                self.copy.append(data)
                if self._chunks.size > READ_LIMIT:
                    self.copy = None


T = TypeVar("T")


class StepSummary:
    """What a step means, as far as lists and comparisons want to know it without its bodies.

    First its request is told, then its answer.
    """

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
            return LONG_ANSWER
        whole = HttpResponse(head=response.head, body=b"".join(answer.copy), chunks=())
        return self._understood(lambda: self._short(whole), Reading())

    def read_again(self, response: HttpResponse) -> Reading:
        """What an answer from a tape says, in short."""
        return self._understood(lambda: self._short(response), Reading())

    def heard(self, response: HttpResponse) -> None:
        """An answer whose reading is known: only the conversation has to be told."""
        self._understood(lambda: self._take_answer(response), Answered())

    def _short(self, whole: HttpResponse) -> Reading:
        answered = self._take_answer(whole)
        return replace(short(self._asked, answered), said=said_of(answered))

    def _place(self, call: Call) -> tuple[Asked, ThreadPlace | None, str | None]:
        asked = call.provider.reader.asked(call.request)
        if call.provider.kind is not StepKind.LLM_CALL:
            return asked, None, None
        sketch = str(sketch_of(asked, call.provider, self._ignore))
        if asked.embeds:
            return asked, None, sketch
        return asked, self._threads.call(self._index, call.key, asked), sketch

    def _take_answer(self, response: HttpResponse) -> Answered:
        assert self._call is not None, "an answer follows a request"
        answered = self._call.provider.reader.answered(self._call.request, response)
        self._threads.answer(self._index, answered)
        return answered

    def _understood(self, work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except Exception as error:  # noqa: BLE001  a codec's fault must not cost a step
            self._remark("a bug in Rewind", f"a step was recorded, but could not be read: {error!r}")
            return otherwise


class StepWriter:
    """One step, written as the session's other steps are: see ``WriterThread``."""

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
        """The asking half, once it is in the journal with its meaning."""
        self._ts = ts
        self._summary = StepSummary(self.index, threads, ignore, remark)
        self._bare: StepRequest | None = None
        """The asking half without its meaning."""
        self._kept: StepRequest | None = None
        """The same with the name of its bytes, once they are kept."""
        self._told: StepRequest | None = None
        """As a short line of the journal has it."""
        self._telling = threading.Lock()

    # ── from the gateway's thread ────────────────────────────────────────────────────────────────────────

    def keep(
        self,
        head: RequestHead,
        size: int,
        body: Callable[[], bytes],
        understood: Callable[[HttpRequest], Call],
        *,
        asked_key: MatchKey | None = None,
        note: str | None = None,
    ) -> None:
        """Have a request kept whose body will have about that size: at once if it is short.

        Head and body are without secrets. ``asked_key`` is given where the agent had asked something else.
        """
        provider = identify(head)
        self._bare = bare = StepRequest(
            index=self.index,
            ts=self._ts,
            kind=provider.kind,
            provider=provider.name,
            match_key=MatchKey(""),
            head=head,
            asked_key=asked_key,
            note=note,
        )

        def store() -> None:
            request = HttpRequest(head=head, body=body())
            self._kept = kept = self.writer_thread.writer.request_bytes(bare, request.body)
            self._tell_request()
            self.writer_thread.when_quiet(lambda: self._request_line(kept, understood(request)), len(request.body))

        if size > SHORT_WORK or not self.writer_thread.here(store):
            self._tell_request()  # its bytes follow: a provider may be paid for it before anything is answered
            self.writer_thread.later(store)

    def later(self, work: Callable[["StepWriter"], Any]) -> None:
        """Have this done soon, when the bytes of the request are kept."""
        self.writer_thread.later(lambda: work(self))

    async def now(self, work: Callable[["StepWriter"], T]) -> T | None:
        """Have this done, and wait until it is; ``None`` when that failed, which the writer thread remembers."""
        return await self._wait(lambda tell: self.writer_thread.ask(lambda: work(self), tell))

    async def answered(
        self,
        answer: AnswerRecorder | None,
        response: StepResponse,
        on_written: Callable[[StepResponse], None],
        *,
        at_once: bool = False,
    ) -> None:
        """Keep the whole answer, so that the agent may see its end. Its meaning follows; ``at_once``: is waited for."""
        if self._kept is None:
            await self.now(lambda _self: None)  # behind the request
        body = b"" if answer is None else answer.body
        if body is not None and len(body) > SHORT_WORK:
            write = await self.now(lambda _self: self._acknowledge(response, body))
        else:
            write = self._acknowledge(response, body)
        if write is None:
            return

        def read() -> None:
            reading = self._summary.reading(answer, response)
            write(reading)
            on_written(replace(response, reading=reading))

        weight = 0 if answer is None or answer.copy is None else sum(map(len, answer.copy))
        if at_once or self.writer_thread.is_behind:
            await self._wait(lambda tell: self.writer_thread.ask_when_quiet(read, tell))
        else:
            self.writer_thread.when_quiet(read, weight)

    def about_to_show(self, answer: AnswerRecorder, at: int) -> None:
        """The agent is about to see what came of the answer so far."""
        self.writer_thread.busy()
        self._tell_request()
        answer.secure(self.writer_thread, self.index, at)

    async def _wait(self, begin: Callable[[Callable[[T | None], None]], None]) -> T | None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T | None] = loop.create_future()

        def tell(result: T | None) -> None:
            # Once the gateway has ended nobody waits any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(done.set_result, result)

        begin(tell)
        return await done

    # ── writing: bytes and short lines on either thread ──────────────────────────────────────────────────────

    def _tell_request(self) -> None:
        """No answer stands in a session without what it answers. What is told last has the name of the bytes."""
        with self._telling:
            request = self._kept or self._bare
            if self.written is None and request is not None and request is not self._told:
                self._told = request
                self.writer_thread.writer.asked(request)

    def _acknowledge(self, response: StepResponse, body: bytes | Iterator[bytes] | None) -> Callable[[Reading], object]:
        self._tell_request()
        return self.writer_thread.writer.answered(self.index, response, body)

    # ── writing: on the writer thread ─────────────────────────────────────────────────────────────────────

    def _request_line(self, kept: StepRequest, call: Call) -> None:
        read = self._summary.request(call, ts=self._ts, asked_key=kept.asked_key, note=kept.note)
        self.written = replace(read, body=kept.body, body_size=kept.body_size)
        self.writer_thread.writer.request_line(self.written)

    def response(
        self, answer: AnswerRecorder, response: StepResponse, on_written: Callable[[StepResponse], None]
    ) -> None:
        """An answer that no provider gave."""
        body = answer.body
        write = self._acknowledge(response, body)

        def read() -> None:
            reading = self._summary.reading(answer, response)
            write(reading)
            on_written(replace(response, reading=reading))

        self.writer_thread.when_quiet(read, len(body or b""))

    def copy(self, step: Step, response: HttpResponse | None) -> None:
        """The answer of a recorded step, which was played again."""
        assert step.response is not None, "there is something to copy"
        copied = replace(step.response, tape=step.index)
        if response is not None and response.head is not step.response.head:  # in the names of this run
            copied = replace(
                copied, head=response.head, chunks=response.chunks, body_size=response.size, reading=Reading()
            )
        if response is None or response.long_body is not None:
            body = b"" if response is None or response.long_body is None else response.long_body.blocks()
            write = self._acknowledge(copied, body)
            self.writer_thread.when_quiet(lambda: write(copied.reading))
            return
        write = self._acknowledge(copied, response.body)

        def read() -> None:
            if copied.reading == Reading():  # from a file: what an answer says is made of its bytes
                write(self._summary.read_again(response))
            else:
                write(copied.reading)
                self._summary.heard(response)

        self.writer_thread.when_quiet(read, len(response.body))


def as_it_goes_out(changed: HttpRequest, kept: RequestHead) -> HttpRequest:
    """A changed request with its body counted, and of its headers those that were ``kept`` of the one that came."""
    names = {name.lower() for name, _ in kept.headers} - {"transfer-encoding", "trailer", "content-length"}
    headers = tuple(pair for pair in changed.head.headers if pair[0].lower() in names)
    length = ("Content-Length", str(len(changed.body)))
    return replace(changed, head=replace(changed.head, headers=(*headers, length)))
