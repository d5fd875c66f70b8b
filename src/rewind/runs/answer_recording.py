"""An answer on its way to the store: redacted as it comes, safe on disk before the agent sees it."""

from dataclasses import replace

from rewind.model.http import Chunk, Headers, ResponseHead
from rewind.model.step import StepResponse
from rewind.redaction.redactor import Redactor
from rewind.runs.answer_chunks import Draft
from rewind.runs.writer_thread import Pen
from rewind.store.journal.part import Part

READ_LIMIT = 4 * 1024 * 1024
"""A longer answer is kept whole, but its meaning is worked out when somebody looks at it."""


class Answer:
    """One answer, from its head to its last byte."""

    def __init__(self, head: ResponseHead, redactor: Redactor) -> None:
        self.head = redactor.response_head(head)
        self._draft = Draft()
        self.copy: list[bytes] | None = []
        """The redacted bytes again, for reading their meaning; ``None`` when they are too many."""
        self._stream = redactor.stream(head)
        self._waiting: list[bytes] = []
        self._part: Part | None = None
        self._replacement: bytes | None = None

    @property
    def body(self) -> bytes | None:
        """The bytes to write; ``None`` when the in-flight file has them."""
        if self._replacement is not None:
            return self._replacement
        return None if self._part is not None else b"".join(self._waiting)

    def piece(self, at: int, data: bytes, *, ends_chunk: bool) -> None:
        self._draft.piece(at, len(data), ends_chunk=ends_chunk)
        self._keep(self._stream.feed(data))

    def secure(self, pen: Pen, index: int, at: int) -> None:
        """Put all that is settled into the in-flight file."""
        if self._stream.withheld:
            if self._part is not None:
                self._part.discard()
                self._part = None
            return
        if self._part is None:
            self._part = pen.writer.part(index, self.head)
        data = b"".join(self._waiting)
        self._waiting.clear()
        if data:
            self._part.append(at, data)

    def finish(self, at: int, response: StepResponse, trailers: Headers) -> StepResponse:
        """No more will come: ``response``, completed with what came."""
        self._keep(self._stream.finish())
        chunks = self._draft.finish(at)
        self._replacement = self._stream.replacement
        if self._replacement is not None:
            self.copy = [self._replacement]
            if len(self._replacement) != self._draft.size:  # compressed anew: the old pieces do not fit it
                chunks = (Chunk(at, len(self._replacement)),)
        elif self._part is not None:
            self._part.append(at, b"".join(self._waiting))
        first = self._draft.first_at
        return replace(
            response,
            head=self.head,
            chunks=chunks,
            trailers=trailers,
            first_ms=None if first is None else first / 1000,
        )

    def _keep(self, data: bytes) -> None:
        if data:
            self._waiting.append(data)
            if self.copy is not None:
                self.copy.append(data)
                if self._draft.size > READ_LIMIT:
                    self.copy = None
