"""What another tool recorded, in our words: exchanges, and what got lost on the way."""

from collections.abc import Iterable
from dataclasses import dataclass

from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.step import Ending

_LAST_MOMENT = 253_402_300_800.0  # the end of the year 9999


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignExchange:
    """One request and its answer as the file holds them: nothing is redacted yet."""

    request: HttpRequest
    response: HttpResponse | None
    """``None`` when no answer came, or when the file does not hold it; ``ending`` tells which."""
    started: float | None = None
    """Seconds since 1970, UTC; ``None`` where the file does not say."""
    ms: float | None = None
    """From the request to the end of the answer."""
    ending: Ending | None = Ending.COMPLETE
    """``None``: there was an answer, but the file does not hold it, so there is nothing to play."""
    reason: str | None = None
    """For an ending that is not ``complete``: what happened, in words."""
    note: str | None = None
    """What a reader of this step should know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """All that a file holds, in the order in which it was asked."""

    exchanges: tuple[ForeignExchange, ...]
    tool: str
    """Which tool wrote the file: ``vcrpy``, ``HAR (mitmproxy)``, …"""
    remarks: tuple[str, ...] = ()
    """What could not be taken over as it was, and what was done instead."""


def in_order(exchanges: Iterable[ForeignExchange]) -> tuple[ForeignExchange, ...]:
    """In the order in which they were asked, where each says when that was; else as the file has them."""
    given = tuple(exchanges)
    if any(one.started is None for one in given):
        return given
    return tuple(sorted(given, key=lambda one: one.started or 0.0))


def sound_moment(seconds: float | None) -> float | None:
    """``None`` for what is no moment after 1970 that a calendar has."""
    return seconds if seconds is not None and 0 < seconds < _LAST_MOMENT else None
