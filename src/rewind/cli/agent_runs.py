"""What the commands that run an agent share: how providers are reached, how a run is repeated, what it may cost."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from rewind.gateway.options import UpstreamOptions
from rewind.settings import Settings, without_password

Command = TypeVar("Command", bound=Callable[..., Any])


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


def upstream_from(
    settings: Settings, *, connect_to: tuple[str, ...], insecure: bool, quiet: bool = False
) -> UpstreamOptions:
    """How the providers are reached in this run. Says so when a project's file redirects what carries your keys."""
    redirected = [
        name
        for name in ("upstream_proxy", "upstream_ca")
        if any(origin.kind == "project" for origin in settings.origin(name))
    ]
    if redirected and not quiet:
        from rewind.cli.screens.terminal import Span, err  # lazily: see ``record``

        for name in redirected:
            source = settings.origin(name)[0]
            err().line(
                Span(f"{name} = {without_password(str(getattr(settings, name)))} ({source})", "yellow")
            )
    return UpstreamOptions(
        connect_to=connect_to, ca=settings.upstream_ca, proxy=settings.upstream_proxy, insecure=insecure
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
