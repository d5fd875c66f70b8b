"""Which step is another try of one that failed.

When a request is sent, the last word on the same request counts: if that was a failure, this is a retry. Equal
requests that are under way at the same time are no retries of each other, and of one whose end is not known nobody
can say that it was given up.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rewind.model.ids import MatchKey
from rewind.model.step import Ending, Step


class Attempt(NamedTuple):
    """One of several equal requests."""

    began: float
    ended: float | None
    good: bool
    step: int


def retried(attempts: Iterable[Attempt]) -> Iterator[tuple[int, int]]:
    """Steps that are retries, each with the step that failed; the attempts are those of one match key."""
    known = [attempt for attempt in attempts if attempt.ended is not None]
    for attempt in attempts:
        before = [one for one in known if one.ended is not None and one.ended < attempt.began]
        last = max(before, key=lambda one: (one.ended, one.step), default=None)
        if last is not None and not last.good:
            yield attempt.step, last.step


def is_good(step: Step) -> bool:
    """Whether a good answer came: no error by status or inside the answer, no cut."""
    response = step.response
    if response is None or response.ending is not Ending.COMPLETE or response.reading.error is not None:
        return False
    return response.head is None or response.head.status < 400


def retries(steps: Iterable[Step]) -> dict[int, int]:
    """Step → the failed step that it repeats."""
    by_key: dict[MatchKey, list[Attempt]] = {}
    for step in steps:
        request, response = step.request, step.response
        ended = None if response is None else request.ts + response.ms / 1000
        by_key.setdefault(request.match_key, []).append(Attempt(request.ts, ended, is_good(step), step.index))
    return dict(pair for attempts in by_key.values() if len(attempts) > 1 for pair in retried(attempts))
