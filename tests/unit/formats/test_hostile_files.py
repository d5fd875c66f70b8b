"""Whatever a stranger's file holds: it is read, or refused in words; nothing else happens."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rewind.errors import BadCassette
from rewind.formats.exchanges import ForeignRecording
from rewind.formats.har import read_har
from rewind.formats.recognise import kind_of
from rewind.formats.vcr import read_vcr
from support.damage import DEEP, garbled_value, written
from support.effort import examples

URL = "https://api.openai.com/v1/chat/completions?key=abc"
INTERACTION = {
    "request": {
        "method": "POST",
        "uri": URL,
        "body": '{"a": 1}',
        "headers": {"Content-Type": ["application/json"], "Content-Encoding": ["gzip"]},
    },
    "response": {
        "status": {"code": 200, "message": "OK"},
        "headers": {"Content-Length": ["5"], "Transfer-Encoding": ["chunked"], "Content-Encoding": ["br"]},
        "body": {"string": "hello"},
    },
    "recorded_at": "2024-05-05T12:00:00Z",
}
CASSETTE = {
    "version": 1,
    "interactions": [
        INTERACTION,
        {
            **INTERACTION,
            "response": {"parsed_body": {"b": [1.5, None]}, "status": {"code": 404, "message": "no"}, "headers": {}},
        },
    ],
}
ENTRY = {
    "startedDateTime": "2024-05-05T12:00:00Z",
    "time": 12.5,
    "request": {
        "method": "POST",
        "url": URL,
        "headers": [{"name": "content-type", "value": "text/plain; charset=utf-8"}],
        "bodySize": 7,
        "postData": {"mimeType": "text/plain", "text": "hello"},
    },
    "response": {
        "status": 200,
        "statusText": "OK",
        "headers": [{"name": "content-encoding", "value": "deflate"}, {"name": "content-length", "value": "4"}],
        "content": {"size": 4, "mimeType": "text/plain", "text": "aGk=", "encoding": "base64"},
        "bodySize": 4,
    },
    "_rewind": {"ending": "complete"},
}
SOCKET = {
    **ENTRY,
    "response": {"status": 101, "headers": [], "content": {}},
    "_webSocketMessages": [{"type": "send", "time": 1.5, "opcode": 1, "data": "x"}, {"opcode": 2, "data": "AAE="}],
}
ARCHIVE = {"log": {"version": "1.2", "creator": {"name": "mitmproxy"}, "entries": [ENTRY, SOCKET]}}


def outcome(read: Callable[[bytes], ForeignRecording], data: bytes) -> str:
    """``refused``, ``nothing`` or ``read``; and what was read can be sent and shown."""
    try:
        foreign = read(data)
    except BadCassette:
        return "refused"
    for exchange in foreign.exchanges:
        exchange.request.head.url.encode("ascii")
        answered = exchange.response.head.headers if exchange.response else ()
        for name, value in (*exchange.request.head.headers, *answered):
            assert not set(f"{name}: {value}".encode("latin-1")) & set(b"\r\n\0")
    return "read" if foreign.exchanges else "nothing"


def test_any_damaged_cassette_in_json_is_read_or_refused() -> None:
    dice = random.Random(5)
    counts = Counter(outcome(read_vcr, written(dice, garbled_value(dice, CASSETTE))) for _ in range(1500))
    assert min(counts["read"], counts["refused"]) > 100, counts


def test_any_damaged_cassette_in_yaml_is_read_or_refused() -> None:
    dice = random.Random(6)
    counts = Counter(outcome(read_vcr, as_yaml(garbled_value(dice, CASSETTE))) for _ in range(600))
    assert min(counts["read"], counts["refused"]) > 50, counts


def test_any_damaged_archive_is_read_or_refused() -> None:
    dice = random.Random(7)
    counts = Counter(outcome(read_har, written(dice, garbled_value(dice, ARCHIVE))) for _ in range(1500))
    assert min(counts["read"], counts["refused"]) > 100, counts


def as_yaml(value: Any) -> bytes:
    text = yaml.safe_dump(value, allow_unicode=True)
    return text.replace(DEEP, "[" * 300 + "]" * 300).encode("utf-8", "surrogatepass")


@given(st.text(alphabet="&*!|>[]{}:-,?#'\"% \n\tab1~<.é", max_size=80))
@settings(max_examples=examples(200))
def test_any_text_at_all_is_read_or_refused_as_yaml(text: str) -> None:
    outcome(read_vcr, text.encode())
    outcome(read_vcr, f"interactions: {text}".encode())


@given(st.binary(max_size=200), st.text(max_size=10))
def test_any_bytes_have_a_kind_or_none(data: bytes, name: str) -> None:
    kind_of(data, name)
    outcome(read_vcr, data)
    outcome(read_har, data)
