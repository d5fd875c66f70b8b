"""Every body in the form that reads best, and back to the byte."""

import gzip
import json
import zlib
from typing import Any

import brotli
import pytest
import zstandard

from rewind.errors import BadCassette
from rewind.store.cassette.bodies import BodyForm, bytes_of, form_of
from rewind.store.cassette.json_text import PLAIN, JsonTextStyle, size_written, style_fields, style_in, written
from rewind.store.cassette.read import read_cassette
from unit.store.taping import (
    JSON_HEADERS,
    assert_comes_back,
    exchange,
    records_in,
    resealed,
    steps_in,
    taped,
    taped_steps,
)

ASKED = {"model": "claude-sonnet-4-6", "temperature": 1.0, "text": "Grüße, <b>7 & 8</b> it's", "none": [None]}


def chosen_form(body: bytes) -> str:
    """The form that was chosen, after looking that it gives back every byte."""
    found = form_of(body)
    assert bytes_of(found, len(body)) == body
    return found.form


@pytest.mark.parametrize(
    ("writing", "style"),
    [
        ({"separators": (",", ":"), "ensure_ascii": False}, {}),
        ({"ensure_ascii": False}, {"comma": ", ", "colon": ": "}),
        ({}, {"comma": ", ", "colon": ": ", "ascii": True}),
        ({"separators": (",", ": "), "ensure_ascii": False}, {"colon": ": "}),
        ({"indent": 2, "ensure_ascii": False}, {"colon": ": ", "indent": 2}),
        ({"indent": 4}, {"colon": ": ", "indent": 4, "ascii": True}),
    ],
)
def test_a_json_body_is_its_value_and_how_it_was_written(writing: dict[str, Any], style: dict[str, Any]) -> None:
    body = json.dumps(ASKED, **writing).encode()
    found = form_of(body)
    assert (found.form, found.root, style_fields(found.style)) == ("json", ASKED, style)
    assert bytes_of(found, len(body)) == body


@pytest.mark.parametrize("after", ["\n", "\r\n", "  "])
@pytest.mark.parametrize("before", ["", "\n         \n"])
def test_white_space_around_a_body_is_kept(before: str, after: str) -> None:
    body = (before + json.dumps(ASKED, separators=(",", ":")) + after).encode()
    found = form_of(body)
    assert (found.form, found.style.before, found.style.after) == ("json", before, after)
    assert bytes_of(found, len(body)) == body


def test_go_and_google_escape_more_than_they_must() -> None:
    body = json.dumps(ASKED, separators=(",", ":"), ensure_ascii=False)
    for letters in ("<>&", "<>&'=", "/", "<"):
        text = body
        for letter in letters:
            text = text.replace(letter, "\\/" if letter == "/" else f"\\u{ord(letter):04x}")
        assert chosen_form(text.encode()) == "json", letters


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"a":2}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":"\\ud83d"}',
        b'{"a":1e5}',
        b'{"a":0.10}',
        b'{"a":18446744073709551616}',
        b'{"a":' + b"9" * 5000 + b"}",
        b"[" * 101 + b"]" * 101,
        b"[" * 5000 + b"]" * 5000,
        b'{"a" : 1}',
        b'{"a":1, "b":2,"c":3}',
        b'{"a":"\\u0041"}',
        b'{"a":"\\u003c <"}',
        b"{'a': 1}",
        b"{",
        b"[\t1]",
        b"hello",
        b"\xef\xbb\xbf{}",
        "données\r\n\r\n".encode(),
        b"a\0b",
    ],
)
def test_what_no_style_writes_again_is_shown_as_text(body: bytes) -> None:
    assert chosen_form(body) == "text"


def test_a_body_nested_as_deep_as_allowed_is_still_json() -> None:
    assert chosen_form(b"[" * 100 + b"]" * 100) == "json"
    tape = taped([(b"[" * 100 + b"]" * 100, b'{"a":' * 100 + b"1" + b"}" * 100)])
    assert_comes_back(tape)


def test_what_is_not_utf8_stands_in_the_small_print() -> None:
    body = bytes(range(256)) * 3
    assert chosen_form(body) == "bytes"
    tape = taped([(body, body[::-1])])
    assert_comes_back(tape)
    step, small = steps_in(tape.text())[0], records_in(tape.text())[-1]
    assert step["request"]["body"] == {"bytes": 768}
    assert max(map(len, small["request"]["bytes"])) == 76


SSE = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1"}}\n\n'
    b'event: ping\ndata: {"type": "ping"}\n\n'
    b'event: delta\ndata: {"type":"delta","text":"Gr\xc3\xbc\xc3\x9fe"     }\n\n'
    b'event: delta\ndata: {"type":"delta","text":"!"}\n\n'
    b": keep alive\n\n"
    b"data: [DONE]\n\n"
)


def test_events_are_shown_by_their_data_and_padding_is_small_print() -> None:
    found = form_of(SSE)
    assert (found.form, found.event, found.pads) == ("events", "{type}", (0, 5, 0))
    assert found.root == [
        {"type": "message_start", "message": {"id": "msg_1"}},
        'event: ping\ndata: {"type": "ping"}\n\n',
        {"type": "delta", "text": "Grüße"},
        {"type": "delta", "text": "!"},
        ": keep alive\n\n",
        "data: [DONE]\n\n",
    ]
    assert bytes_of(found, len(SSE)) == SSE


@pytest.mark.parametrize(
    ("body", "event"),
    [
        (b'data: {"a":1}\n\ndata: {"a":2}\n\n', None),
        (b'data: {"a": 1}\r\n\r\ndata: {"a": 2}\r\n\r\n', None),
        (b'event: message\r\ndata: {"a":1}\r\n\r\n', "message"),
        (b'data: {"a":1}\n\nevent: b\ndata: {"a":2}\n\n', None),
        (b'event: a\ndata: {"type":"b"}\n\nevent: a\ndata: {"type":"c"}\n\n', "a"),
        (b'data: {"a":1}\n\ndata: {"a":2}', None),
        (b'data: {"a":1}\n\ndata: {"a":2}\n', None),
        (b'id: 7\ndata: {"a":1}\n\ndata: {"a":2}\n\n', None),
        (b'data: {"a":1}\ndata: {"b":1}\n\ndata: {"a":2}\n\n', None),
        (b'data:{"a":1}\n\ndata: {"a":2}\n\n', None),
        (b'data: {"text":"\\u00e9"}\n\ndata: {"text":"e"}\n\n', None),
        (b'data: {"text":"e"}\n\ndata: {"text":"\\u00e9"}\n\n', None),
        (b"data: 1\n\ndata: []\n\n", None),
    ],
)
def test_events_of_any_make_come_back(body: bytes, event: str | None) -> None:
    found = form_of(body)
    assert (found.form, found.event) == ("events", event)
    assert bytes_of(found, len(body)) == body


def test_a_stream_without_json_is_text() -> None:
    assert chosen_form(b"data: hello\n\ndata: you\n\n") == "text"
    assert chosen_form(b"data: hello\n\n" * 9 + b"data: {}\n\n") == "text"
    assert chosen_form(b'event: {type}\ndata: {"a":1}\n\n') == "text"  # a name that would be read as a rule


def test_frames_of_a_websocket_are_lines() -> None:
    frames = [{"from": "client", "at": n, "op": "text", "fin": True, "text": f'{{"n":{n}}}'} for n in range(5)]
    body = b"".join(json.dumps(frame, separators=(",", ":")).encode() + b"\n" for frame in frames)
    found = form_of(body)
    assert (found.form, found.root) == ("lines", frames)
    assert bytes_of(found, len(body)) == body
    assert chosen_form(body + b'{"half') == "lines"
    assert chosen_form(b'{"a":1}\n{"b":2}') == "lines"


def packers() -> list[tuple[str, Any]]:
    return [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("br", brotli.compress),
        ("zstd", zstandard.ZstdCompressor().compress),
        ("gzip, br", lambda data: brotli.compress(gzip.compress(data))),
    ]


@pytest.mark.parametrize(("coding", "pack"), packers())
def test_a_compressed_body_is_shown_as_it_reads(coding: str, pack: Any) -> None:
    headers = (("content-encoding", coding), *JSON_HEADERS)
    made = exchange(1, pack(b'{"ask":"me"}'), pack(SSE), asked_headers=headers, headers=headers)
    tape = taped_steps([made])
    assert_comes_back(tape)
    step = steps_in(tape.text())[0]
    assert step["request"]["body"] == {"json": {"ask": "me"}, "coding": coding}
    assert step["answer"]["body"]["events"][3] == {"type": "delta", "text": "!"}


def test_what_is_shown_of_a_compressed_body_must_be_what_it_holds() -> None:
    headers = (("content-encoding", "gzip"), *JSON_HEADERS)
    made = exchange(1, b"{}", gzip.compress(b'{"pay":"1 dollar"}'), headers=headers)
    data = taped_steps([made]).cassette()
    forged = resealed(data.replace(b'{"pay": "1 dollar"}', b'{"pay": "9 dollar"}'))
    assert forged != data
    with pytest.raises(BadCassette, match="not what is shown"):
        read_cassette(forged, file="x.rw")


@pytest.mark.parametrize(
    "body",
    [b"not gzip at all", gzip.compress(b"{}")[:-4], gzip.compress(b"\xff\xfe")],
    ids=["no gzip", "cut", "no text"],
)
def test_a_body_that_does_not_unfold_is_kept_as_bytes_or_text(body: bytes) -> None:
    headers = (("content-encoding", "gzip"), *JSON_HEADERS)
    tape = taped_steps([exchange(1, b"{}", body, headers=headers)])
    assert_comes_back(tape)
    assert "coding" not in steps_in(tape.text())[0]["answer"]["body"]


def test_no_body_is_no_body() -> None:
    tape = taped([(b"", b""), (b"{}", None)])
    assert_comes_back(tape)
    first, second = steps_in(tape.text())
    assert "body" not in first["request"] and "body" not in first["answer"]
    assert "answer" not in second


def test_a_body_that_was_there_before_is_named() -> None:
    poll, again = b'{"poll":1}', b'{"still":"running"}'
    tape = taped([(poll, again), (poll, again), (again, poll)])
    assert_comes_back(tape)
    _, second, third = steps_in(tape.text())
    assert second["request"]["body"] == {"same_as": "request 1"}
    assert second["answer"]["body"] == {"same_as": "answer 1"}
    assert third["request"]["body"] == {"same_as": "answer 1"}


@pytest.mark.parametrize(
    "fields",
    [
        {"comma": ";"},
        {"comma": ", ", "indent": 2},
        {"colon": "="},
        {"indent": 0},
        {"indent": 9},
        {"indent": True},
        {"ascii": 1},
        {"escapes": '"'},
        {"escapes": "a"},
        {"escapes": 5},
        {"before": "x"},
        {"after": " " * 2000},
        [],
    ],
)
def test_a_style_that_no_json_has_is_refused(fields: Any) -> None:
    with pytest.raises(BadCassette):
        style_in(fields)


def test_a_style_comes_back_from_its_fields() -> None:
    style = JsonTextStyle(comma=", ", colon=": ", ascii=True, escapes="<>", before="\n", after="\n")
    assert style_in(style_fields(style)) == style
    assert style_fields(PLAIN) == {}


@pytest.mark.parametrize(
    "style",
    [
        PLAIN,
        JsonTextStyle(comma=", ", colon=": "),
        JsonTextStyle(colon=": ", indent=4),
        JsonTextStyle(ascii=True, escapes="<"),
    ],
)
def test_a_size_is_known_before_the_text_is_made(style: JsonTextStyle) -> None:
    value = [{"a": ["<ü>" * 40, 1, None], "b": {"c": [[[1.5]]], "": "<<<"}}] * 7
    size = len(written(value, style).encode())
    assert size / 2 < size_written(value, style, 10**6) < size * 2
    assert size_written(value, style, 100) < 1000


def test_a_body_larger_than_it_says_is_never_made() -> None:
    many = BodyForm(form="json", root=["x" * 1000] * 4000)
    deep = BodyForm(form="json", root=[0] * 300_000, style=JsonTextStyle(colon=": ", indent=8))
    padded = BodyForm(form="events", root=[{}] * 10, pads=(9_999,) * 10)
    named = BodyForm(form="events", root=[{}] * 10_000, event="x" * 5_000)
    for body, limit in ((many, 1_100_000), (deep, 1_000_000), (padded, 50_000), (named, 50_000)):
        with pytest.raises(BadCassette, match="larger"):
            bytes_of(body, limit)


@pytest.mark.parametrize(
    "root",
    [{"a": b"bytes"}, {1: 2}, [float("nan")], ["\ud800"], object()],
    ids=["bytes", "key", "nan", "surrogate", "object"],
)
def test_what_cannot_be_written_is_a_bad_cassette(root: Any) -> None:
    with pytest.raises(BadCassette):
        bytes_of(BodyForm(form="json", root=root), 2)
