"""Event streams as the WHATWG describes them."""

import pytest

from rewind.wire.sse import parse_events


def data_of(body: bytes) -> list[tuple[str, str]]:
    return [(event.event, event.data) for event in parse_events(body)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end_of_the_standard_is_understood(end: bytes) -> None:
    body = end.join([b"event: add", b"data: 1", b"", b"data: 2", b"", b""])
    assert data_of(body) == [("add", "1"), ("message", "2")]


def test_several_data_lines_are_one_event_with_newlines_between() -> None:
    assert data_of(b"data: a\ndata:b\ndata:  c\n\n") == [("message", "a\nb\n c")]


def test_comments_unknown_fields_and_events_without_data_are_passed_over() -> None:
    assert data_of(b": ping\n\nid: 7\nretry: 10\nfoo: bar\n\nevent: empty\n\ndata: x\n\n") == [("message", "x")]


def test_a_data_line_without_a_colon_is_an_empty_value() -> None:
    assert data_of(b"data\n\ndata\ndata\n\ndata:") == [("message", ""), ("message", "\n")]


def test_a_byte_order_mark_is_taken_off_once() -> None:
    assert data_of(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n") == [("message", "a")]


def test_an_event_without_its_blank_line_is_not_dispatched() -> None:
    assert data_of(b"data: a\n\ndata: cut off\n") == [("message", "a")]


def test_bytes_that_are_no_utf8_are_replaced_and_nothing_is_raised() -> None:
    assert data_of(b"data: \xff\xfe\n\n") == [("message", "\ufffd\ufffd")]


def test_offsets_find_an_event_again_in_the_body() -> None:
    body = b": hello\n\nevent: a\ndata: 1\n\n\ndata: 2\n\n"
    spans = [(event.start, event.end) for event in parse_events(body)]
    assert [body[start:end] for start, end in spans] == [b"event: a\ndata: 1\n\n", b"data: 2\n\n"]


def test_a_long_line_is_searched_once() -> None:
    assert data_of(b"x" * 2_000_000 + b"\n\ndata: after\n\n") == [("message", "after")]


@pytest.mark.timeout(20)
def test_a_very_long_line_without_its_end_takes_no_longer_than_any_other() -> None:
    body = b"data: one\n\ndata: " + b"[" * 4_000_000
    assert [event.data for event in parse_events(body)] == ["one"]
