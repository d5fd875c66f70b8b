"""Options that several commands share: ``--since``, how providers are reached, how a run is repeated."""

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


def upstream_options(function: Command) -> Command:
    """Adds ``connect_to``, ``upstream_ca``, ``upstream_proxy`` and ``insecure_upstream``."""
    return _with_options(
        function,
        click.option(
            "--connect-to",
            multiple=True,
            metavar="HOST:PORT:ADDR:PORT",
            help="Connect to ADDR:PORT when HOST:PORT is asked for, as curl does (repeatable)",
        ),
        click.option("--upstream-ca", metavar="FILE", help="Also trust the certificates in FILE (PEM)"),
        click.option("--upstream-proxy", metavar="URL", help="Reach the providers through this proxy"),
        click.option("--insecure-upstream", is_flag=True, help="Do not check the provider's certificate"),
    )


def prove_options(function: Command) -> Command:
    """How ``bisect --prove`` asks, how often, and what it may cost."""
    return _with_options(
        function,
        click.option(
            "--prove",
            "proves",
            is_flag=True,
            help="Run BAD again to that step with GOOD's value put back, live, and see how it comes out",
        ),
        click.option(
            "--samples",
            type=click.IntRange(1, 100),
            default=1,
            metavar="K",
            help="With --prove: ask each question K times (default 1)",
        ),
        click.option(
            "--max-calls",
            type=click.IntRange(min=1),
            default=40,
            metavar="N",
            help="With --prove: make at most N live calls (default 40)",
        ),
        click.option(
            "--max-cost", callback=read_money, metavar="USD", help="With --prove: spend no more than this"
        ),
        click.option(
            "--allow-drift",
            is_flag=True,
            help="With --prove: accept a changed request at the same place before the step",
        ),
    )


def read_money(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """``0.50``, or ``$0.50``."""
    if value is None:
        return None
    try:
        usd = float(value.removeprefix("$"))
    except ValueError:
        usd = -1.0
    if not 0 < usd < float("inf"):
        raise click.BadParameter(f"{value!r} is no sum in US dollars, such as 0.50.", context, parameter)
    return usd


def _with_options(function: Command, *options: Callable[[Command], Command]) -> Command:
    for option in reversed(options):
        function = option(function)
    return function
