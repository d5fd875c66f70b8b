"""How a run reaches the real providers, as the settings say."""

from collections.abc import Callable

from rewind.gateway.options import UpstreamOptions
from rewind.settings import Settings, without_password


def upstream_of(
    settings: Settings, *, connect_to: tuple[str, ...], insecure: bool, announce: Callable[[str], None] | None = None
) -> UpstreamOptions:
    """The settings' proxy and certificates, with what was asked for this run alone.

    ``announce`` is told when a project's file redirects what carries the user's keys.
    """
    for name in ("upstream_proxy", "upstream_ca"):
        if announce is not None and any(origin.kind == "project" for origin in settings.origin(name)):
            value = without_password(str(getattr(settings, name)))
            announce(f"{name} = {value} ({settings.origin(name)[0]})")
    return UpstreamOptions(
        connect_to=connect_to, ca=settings.upstream_ca, proxy=settings.upstream_proxy, insecure=insecure
    )
