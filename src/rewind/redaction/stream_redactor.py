"""Answers without their secrets, while they are still coming.

Two stages, each of which gives back as many bytes as it takes: first what is written in one piece, wherever reads cut
it; then, for streams of documents, what is a secret only when joined. What ``feed`` returns is settled and may go to
disk. A compressed answer is unfolded beside: its bytes pass as they are until something is found in them.
"""

from collections import deque
from collections.abc import Callable

from rewind.model.http import ResponseHead
from rewind.redaction.scanner import Scanner, Span
from rewind.redaction.split_secrets import JoinedLines
from rewind.redaction.values import placeholder
from rewind.wire.encoding import StreamDecoder, UndecodableBody, decode_as_far_as_possible, encode
from rewind.wire.json_strings import is_event_stream, is_lines

_MOST_KEPT = 32 * 1024 * 1024
"""A stream of documents is remembered up to this size, in case its first characters of a secret must be corrected; a
compressed answer, in case it must be compressed anew."""
_TOO_LONG = b"Rewind: a secret was in this compressed answer, which is too long to be written without it."


class Contiguous:
    """Replaces what is written in one piece; holds back what could be the beginning of it."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self._held = b""
        self.hits = 0

    def feed(self, data: bytes) -> bytes:
        if self._held:
            data = self._held + data
        spans, settled = self.scanner.cut(data)
        self._held = data[settled:]
        return self._replaced(data[:settled], spans)

    def finish(self) -> bytes:
        data, self._held = self._held, b""
        return self._replaced(data, self.scanner.end(data))

    def _replaced(self, data: bytes, spans: list[Span]) -> bytes:
        self.hits += len(spans)
        return replaced(data, spans)


def replaced(data: bytes, spans: list[Span]) -> bytes:
    """The data with a placeholder in each of these places."""
    if not spans:
        return data
    changed = bytearray(data)
    for start, end in spans:
        changed[start:end] = placeholder(end - start).encode()
    return bytes(changed)


class _Pipeline:
    """The stages that a decoded answer of this type needs."""

    def __init__(self, scanner: Scanner, head: ResponseHead) -> None:
        self._scanner = scanner
        self._contiguous = Contiguous(scanner)
        self._media = (head.header("content-type") or "").lower()
        self._joined: JoinedLines | None = None
        self._begun = False

    @property
    def hits(self) -> int:
        return self._contiguous.hits + (self._joined.hits if self._joined else 0)

    @property
    def joins(self) -> bool:
        return self._joined is not None

    @property
    def late(self) -> bool:
        """Whether bytes that were given out need correction."""
        return self._joined is not None and bool(self._joined.late)

    def corrected(self, body: bytes) -> bytes:
        """All that was given out, with the beginnings of secrets that were too short to be held back."""
        if self._joined is None or not self._joined.late:
            return body
        changed = bytearray(body)
        for offset, data in self._joined.late:
            changed[offset : offset + len(data)] = data
        return bytes(changed)

    def feed(self, data: bytes) -> bytes:
        if not self._begun:
            self._begin(data)
        data = self._contiguous.feed(data)
        return self._joined.feed(data) if self._joined else data

    def finish(self) -> bytes:
        data = self._contiguous.finish()
        if self._joined is None:
            return data
        return self._joined.feed(data) + self._joined.finish()

    def _begin(self, data: bytes) -> None:
        """The first bytes tell an array that is streamed from a plain JSON body, and events that are not declared."""
        first = data.lstrip()[:6]
        if not first:
            return
        self._begun = True
        if is_event_stream(self._media, first):
            self._joined = JoinedLines(self._scanner, events=True)
        elif is_lines(self._media) or ("json" in self._media and first[:1] == b"["):
            self._joined = JoinedLines(self._scanner, events=False)


class StreamRedactor:
    """One answer on its way to the store. This one passes it on: no secret is known.

    What ``feed`` and ``finish`` return, joined, is the body to store, unless ``replacement`` is set after ``finish``.
    """

    def __init__(self, removed: Callable[[int], None]) -> None:
        self.withheld = False
        """A compressed answer holds a secret: nothing of it may stay on disk, and ``replacement`` will follow."""
        self.replacement: bytes | None = None
        """After ``finish``: the whole body to store instead of all that was returned.

        For an answer that is not compressed it has the same length, so the chunks stay as they are.
        """
        self._removed = removed
        """Told at the end how many secrets were replaced."""

    def feed(self, data: bytes) -> bytes:
        """The bytes that are settled now; they may lag behind."""
        return data

    def finish(self) -> bytes:
        """The rest; no more will come."""
        return b""


class _Printed(StreamRedactor):
    """What a process prints. It may outlast every exchange, so it asks again and again which values are known."""

    def __init__(self, removed: Callable[[int], None], scanner: Callable[[], Scanner]) -> None:
        super().__init__(removed)
        self._scanner = scanner
        self._stage = Contiguous(scanner())

    def feed(self, data: bytes) -> bytes:
        self._stage.scanner = self._scanner()
        return self._stage.feed(data)

    def finish(self) -> bytes:
        data = self._stage.finish()
        self._removed(self._stage.hits)
        return data


class _Uncompressed(StreamRedactor):
    def __init__(self, removed: Callable[[int], None], scanner: Scanner, head: ResponseHead) -> None:
        super().__init__(removed)
        self._pipeline = _Pipeline(scanner, head)
        self._kept: list[bytes] = []
        self._left = _MOST_KEPT

    def feed(self, data: bytes) -> bytes:
        return self._keep(self._pipeline.feed(data))

    def finish(self) -> bytes:
        data = self._keep(self._pipeline.finish())
        self._removed(self._pipeline.hits)
        if self._pipeline.late and self._left >= 0:
            self.replacement = self._pipeline.corrected(b"".join(self._kept))
        return data

    def _keep(self, data: bytes) -> bytes:
        # The reader of the answer keeps these very bytes as well, so this costs a list and no copy.
        if self._left >= 0 and self._pipeline.joins:
            self._left -= len(data)
            self._kept.append(data)
            if self._left < 0:
                self._kept.clear()
        return data


class _Compressed(StreamRedactor):
    def __init__(
        self, removed: Callable[[int], None], scanner: Scanner, head: ResponseHead, decoder: StreamDecoder
    ) -> None:
        super().__init__(removed)
        self._scanner = scanner
        self._head = head
        self._pipeline = _Pipeline(scanner, head)
        self._decoder: StreamDecoder | None = decoder
        self._kept: list[bytes] = []
        self._left = _MOST_KEPT
        self._waiting: deque[tuple[int, bytes]] = deque()
        """Pieces as they came, each with how much is decoded by then; given out when so much is settled."""
        self._decoded = 0
        self._settled = 0

    def feed(self, data: bytes) -> bytes:
        if self._decoder is None:
            return data
        self._keep(data)
        if self.withheld:
            return b""
        try:
            for piece in self._decoder.pieces(data):
                self._decoded += len(piece)
                self._settled += len(self._pipeline.feed(piece))
        except UndecodableBody:
            # Damaged, or too large to look into. What came before counts; what follows nobody can read.
            self._end()
        self._waiting.append((self._decoded, data))
        return self._given()

    def finish(self) -> bytes:
        if self._decoder is not None:
            self._end()
        data = self._given()
        if self.withheld:
            coding = self._head.header("content-encoding")
            plain, _ = decode_as_far_as_possible(b"".join(self._kept), coding)
            if self._left < 0:
                plain = _TOO_LONG
            pipeline = _Pipeline(self._scanner, self._head)
            body = pipeline.feed(plain) + pipeline.finish()
            self.replacement = encode(pipeline.corrected(body), coding)
            self._removed(pipeline.hits)
        return data

    def _keep(self, data: bytes) -> None:
        if self._left >= 0:
            self._left -= len(data)
            self._kept.append(data)
            if self._left < 0:
                self._kept.clear()

    def _end(self) -> None:
        """No more can be decoded."""
        self._settled += len(self._pipeline.finish())
        if not self._pipeline.hits:
            self._decoder = None
            self._kept.clear()

    def _given(self) -> bytes:
        if self._pipeline.hits:
            self.withheld = True
            self._waiting.clear()
        ready: list[bytes] = []
        while self._waiting and self._waiting[0][0] <= self._settled:
            ready.append(self._waiting.popleft()[1])
        return b"".join(ready)


def redacted_stream(scanner: Scanner, head: ResponseHead, removed: Callable[[int], None]) -> StreamRedactor:
    """What takes the secrets out of the body that follows this head."""
    if not scanner:
        return StreamRedactor(removed)
    coding = head.header("content-encoding")
    if coding is None or coding.strip().lower() in ("", "identity"):
        return _Uncompressed(removed, scanner, head)
    try:
        return _Compressed(removed, scanner, head, StreamDecoder(coding))
    except UndecodableBody:
        return _Uncompressed(removed, scanner, head)


def redacted_output(scanner: Callable[[], Scanner], removed: Callable[[int], None]) -> StreamRedactor:
    """What takes the secrets out of what a process prints."""
    return _Printed(removed, scanner)
