"""Which step is another try of one that failed.

When a request is sent, the last word on the same request counts: if that was a failure (:class:`StepOutcome`), this
is a retry. Equal requests that are under way at the same time are not retries of each other, and of one whose end is
not known nobody can say that it was given up. The catalog has the same rule in SQL (``store/catalog/fill.py``).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rewind.model.ids import MatchKey
from rewind.model.step import Step


class Attempt(NamedTuple):
    """One of several equal requests."""

    began: float
    ended: float | None
    failed: bool
    step: int


def retried(attempts: Iterable[Attempt]) -> Iterator[tuple[int, int]]:
    """Steps that are retries, each with the step that failed; the attempts are those of one match key.

    An agent may ask the same thing thousands of times: the last word before a request is looked up, not searched for.
    """
    attempts = list(attempts)
    ends = sorted((one.ended, one.step, one.failed) for one in attempts if one.ended is not None)
    for attempt in attempts:
        before = bisect_left(ends, (attempt.began,))
        if before and ends[before - 1][2]:
            yield attempt.step, ends[before - 1][1]


def retries(steps: Iterable[Step]) -> dict[int, int]:
    """Step → the failed step that it repeats."""
    by_key: dict[MatchKey, list[Attempt]] = {}
    for step in steps:
        ended = None if step.response is None else step.ended
        attempt = Attempt(step.request.ts, ended, step.outcome.failed, step.index)
        by_key.setdefault(step.request.match_key, []).append(attempt)
    return dict(pair for attempts in by_key.values() if len(attempts) > 1 for pair in retried(attempts))
