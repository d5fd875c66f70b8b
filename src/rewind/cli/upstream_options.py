"""The options that say how the real providers are reached; ``record`` and ``replay --on-miss live`` share them."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from rewind.gateway.options import UpstreamOptions
from rewind.settings import Settings, without_password

Command = TypeVar("Command", bound=Callable[..., Any])


def upstream_options(function: Command) -> Command:
    """Adds ``connect_to``, ``upstream_ca``, ``upstream_proxy`` and ``insecure_upstream``."""
    for option in (
        click.option("--insecure-upstream", is_flag=True, help="Do not check the provider's certificate"),
        click.option("--upstream-proxy", metavar="URL", help="Reach the providers through this proxy"),
        click.option("--upstream-ca", metavar="FILE", help="Also trust the certificates in FILE (PEM)"),
        click.option(
            "--connect-to",
            multiple=True,
            metavar="HOST:PORT:ADDR:PORT",
            help="Connect to ADDR:PORT when HOST:PORT is asked for, as curl does (repeatable)",
        ),
    ):
        function = option(function)
    return function


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
