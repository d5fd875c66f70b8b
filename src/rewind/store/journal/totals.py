"""The counts of a session, for lists: kept while writing, and the same counts when reading back."""

from dataclasses import fields
from typing import Any, NamedTuple

from rewind.conversation.retries import Attempt, retried
from rewind.dataclass import dataclass
from rewind.model.session import Recording, Status
from rewind.model.step import Ending, StepKind, StepOutcome, StepRequest, StepResponse, step_outcome
from rewind.model.usage import Usage
from rewind.pricing.spending import Pricing, cost_of_call, known_sum, may_have_cost
from rewind.providers.telemetry import PLAIN_HTTP, telemetry_of, upload_row
from rewind.store.journal.lines import Fields
from rewind.store.journal.records import USAGE_KINDS, as_count, usage_in

_NOT_WRITTEN = ("cost", "unpriced")
"""Prices change, and a journal does not: what a session cost is worked out when it is read."""
_LLM_CALL = StepKind.LLM_CALL.value
_COMPLETE = Ending.COMPLETE.value
_TOKENS = {"tokens_in": "input", "tokens_out": "output"} | {kind: kind for kind in USAGE_KINDS}
"""Of each total: the member of a usage that it sums up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What a list shows of a session."""

    steps: int = 0
    llm_calls: int = 0
    tokens_in: int | None = None
    """``None`` when no step told its tokens."""
    tokens_out: int | None = None
    cache_read: int | None = None
    """Of the tokens in: read from a cache."""
    cache_write: int | None = None
    """Of the tokens in: written to a cache."""
    reasoning: int | None = None
    """Of the tokens out: thinking."""
    peak_context: int | None = None
    """The most tokens that one call read; never a sum."""
    threads: int | None = None
    """Conversations; ``None`` where the journal does not tell them apart."""
    cut: int = 0
    """Answers that broke off, were left by the agent, or never came."""
    errors: int = 0
    """Answers with an error status or an error inside."""
    retries: int = 0
    """Steps that ask once more what an earlier one got no good answer to."""
    replayed: int = 0
    """Steps that a tape answered: nobody was asked, and nothing was spent."""
    telemetry: int = 0
    """Uploads that are no part of the run: in none of the other figures."""
    cost: float | None = None
    """US dollars; ``None`` when nothing but answers from a tape could be priced, or nobody asked."""
    unpriced: int = 0
    """LLM calls that the cost leaves out, because their price or their tokens are not known: also those that nobody
    answered. A call that failed before any token was told is not among them."""


_COUNTS = tuple(field.name for field in fields(Totals) if field.default == 0 and field.name not in _NOT_WRITTEN)
_SUMS = tuple(field.name for field in fields(Totals) if field.default is None and field.name not in _NOT_WRITTEN)


def totals_fields(totals: Totals) -> dict[str, int | None]:
    """The fields of the ``end`` line."""
    return {name: getattr(totals, name) for name in (*_COUNTS, *_SUMS)}


def totals_from_fields(value: Any) -> Totals:
    """The totals in an ``end`` line."""
    fields = value if isinstance(value, dict) else {}
    counts = {name: as_count(fields.get(name)) or 0 for name in _COUNTS}
    sums: dict[str, Any] = {name: as_count(fields.get(name)) for name in _SUMS}
    return Totals(**counts, **sums)


class RequestFacts(NamedTuple):
    """What counting needs of a request. A tuple, because lists make thousands of them."""

    kind: str
    key: Any
    thread: int | None
    host: str
    target: str
    provider: str
    model: str | None
    ts: float
    telemetry: bool = False

    @classmethod
    def of(cls, request: StepRequest) -> "RequestFacts":
        head = request.head
        return cls(
            request.kind.value,
            request.match_key,
            request.thread,
            head.host,
            head.target,
            request.provider,
            request.model,
            request.ts,
            telemetry_of(request) is not None,
        )

    @classmethod
    def of_line(cls, fields: Fields) -> "RequestFacts":
        """From a ``request`` line, each of the right type or left out."""
        return cls(
            _text(fields.get("type")) or "",
            _text(fields.get("key")),
            as_count(fields.get("thread")),
            _text(fields.get("host")) or "",
            _text(fields.get("target")) or "/",
            _text(fields.get("provider")) or "",
            _text(fields.get("model")),
            _number(fields.get("ts")) or 0.0,
            _is_telemetry(fields),
        )


def _is_telemetry(fields: Fields) -> bool:
    """As :func:`rewind.providers.telemetry.telemetry_of` says of the step of a ``request`` line."""
    if fields.get("provider") != PLAIN_HTTP:
        return False
    method, host, target = (_text(fields.get(name)) or "" for name in ("method", "host", "target"))
    return upload_row(method, host, target.partition("?")[0]) is not None


class AnswerFacts(NamedTuple):
    """What counting needs of an answer."""

    ending: str
    status: int | None
    error: bool
    """Whether there is an error inside."""
    model: str | None
    usage: Usage
    replayed: bool
    ms: float | None
    """How long it took, from the complete request to the end."""

    @classmethod
    def of(cls, response: StepResponse) -> "AnswerFacts":
        reading = response.reading
        return cls(
            response.ending.value,
            response.head.status if response.head else None,
            reading.error is not None,
            reading.model,
            reading.usage,
            response.tape is not None,
            response.ms,
        )

    @classmethod
    def of_line(cls, fields: Fields) -> "AnswerFacts":
        """From a ``step`` or ``cut`` line."""
        return cls(
            _text(fields.get("ending")) or _COMPLETE,
            as_count(fields.get("status")),
            fields.get("error") is not None,
            _text(fields.get("model")),
            usage_in(fields),
            fields.get("tape") is not None,
            _number(fields.get("ms")),
        )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) < 1e12 else None


class TotalsCounter:
    """Counts steps as they come: requests in the order of their numbers, answers in any order."""

    def __init__(self, pricing: Pricing | None = None) -> None:
        self._pricing = pricing
        self._llm_calls = self._cut = self._errors = self._replayed = self._unpriced = 0
        self._tokens: dict[str, int] = {}
        self._peak: int | None = None
        self._cost: float | None = None
        self._threads: set[int] = set()
        self._uploads: set[int] = set()
        self._steps: set[int] = set()
        self._open: dict[int, RequestFacts] = {}
        self._attempts: dict[Any, list[Attempt]] = {}

    def request(self, index: int, asked: RequestFacts) -> None:
        """The first request of that number counts."""
        if index in self._steps:
            return
        if asked.telemetry:
            self._uploads.add(index)  # its answer finds nothing that it answers
            return
        self._steps.add(index)
        self._llm_calls += asked.kind == _LLM_CALL
        if asked.thread is not None:
            self._threads.add(asked.thread)
        self._open[index] = asked

    def answer(self, index: int, answer: AnswerFacts) -> None:
        """The first answer to a request counts; one whose request is gone does not."""
        asked = self._open.pop(index, None)
        if asked is None:
            return
        outcome = step_outcome(answer.ending, answer.status, error=answer.error)
        self._cut += answer.ending != _COMPLETE
        self._errors += outcome is StepOutcome.ERROR
        self._replayed += answer.replayed
        ended = None if answer.ms is None else asked.ts + answer.ms / 1000
        self._attempts.setdefault(asked.key, []).append(Attempt(asked.ts, ended, outcome.failed, index))
        usage = answer.usage
        for name, kind in _TOKENS.items():
            if (count := getattr(usage, kind)) is not None:
                self._tokens[name] = self._tokens.get(name, 0) + count
        # A call that tells no output has none: an embedding, which reads much and is no conversation.
        in_context = usage.input if usage.output is not None else None
        if in_context is not None and (self._peak is None or in_context > self._peak):
            self._peak = in_context
        if self._pricing is not None and asked.kind == _LLM_CALL:
            self._spend(self._pricing, asked, answer)

    def line(self, fields: Fields) -> None:
        """Count a line of a journal."""
        index = as_count(fields.get("step"))
        if index is None:
            return
        match fields.get("kind"):
            case "request" | "asked":
                self.request(index, RequestFacts.of_line(fields))
            case "step" | "cut" | "answered":
                self.answer(index, AnswerFacts.of_line(fields))

    def totals(self, *, running: bool = False) -> Totals:
        """While the session runs, an answer that has not come is not yet missing; what it costs is not known."""
        waiting = sum(asked.kind == _LLM_CALL for asked in self._open.values())
        unpriced = self._unpriced + (waiting if self._pricing is not None else 0)
        return Totals(
            steps=len(self._steps),
            llm_calls=self._llm_calls,
            **self._tokens,
            peak_context=self._peak,
            threads=len(self._threads) or None,
            cut=self._cut + (0 if running else len(self._open)),
            errors=self._errors,
            retries=self._retries(),
            replayed=self._replayed,
            telemetry=len(self._uploads),
            cost=known_sum(self._cost, unpriced),
            unpriced=unpriced,
        )

    def _spend(self, pricing: Pricing, asked: RequestFacts, answer: AnswerFacts) -> None:
        cost: float | None = 0.0
        if not answer.replayed:
            cost = cost_of_call(
                pricing,
                (answer.model, asked.model),
                host=asked.host,
                target=asked.target,
                provider=asked.provider,
                usage=answer.usage,
                ts=asked.ts,
            )
        if cost is not None:
            self._cost = (self._cost or 0.0) + cost
        elif answer.usage.is_told or may_have_cost(answer.ending, answer.status):
            self._unpriced += 1

    def _retries(self) -> int:
        """Only keys that were asked more than once can hold one; an answer still to come makes nobody a retry."""
        waiting = [(asked.key, Attempt(asked.ts, None, False, index)) for index, asked in self._open.items()]
        by_key = {key: list(attempts) for key, attempts in self._attempts.items()}
        for key, attempt in waiting:
            by_key.setdefault(key, []).append(attempt)
        return sum(1 for attempts in by_key.values() if len(attempts) > 1 for _ in retried(attempts))


def totals_of(recording: Recording, pricing: Pricing | None = None) -> Totals:
    """The totals of a recording in memory."""
    counter = TotalsCounter(pricing)
    for step in recording.steps:
        counter.request(step.index, RequestFacts.of(step.request))
        if step.response is not None:
            counter.answer(step.index, AnswerFacts.of(step.response))
    return counter.totals(running=recording.session.status is Status.RUNNING)
