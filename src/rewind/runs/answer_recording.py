"""An answer on its way to the store: redacted as it comes, safe on disk before the agent sees it."""

from dataclasses import dataclass, field, replace

from rewind.model.http import Chunk, Headers, ResponseHead
from rewind.model.step import StepResponse
from rewind.redaction.redactor import Redactor
from rewind.runs.writer_thread import WriterThread
from rewind.store.journal.part import PartFile

READ_LIMIT = 4 * 1024 * 1024
"""A longer answer is kept whole, but its meaning is worked out when somebody looks at it."""


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
        if ends_chunk and self._open:
            self.chunks.append(Chunk(at, self._open))
            self._open = 0

    def finish(self, at: int) -> tuple[Chunk, ...]:
        """All chunks; one that broke off in the middle counts as far as it came."""
        if self._open:
            self.chunks.append(Chunk(at, self._open))
            self._open = 0
        return tuple(self.chunks)


class AnswerRecorder:
    """One answer, from its head to its last byte."""

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
        """The bytes to write; ``None`` when the in-flight file has them."""
        if self._replacement is not None:
            return self._replacement
        return None if self._part is not None else b"".join(self._waiting)

    def piece(self, at: int, data: bytes, *, ends_chunk: bool) -> None:
        self._chunks.piece(at, len(data), ends_chunk=ends_chunk)
        self._keep(self._stream.feed(data))

    def secure(self, writer_thread: WriterThread, index: int, at: int) -> None:
        """Put all that is settled into the in-flight file."""
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
                if self._chunks.size > READ_LIMIT:
                    self.copy = None
