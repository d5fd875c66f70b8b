"""Cutting bodies at string borders."""

import json
import time

import pytest

from rewind.wire import chunks
from rewind.wire.chunks import BLIND, LARGEST, LONG, cut_body

LONG_TEXT = 'She said: "a \\ b"\n é 漢 ' * 40


def test_no_bytes_are_no_pieces() -> None:
    assert cut_body(b"") == []


def test_a_short_body_is_one_piece() -> None:
    assert cut_body(b'{"a":"b"}') == [b'{"a":"b"}']


@pytest.mark.parametrize("ascii_only", [True, False])
def test_the_content_of_a_long_string_is_a_piece(ascii_only: bool) -> None:
    body = json.dumps({"model": "m", "messages": [{"text": LONG_TEXT}, {"text": "short"}]}, ensure_ascii=ascii_only)
    content = json.dumps(LONG_TEXT, ensure_ascii=ascii_only)[1:-1].encode()
    pieces = cut_body(body.encode())
    assert b"".join(pieces) == body.encode()
    assert content in pieces


def test_strings_of_backslashes_and_quotes_are_seen_whole() -> None:
    for text in ("\\" * 300, '"' * 300, '\\"' * 300, "\\" * 301 + '"', "x" * LONG + "\\"):
        body = json.dumps(["before", text, "after" * 100]).encode()
        pieces = cut_body(body)
        assert b"".join(pieces) == body
        assert json.dumps(text)[1:-1].encode() in pieces


def test_what_is_not_json_is_cut_in_fixed_pieces() -> None:
    for body in (b"\x1f\x8b" * 100_000, b'{"a":"' + b"x" * 200_000, b"data: {}\n\n" * 20_000, b"[" * 200_000):
        pieces = cut_body(body)
        assert b"".join(pieces) == body
        assert {len(piece) for piece in pieces[:-1]} == {BLIND}


def test_no_piece_is_larger_than_promised() -> None:
    body = json.dumps({"image": "A" * (3 * LARGEST + 7), "n": list(range(500_000))}).encode()
    pieces = cut_body(body)
    assert b"".join(pieces) == body
    assert max(map(len, pieces)) <= LARGEST


def test_a_body_of_too_many_strings_is_cut_blindly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOST", 100)
    body = json.dumps(["x" * LONG] * 400).encode()
    assert {len(piece) for piece in cut_body(body)[:-1]} == {BLIND}
    assert b"".join(cut_body(body)) == body


def test_a_growing_conversation_of_short_messages_repeats_its_pieces() -> None:
    messages = [{"role": "user", "content": f"message number {i}"} for i in range(400)]
    before = cut_body(json.dumps({"messages": messages}).encode())
    after = cut_body(json.dumps({"messages": [*messages, {"role": "user", "content": "one more"}]}).encode())
    assert len(before) > 10
    assert len(set(after) - set(before)) == 1


@pytest.mark.parametrize(
    "unit", [b'"', b'\\"', b"\\", b'["', b'{"a":', b'"\\', b"\\u", b'""', b"\x00", b'"' + b"a" * 255]
)
def test_the_cost_grows_no_faster_than_the_body(unit: bytes) -> None:
    def cost(size: int) -> float:
        bodies = [
            unit * (size // len(unit)),
            b'"' + unit * (size // len(unit)),
            b'["' + unit * (size // len(unit)) + b'"]',
        ]
        begun = time.process_time()
        for body in bodies:
            assert b"".join(cut_body(body)) == body
        return time.process_time() - begun

    small, large = cost(50_000), cost(800_000)
    assert large < max(0.5, 160 * small)  # 16 times the bytes; a square would be 256 times, and seconds
