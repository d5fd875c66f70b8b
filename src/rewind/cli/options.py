"""Options that several commands share: ``--since``, how providers are reached, how a run is repeated."""

import functools
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Literal, TypeVar

import click

from rewind.dataclass import dataclass
from rewind.model.clock import SystemClock
from rewind.text import moment_of

Command = TypeVar("Command", bound=Callable[..., Any])


def when(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    try:
        return None if value is None else moment_of(value, now=SystemClock().now())
    except ValueError as problem:
        raise click.BadParameter(str(problem), context, parameter) from problem


since_option = click.option(
    "--since", callback=when, metavar="WHEN", help="Only sessions that started since then: 30min, 2h, 7d, 2026-11-01"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamFlags:
    """How the real providers are reached, as it was given."""

    connect_to: tuple[str, ...]
    upstream_ca: str | None
    upstream_proxy: str | None
    insecure_upstream: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProveFlags(UpstreamFlags):
    """The options of ``bisect --prove``, as they were given."""

    proves: bool
    samples: int
    max_calls: int
    max_cost: float | None
    yes: bool
    tools: Literal["replay", "live"]
    allow_drift: bool
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunFlags(UpstreamFlags):
    """The options that ``replay`` and ``fork`` share, as they were given."""

    command: tuple[str, ...]
    """In place of the recorded one, if any."""
    on_miss: Literal["refuse", "live"]
    tools: Literal["replay", "live"]
    allow_drift: bool
    exact: bool
    port: int


def _tools_option(which: str) -> Callable[[Any], Any]:
    return click.option(
        "--tools",
        type=click.Choice(["replay", "live"]),
        default="replay",
        help=f"{which} under @rewind.tool: give back what they returned (default), or run them",
    )


def prove_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """How ``bisect --prove`` asks, how often, and what it may cost: handed over as ``flags``, a ``ProveFlags``."""
    return _gathered(
        function,
        ProveFlags,
        click.option(
            "--prove",
            "proves",
            is_flag=True,
            help="Run BAD again to that step with GOOD's value put back, live, and see how it comes out",
        ),
        click.option(
            "--samples",
            type=click.IntRange(1, 100),
            default=5,
            metavar="K",
            help="With --prove: ask each question K times before judging (default 5, the fewest that are judged)",
        ),
        click.option(
            "--max-calls",
            type=click.IntRange(min=1),
            default=40,
            metavar="N",
            help="With --prove: make at most N live calls (default 40)",
        ),
        click.option("--max-cost", callback=read_money, metavar="USD", help="With --prove: spend no more than this"),
        click.option("--yes", is_flag=True, help="With --prove: do not ask before the first live call"),
        _tools_option("With --prove: functions of the agent"),
        click.option(
            "--allow-drift",
            is_flag=True,
            help="With --prove: accept a changed request at the same place before the step (the default)",
        ),
        click.option(
            "--exact",
            is_flag=True,
            help="With --prove: before the step, answer only requests exactly as recorded, tool results included",
        ),
        upstream_options,
    )


def rerun_options(*, unrecorded: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``[-- COMMAND…]`` and how the agent is run again: handed over as ``flags``, a ``RerunFlags``.

    ``unrecorded`` says which requests ``--on-miss`` is about.
    """
    return lambda function: _gathered(
        function,
        RerunFlags,
        click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND…]"),
        click.option(
            "--on-miss",
            type=click.Choice(["refuse", "live"]),
            default="refuse",
            help=f"{unrecorded}: refuse it (default), or ask the real provider",
        ),
        click.option("--exact", is_flag=True, help="Answer only requests with the recorded dates, ids and folders"),
        _tools_option("Functions of the agent"),
        click.option(
            "--allow-drift", is_flag=True, help="Accept a changed request at the same place of the same conversation"
        ),
        upstream_options,
        click.option(
            "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port of the gateway (0: any)"
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
        raise click.BadParameter(f"{value!r} is not a valid amount in US dollars, such as 0.50.", context, parameter)
    return usd


def _gathered(
    function: Callable[..., Any], flags: type[UpstreamFlags], *options: Callable[[Any], Any]
) -> Callable[..., Any]:
    """With these options, which the function gets as one value."""

    @functools.wraps(function)
    def gathered(*args: Any, **given: Any) -> Any:
        value = flags(**{field.name: given.pop(field.name) for field in fields(flags)})
        return function(*args, flags=value, **given)

    return _with_options(gathered, *options)


def _with_options(function: Command, *options: Callable[[Command], Command]) -> Command:
    for option in reversed(options):
        function = option(function)
    return function
