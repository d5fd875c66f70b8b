"""What we write as HAR: what the format asks for, the same each time, and readable again."""

import base64
import gzip
import json
import random
from dataclasses import replace
from datetime import datetime
from typing import Any

from rewind.formats.exchanges import ForeignExchange, ForeignRecording, WebSocketMessage, websocket_log
from rewind.formats.har import har_pieces, read_har
from rewind.model.http import HttpResponse, ResponseHead
from rewind.model.ids import BlobId, SessionId
from rewind.model.session import SessionFile
from rewind.model.step import Ending
from rewind.reading.import_ import session_of_exchanges
from rewind.store.session_files import SessionFileReader
from support.exchanges import answer_with, request_of
from unit.store.taping import taped

BYTES = bytes(range(256))
PLAIN = '{"text":"Grüße 🙂"}'.encode()
FRAMES = websocket_log(
    [WebSocketMessage(True, 10, "text", "hi ü".encode()), WebSocketMessage(False, 2_000_000, "binary", b"\0\xff")]
)

EXCHANGES = (
    ForeignExchange(
        request=request_of(PLAIN, target="/v1/x?a=1&b=%20", headers=(("Authorization", "Bearer k"),)),
        response=answer_with(PLAIN, headers=(("X-Twice", "1"), ("X-Twice", "2"))),
        started=1700000000.125,
        ms=120.5,
    ),
    ForeignExchange(
        request=request_of(BYTES, media="application/octet-stream"),
        response=answer_with(gzip.compress(PLAIN, mtime=0), headers=(("Content-Encoding", "gzip"),)),
        started=1700000001.0,
    ),
    ForeignExchange(
        request=request_of(b"", method="GET"),
        response=answer_with("é".encode("latin-1"), media="text/plain; charset=iso-8859-1"),
        started=1700000002.0,
    ),
    ForeignExchange(
        request=request_of(b"", method="GET", target="/png"),
        response=answer_with(BYTES, media="image/png"),
        started=1700000003.0,
    ),
    ForeignExchange(
        request=request_of(b"{}"),
        response=answer_with(b'{"half":', headers=(("Content-Length", "20"),)),
        started=1700000004.0,
        ending=Ending.CLIENT_CLOSED,
        reason="the agent hung up",
    ),
    ForeignExchange(
        request=request_of(b"{}"), response=None, started=1700000005.0, ending=Ending.NO_ANSWER, reason="refused"
    ),
    ForeignExchange(request=request_of(b"{}"), response=None, started=1700000006.0, ending=None),
    ForeignExchange(
        request=request_of(b"", method="GET", target="/v1/realtime", headers=(("Upgrade", "websocket"),)),
        response=HttpResponse(
            head=ResponseHead(status=101, reason="Switching Protocols", headers=(("Upgrade", "websocket"),)),
            body=FRAMES,
            chunks=(),
        ),
        started=1700000007.0,
    ),
)


def session_of(foreign: ForeignRecording) -> SessionFile:
    return session_of_exchanges(foreign, session_id=SessionId("0123abcd"), name="n", tags={}, env={})


def har_of(portable: SessionFile) -> bytes:
    return b"".join(har_pieces(portable.recording, SessionFileReader(portable).blob))


RECORDED = session_of(ForeignRecording(exchanges=EXCHANGES, tool="test"))
HAR = har_of(RECORDED)
ENTRIES: list[dict[str, Any]] = json.loads(HAR)["log"]["entries"]


def test_every_field_that_har_1_2_requires_is_there() -> None:
    log = json.loads(HAR)["log"]
    assert log["version"] == "1.2" and log["creator"]["name"] == "rewind" and log["creator"]["version"]
    assert len(log["entries"]) == len(EXCHANGES)
    for entry in log["entries"]:
        assert datetime.fromisoformat(entry["startedDateTime"]).tzinfo is not None
        asked, answered, timings = entry["request"], entry["response"], entry["timings"]
        assert asked.keys() >= {
            "method",
            "url",
            "httpVersion",
            "cookies",
            "headers",
            "queryString",
            "headersSize",
            "bodySize",
        }
        assert answered.keys() >= {
            "status",
            "statusText",
            "httpVersion",
            "cookies",
            "headers",
            "content",
            "redirectURL",
            "headersSize",
            "bodySize",
        }
        assert {"size", "mimeType"} <= answered["content"].keys()
        assert min(timings["send"], timings["wait"], timings["receive"]) >= 0
        assert {timings[name] for name in ("blocked", "dns", "connect", "ssl")} == {-1}
        assert abs(entry["time"] - timings["send"] - timings["wait"] - timings["receive"]) < 0.01
        assert entry["cache"] == {}
        if "postData" in asked:
            assert asked["postData"].keys() >= {"mimeType", "params", "text"}


def test_what_is_ours_stands_under_our_own_name() -> None:
    step = RECORDED.recording.steps[0]
    assert step.response is not None
    assert ENTRIES[0]["_rewind"] == {
        "step": 1,
        "kind": "http_call",
        "key": step.request.match_key,
        "ending": "complete",
        "request": step.request.body,
        "response": step.response.body,
    }


def test_text_is_text_and_all_else_is_base64() -> None:
    assert ENTRIES[0]["response"]["content"]["text"] == PLAIN.decode()
    assert ENTRIES[1]["request"]["postData"]["encoding"] == "base64"
    assert base64.b64decode(ENTRIES[1]["request"]["postData"]["text"]) == BYTES
    assert ENTRIES[1]["response"]["content"]["text"] == PLAIN.decode(), "the format wants it without its coding"
    assert ENTRIES[1]["response"]["content"]["size"] == len(PLAIN)
    assert ENTRIES[2]["response"]["content"]["encoding"] == "base64", "its charset is not the file's"
    assert base64.b64decode(ENTRIES[3]["response"]["content"]["text"]) == BYTES


def test_nothing_that_was_redacted_comes_back() -> None:
    assert b"Bearer" not in HAR


def test_the_same_recording_gives_the_same_bytes() -> None:
    assert har_of(session_of(ForeignRecording(exchanges=EXCHANGES, tool="test"))) == HAR


def test_what_was_written_reads_back_as_the_same_exchanges() -> None:
    back = read_har(HAR)
    assert back.tool == "HAR (rewind)"
    assert [one.ending for one in back.exchanges] == [one.ending for one in EXCHANGES]
    assert [one.reason for one in back.exchanges] == [one.reason for one in EXCHANGES]
    assert [one.request.body for one in back.exchanges] == [one.request.body for one in EXCHANGES]
    assert [one.started for one in back.exchanges] == [one.started for one in EXCHANGES]
    for one, other in zip(back.exchanges, EXCHANGES, strict=True):
        assert (one.response is None) == (other.response is None)
        if one.response is not None and other.response is not None:
            coded = other.response.head.header("content-encoding")
            assert one.response.body == (PLAIN if coded else other.response.body)
    cut = back.exchanges[4].response
    assert cut is not None and cut.head.header("content-length") == "20", "so that a replay is cut again"


def test_from_har_to_a_session_and_back_every_body_is_the_same() -> None:
    again = json.loads(har_of(session_of(read_har(HAR))))["log"]["entries"]
    assert [entry["response"]["content"] for entry in again] == [
        {key: value for key, value in entry["response"]["content"].items() if key != "compression"} for entry in ENTRIES
    ]
    assert [entry["request"].get("postData") for entry in again] == [
        entry["request"].get("postData") for entry in ENTRIES
    ]
    assert [entry.get("_webSocketMessages") for entry in again] == [
        entry.get("_webSocketMessages") for entry in ENTRIES
    ]
    third = har_of(session_of(read_har(har_of(session_of(read_har(HAR))))))
    assert third == har_of(session_of(read_har(HAR))), "from there on nothing moves"


def test_our_own_entries_stay_in_their_order_whatever_their_times_say() -> None:
    later, earlier = EXCHANGES[2], EXCHANGES[0]
    back = read_har(har_of(session_of(ForeignRecording(exchanges=(later, earlier), tool="test"))))
    assert [one.request.body for one in back.exchanges] == [later.request.body, earlier.request.body]


def test_a_body_that_is_not_the_log_of_a_websocket_is_written_as_a_body() -> None:
    """A server may switch to another protocol, and a file may hold anything under status 101."""
    for body in (
        b"",
        b'{"message":"hello"}',
        b"\0\xff",
        b'{"from":"client","at":1,"op":"cont","fin":true,"base64":""}',
    ):
        odd = EXCHANGES[-1].response
        assert odd is not None
        exchange = replace(EXCHANGES[-1], response=replace(odd, body=body))
        (entry,) = json.loads(har_of(session_of(ForeignRecording(exchanges=(exchange,), tool="test"))))["log"][
            "entries"
        ]
        content = entry["response"]["content"]
        plain = base64.b64decode(content["text"]) if content.get("encoding") else content["text"].encode()
        assert plain == body or entry["_webSocketMessages"] == []


def test_an_archive_is_written_entry_by_entry() -> None:
    source, messages, exchanges = random.Random(1), [], []
    for _ in range(40):
        messages.append({"role": "user", "content": f"{source.getrandbits(4000):x}\n\u2028 and\nmore"})
        exchanges.append((json.dumps({"messages": messages}, ensure_ascii=False).encode(), b'{"a": "\\n"}'))
    tape = taped(exchanges)
    asked: list[BlobId] = []

    def blob(name: BlobId) -> bytes:
        asked.append(name)
        return tape.blobs[name]

    pieces, most = [], 0
    for piece in har_pieces(tape.recording, blob):
        pieces.append(piece)
        most, asked = max(most, len(asked)), []

    assert most <= 3, "no more than the bodies of one step"
    assert max(map(len, pieces)) < sum(map(len, pieces)) / 10
    whole = b"".join(pieces)
    assert whole == (json.dumps(json.loads(whole), ensure_ascii=False, indent=2) + "\n").encode()
    assert len(json.loads(whole)["log"]["entries"]) == 40
