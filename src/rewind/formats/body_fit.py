"""Headers and body that fit each other, so that a replay sends what a client can read.

Tools keep the entity and the headers of the wire side by side: a body that was taken out of its gzip still says
``content-encoding: gzip``, and a length counts bytes that are not there. Our model is the entity with its content
coding left on and its transfer coding taken off; here a recording is brought into that form.
"""

from dataclasses import replace

from rewind.formats.remarks import Remarks
from rewind.model.http import Headers, HttpRequest, HttpResponse, header, without_headers
from rewind.wire.encoding import StreamDecoder, UndecodableBody

_MAGIC = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""How gzip and zstd begin."""
_TEXT_CONTROLS = bytes(sign for sign in range(32) if sign not in b"\t\n\r\f\x1b")


def fitted_request(request: HttpRequest, remarks: Remarks) -> HttpRequest:
    """Only the coding counts: nobody sends a recorded request as it is."""
    headers = _coding_fitted(request.head.headers, request.body, remarks)
    if headers is request.head.headers:
        return request
    return replace(request, head=replace(request.head, headers=headers))


def fitted_response(
    method: str, response: HttpResponse, remarks: Remarks, *, cut: bool = False
) -> HttpResponse:
    """The answer with the coding and the framing that its body has; ``cut``: more was to come."""
    head = response.head
    if method == "HEAD" or head.status < 200 or head.status in (204, 304):
        return response  # no body follows: what the headers say of one is about another answer
    headers = _coding_fitted(head.headers, response.body, remarks)
    if cut:
        headers = _framing_cut(headers, len(response.body))
    else:
        headers = _framing_fitted(headers, len(response.body), remarks)
    return replace(response, head=replace(head, headers=headers))


def _coding_fitted(headers: Headers, body: bytes, remarks: Remarks) -> Headers:
    coding = header(headers, "content-encoding")
    if coding is None or not is_decoded(body, coding):
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


def is_decoded(body: bytes, coding: str) -> bool:
    """Whether a body that is said to be coded is not.

    Plain text comes first: to a br or deflate decoder, a few letters can look like a whole and empty stream.
    """
    if not body or coding.strip().lower() in ("", "identity"):
        return False
    if is_text(body):
        return True
    try:
        decoder = StreamDecoder(coding)
        for _ in decoder.pieces(body):
            pass
        return not (decoder.finished() or body.startswith(_MAGIC))
    except UndecodableBody:
        return not body.startswith(_MAGIC)  # cut or damaged, but coded


def is_text(body: bytes) -> bool:
    """UTF-8 without control characters."""
    if body.translate(None, _TEXT_CONTROLS) != body:
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
