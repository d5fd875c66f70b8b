"""How the gateway reaches origins, as the user asked for it; read before the agent starts."""

import base64
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rewind.dataclass import dataclass
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

    def check(self, environ: Mapping[str, str]) -> None:
        """Raise UsageError for values that cannot be used, also in the user's own proxy variables."""
        _ = self.detours, self.parent
        if self.proxy is None:
            for scheme in ("https", "http"):
                url = proxy_variable(scheme, environ)
                if url:
                    ParentProxy.parse(url)
        if self.ca is not None:
            self._check_ca(self.ca)

    def _check_ca(self, file: Path) -> None:
        if not file.is_file():
            raise UsageError(f"The certificate file {file} does not exist.")
        import ssl  # lazily: hardly anybody names a file, and an agent waits for this module

        try:
            ssl.create_default_context(cafile=file)
        except OSError as error:
            raise UsageError(f"The file {file} contains no readable certificates.") from error


def proxy_variable(scheme: str, environ: Mapping[str, str]) -> str | None:
    """What the user's variables say about the proxy for that scheme; either spelling counts."""
    lowered = {name.lower(): value for name, value in environ.items()}
    return lowered.get(f"{scheme}_proxy") or lowered.get("all_proxy")


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
        if len(parts) != 4 or not parts[2] or not _is_port(parts[3]) or (parts[1] and not _is_port(parts[1])):
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
        hint = "Give one as --upstream-proxy http://host:port."
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            port = parts.port
        except ValueError:
            # Its text would repeat the URL, and with it the password.
            raise UsageError("The parent proxy must be a URL with a host and a port.", hint=hint) from None
        if parts.scheme != "http" or not parts.hostname:
            raise UsageError(
                f"The parent proxy {parts.scheme}://{parts.hostname or ''} cannot be used: it must be http://.",
                hint=hint,
            )
        credentials = None
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            credentials = "Basic " + base64.b64encode(pair.encode()).decode()
        return cls(parts.hostname, port or 80, credentials)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) < 65536


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
