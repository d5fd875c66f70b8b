"""Which step is another try of one that failed.

When a request is sent, the last word on the same request counts: if that was a failure (:class:`StepOutcome`), this
is a retry. Equal requests that are under way at the same time are not retries of each other, and of one whose end is
not known nobody can say that it was given up. The catalog has the same rule in SQL (``store/catalog/fill.py``).
"""

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
    """Steps that are retries, each with the step that failed; the attempts are those of one match key."""
    known = [attempt for attempt in attempts if attempt.ended is not None]
    for attempt in attempts:
        before = [one for one in known if one.ended is not None and one.ended < attempt.began]
        last = max(before, key=lambda one: (one.ended, one.step), default=None)
        if last is not None and last.failed:
            yield attempt.step, last.step


def retries(steps: Iterable[Step]) -> dict[int, int]:
    """Step → the failed step that it repeats."""
    by_key: dict[MatchKey, list[Attempt]] = {}
    for step in steps:
        ended = None if step.response is None else step.ended
        attempt = Attempt(step.request.ts, ended, step.outcome.failed, step.index)
        by_key.setdefault(step.request.match_key, []).append(attempt)
    return dict(pair for attempts in by_key.values() if len(attempts) > 1 for pair in retried(attempts))
