"""What another tool recorded becomes a session: redacted as at recording, understood as at recording.

All of it is made from the file alone, so that the same file is the same session in every store. Where a file does
not say when it was recorded, the ``Date`` of an answer does; where nothing says it, the session stands at the first
day of 2000, before anything real.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from rewind.conversation.threads import Threads
from rewind.formats.exchanges import ForeignExchange, ForeignRecording, sound_moment
from rewind.match.call import understand
from rewind.model.http import HttpRequest, without_headers
from rewind.model.ids import BlobId, SessionId, blob_id
from rewind.model.session import Portable, Recording, Session, SessionEnd, SessionStart, Status
from rewind.model.step import Ending, Step, StepResponse
from rewind.providers.hosts import LLM_HOSTS, HostRules
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.runs.step_writer import AnswerRecorder, StepSummary
from rewind.runs.tally import Tally
from rewind.store.folders import folder_name
from rewind.version import __version__

UNDATED = datetime(2000, 1, 1, tzinfo=UTC).timestamp()
_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """How the session is to be called, and what it says of the file it came from."""

    id: SessionId
    name: str
    tags: Mapping[str, str]


def adopted(foreign: ForeignRecording, origin: Origin, env: Mapping[str, str]) -> Portable:
    """The session that these exchanges make; ``env`` holds credentials that may be in them, too."""
    redactor = Redactor(Secrets.from_environment(env))
    for exchange in foreign.exchanges:
        # A key may stand in a body before the first header that names it. Cookies come and go, and wait their turn.
        head = exchange.request.head
        redactor.secrets.learn(replace(head, headers=without_headers(head.headers, ("cookie",))))
    tally = Tally()
    blobs: dict[BlobId, bytes] = {}
    moments = tuple(_moments(foreign.exchanges, tally))
    threads = Threads(with_starters=False)
    steps = tuple(
        _Adoption(index, redactor, threads, blobs, tally).step(exchange, ts)
        for index, (exchange, ts) in enumerate(zip(foreign.exchanges, moments, strict=True), 1)
    )
    remarks = (*map(redactor.text, foreign.remarks), *tally.remarks)
    start = SessionStart(
        id=origin.id,
        name=redactor.text(origin.name)[:_LONGEST_NAME],
        command=(),
        cwd="",
        started=moments[0] if moments else UNDATED,
        rewind_version=__version__,
        tags=dict(origin.tags),
        hosts=_other_hosts(steps),
        imported=True,
    )
    end = SessionEnd(
        ended=max((_ended(step) for step in steps), default=start.started),
        exit_code=0,
        stdin=None,
        stdout=None,
        stderr=None,
        redactions=redactor.count,
        remarks=remarks,
    )
    session = Session(start=start, end=end, status=Status.ENDED, folder=folder_name(start))
    return Portable(recording=Recording(session=session, steps=steps), blobs=blobs)


class _Adoption:
    """One exchange on its way to a step."""

    def __init__(
        self, index: int, redactor: Redactor, threads: Threads, blobs: dict[BlobId, bytes], tally: Tally
    ) -> None:
        self._index = index
        self._redactor = redactor
        self._blobs = blobs
        self._summary = StepSummary(index, threads, (), tally.remark)

    def step(self, exchange: ForeignExchange, ts: float) -> Step:
        redactor, request = self._redactor, exchange.request
        redactor.secrets.learn(request.head)
        redacted = HttpRequest(
            head=redactor.request_head(request.head),
            body=redactor.body(request.body, request.head.headers),
        )
        asked = self._summary.request(
            understand(redacted, index=self._index),
            ts=ts,
            note=None if exchange.note is None else redactor.text(exchange.note),
        )
        asked = replace(asked, body=self._kept(redacted.body), body_size=len(redacted.body))
        return Step(request=asked, response=self._answered(exchange))

    def _answered(self, exchange: ForeignExchange) -> StepResponse | None:
        if exchange.ending is None:
            return None
        response, ms = exchange.response, exchange.ms or 0.0
        bare = StepResponse(
            ending=exchange.ending,
            head=None,
            ms=ms,
            reason=None if exchange.reason is None else self._redactor.text(exchange.reason),
        )
        if response is None:
            return replace(bare, ending=Ending.NO_ANSWER)
        answer, at = AnswerRecorder(response.head, self._redactor), round(ms * 1000)
        answer.piece(at, response.body, ends_chunk=True)
        kept = answer.finish(at, bare, self._redactor.response_headers(response.trailers))
        body = answer.body
        assert body is not None, "nothing of it went to a file"
        return replace(
            kept,
            reading=self._summary.reading(answer, kept),
            body=self._kept(body),
            body_size=len(body),
        )

    def _kept(self, body: bytes) -> BlobId:
        name = blob_id(body)
        if body:
            self._blobs[name] = body
        return name


def _moments(exchanges: Sequence[ForeignExchange], tally: Tally) -> Iterator[float]:
    """When each was asked, as well as that is known; one that does not say it follows the one before it."""
    known = [one.started or _date(one) for one in exchanges]
    before = next((moment for moment in known if moment is not None), None)
    if before is None:
        tally.remark("the file", "does not say when it was recorded: it stands at 2000-01-01")
        before = UNDATED
    for moment in known:
        before = before if moment is None else moment
        yield before


def _date(exchange: ForeignExchange) -> float | None:
    """When the answer was made, by its ``Date`` header."""
    given = None if exchange.response is None else exchange.response.head.header("date")
    try:
        return None if given is None else sound_moment(parsedate_to_datetime(given).timestamp())
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _ended(step: Step) -> float:
    return step.request.ts + (0.0 if step.response is None else step.response.ms / 1000)


def _other_hosts(steps: Sequence[Step]) -> tuple[str, ...]:
    """Those that a replay would not know to be on tape."""
    known = HostRules(LLM_HOSTS)
    return tuple(
        sorted({step.request.head.host for step in steps if not known.records(step.request.head.host)})
    )
