"""AWS event streams, held against botocore's own reader."""

import struct
from typing import Any
from zlib import crc32

import pytest
from botocore.eventstream import EventStreamBuffer, ParserError
from hypothesis import given
from hypothesis import strategies as st

from rewind.wire.eventstream import Frame, begins_with_a_frame, read_frames
from support.aws_frames import frame, raw_frame

EVERY_TYPE = [
    ("yes", 0, True),
    ("no", 1, False),
    ("byte", 2, -5),
    ("short", 3, -300),
    ("int", 4, 70_000),
    ("long", 5, -(2**40)),
    ("bytes", 6, b"\x00\xff"),
    (":event-type", 7, "chünk"),
    ("when", 8, 1_700_000_000_000),
    ("uuid", 9, bytes(range(16))),
]
FIRST = frame(EVERY_TYPE, b'{"a":1}')
MIDDLE = frame([(":event-type", 7, "middle")], b'{"text":"some words in the middle"}')
LAST = frame([], b"")


def botocores(body: bytes) -> list[Frame]:
    """What botocore reads; raises its own errors."""
    buffer = EventStreamBuffer()
    buffer.add_data(body)
    return [Frame(message.headers, message.payload) for message in buffer]


def test_headers_of_every_type_are_read_as_botocore_reads_them() -> None:
    stream = read_frames(FIRST + MIDDLE + LAST)
    assert list(stream.frames) == botocores(FIRST + MIDDLE + LAST)
    assert stream.frames[0].headers == {name: value for name, _, value in EVERY_TYPE}
    assert [found.payload for found in stream.frames] == [b'{"a":1}', b'{"text":"some words in the middle"}', b""]
    assert (stream.lost, stream.cut) == (0, False)


def test_the_text_of_a_header_is_empty_where_it_has_none() -> None:
    (found,) = read_frames(FIRST).frames
    assert (found.header(":event-type"), found.header("int"), found.header("absent")) == ("chünk", "", "")


def test_a_stream_cut_anywhere_gives_the_whole_frames_before_the_cut() -> None:
    body = FIRST + MIDDLE + LAST
    borders = {0, len(FIRST), len(FIRST + MIDDLE), len(body)}
    for end in range(len(body) + 1):
        stream = read_frames(body[:end])
        assert list(stream.frames) == botocores(body[:end])
        assert (stream.lost, stream.cut) == (0, end not in borders)


def test_a_damaged_bit_anywhere_is_noticed_and_costs_its_own_frame_only() -> None:
    before, after = botocores(FIRST), botocores(LAST)
    for place in range(len(MIDDLE)):
        for bit in (1, 128):
            damaged = bytearray(MIDDLE)
            damaged[place] ^= bit
            body = FIRST + bytes(damaged) + LAST
            stream = read_frames(body)
            intact = [found for found in stream.frames if found.intact]
            assert intact == before + after, place
            assert stream.lost + sum(not found.intact for found in stream.frames) == 1, place
            with pytest.raises(ParserError):
                botocores(body)


def test_a_frame_whose_words_were_changed_is_given_with_a_mark() -> None:
    (found,) = read_frames(MIDDLE.replace(b"some words", b"REDACTEDxx")).frames
    assert found.payload == b'{"text":"REDACTEDxx in the middle"}'
    assert found.header(":event-type") == "middle" and not found.intact


def test_bytes_that_are_no_frame_are_passed_over() -> None:
    stream = read_frames(FIRST + b"\x00\x00 what is this? \x00" + MIDDLE)
    assert list(stream.frames) == botocores(FIRST + MIDDLE)
    assert (stream.lost, stream.cut) == (1, False)


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        (b"\x01a\x00\x01a\x01", {"a": True}),  # one name twice
        (b"\x01a\x00\x01b\x0a\x00", {"a": True}),  # a type that nobody knows
        (b"\x01a\x00\x01b\x07\x00\x09short", {"a": True}),  # a text cut off
        (b"\x01a\x00\x01b\x05\x00", {"a": True}),  # a number cut off
        (b"\x01a\x00\x01b\x09\x00", {"a": True}),  # a UUID cut off
        (b"\x01a\x00\x01b\x06\x00", {"a": True}),  # a length cut off
        (b"\x01a\x00\x05b", {"a": True}),  # a name cut off
        (b"\x01a\x00\x01b", {"a": True}),  # a name without a type
    ],
)
def test_headers_are_read_as_far_as_they_can_be(headers: bytes, kept: dict[str, Any]) -> None:
    (found,) = read_frames(raw_frame(headers, b"{}")).frames
    assert (dict(found.headers), found.payload, found.intact) == (kept, b"{}", False)


def test_a_text_that_is_no_utf8_is_replaced() -> None:
    (found,) = read_frames(raw_frame(b"\x01a\x07\x00\x02\xff\xfe")).frames
    assert found.headers == {"a": "\ufffd\ufffd"}


@pytest.mark.parametrize(
    ("size", "headers"),
    [(15, 0), (16, 1), (17 + 24 * 2**20, 0), (16 + 128 * 1024 + 1, 128 * 1024 + 1), (2**32 - 1, 2**32 - 1)],
)
def test_lengths_beyond_all_bounds_are_not_believed_though_their_checksum_fits(size: int, headers: int) -> None:
    lengths = struct.pack(">II", size, headers)
    lie = lengths + struct.pack(">I", crc32(lengths))
    assert not begins_with_a_frame(lie)
    stream = read_frames(lie + MIDDLE)
    assert list(stream.frames) == botocores(MIDDLE)
    assert (stream.lost, stream.cut) == (1, False)


def test_frames_are_known_by_their_first_bytes() -> None:
    assert begins_with_a_frame(LAST)
    assert begins_with_a_frame(FIRST[:12])
    assert not any(map(begins_with_a_frame, (b"", FIRST[:11], b'{"message":"no"}', bytes(64))))


def test_the_search_for_the_next_frame_does_not_go_on_without_end() -> None:
    assert read_frames(bytes(2**17) + MIDDLE).frames == read_frames(MIDDLE).frames
    stream = read_frames(bytes(2**19) + MIDDLE)
    assert (stream.frames, stream.lost, stream.cut) == ((), 1, False)


@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange(body: bytes) -> None:
    stream = read_frames(body)
    assert sum(16 + len(found.payload) for found in stream.frames) <= len(body)


@given(st.lists(st.binary(max_size=40), max_size=4), st.binary(max_size=40))
def test_frames_are_found_again_behind_any_bytes(payloads: list[bytes], noise: bytes) -> None:
    body = b"".join(raw_frame(b"", payload) for payload in payloads)
    found = read_frames(MIDDLE + noise + body).frames
    assert [one.payload for one in found[1:]] == payloads
