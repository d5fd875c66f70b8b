"""What many sessions come to: the values behind ``rewind stats``."""

from datetime import date
from enum import StrEnum

from rewind.dataclass import dataclass


class By(StrEnum):
    """What the calls are put together by."""

    MODEL = "model"
    PROVIDER = "provider"
    DAY = "day"
    NAME = "name"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Some LLM calls, counted. Answers from a tape are not among them: nobody was asked."""

    calls: int = 0
    tokens_in: int = 0
    """All the models read."""
    cache_read: int = 0
    """Of that: from a cache."""
    cache_write: int = 0
    """Of that: written to a cache."""
    tokens_out: int = 0
    """All they wrote."""
    reasoning: int = 0
    """Of that: thinking."""
    cost: float | None = None
    """US dollars; ``None`` when no call could be priced."""
    unpriced: int = 0
    """Calls that the cost leaves out, because their price or their tokens are not known. A call that was turned away
    is not among them."""
    errors: int = 0
    """Answers with an error status or an error inside."""
    cut: int = 0
    """Answers that broke off, were left by the agent, or never came."""
    retries: int = 0
    ms_p50: float | None = None
    """From request to end of answer, over the good answers; so are the other two."""
    ms_p95: float | None = None
    first_ms_p50: float | None = None
    """To the first byte of the answer."""


@dataclass(frozen=True, slots=True)
class Group:
    """The calls that have something in common."""

    key: str | None
    """``None`` where it is not known: a call without a model, a session without a name."""
    figures: Figures


@dataclass(frozen=True, slots=True)
class Day:
    """A day in UTC."""

    day: date
    calls: int
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """What replays answered from recordings, at the price of the recorded calls."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    unpriced: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All of it."""

    by: By
    first: date | None
    """The first day that counts; ``None`` for all there are."""
    last: date
    sessions: int = 0
    """Those with LLM calls among the counted ones."""
    other_steps: int = 0
    """Steps that are not LLM calls; they are counted nowhere else."""
    telemetry: int = 0
    """Uploads that are no part of any run; not among the other steps."""
    damaged_lines: int = 0
    """Lines of journals that could not be read, so that what they tell is not counted."""
    groups: tuple[Group, ...] = ()
    total: Figures = Figures()
    days: tuple[Day, ...] = ()
    """Only those with calls, in order."""
    saved: Saved = Saved()
