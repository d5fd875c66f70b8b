"""A step: one thing the agent asked of the world, and the answer."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from rewind.model.http import Chunk, Headers, RequestHead, ResponseHead
from rewind.model.ids import BlobId, MatchKey, blob_id
from rewind.model.usage import NO_USAGE, Usage

NO_BYTES = blob_id(b"")


class StepKind(StrEnum):
    """What was asked. ``tool_call``, ``error``, ``final`` and ``note`` come from the SDK and from traces."""

    LLM_CALL = "llm_call"
    HTTP_CALL = "http_call"
    TOOL_CALL = "tool_call"
    ERROR = "error"
    FINAL = "final"
    NOTE = "note"


class Ending(StrEnum):
    """How an answer ended. All but ``complete`` are shown as cut, and replayed as cut."""

    COMPLETE = "complete"
    CLIENT_CLOSED = "client_closed"
    """The agent hung up before the answer ended."""
    UPSTREAM_CUT = "upstream_cut"
    """The provider broke off mid-answer."""
    NO_ANSWER = "no_answer"
    """No byte of an answer came: refused, unreachable, timed out."""
    INTERRUPTED = "interrupted"
    """The recorder died while the answer was coming; what had come is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a provider's codec could tell of an exchange, for tables and journal lines. Never needed for replay."""

    model: str | None = None
    text: str = ""
    """The start of the answer, or the tool it asks for."""
    usage: Usage = NO_USAGE
    error: str | None = None
    """The provider's error message, also when it came inside a 200 stream."""
    said: str | None = None
    """What was answered, in a digest; see :mod:`rewind.conversation.sketch`."""
    note: str | None = None
    """Why something could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest:
    """The asking half, redacted; written when the request is complete."""

    index: int
    """Counts requests as they arrive, from 1, so that parallel calls keep an order replay can follow."""
    ts: float
    """When the request began to arrive; seconds since 1970, UTC."""
    kind: StepKind
    provider: str
    """Name of the provider codec; ``http`` where none claims the request."""
    match_key: MatchKey
    """Of the request as it went out."""
    head: RequestHead
    body: BlobId = NO_BYTES
    """Named by the store when it writes the bytes, as is the size."""
    body_size: int = 0
    model: str | None = None
    thread: int | None = None
    """Which conversation of the session it seemed to belong to when it was recorded, from 1; for lists. Views work
    it out anew from the bodies."""
    sketch: str | None = None
    """What is asked, in digests that two runs are compared by; see :mod:`rewind.conversation.sketch`."""
    asked_key: MatchKey | None = None
    """The match key of what the agent had sent, where a fork changed it on its way: a replay finds the step by it."""
    note: str | None = None
    """For example that the body was too large to keep."""

    @property
    def agents_key(self) -> MatchKey:
        """The match key of the request as the agent sent it."""
        return self.asked_key or self.match_key


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResponse:
    """The answering half, redacted."""

    ending: Ending
    head: ResponseHead | None
    """``None`` when the connection died before an answer came."""
    body: BlobId = NO_BYTES
    """Named by the store. For a WebSocket (status 101): its frames, one JSON object a line."""
    body_size: int = 0
    chunks: tuple[Chunk, ...] = ()
    trailers: Headers = ()
    ms: float
    """From the complete request to the end of the answer."""
    first_ms: float | None = None
    """From the complete request to the first byte of the body."""
    reading: Reading = Reading()
    reason: str | None = None
    """For an ending that is not ``complete``: what happened, in words."""
    tape: int | None = None
    """The step of the replayed or forked session that gave this answer, or 0 where an edit put it in: nobody was
    asked, and nothing was spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One exchange as recorded. Written once, never edited."""

    request: StepRequest
    response: StepResponse | None
    """``None`` when nothing of an answer reached the disk."""

    @property
    def index(self) -> int:
        return self.request.index

    def bodies(self, blob: Callable[[BlobId], bytes]) -> tuple[bytes, bytes]:
        """The bytes that were sent and those that were answered, as ``blob`` gives them."""
        return blob(self.request.body), self.answer_body(blob)

    def answer_body(self, blob: Callable[[BlobId], bytes]) -> bytes:
        """The bytes that were answered; empty where nothing was."""
        return b"" if self.response is None else blob(self.response.body)
