"""Where a request is meant to go, worked out from the entry it came through."""

import re
from urllib.parse import urlsplit

from rewind.gateway.exchange import Origin
from rewind.gateway.http1 import BadMessage, IncomingRequest, rewrite_head, without_lines
from rewind.model.http import RequestHead

BASE_URLS: dict[str, Origin] = {
    "openai": Origin("https", "api.openai.com", 443),
    "anthropic": Origin("https", "api.anthropic.com", 443),
    "gemini": Origin("https", "generativelanguage.googleapis.com", 443),
    "mistral": Origin("https", "api.mistral.ai", 443),
    "groq": Origin("https", "api.groq.com", 443),
    "deepseek": Origin("https", "api.deepseek.com", 443),
    "openrouter": Origin("https", "openrouter.ai", 443),
    "xai": Origin("https", "api.x.ai", 443),
    "together": Origin("https", "api.together.xyz", 443),
    "fireworks": Origin("https", "api.fireworks.ai", 443),
    "cohere": Origin("https", "api.cohere.com", 443),
}
"""First path segment of the base-URL entry; ``/https/HOST[:PORT]/…`` and ``/http/…`` reach any other origin."""

# What is said to a proxy is not meant for the origin; h2c is an offer of this one hop.
HOP_HEADERS = frozenset((b"proxy-connection", b"proxy-authorization", b"http2-settings"))

_ABSOLUTE = re.compile(r"(https?)://([^/?#]*)", re.IGNORECASE)

UNKNOWN_PORT = 0
"""At the SNI entry the host is known from the handshake, the port only from the ``Host`` header."""


class NoOrigin(Exception):
    """A request to the gateway itself that names no origin."""


def origin_of(authority: str, scheme: str) -> Origin:
    """``host``, ``host:port`` or ``[v6]:port`` as an origin."""
    try:
        parts = urlsplit(f"//{authority}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadMessage(f"{authority!r} is not a host and port") from error
    if not host:
        raise BadMessage("the request names no host")
    return Origin(scheme, host.lower(), port or (443 if scheme == "https" else 80))


def aim(incoming: IncomingRequest, fixed: Origin | None, own_port: int) -> tuple[RequestHead, bytes]:
    """The request's head with its origin, and the head bytes to send there.

    Inside a tunnel or behind SNI the bytes are the client's own. At the plain entries only the request line,
    ``Host`` at the base-URL entry, and what was addressed to the proxy are changed.
    """
    url = incoming.url.decode("latin-1")
    if fixed is not None:
        if fixed.port == UNKNOWN_PORT:
            named = origin_of(incoming.header("host") or fixed.host, fixed.scheme)
            fixed = Origin(fixed.scheme, fixed.host, named.port)
        return _head(incoming, fixed, _origin_form(url)), incoming.raw_head
    absolute = _ABSOLUTE.match(url)
    scheme, authority = (absolute[1].lower(), absolute[2]) if absolute else ("http", incoming.header("host") or "")
    origin = origin_of(authority, scheme)
    target = _origin_form(url)
    raw = _without_h2c(incoming)
    if origin.port == own_port and origin.host in ("127.0.0.1", "localhost", "::1"):
        origin, target = _base_url(target)
        raw = rewrite_head(raw, target, drop=HOP_HEADERS, host=_authority(origin))
    elif absolute:
        raw = rewrite_head(raw, target, drop=HOP_HEADERS)
    return _head(incoming, origin, target), raw


def _authority(origin: Origin) -> str:
    name = f"[{origin.host}]" if ":" in origin.host else origin.host
    return name if origin.port == (443 if origin.scheme == "https" else 80) else f"{name}:{origin.port}"


def _base_url(url: str) -> tuple[Origin, str]:
    first, _, rest = url.lstrip("/").partition("/")
    if first in ("http", "https"):
        authority, _, rest = rest.partition("/")
        return origin_of(authority, first), "/" + rest
    if first not in BASE_URLS:
        raise NoOrigin(f"this is Rewind's gateway; it knows /{'/, /'.join(BASE_URLS)}/ and /https/HOST/")
    return BASE_URLS[first], "/" + rest


def _origin_form(url: str) -> str:
    absolute = _ABSOLUTE.match(url)
    if absolute is None:
        return url
    rest = url[absolute.end() :]
    return rest if rest.startswith("/") else f"/{rest}"


def _head(incoming: IncomingRequest, origin: Origin, target: str) -> RequestHead:
    return RequestHead(
        method=incoming.method,
        scheme=origin.scheme,
        host=origin.host,
        port=origin.port,
        target=target,
        headers=incoming.headers,
    )


def _without_h2c(incoming: IncomingRequest) -> bytes:
    """Java offers to switch plain HTTP to HTTP/2; taken up, the rest would be unreadable to us."""
    if (incoming.header("upgrade") or "").strip().lower() != "h2c":
        return incoming.raw_head
    return without_lines(incoming.raw_head, (b"upgrade", b"http2-settings", b"connection"))
