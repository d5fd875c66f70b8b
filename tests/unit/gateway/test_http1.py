"""HTTP/1 messages: where they end, what is refused, and that a rewritten head changes nothing else."""

import pytest

from rewind.gateway.http1 import (
    BadMessage,
    IncomingRequest,
    IncomingResponse,
    find_head_end,
    refit_head,
    rewrite_head,
    write_head,
)
from rewind.model.http import ResponseHead

POST = b"POST /v1/messages HTTP/1.1\r\nHost: h\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


def answered(*reads: bytes, method: str = "POST") -> IncomingResponse:
    response = IncomingResponse(method)
    for data in reads:
        response.feed(data)
    return response


def body_of(response: IncomingResponse) -> bytes:
    return b"".join(data for data, _ in response.take_pieces())


# Requests


def test_a_request_without_a_body_is_complete_with_its_head() -> None:
    request = IncomingRequest(b"GET /v1/models?limit=2 HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a: 2\r\n\r\n")
    assert request.complete
    assert (request.method, request.url) == ("GET", b"/v1/models?limit=2")
    assert request.headers == (("Host", "h"), ("X-A", "1"), ("x-a", "2"))
    assert request.keep_alive


def test_a_counted_body_ends_where_its_count_says_and_the_next_request_is_left_alone() -> None:
    request = IncomingRequest(POST + b"Content-Length: 5\r\n\r\n")
    assert request.consume(b"he") == 2
    assert not request.complete
    assert request.consume(b"lloGET / HTTP/1.1\r\n") == 3
    assert request.complete
    assert request.take_body() == b"hello"


def test_a_body_of_no_bytes_is_complete_at_once() -> None:
    assert IncomingRequest(POST + b"Content-Length: 0\r\n\r\n").complete


def test_a_chunked_body_with_extensions_newlines_and_trailers_ends_at_its_last_line() -> None:
    request = IncomingRequest(CHUNKED)
    wire = b"6;name=x\r\na\nb\r\nc\r\n0\r\nX-Sum: 9\r\n\r\n"
    assert request.consume(wire + b"GET / HTTP/1.1\r\n\r\n") == len(wire)
    assert request.complete
    assert request.take_body() == b"a\nb\r\nc"
    assert request.headers == (("Host", "h"), ("Transfer-Encoding", "chunked")), "trailers are not among the headers"


def test_a_client_that_wants_its_connection_closed_is_heard() -> None:
    assert not IncomingRequest(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").keep_alive
    assert not IncomingRequest(b"GET / HTTP/1.0\r\nHost: h\r\n\r\n").keep_alive


def test_a_websocket_request_is_complete_and_marked() -> None:
    request = IncomingRequest(
        b"GET /v1/realtime HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    )
    assert request.complete and request.upgrade


@pytest.mark.parametrize("framing", [b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_an_offer_of_http2_does_not_hide_the_body_of_the_request(framing: bytes) -> None:
    """Java's client offers h2c on every plain POST; the body that follows is still this request's."""
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEA\r\n"
    request = IncomingRequest(POST + offer + framing + b"\r\n")
    wire = b"abc" if b"Length" in framing else b"3\r\nabc\r\n0\r\n\r\n"
    assert not request.complete
    assert request.consume(wire + b"GET") == len(wire)
    assert request.complete
    assert request.take_body() == b"abc"
    assert ("Upgrade", "h2c") in request.headers
    assert [name for name, _ in request.headers].count("Host") == 1


@pytest.mark.parametrize(
    "head",
    [
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
        POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        POST + b"Content-Length: +5\r\n\r\n",
        POST + b"Content-Length: 5, 5\r\n\r\n",
        POST + b"Transfer-Encoding: gzip\r\n\r\n",
        POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n",
        POST + b"X-Folded: a\r\n b\r\n\r\n",
        POST + b"X-Blank : a\r\n\r\n",
        POST + b"X: bare\nY: feed\r\n\r\n",
        b"GET / HTTP/1.1\nHost: h\r\n\r\n",
        b"BREW / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"\x16\x03\x01\x02\x00\r\n\r\n",
        b"GET /\r\n\r\n",
        b"\r\n\r\n",
    ],
)
def test_what_two_readers_could_read_in_two_ways_is_refused(head: bytes) -> None:
    with pytest.raises(BadMessage):
        IncomingRequest(head)


@pytest.mark.parametrize("wire", [b"zz\r\n", b"3\r\nabcd\r\n", b"-1\r\n", b"3\nabc\n0\n\n"])
def test_broken_chunks_are_refused(wire: bytes) -> None:
    request = IncomingRequest(CHUNKED)
    with pytest.raises(BadMessage):
        request.consume(wire)


def test_a_head_is_looked_for_until_its_blank_line() -> None:
    assert find_head_end(bytearray(b"GET / HTTP/1.1\r\nHost: h\r\n")) == -1
    assert find_head_end(bytearray(b"GET / HTTP/1.1\r\n\r\nrest")) == 18


@pytest.mark.parametrize("head", [b"GET / HTTP/1.1\nHost: h\n\n", b"GET / HTTP/1.1\r\nHost: h\n\r\nrest"])
def test_a_head_that_ends_in_bare_line_feeds_is_refused_and_not_waited_for(head: bytes) -> None:
    with pytest.raises(BadMessage):
        find_head_end(bytearray(head))


def test_line_feeds_in_a_body_that_came_along_are_no_head() -> None:
    assert find_head_end(bytearray(b"POST / HTTP/1.1\r\n\r\na\n\nb")) == 19


# Responses


def test_interim_answers_are_skipped_over() -> None:
    response = answered(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    )
    assert response.head is not None
    assert (response.head.status, response.head.headers) == (200, (("Content-Length", "2"),))
    assert body_of(response) == b"ok"
    assert response.complete and response.keep_alive


def test_an_interim_answer_alone_is_no_answer() -> None:
    response = answered(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert response.head is None
    assert not response.complete


def test_the_answer_to_head_has_no_body_whatever_its_length_says() -> None:
    response = answered(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", method="HEAD")
    assert response.complete and response.keep_alive
    assert body_of(response) == b""


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_answers_that_never_have_a_body(status: bytes) -> None:
    response = answered(b"HTTP/1.1 " + status + b"\r\nETag: x\r\n\r\n")
    assert response.complete and response.keep_alive


def test_a_switch_of_protocols_hands_over_what_follows() -> None:
    response = answered(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x02hi"
    )
    assert response.head is not None and response.head.status == 101
    assert response.after_upgrade == b"\x81\x02hi"


def test_a_body_without_length_ends_with_the_connection() -> None:
    response = answered(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npart")
    assert response.ends_with_connection()
    assert not response.complete
    assert body_of(response) == b"part"


def test_a_counted_or_chunked_body_does_not_end_with_the_connection() -> None:
    assert not answered(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart").ends_with_connection()
    assert not answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").ends_with_connection()
    assert not answered(b"").ends_with_connection()


def test_transfer_chunks_are_told_apart_and_trailers_are_kept() -> None:
    response = answered(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n",
        b"4\r\nfg",
        b"hi\r\n0\r\nX-Sum: 7\r\n\r\n",
    )
    pieces = response.take_pieces()
    assert pieces[:2] == [(b"abc", True), (b"de", True)]
    assert pieces[2] == (b"fg", False)
    assert pieces[3] == (b"hi", True)
    assert response.trailers == (("X-Sum", "7"),)
    assert response.complete


@pytest.mark.parametrize("data", [b"SSH-2.0-OpenSSH\r\n", b"\x15\x03\x01\x00\x02", b"HTTP/1.1 200 OK\r\nbad\r\n\r\n"])
def test_what_is_not_http_is_said_so(data: bytes) -> None:
    with pytest.raises(BadMessage):
        answered(data)


@pytest.mark.parametrize(
    "more", [b"HTTP/1.1 500 Oops\r\nContent-Length: 1\r\nX-Second: y\r\n\r\nb", b"longer than it said"]
)
def test_bytes_nobody_asked_for_are_not_mixed_into_the_answer_and_end_the_connection(more: bytes) -> None:
    one = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"
    response = answered(one + more)
    assert response.head is not None and response.head.status == 200
    assert response.trailers == ()
    assert body_of(response) == b"a"
    assert response.complete and not response.keep_alive
    with pytest.raises(BadMessage):
        answered(one, more)


# Writing


def test_a_rewritten_head_leaves_every_other_line_as_it_was() -> None:
    raw = (
        b"POST http://h/v1/chat?x=1 HTTP/1.1\r\nhOsT:  h \r\nX-Odd:\tvalue\r\nProxy-Connection: keep-alive\r\n"
        b"PROXY-authorization: Basic eA==\r\nx-odd: again\r\nX-Empty:\r\nX-Latin: \xe9\r\n\r\n"
    )
    dropped = frozenset((b"proxy-connection", b"proxy-authorization"))
    assert rewrite_head(raw, "/v1/chat?x=1", drop=dropped) == (
        b"POST /v1/chat?x=1 HTTP/1.1\r\nhOsT:  h \r\nX-Odd:\tvalue\r\nx-odd: again\r\nX-Empty:\r\nX-Latin: \xe9\r\n\r\n"
    )


def test_a_rewritten_head_can_name_another_host_in_the_same_place() -> None:
    raw = b"GET /openai/v1/models HTTP/1.1\r\nA: 1\r\nhost: 127.0.0.1:9\r\nB: 2\r\n\r\n"
    assert rewrite_head(raw, "/v1/models", drop=frozenset(), host="api.openai.com") == (
        b"GET /v1/models HTTP/1.1\r\nA: 1\r\nHost: api.openai.com\r\nB: 2\r\n\r\n"
    )


def test_a_response_head_is_written_as_it_was_read() -> None:
    raw = b"HTTP/1.1 299 Odd Reason\r\nX-A: 1\r\nx-a: \xe9\r\nContent-Length: 0\r\n\r\n"
    head = answered(raw).head
    assert isinstance(head, ResponseHead)
    assert write_head(head, head.headers) == raw


# A head for another body


def test_a_refitted_head_has_another_target_and_length_and_every_other_line_as_it_was() -> None:
    raw = (
        b"POST /v1/models/a:generate?key=k HTTP/1.1\r\nhost: x\r\nX-Odd:  two  spaces \r\n"
        b"Content-Length: 10\r\nContent-Type: application/json\r\nauthorization: Bearer k\r\n\r\n"
    )
    assert refit_head(raw, "/v1/models/b:generate?key=k", 7) == (
        b"POST /v1/models/b:generate?key=k HTTP/1.1\r\nhost: x\r\nX-Odd:  two  spaces \r\n"
        b"Content-Length: 7\r\nContent-Type: application/json\r\nauthorization: Bearer k\r\n\r\n"
    )


def test_a_chunked_body_becomes_a_counted_one_and_its_trailers_are_not_announced() -> None:
    raw = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\nAccept: */*\r\n\r\n"
    assert refit_head(raw, "/", 3) == b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nAccept: */*\r\n\r\n"


def test_what_a_head_said_of_the_old_bytes_is_gone() -> None:
    raw = (
        b"POST / HTTP/1.1\r\nContent-MD5: x\r\nContent-Encoding: gzip\r\nDigest: y\r\nContent-Digest: z\r\n"
        b"Content-Length: 1\r\n\r\n"
    )
    kept = refit_head(raw, "/", 3)
    assert kept == b"POST / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n"
    assert b"gzip" not in refit_head(raw, "/", 3, drop=(b"content-encoding",))


def test_a_head_without_a_length_gets_one() -> None:
    assert refit_head(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", "/", 0) == (
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    )
