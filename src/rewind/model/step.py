"""A step: one thing the agent asked of the world, and the answer."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from rewind.dataclass import dataclass
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


class StepOutcome(StrEnum):
    """How a step came out, for whoever asks whether its answer was good. The rules are in :data:`OUTCOMES`."""

    ANSWERED = "answered"
    CUT_BY_CLIENT = "cut_by_client"
    """The agent hung up on an answer that was coming: it had what it wanted, so this is not a failure."""
    ERROR = "error"
    """An error status, or an error inside the answer."""
    BROKEN_OFF = "broken_off"
    """The answer began, and something else than the agent ended it."""
    UNANSWERED = "unanswered"
    """No answer began, or none is recorded."""

    @property
    def failed(self) -> bool:
        """No good answer came: a fork asks on, and the same request again is a retry."""
        return self is not StepOutcome.ANSWERED and self is not StepOutcome.CUT_BY_CLIENT


class OutcomeRow(NamedTuple):
    """The outcome of a step by what its answer says."""

    error: StepOutcome
    """Its status is 400 or more, or an error is inside."""
    good_status: StepOutcome
    no_status: StepOutcome


# fmt: off
OUTCOMES: Mapping[str | None, OutcomeRow] = MappingProxyType({
    # ending                         error                   status below 400           no status
    Ending.COMPLETE:      OutcomeRow(StepOutcome.ERROR,      StepOutcome.ANSWERED,      StepOutcome.ANSWERED),
    Ending.CLIENT_CLOSED: OutcomeRow(StepOutcome.ERROR,      StepOutcome.CUT_BY_CLIENT, StepOutcome.UNANSWERED),
    Ending.UPSTREAM_CUT:  OutcomeRow(StepOutcome.ERROR,      StepOutcome.BROKEN_OFF,    StepOutcome.UNANSWERED),
    Ending.INTERRUPTED:   OutcomeRow(StepOutcome.ERROR,      StepOutcome.BROKEN_OFF,    StepOutcome.UNANSWERED),
    Ending.NO_ANSWER:     OutcomeRow(StepOutcome.ERROR,      StepOutcome.UNANSWERED,    StepOutcome.UNANSWERED),
    None:                 OutcomeRow(StepOutcome.UNANSWERED, StepOutcome.UNANSWERED,    StepOutcome.UNANSWERED),
})
# fmt: on
"""The only definition of how a step came out, by the ending of its answer (``None``: no answer is recorded). Retries,
comparing, forks, totals and the catalog's SQL all use it."""
OTHER_ENDING = OUTCOMES[Ending.UPSTREAM_CUT]
"""For an ending that only a newer Rewind knows."""


def step_outcome(ending: str | None, status: int | None, *, error: bool) -> StepOutcome:
    """The outcome by :data:`OUTCOMES`. ``ending`` is ``None`` where no answer is recorded; ``error`` is one inside."""
    row = OUTCOMES.get(ending, OTHER_ENDING)
    if error or (status is not None and status >= 400):
        return row.error
    return row.no_status if status is None else row.good_status


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

    @property
    def ended(self) -> float:
        """When the answer was complete, in seconds since 1970; without an answer, when the request began."""
        return self.request.ts + (0.0 if self.response is None else self.response.ms / 1000)

    @property
    def status(self) -> int | None:
        """The status of the answer; ``None`` where no answer has one."""
        return None if self.response is None or self.response.head is None else self.response.head.status

    @property
    def outcome(self) -> StepOutcome:
        """How it came out, by what was read of the answer when it was recorded."""
        response = self.response
        if response is None:
            return step_outcome(None, None, error=False)
        return step_outcome(response.ending, self.status, error=response.reading.error is not None)
