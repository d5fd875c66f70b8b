"""Where a request is meant to go, worked out from the door it came through."""

from urllib.parse import urlsplit

from rewind.gateway.exchange import Origin
from rewind.gateway.http1 import BadMessage, IncomingRequest, rewrite_head
from rewind.model.http import RequestHead, header

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
"""First path segment of the base-URL door; ``/https/HOST[:PORT]/…`` and ``/http/…`` reach any other origin."""

# What is said to a proxy is not meant for the origin; h2c is an offer of this one hop.
HOP_HEADERS = frozenset((b"proxy-connection", b"proxy-authorization", b"http2-settings"))


UNKNOWN_PORT = 0
"""Behind the SNI door the host is known from the handshake, the port only from the ``Host`` header."""


class UnknownDoor(Exception):
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

    Inside a tunnel or behind SNI the bytes are the client's own. Through the plain doors only the request line,
    ``Host`` at the base-URL door, and what was addressed to the proxy are changed.
    """
    url = incoming.url.decode("latin-1")
    if fixed is not None:
        if fixed.port == UNKNOWN_PORT:
            named = origin_of(header(incoming.headers, "host") or fixed.host, fixed.scheme)
            fixed = Origin(fixed.scheme, fixed.host, named.port)
        return _head(incoming, fixed, _origin_form(url)), incoming.raw_head
    absolute = url.startswith(("http://", "https://"))
    parts = urlsplit(url)
    authority = parts.netloc.rpartition("@")[2] if absolute else header(incoming.headers, "host") or ""
    origin = origin_of(authority, parts.scheme if absolute else "http")
    target = _origin_form(url)
    if origin.port == own_port and origin.host in ("127.0.0.1", "localhost", "::1"):
        origin, target = _base_url(target)
        raw = rewrite_head(incoming.raw_head, target, drop=HOP_HEADERS, host=_authority(origin))
    elif absolute:
        raw = rewrite_head(_without_h2c(incoming.raw_head), target, drop=HOP_HEADERS)
    else:
        raw = _without_h2c(incoming.raw_head)
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
        raise UnknownDoor(f"this is Rewind's gateway; it knows /{'/, /'.join(BASE_URLS)}/ and /https/HOST/")
    return BASE_URLS[first], "/" + rest


def _origin_form(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        return url
    parts = urlsplit(url)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _head(incoming: IncomingRequest, origin: Origin, target: str) -> RequestHead:
    return RequestHead(
        method=incoming.method,
        scheme=origin.scheme,
        host=origin.host,
        port=origin.port,
        target=target,
        headers=incoming.headers,
    )


def _without_h2c(raw_head: bytes) -> bytes:
    """Java offers to switch plain HTTP to HTTP/2; taken up, the rest would be unreadable to us."""
    if b"h2c" not in raw_head:
        return raw_head
    lines = raw_head[:-4].split(b"\r\n")
    kept = [line for line in lines if line.lower().replace(b" ", b"") != b"upgrade:h2c"]
    kept = [
        line for line in kept if not line.lower().startswith((b"http2-settings:", b"connection: upgrade"))
    ]
    return b"\r\n".join(kept) + b"\r\n\r\n"
