"""The log of a WebSocket: what is not one is said, whatever it is."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.wire.frame_log import BadFrameLog, LoggedFrame, read_frame_log


def test_frames_are_read_back() -> None:
    log = (
        b'{"from":"client","at":0,"op":"text","fin":false,"text":"h\xc3\xa9"}\n'
        b'{"from":"server","at":12,"op":"binary","fin":true,"base64":"AP8="}\n'
    )
    assert read_frame_log(log) == [
        LoggedFrame(True, 0, "text", False, "hé", "hé".encode()),
        LoggedFrame(False, 12, "binary", True, None, b"\0\xff"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"<html>",
        b"[]",
        b'{"op":"text"}',
        b'{"from":"client","at":0,"op":"text","fin":true}',
        b'{"from":"client","at":0,"op":"text","text":4}',
        b'{"from":"client","at":0,"op":"binary","base64":"*"}',
        b'{"from":"client","at":0,"op":"shout","text":""}',
        b'{"from":"client","at":"0","op":"text","text":""}',
        b"[" * 100_000,
    ],
)
def test_a_line_that_is_no_frame_is_named(line: bytes) -> None:
    good = b'{"from":"client","at":0,"op":"text","fin":true,"text":""}\n'
    with pytest.raises(BadFrameLog, match="line 2"):
        read_frame_log(good + line)


@given(st.binary(max_size=60))
def test_no_bytes_make_it_fail_otherwise(data: bytes) -> None:
    with suppress(BadFrameLog):
        read_frame_log(data)
