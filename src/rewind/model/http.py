"""HTTP as it was on the wire: order and spelling of headers kept, bodies as bytes, arrival times beside them."""

from collections.abc import Callable, Iterable, Iterator
from urllib.parse import parse_qsl

from rewind.dataclass import dataclass

Headers = tuple[tuple[str, str], ...]
"""Name and value as sent, decoded as latin-1; names keep their spelling, repeated names stay repeated."""


def header(headers: Headers, name: str) -> str | None:
    """The first value of that header, whatever its spelling."""
    wanted = name.lower()
    for key, value in headers:  # a plain loop: this is asked several times for every request
        if key.lower() == wanted:
            return value
    return None


def without_headers(headers: Headers, names: Iterable[str]) -> Headers:
    """The headers less those names (given in lower case)."""
    gone = frozenset(names)
    return tuple((key, value) for key, value in headers if key.lower() not in gone)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHead:
    """A request as far as it is known before its body came."""

    method: str
    scheme: str
    """``http`` or ``https``."""
    host: str
    """Lower case, without brackets."""
    port: int
    target: str
    """Path and query in origin form, as sent."""
    headers: Headers

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    @property
    def query_pairs(self) -> list[tuple[str, str]]:
        return parse_qsl(self.query, keep_blank_values=True)

    @property
    def origin(self) -> str:
        """Scheme and authority, the port only where it is not the usual one; what went to no host has no authority."""
        if not self.host and not self.port:
            return f"{self.scheme}:"
        name = f"[{self.host}]" if ":" in self.host else self.host
        usual = {"http": 80, "https": 443}.get(self.scheme)
        return f"{self.scheme}://{name}" + ("" if self.port == usual else f":{self.port}")

    @property
    def url(self) -> str:
        return self.origin + self.target

    def header(self, name: str) -> str | None:
        return header(self.headers, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A whole request. The body is the entity: transfer chunking taken off, content encoding left on."""

    head: RequestHead
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseHead:
    """Status line and headers of an answer."""

    status: int
    reason: str
    headers: Headers
    version: str = "1.1"

    def header(self, name: str) -> str | None:
        return header(self.headers, name)


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a response body: when it came, and how long it is.

    For a chunked response this is one transfer chunk, for others one read; replay sends the same pieces.
    """

    at: int
    """Microseconds since the request was complete."""
    size: int


@dataclass(frozen=True, slots=True)
class LongBody:
    """A body that is too long to be held in memory."""

    size: int
    blocks: Callable[[], Iterator[bytes]]
    """Reads it from its beginning. May raise DamagedStore on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """An answer as far as it came."""

    head: ResponseHead
    body: bytes
    chunks: tuple[Chunk, ...]
    trailers: Headers = ()
    long_body: LongBody | None = None
    """Then ``body`` is empty."""

    @property
    def size(self) -> int:
        return len(self.body) if self.long_body is None else self.long_body.size
