"""``--since``: a span back from now, or a moment."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from rewind.model.clock import SystemClock

Command = TypeVar("Command", bound=Callable[..., Any])
_SPAN = re.compile(r"(\d{1,6}) *(s|min|h|d|w)", re.ASCII)
_SECONDS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def moment_of(value: str, *, now: float) -> float:
    """``2h`` or ``7d`` before now, or an ISO date and time, local where it names no zone. Raises ValueError."""
    if span := _SPAN.fullmatch(value.strip().lower()):
        return now - int(span[1]) * _SECONDS[span[2]]
    try:
        return datetime.fromisoformat(value.strip()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError) as problem:
        raise ValueError(
            f"{value!r} is neither a span (30min, 2h, 7d) nor a date (2026-11-01, 2026-11-01T14:30)."
        ) from problem


def _when(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    try:
        return None if value is None else moment_of(value, now=SystemClock().now())
    except ValueError as problem:
        raise click.BadParameter(str(problem), context, parameter) from problem


since_option = click.option(
    "--since",
    callback=_when,
    metavar="WHEN",
    help="Only sessions that began then or later: 30min, 2h, 7d, 2026-11-01",
)
