"""The counts of a session, for lists: kept while writing, and the same counts when reading back."""

from dataclasses import dataclass
from typing import Any

from rewind.model.step import Ending, StepKind, StepRequest, StepResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What a list shows of a session."""

    steps: int = 0
    llm_calls: int = 0
    tokens_in: int | None = None
    """``None`` when no step told its tokens."""
    tokens_out: int | None = None
    cut: int = 0
    """Answers that broke off, were left by the agent, or never came."""
    errors: int = 0
    """Answers with an error status or an error inside."""


def totals_from_fields(fields: dict[str, Any]) -> Totals:
    """Back from the ``end`` line."""
    counts = {name: int(fields.get(name) or 0) for name in ("steps", "llm_calls", "cut", "errors")}
    return Totals(tokens_in=fields.get("tokens_in"), tokens_out=fields.get("tokens_out"), **counts)


class Tally:
    """Counts as steps come."""

    def __init__(self) -> None:
        self._steps = self._llm_calls = self._cut = self._errors = 0
        self._tokens_in: int | None = None
        self._tokens_out: int | None = None
        self._open: set[int] = set()

    def request(self, request: StepRequest) -> None:
        self._steps += 1
        self._llm_calls += request.kind is StepKind.LLM_CALL
        self._open.add(request.index)

    def response(self, index: int, response: StepResponse) -> None:
        self._open.discard(index)
        self._cut += response.ending is not Ending.COMPLETE
        reading = response.reading
        self._errors += reading.error is not None or (
            response.head is not None and response.head.status >= 400
        )
        self._tokens_in = _plus(self._tokens_in, reading.tokens_in)
        self._tokens_out = _plus(self._tokens_out, reading.tokens_out)

    def totals(self, *, running: bool = False) -> Totals:
        """While the session runs, an answer that has not come is not yet missing."""
        return Totals(
            steps=self._steps,
            llm_calls=self._llm_calls,
            tokens_in=self._tokens_in,
            tokens_out=self._tokens_out,
            cut=self._cut + (0 if running else len(self._open)),
            errors=self._errors,
        )


def _plus(total: int | None, more: int | None) -> int | None:
    return total if more is None else (total or 0) + more
