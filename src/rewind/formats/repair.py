"""Requests and answers of other tools, repaired so that a replay can send what a client can read.

Nothing in a stranger's URL or header can end its line early. Tools keep the entity and the headers of the wire side by
side: a body that was taken out of its gzip still says ``content-encoding: gzip``, and a length counts bytes that are
not there. Our model is the entity with its content coding left on and its transfer coding taken off;
:func:`fitted_response` brings a recording into that form.
"""

import base64
import codecs
import ipaddress
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from rewind.errors import BadCassette
from rewind.model.http import Headers, HttpRequest, HttpResponse, RequestHead, header, without_headers
from rewind.wire.encoding import StreamDecoder, UndecodableBody
from rewind.wire.json_weight import json_weight

MOST_MEMORY = 384 * 1024 * 1024
"""For the values of a file, besides their text."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?")
_LONGEST_HOST = 253  # RFC 1035, 2.3.4
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
_MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""How gzip and zstd begin."""
_TEXT_CONTROLS = bytes(sign for sign in range(32) if sign not in b"\t\n\r\f\x1b")
_CHARSET = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9_.:-]+)""", re.IGNORECASE)
_CHARSETS = frozenset(
    codecs.lookup(name).name
    for name in (
        *("utf-8", "ascii", "latin-1", "cp1250", "cp1251", "cp1252", "iso8859-2", "iso8859-15", "koi8-r"),
        *("shift_jis", "euc-jp", "iso2022_jp", "gbk", "gb2312", "gb18030", "big5", "euc-kr", "utf-16"),
    )
)
"""Python also has codecs that are not charsets, such as those that compress."""


class Remarks:
    """What a reader has to say about a file: each thing once, with how often it was so."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, text: str) -> None:
        self._counts[text] += 1

    def texts(self) -> tuple[str, ...]:
        """In the order in which they first came up."""
        return tuple(text + (f" ({count} times)" if count > 1 else "") for text, count in self._counts.items())


class UnusableAddress(ValueError):
    """A request that did not go over HTTP, or to a place that cannot be named; the message says which."""


class Unreadable(ValueError):
    """A value that is not what its place asks for; the message says which."""


# ── heads ────────────────────────────────────────────────────────────────────────────────────────────────────


def request_head(method: str, url: str, headers: Headers) -> RequestHead:
    """Raises UnusableAddress."""
    if not _TOKEN.fullmatch(method):
        raise UnusableAddress(f"{method[:40]!r} is not a valid method")
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
    except ValueError as error:
        raise UnusableAddress(f"{url[:80]!r} is not a valid URL") from error
    if scheme not in _SCHEMES:
        raise UnusableAddress(f"{scheme[:40] or 'no scheme'} is not HTTP")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    scheme = _SCHEMES[scheme]
    return RequestHead(
        method=method.upper(),
        scheme=scheme,
        host=_host(host),
        port=port or (443 if scheme == "https" else 80),
        target=_ascii(target if target.startswith("/") else f"/{target}"),
        headers=headers,
    )


def sound_headers(pairs: Iterable[tuple[object, object]], remarks: Remarks) -> Headers:
    """The headers that can be sent, without those of HTTP/2 that only frame a message."""
    sound: list[tuple[str, str]] = []
    for given, value in pairs:
        name = _text(given)
        if name.startswith(":"):
            continue
        # Browsers write a header that came several times as one, with line breaks.
        for line in _text(value).splitlines() or [""]:
            kept = _latin(line).strip()
            if _TOKEN.fullmatch(name) and not _UNSENDABLE.search(kept):
                sound.append((name, kept))
            else:
                remarks.add("a header that cannot be sent was left out")
    return tuple(sound)


def reason_phrase(given: object) -> str:
    """What stands behind the status, where it can be sent."""
    return given if isinstance(given, str) and given.isascii() and given.isprintable() else ""


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return "" if value is None else str(value)


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
    try:
        host = (name if name.isascii() else name.encode("idna").decode()).lower()
    except UnicodeError as error:
        raise UnusableAddress(f"{name[:80]!r} is not a valid host name") from error
    if len(host) > _LONGEST_HOST or not _HOST.fullmatch(host):
        raise UnusableAddress(f"{host[:80]!r} is not a valid host name")
    return host


def _ascii(target: str) -> str:
    """As clients send it: spaces, control characters and all beyond ASCII are written with percent signs."""
    if target.isascii() and target.isprintable() and " " not in target:
        return target
    return "".join(
        sign if "!" <= sign <= "~" else "".join(f"%{byte:02X}" for byte in sign.encode("utf-8", "surrogatepass"))
        for sign in target
    )


# ── bodies that fit their headers ────────────────────────────────────────────────────────────────────────────


def fitted_request(request: HttpRequest, remarks: Remarks) -> HttpRequest:
    """Only the coding counts: nobody sends a recorded request as it is."""
    headers = _coding_fitted(request.head.headers, request.body, remarks)
    if headers is request.head.headers:
        return request
    return replace(request, head=replace(request.head, headers=headers))


def fitted_response(method: str, response: HttpResponse, remarks: Remarks, *, cut: bool = False) -> HttpResponse:
    """The answer with the coding and the framing that its body has; ``cut``: more was to come."""
    head, size = response.head, len(response.body)
    if method == "HEAD" or head.status < 200 or head.status in (204, 304):
        return response  # no body follows: what the headers say of one is about another answer
    headers = _coding_fitted(head.headers, response.body, remarks)
    headers = _framing_cut(headers, size) if cut else _framing_fitted(headers, size, remarks)
    return replace(response, head=replace(head, headers=headers))


def _coding_fitted(headers: Headers, body: bytes, remarks: Remarks) -> Headers:
    coding = header(headers, "content-encoding")
    if coding is None or not _is_decoded(body, coding):
        return headers
    remarks.add(f"the body is stored decoded: the header 'content-encoding: {coding[:40]}' was taken off")
    return without_headers(headers, ("content-encoding",))


def _framing_fitted(headers: Headers, size: int, remarks: Remarks) -> Headers:
    transfer = header(headers, "transfer-encoding")
    if transfer is not None and transfer.strip().lower() == "chunked":
        # The body is whole, and a replay cuts it into chunks again.
        return without_headers(headers, ("content-length",))
    length = header(headers, "content-length")
    if transfer is None and length is not None and length.strip() == str(size):
        return headers
    if length is not None and length.strip() != str(size):
        remarks.add("the length in the headers was not that of the stored body, and was set right")
    others = without_headers(headers, ("content-length", "transfer-encoding", "trailer"))
    return (*others, ("Content-Length", str(size)))


def _framing_cut(headers: Headers, size: int) -> Headers:
    """Framing by which a client sees that something is missing."""
    transfer, length = header(headers, "transfer-encoding"), (header(headers, "content-length") or "").strip()
    if transfer is None and length.isdecimal() and len(length) < 16 and int(length) > size:
        return headers
    others = without_headers(headers, ("content-length", "transfer-encoding", "trailer"))
    return (*others, ("Transfer-Encoding", "chunked"))


def _is_decoded(body: bytes, coding: str) -> bool:
    """True for a body that is said to be coded and is not.

    Plain text comes first: to a br or deflate decoder, a few letters can look like a whole and empty stream.
    """
    if not body or coding.strip().lower() in ("", "identity"):
        return False
    if _is_text(body):
        return True
    try:
        decoder = StreamDecoder(coding)
        for _ in decoder.pieces(body):
            pass
        return not (decoder.finished() or body.startswith(_MAGIC))
    except UndecodableBody:
        return not body.startswith(_MAGIC)  # cut or damaged, but coded


def _is_text(body: bytes) -> bool:
    """UTF-8 without control characters."""
    if body.translate(None, _TEXT_CONTROLS) != body:
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


# ── text and bytes ───────────────────────────────────────────────────────────────────────────────────────────


def charset_of(media: str, *, latin_by_default: bool = False) -> str:
    """The charset in which a tool read a body as text.

    mitmproxy reads everything but JSON as latin-1 where nothing else is said; browsers take UTF-8.
    """
    if named := _CHARSET.search(media):
        try:
            name = codecs.lookup(named[1]).name
        except (LookupError, ValueError):
            return "utf-8"
        return name if name in _CHARSETS else "utf-8"
    return "latin-1" if latin_by_default and "json" not in media.lower() else "utf-8"


def in_charset(text: str, charset: str) -> bytes:
    """The bytes that the text was read from."""
    # surrogateescape is how mitmproxy writes bytes that are not text.
    for name, errors in ((charset, "strict"), ("utf-8", "surrogateescape")):
        try:
            return text.encode(name, errors)
        except UnicodeEncodeError:
            continue
    return text.encode("utf-8", "surrogatepass")


def read_json(text: str) -> Any:
    """The value. Raises BadCassette where it would take too much memory, which is known before it is read.

    Raises ValueError or RecursionError for what is not JSON.
    """
    if json_weight(text, MOST_MEMORY) > MOST_MEMORY:
        raise BadCassette(
            f"It holds too many values: they would take more than {MOST_MEMORY // 1024 // 1024} MiB of memory."
        )
    return json.loads(text)


def from_base64(text: str) -> bytes:
    """Line breaks are passed over, nothing else. Raises Unreadable."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except ValueError as error:
        raise Unreadable("a body is not valid base64") from error
