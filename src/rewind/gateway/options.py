"""How the gateway reaches origins, as the user asked for it; read before the agent starts."""

import base64
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rewind.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamOptions:
    """The way to the real providers."""

    connect_to: tuple[str, ...] = ()
    """``HOST:PORT:ADDR:PORT`` as curl has it: dial ADDR:PORT where HOST:PORT is meant."""
    ca: Path | None = None
    proxy: str | None = None
    insecure: bool = False

    @property
    def detours(self) -> "tuple[Detour, ...]":
        return tuple(Detour.parse(rule) for rule in self.connect_to)

    @property
    def parent(self) -> "ParentProxy | None":
        return ParentProxy.parse(self.proxy) if self.proxy else None

    def check(self) -> None:
        """Raise UsageError for what cannot be meant."""
        _ = self.detours, self.parent
        if self.ca is not None and not self.ca.is_file():
            raise UsageError(f"The file {self.ca} with certificates is not there.")


@dataclass(frozen=True, slots=True)
class Detour:
    """Another address for an origin; an empty host or port stands for any."""

    host: str
    port: str
    to_host: str
    to_port: int

    @classmethod
    def parse(cls, rule: str) -> "Detour":
        parts = _split_address(rule)
        if len(parts) != 4 or not parts[2] or not parts[3].isdigit():
            raise UsageError(
                f"--connect-to {rule!r} is not HOST:PORT:ADDR:PORT.",
                hint="For example --connect-to api.openai.com:443:127.0.0.1:8443",
            )
        return cls(parts[0].lower(), parts[1], parts[2], int(parts[3]))


@dataclass(frozen=True, slots=True)
class ParentProxy:
    """A proxy between us and the world."""

    host: str
    port: int
    authorization: str | None

    @classmethod
    def parse(cls, url: str) -> "ParentProxy":
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme != "http" or not parts.hostname:
            raise UsageError(
                f"The parent proxy {parts.scheme}://{parts.hostname or ''} cannot be used: it must be http://.",
                hint="Give one as --upstream-proxy http://host:port.",
            )
        credentials = None
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            credentials = "Basic " + base64.b64encode(pair.encode()).decode()
        return cls(parts.hostname, parts.port or 80, credentials)


def _split_address(text: str) -> list[str]:
    """``HOST:PORT:ADDR:PORT`` with optional IPv6 brackets, as its four parts."""
    parts: list[str] = []
    rest = text
    while rest or len(parts) < 4:
        if rest.startswith("["):
            inside, _, rest = rest[1:].partition("]")
            parts.append(inside)
            rest = rest.removeprefix(":")
        else:
            part, colon, rest = rest.partition(":")
            parts.append(part)
            if not colon:
                break
    return parts
