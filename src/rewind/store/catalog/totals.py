"""The counts of a session, for lists: kept while writing, and the same counts when reading back."""

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from rewind.conversation.retries import Attempt, retried
from rewind.model.session import Recording, Status
from rewind.model.step import Ending, StepKind, StepOutcome, StepRequest, StepResponse, step_outcome
from rewind.model.usage import Usage
from rewind.pricing.spending import Pricing, known_sum, may_have_cost

_NOT_WRITTEN = ("cost", "unpriced")
"""Prices change, and a journal does not: what a session cost is worked out when it is read."""
_LLM_CALL = StepKind.LLM_CALL.value
_COMPLETE = Ending.COMPLETE.value


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
    cost: float | None = None
    """US dollars; ``None`` when nothing but answers from a tape could be priced, or nobody asked."""
    unpriced: int = 0
    """LLM calls that the cost leaves out, because their price or their tokens are not known: also those that nobody
    answered. A call that failed before any token was told is not among them."""


_COUNTS = tuple(
    field.name for field in fields(Totals) if field.default == 0 and field.name not in _NOT_WRITTEN
)
_TOLD = tuple(
    field.name for field in fields(Totals) if field.default is None and field.name not in _NOT_WRITTEN
)


def totals_fields(totals: Totals) -> dict[str, int | None]:
    """As they stand in the ``end`` line."""
    return {name: getattr(totals, name) for name in (*_COUNTS, *_TOLD)}


def totals_from_fields(fields: dict[str, Any]) -> Totals:
    """Back from the ``end`` line."""
    counts = {name: whole(fields.get(name)) or 0 for name in _COUNTS}
    told = {name: whole(fields.get(name)) for name in _TOLD}
    known: dict[str, Any] = counts | told
    return Totals(**known)


def whole(value: Any) -> int | None:
    """The value if it is a count that a table can show."""
    return value if type(value) is int and -(2**63) <= value < 2**63 else None


class Asked(NamedTuple):
    """What of a request matters for counting. A tuple, because lists make thousands of them."""

    kind: str
    key: Any
    thread: int | None
    host: str
    target: str
    provider: str
    model: str | None
    ts: float


class Told(NamedTuple):
    """What of an answer matters for counting."""

    ending: str
    status: int | None
    error: bool
    """Whether there is an error inside."""
    model: str | None
    usage: Usage
    replayed: bool
    ms: float | None
    """How long it took, from the complete request to the end."""


class Tally:
    """Counts as steps come. The order of the requests is that of their numbers; answers come as they like."""

    def __init__(self, pricing: Pricing | None = None) -> None:
        self._pricing = pricing
        self._llm_calls = self._cut = self._errors = self._replayed = self._unpriced = 0
        self._tokens_in: int | None = None
        self._tokens_out: int | None = None
        self._cache_read: int | None = None
        self._cache_write: int | None = None
        self._reasoning: int | None = None
        self._peak: int | None = None
        self._cost: float | None = None
        self._threads: set[int] = set()
        self._steps: set[int] = set()
        self._open: dict[int, Asked] = {}
        self._attempts: dict[Any, list[Attempt]] = {}

    def request(self, request: StepRequest) -> None:
        self.asked(
            request.index,
            Asked(
                request.kind.value,
                request.match_key,
                request.thread,
                request.head.host,
                request.head.target,
                request.provider,
                request.model,
                request.ts,
            ),
        )

    def response(self, index: int, response: StepResponse) -> None:
        reading = response.reading
        self.told(
            index,
            Told(
                response.ending.value,
                response.head.status if response.head else None,
                reading.error is not None,
                reading.model,
                reading.usage,
                response.tape is not None,
                response.ms,
            ),
        )

    def asked(self, index: int, asked: Asked) -> None:
        """The first request of that number counts."""
        if index in self._steps:
            return
        self._steps.add(index)
        self._llm_calls += asked.kind == _LLM_CALL
        if asked.thread is not None:
            self._threads.add(asked.thread)
        self._open[index] = asked

    def told(self, index: int, told: Told) -> None:
        """The first answer to a request counts; one whose request is gone does not."""
        asked = self._open.pop(index, None)
        if asked is None:
            return
        outcome = step_outcome(told.ending, told.status, error=told.error)
        self._cut += told.ending != _COMPLETE
        self._errors += outcome is StepOutcome.ERROR
        self._replayed += told.replayed
        ended = None if told.ms is None else asked.ts + told.ms / 1000
        self._attempts.setdefault(asked.key, []).append(Attempt(asked.ts, ended, outcome.failed, index))
        usage = told.usage
        self._tokens_in = _plus(self._tokens_in, usage.input)
        self._tokens_out = _plus(self._tokens_out, usage.output)
        self._cache_read = _plus(self._cache_read, usage.cache_read)
        self._cache_write = _plus(self._cache_write, usage.cache_write)
        self._reasoning = _plus(self._reasoning, usage.reasoning)
        # A call that tells no output has none: an embedding, which reads much and is no conversation.
        in_context = usage.input if usage.output is not None else None
        if in_context is not None and (self._peak is None or in_context > self._peak):
            self._peak = in_context
        if self._pricing is not None and asked.kind == _LLM_CALL:
            self._spend(self._pricing, asked, told)

    def totals(self, *, running: bool = False) -> Totals:
        """While the session runs, an answer that has not come is not yet missing; what it costs is not known."""
        waiting = sum(asked.kind == _LLM_CALL for asked in self._open.values())
        unpriced = self._unpriced + (waiting if self._pricing is not None else 0)
        return Totals(
            steps=len(self._steps),
            llm_calls=self._llm_calls,
            tokens_in=self._tokens_in,
            tokens_out=self._tokens_out,
            cache_read=self._cache_read,
            cache_write=self._cache_write,
            reasoning=self._reasoning,
            peak_context=self._peak,
            threads=len(self._threads) or None,
            cut=self._cut + (0 if running else len(self._open)),
            errors=self._errors,
            retries=self._retries(),
            replayed=self._replayed,
            cost=known_sum(self._cost, unpriced),
            unpriced=unpriced,
        )

    def _spend(self, pricing: Pricing, asked: Asked, told: Told) -> None:
        cost = 0.0 if told.replayed else cost_of_call(pricing, asked, told.model, told.usage)
        if cost is not None:
            self._cost = (self._cost or 0.0) + cost
        elif told.usage.is_told or may_have_cost(told.ending, told.status):
            self._unpriced += 1

    def _retries(self) -> int:
        """Only keys that were asked more than once can hold one; an answer still to come makes nobody a retry."""
        waiting = [(asked.key, Attempt(asked.ts, None, False, index)) for index, asked in self._open.items()]
        by_key = {key: list(attempts) for key, attempts in self._attempts.items()}
        for key, attempt in waiting:
            by_key.setdefault(key, []).append(attempt)
        return sum(1 for attempts in by_key.values() if len(attempts) > 1 for _ in retried(attempts))


def totals_of(recording: Recording, pricing: Pricing | None = None) -> Totals:
    """Of a recording that is at hand."""
    tally = Tally(pricing)
    for step in recording.steps:
        tally.request(step.request)
        if step.response is not None:
            tally.response(step.index, step.response)
    return tally.totals(running=recording.session.status is Status.RUNNING)


def cost_of_call(pricing: Pricing, asked: Asked, model: str | None, usage: Usage) -> float | None:
    """By the model that answered, or else by the one that was asked for."""
    for name in (model,) if model == asked.model else (model, asked.model):
        cost = pricing.cost(
            host=asked.host,
            target=asked.target,
            provider=asked.provider,
            model=name,
            usage=usage,
            ts=asked.ts,
        )
        if cost is not None:
            return cost
    return None


def _plus(total: int | None, more: int | None) -> int | None:
    return total if more is None else (total or 0) + more
