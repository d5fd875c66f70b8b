"""HAR as browsers and proxies write it, and as we do."""

import base64
import gzip
import json
from typing import Any

import pytest

from rewind.errors import BadCassette
from rewind.formats.exchanges import ForeignExchange, ForeignRecording
from rewind.formats.har import read_har
from rewind.model.http import HttpResponse
from rewind.model.step import Ending

URL = "https://api.anthropic.com/v1/messages?beta=true"
Fields = dict[str, Any]


def entry(
    *,
    content: Fields | None = None,
    asked: Fields | None = None,
    answered: Fields | None = None,
    headers: dict[str, str] | None = None,
    **more: Any,
) -> Fields:
    given = {"content-type": "application/json"} if headers is None else headers
    return {
        "startedDateTime": "2024-05-05T12:00:00.250+02:00",
        "time": 812.5,
        "request": {
            "method": "POST",
            "url": URL,
            "httpVersion": "http/2.0",
            "headers": [
                {"name": ":authority", "value": "api.anthropic.com"},
                {"name": ":path", "value": "/v1/messages"},
                {"name": "content-type", "value": "application/json"},
                {"name": "x-api-key", "value": "sk-ant-1"},
            ],
            "bodySize": 2,
            "postData": {"mimeType": "application/json", "text": "{}"},
            **(asked or {}),
        },
        "response": {
            "status": 200,
            "statusText": "",
            "headers": [{"name": name, "value": value} for name, value in given.items()],
            "content": {"size": 4, "mimeType": "application/json", "text": '{"ü"}'} if content is None else content,
            "bodySize": 4,
            **(answered or {}),
        },
        "cache": {},
        "timings": {},
        **more,
    }


def har(*entries: Fields, creator: str = "WebInspector") -> bytes:
    log = {"version": "1.2", "creator": {"name": creator, "version": "537.36"}, "entries": list(entries)}
    return json.dumps({"log": log}).encode()


def only(foreign: ForeignRecording) -> ForeignExchange:
    assert len(foreign.exchanges) == 1
    return foreign.exchanges[0]


def answer(foreign: ForeignRecording) -> HttpResponse:
    response = only(foreign).response
    assert response is not None
    return response


def test_an_entry_of_a_browser_is_read_without_the_headers_of_http_2() -> None:
    foreign = read_har(har(entry()))
    exchange = only(foreign)
    assert foreign.tool == "HAR (WebInspector)"
    assert exchange.request.head.url == URL
    assert exchange.request.head.headers == (("content-type", "application/json"), ("x-api-key", "sk-ant-1"))
    assert exchange.request.body == b"{}"
    assert (exchange.started, exchange.ms) == (1714903200.25, 812.5)
    assert answer(foreign).body == '{"ü"}'.encode()
    assert answer(foreign).head.header("content-length") == "6"


def test_a_byte_order_mark_is_passed_over() -> None:
    assert len(read_har(b"\xef\xbb\xbf" + har(entry())).exchanges) == 1


def test_a_body_in_base64_comes_back_to_the_byte() -> None:
    raw = bytes(range(256))
    content = {"size": 256, "text": base64.b64encode(raw).decode(), "encoding": "base64"}
    assert answer(read_har(har(entry(content=content, headers={})))).body == raw


def test_a_body_that_polly_kept_in_pieces_is_joined() -> None:
    packed = gzip.compress(b'{"a":1}')
    pieces = [base64.b64encode(packed[:9]).decode(), base64.b64encode(packed[9:]).decode()]
    content = {"size": 9, "text": json.dumps(pieces), "encoding": "base64"}
    response = answer(read_har(har(entry(content=content, headers={"content-encoding": "gzip"}))))
    assert response.body == packed
    assert response.head.header("content-encoding") == "gzip"


def test_text_is_decoded_already_so_its_content_encoding_goes() -> None:
    foreign = read_har(har(entry(headers={"content-encoding": "br", "content-length": "3"})))
    assert answer(foreign).head.header("content-encoding") is None
    assert answer(foreign).head.header("content-length") == "6"
    assert any("content-encoding: br" in remark for remark in foreign.remarks)


@pytest.mark.parametrize(
    ("media", "creator", "raw"),
    [
        ("text/plain; charset=ISO-8859-1", "Firefox", "é".encode("latin-1")),
        ("text/plain", "Firefox", "é".encode()),
        ("text/event-stream", "mitmproxy", "é".encode("latin-1")),
        ("application/json", "mitmproxy", "é".encode()),
        ("text/plain; charset=zlib", "Firefox", "é".encode()),
        ("text/plain; charset=no-such", "Firefox", "é".encode()),
    ],
)
def test_text_becomes_the_bytes_that_it_was_read_from(media: str, creator: str, raw: bytes) -> None:
    content = {"size": 1, "text": "é"}
    assert answer(read_har(har(entry(content=content, headers={"content-type": media}), creator=creator))).body == raw


def test_bytes_that_mitmproxy_wrote_as_odd_characters_come_back() -> None:
    content = {"size": 2, "text": "a\udcff"}
    headers = {"content-type": "application/json"}
    assert answer(read_har(har(entry(content=content, headers=headers), creator="mitmproxy"))).body == b"a\xff"


@pytest.mark.parametrize(
    "content",
    [
        {"size": 1234, "mimeType": "application/json"},
        {"size": 1234, "comment": "Response bodies are not included"},
        {"size": 1234, "text": None},
        {"size": 1234, "text": ""},
    ],
)
def test_an_answer_whose_body_was_left_out_is_not_taken_for_an_empty_one(content: Fields) -> None:
    foreign = read_har(har(entry(content=content)))
    exchange = only(foreign)
    assert (exchange.response, exchange.ending) == (None, None)
    assert exchange.note == "the file does not hold the answer's body"
    assert foreign.remarks == ("an answer cannot be played: the file does not hold the answer's body",)


def test_a_stream_without_a_byte_was_left_out_whatever_the_sizes_say() -> None:
    given = entry(
        content={"size": 0, "mimeType": "text/event-stream", "text": ""},
        headers={"content-type": "text/event-stream"},
        answered={"bodySize": 0},
    )
    assert only(read_har(har(given))).ending is None


def test_the_beginning_of_a_long_answer_is_not_taken_for_the_whole() -> None:
    given = entry(content={"size": 4, "text": "abcd"}, headers={"content-length": "9000"})
    assert only(read_har(har(given))).ending is None


@pytest.mark.parametrize("status", [200, 204, 302, 304])
def test_an_answer_that_was_empty_is_empty(status: int) -> None:
    given = entry(content={"size": 0}, headers={}, answered={"status": status, "bodySize": 0})
    exchange = only(read_har(har(given)))
    assert exchange.ending is Ending.COMPLETE
    assert exchange.response is not None and exchange.response.body == b""


def test_the_length_of_what_head_asks_for_is_left_alone() -> None:
    given = entry(content={"size": 0}, headers={"content-length": "900"}, asked={"method": "HEAD"})
    assert answer(read_har(har(given))).head.header("content-length") == "900"


@pytest.mark.parametrize("error", ["net::ERR_BLOCKED_BY_CLIENT", None])
def test_a_request_that_was_blocked_got_no_answer(error: str | None) -> None:
    given = entry(content={}, answered={"status": 0, "_error": error, "headers": []})
    exchange = only(read_har(har(given)))
    assert (exchange.response, exchange.ending) == (None, Ending.NO_ANSWER)
    assert exchange.reason == (error or "the request was blocked or given up")


def test_an_answer_that_broke_off_is_framed_so_that_it_breaks_off_again() -> None:
    given = entry(answered={"_error": "net::ERR_INCOMPLETE_CHUNKED_ENCODING"})
    exchange = only(read_har(har(given)))
    assert exchange.ending is Ending.UPSTREAM_CUT
    assert exchange.response is not None
    assert exchange.response.head.header("transfer-encoding") == "chunked"
    assert exchange.response.head.header("content-length") is None


def test_a_form_that_was_kept_in_fields_is_written_anew() -> None:
    posted = {"mimeType": "application/x-www-form-urlencoded", "params": [{"name": "a b", "value": "ü&"}]}
    foreign = read_har(har(entry(asked={"postData": posted})))
    assert only(foreign).request.body == b"a+b=%C3%BC%26"
    assert any("written anew" in remark for remark in foreign.remarks)


def test_a_request_body_that_is_not_there_is_told() -> None:
    asked = {"postData": {"mimeType": "application/octet-stream"}, "bodySize": 77}
    exchange = only(read_har(har(entry(asked=asked))))
    assert exchange.request.body == b""
    assert exchange.note == "the request had a body of 77 bytes that the file does not hold"


def test_entries_are_ordered_by_when_they_were_asked() -> None:
    late = entry(startedDateTime="2024-05-05T12:00:02Z", asked={"url": "https://a.example/late"})
    early = entry(startedDateTime="2024-05-05T12:00:01Z", asked={"url": "https://a.example/early"})
    targets = [one.request.head.target for one in read_har(har(late, early)).exchanges]
    assert targets == ["/early", "/late"]


def test_without_times_the_order_of_the_file_stays() -> None:
    first = entry(startedDateTime="9999-99-99", asked={"url": "https://a.example/1"})
    second = entry(asked={"url": "https://a.example/2"})
    exchanges = read_har(har(first, second)).exchanges
    assert [one.request.head.target for one in exchanges] == ["/1", "/2"]
    assert exchanges[0].started is None


def test_cookies_that_a_browser_joined_with_line_breaks_are_headers_again() -> None:
    response = answer(read_har(har(entry(headers={"set-cookie": "a=1\nb=2"}))))
    assert [value for name, value in response.head.headers if name == "set-cookie"] == ["a=1", "b=2"]


@pytest.mark.parametrize("url", ["data:text/plain,hi", "blob:https://a.example/1", "chrome-extension://x/y.js", ""])
def test_what_did_not_go_over_http_is_left_out_with_a_word(url: str) -> None:
    foreign = read_har(har(entry(asked={"url": url})))
    assert foreign.exchanges == ()
    assert foreign.remarks[0].startswith("an entry was left out: ")


@pytest.mark.parametrize("host", ["*", "a b", "*.example.com", "x" * 300, "[::1", "ex_ample..com"])
def test_a_host_that_could_be_a_pattern_or_worse_is_left_out(host: str) -> None:
    assert read_har(har(entry(asked={"url": f"https://{host}/"}))).exchanges == ()


def test_a_websocket_is_read_as_the_gateway_logs_it() -> None:
    messages = [
        {"type": "send", "time": 1714903200.5, "opcode": 1, "data": '{"hi":"ü"}'},
        {"type": "receive", "time": 1714903201, "opcode": 2, "data": base64.b64encode(b"\0\1").decode()},
    ]
    given = entry(
        asked={"url": "wss://api.openai.com/v1/realtime", "method": "GET"},
        answered={"status": 101, "headers": [{"name": "Upgrade", "value": "websocket"}]},
        _webSocketMessages=messages,
    )
    foreign = read_har(har(given))
    assert only(foreign).request.head.url == "https://api.openai.com/v1/realtime"
    lines = [json.loads(line) for line in answer(foreign).body.splitlines()]
    assert lines == [
        {"from": "client", "at": 250_000, "op": "text", "fin": True, "text": '{"hi":"ü"}'},
        {"from": "server", "at": 750_000, "op": "binary", "fin": True, "base64": "AAE="},
    ]


def test_a_websocket_without_its_messages_cannot_be_played() -> None:
    assert only(read_har(har(entry(answered={"status": 101})))).ending is None


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{", "cannot be read as JSON"),
        (b"\xff\xfe", "cannot be read as JSON"),
        (b"[" * 100_000, "cannot be read as JSON"),
        (b"{}", "no log with entries"),
        (b'{"log":{"entries":{}}}', "no log with entries"),
        (b'{"log":{"entries":[7]}}', "Its entry 1 has no request"),
        (har(entry(answered={"status": "fine"})), "Its entry 1 cannot be read: 'fine' is not a valid status"),
        (har(entry(content={"text": "?", "encoding": "base64"})), "a body is not valid base64"),
    ],
)
def test_what_is_no_har_is_told_in_one_sentence(data: bytes, says: str) -> None:
    with pytest.raises(BadCassette) as problem:
        read_har(data)
    assert says in problem.value.message
