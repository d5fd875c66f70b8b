"""HTTP/1 messages on the wire, read by llhttp while the bytes themselves pass on untouched.

Parsing belongs to llhttp (``httptools``). What is ours is finding where one message ends and the next begins:
httptools does not tell how far into a buffer a message reached, so a request's head is fed up to its blank
line, a counted body by its count, and a chunked body line by line (its end is always the end of a line).
"""

from collections.abc import Collection

import httptools

from rewind.model.http import Headers, ResponseHead

MAX_HEAD = 256 * 1024
"""Bytes of a head, or of trailers; no client takes more."""
MOST_HEADERS = 2000
"""Lines of a head, and of trailers; Node takes as many."""

_FRAMING = (b"content-length", b"transfer-encoding")
_OF_THE_BYTES = frozenset((b"trailer", b"content-md5", b"digest", b"content-digest", b"repr-digest"))
"""What a head says of the very bytes of its body, and would be wrong for others."""


class BadMessage(Exception):
    """Bytes that are not an HTTP/1 message."""


class IncomingRequest:
    """One request of a client, read as it comes."""

    def __init__(self, raw_head: bytes) -> None:
        self.raw_head = raw_head
        self.url = b""
        self.headers: Headers = ()
        self.headers_complete = False
        self.complete = False
        self.upgrade = False
        self.keep_alive = False
        self._headers: list[tuple[str, str]] = []
        self._values: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._parser = httptools.HttpRequestParser(self)
        self._feed(raw_head)
        if not self.headers_complete:
            raise BadMessage("the request head is not complete")
        if self._parser.get_http_version() not in ("1.0", "1.1"):
            raise BadMessage("its version is not HTTP/1.0 or HTTP/1.1")
        length = self.header("content-length")
        if self.upgrade and (length not in (None, "0") or self.header("transfer-encoding")):
            self._read_past_offer()
        self.method: str = self._parser.get_method().decode("ascii")
        self._remaining = int(length) if length and not self.complete else None

    def header(self, name: str) -> str | None:
        """The first value of that header (in lower case)."""
        return self._values.get(name)

    def _read_past_offer(self) -> None:
        """httptools skips the body of a request that offers another protocol; it is there all the same."""
        headers, values, self._headers, self.url = self.headers, self._values, [], b""
        self.headers_complete = self.complete = self.upgrade = False
        self._parser = httptools.HttpRequestParser(self)
        self._feed(without_lines(self.raw_head, (b"upgrade",)))
        self.headers, self._values = headers, values

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers come through here too; they pass on in the raw bytes and are not kept.
        if not self.headers_complete:
            self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self.headers_complete = True
        self.headers = tuple(self._headers)
        self._values = {name.lower(): value for name, value in reversed(self._headers)}
        self.keep_alive = self._parser.should_keep_alive()  # llhttp forgets it when the message is complete

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        self.complete = True

    def consume(self, data: bytes) -> int:
        """Read body bytes; how many of them belong to this request."""
        if self._remaining is not None:
            # Counted bytes are a body whatever they say: llhttp, which would copy them, need not see them.
            take = min(self._remaining, len(data))
            self._remaining -= take
            self._pieces.append(data[:take])
            self.complete = not self._remaining
            return take
        position = 0
        while position < len(data) and not self.complete:
            line_end = data.find(b"\n", position) + 1 or len(data)
            self._feed(data[position:line_end])
            position = line_end
        return position

    def take_body(self) -> bytes:
        """The entity bytes that came since the last call."""
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        return body

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.upgrade = self.complete = True
        except httptools.HttpParserError as error:
            raise BadMessage(str(error)) from error


class IncomingResponse:
    """The answer to one request, read as it comes. Interim (1xx) answers are skipped over."""

    def __init__(self, method: str) -> None:
        self.head: ResponseHead | None = None
        self.complete = False
        self.keep_alive = False
        self._trailers: list[tuple[str, str]] = []
        self.after_upgrade: bytes | None = None
        """After a 101: the first bytes of the other protocol."""
        self._bodiless = method == "HEAD"
        self._parser = httptools.HttpResponseParser(self)
        self._reason = ""
        self._headers: list[tuple[str, str]] = []
        self._pieces: list[tuple[bytes, bool]] = []
        self._chunked = False
        self._silent = 0
        """Bytes since the last that told anything: of a head that does not end, or of trailers."""
        self._excess: str | None = None

    @property
    def trailers(self) -> Headers:
        return tuple(self._trailers)

    def on_message_begin(self) -> None:
        if self.complete:
            raise BadMessage("the upstream sent more than one answer")
        self._reason = ""
        self._headers = []

    def on_status(self, status: bytes) -> None:
        self._reason += status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        lines = self._headers if self.head is None else self._trailers
        lines.append((name.decode("latin-1"), value.decode("latin-1")))
        if len(lines) > MOST_HEADERS:
            self._excess = f"it has more than {MOST_HEADERS:,} header lines"
            raise BadMessage(self._excess)

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != 101:
            return
        self.head = ResponseHead(
            status=status, reason=self._reason, headers=tuple(self._headers), version=self._parser.get_http_version()
        )
        self._chunked = "chunked" in (self.head.header("transfer-encoding") or "").lower()
        if self._bodiless:
            self._finish()

    def on_body(self, body: bytes) -> None:
        self._pieces.append((body, not self._chunked))

    def on_chunk_complete(self) -> None:
        if self._pieces:
            data, _ = self._pieces[-1]
            self._pieces[-1] = (data, True)
        elif not self.complete:
            self._pieces.append((b"", True))

    def on_message_complete(self) -> None:
        if self.head is not None:
            self._finish()

    def feed(self, data: bytes) -> None:
        """Read bytes from upstream."""
        if self.complete:
            raise BadMessage("the upstream sent more than one answer")
        known = self.head is not None, len(self._pieces)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.after_upgrade = data[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            if not self.complete:
                raise BadMessage(self._excess or str(error)) from error
            self.keep_alive = False  # bytes nobody asked for follow: this connection is out of step
        if self.complete or known != (self.head is not None, len(self._pieces)):
            self._silent = 0
            return
        self._silent += len(data)
        if self._silent > MAX_HEAD:
            what = "its head is" if self.head is None else "its trailers are"
            raise BadMessage(f"{what} longer than {MAX_HEAD >> 10} KiB")

    def take_pieces(self) -> list[tuple[bytes, bool]]:
        """Body bytes since the last call, each with whether it ends a transfer chunk (or a read)."""
        pieces, self._pieces = self._pieces, []
        return pieces

    def ends_with_connection(self) -> bool:
        """True for a body whose only end is the end of the connection."""
        if self.head is None or self.complete or self._chunked:
            return False
        return self.head.header("content-length") is None

    def _finish(self) -> None:
        self.complete = True
        self.keep_alive = self._parser.should_keep_alive()


def find_head_end(buffer: bytearray) -> int:
    """Where the head ends, the blank line included; -1 while it is not all there."""
    end = buffer.find(b"\r\n\r\n")
    if end >= 0:
        return end + 4
    if b"\n\n" in buffer or b"\n\r\n" in buffer:
        raise BadMessage("its lines end without a carriage return")  # or we would wait for ever
    return -1


def rewrite_head(raw_head: bytes, target: str, *, drop: frozenset[bytes], host: str | None = None) -> bytes:
    """The same head with another request target, less some hop-by-hop lines; every other line untouched."""
    request_line, *lines = without_lines(raw_head, drop)[:-4].split(b"\r\n")
    method, _, version = request_line.split(b" ", 2)
    kept = [b" ".join((method, target.encode("latin-1"), version))]
    for line in lines:
        if host is not None and line[:5].lower() == b"host:":
            line = b"Host: " + host.encode("latin-1")
        kept.append(line)
    return b"\r\n".join(kept) + b"\r\n\r\n"


def refit_head(raw_head: bytes, target: str, size: int, *, drop: Collection[bytes] = ()) -> bytes:
    """The same head for another target and a whole body of that size, less those headers; other lines untouched."""
    request_line, *lines = raw_head[:-4].split(b"\r\n")
    method, _, version = request_line.split(b" ", 2)
    kept, framing = [b" ".join((method, target.encode("latin-1"), version))], [b"Content-Length: %d" % size]
    for line in lines:
        name = line.partition(b":")[0].rstrip().lower()
        if name in _FRAMING:
            kept += framing  # in the place of the first of them
            framing = []
        elif name not in drop and name not in _OF_THE_BYTES:
            kept.append(line)
    return b"\r\n".join((*kept, *framing)) + b"\r\n\r\n"


def without_lines(raw_head: bytes, names: Collection[bytes]) -> bytes:
    """The same head less the headers of those names (in lower case)."""
    first, *lines = raw_head[:-4].split(b"\r\n")
    kept = [line for line in lines if line.partition(b":")[0].lower() not in names]
    return b"\r\n".join((first, *kept)) + b"\r\n\r\n"


def write_head(head: ResponseHead, headers: Headers) -> bytes:
    """A response head as bytes."""
    lines = [f"HTTP/{head.version} {head.status} {head.reason}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
