"""Small requests and answers, invented."""

import json
from typing import Any

from rewind.model.http import Headers, HttpRequest, HttpResponse, RequestHead, ResponseHead


def request_of(
    body: Any = b"",
    *,
    host: str = "api.openai.com",
    target: str = "/v1/chat/completions",
    method: str = "POST",
    media: str = "application/json",
    headers: Headers = (),
    port: int = 443,
) -> HttpRequest:
    """A request; anything but bytes is written as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = RequestHead(
        method=method, scheme="https", host=host, port=port, target=target, headers=(("Content-Type", media), *headers)
    )
    return HttpRequest(head=head, body=raw)


def answer_with(
    body: Any = b"", *, status: int = 200, media: str = "application/json", headers: Headers = ()
) -> HttpResponse:
    """An answer; anything but bytes is written as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = ResponseHead(status=status, reason="", headers=(("content-type", media), *headers))
    return HttpResponse(head=head, body=raw, chunks=())


def stream_of(*documents: Any, end: bytes = b"") -> HttpResponse:
    """An event stream, one document an event."""
    body = b"".join(b"data: " + json.dumps(document).encode() + b"\n\n" for document in documents)
    return answer_with(body + end, media="text/event-stream; charset=utf-8")
