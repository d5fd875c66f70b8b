"""URLs, methods and headers of a stranger's file as heads that can be played; none of them can end its line early."""

import ipaddress
import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from rewind.formats.remarks import Remarks
from rewind.model.http import Headers, RequestHead

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?")
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
_LONGEST_NAME = 253  # RFC 1035, 2.3.4


class UnusableAddress(ValueError):
    """A request that did not go over HTTP, or to a place that cannot be named; the message says which."""


def request_head(method: str, url: str, headers: Headers) -> RequestHead:
    """Raises UnusableAddress."""
    if not _TOKEN.fullmatch(method):
        raise UnusableAddress(f"{method[:40]!r} is no method")
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
    except ValueError as error:
        raise UnusableAddress(f"{url[:80]!r} is no URL") from error
    if scheme not in _SCHEMES:
        raise UnusableAddress(f"{scheme[:40] or 'no scheme'} is not HTTP")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    plain = _SCHEMES[scheme]
    return RequestHead(
        method=method.upper(),
        scheme=plain,
        host=_host(host),
        port=port or (443 if plain == "https" else 80),
        target=_ascii(target if target.startswith("/") else f"/{target}"),
        headers=headers,
    )


def sound_headers(pairs: Iterable[tuple[object, object]], remarks: Remarks) -> Headers:
    """The headers that can be sent; those of HTTP/2 that only frame a message are none."""
    return tuple(_sound(pairs, remarks))


def _sound(pairs: Iterable[tuple[object, object]], remarks: Remarks) -> Iterator[tuple[str, str]]:
    for given, value in pairs:
        name = _text(given)
        if name.startswith(":"):
            continue
        # Browsers write a header that came several times as one, with line breaks.
        for line in _text(value).splitlines() or [""]:
            kept = _latin(line).strip()
            if _TOKEN.fullmatch(name) and not _UNSENDABLE.search(kept):
                yield name, kept
            else:
                remarks.add("a header that cannot be sent was left out")


def _text(value: object) -> str:
    match value:
        case str():
            return value
        case bytes():
            return value.decode("latin-1")
        case None:
            return ""
        case _:
            return str(value)


def _latin(value: str) -> str:
    """Headers are bytes read as latin-1; what does not fit was UTF-8."""
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace").decode("latin-1")
    return value


def _host(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        pass
    if not name.isascii():
        try:
            name = name.encode("idna").decode()
        except UnicodeError as error:
            raise UnusableAddress(f"{name[:80]!r} is no host") from error
    name = name.lower()
    if len(name) > _LONGEST_NAME or not _HOST.fullmatch(name):
        raise UnusableAddress(f"{name[:80]!r} is no host")
    return name


def _ascii(target: str) -> str:
    """As clients send it: what is no ASCII, a space or a control character is written with percent signs."""
    if target.isascii() and target.isprintable() and " " not in target:
        return target
    return "".join(
        sign
        if "!" <= sign <= "~"
        else "".join(f"%{byte:02X}" for byte in sign.encode("utf-8", "surrogatepass"))
        for sign in target
    )
