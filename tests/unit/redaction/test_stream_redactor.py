"""Answers as they arrive: split values, held bytes, compression, memory."""

import base64
import json
import tracemalloc
from collections.abc import Callable, Iterable

import pytest

from rewind.model.http import ResponseHead
from rewind.redaction import stream_redactor as streams
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.redaction.stream_redactor import StreamRedactor
from rewind.wire.encoding import decode, encode

KEY = "sk-proj-a1B2c3D4e5F6g7H8i9J0"
HIDDEN = "REDACTED" + "x" * (len(KEY) - 8)


def head(media: str, coding: str | None = None) -> ResponseHead:
    headers = (("Content-Type", media),) + ((("Content-Encoding", coding),) if coding else ())
    return ResponseHead(status=200, reason="OK", headers=headers)


def stream(media: str = "text/event-stream; charset=utf-8", coding: str | None = None, *values: str) -> StreamRedactor:
    return Redactor(Secrets(values or (KEY,))).stream(head(media, coding))


def through(redactor: StreamRedactor, pieces: Iterable[bytes]) -> bytes:
    given = b"".join([*(redactor.feed(piece) for piece in pieces), redactor.finish()])
    return given if redactor.replacement is None else redactor.replacement


def event(document: object) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def in_threes(text: str) -> list[str]:
    return [text[at : at + 3] for at in range(0, len(text), 3)]


def chat(text: str, index: int = 0) -> dict[str, object]:
    return {"id": "chatcmpl-s", "created": 1, "choices": [{"index": index, "delta": {"content": text}}]}


DIALECTS: dict[str, tuple[Callable[[str], dict[str, object]], Callable[[dict[str, object]], str]]] = {
    "openai chat": (chat, lambda doc: doc["choices"][0]["delta"]["content"]),  # type: ignore[index]
    "openai tool": (
        lambda text: {
            "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 1, "function": {"arguments": text}}]}}]
        },
        lambda doc: doc["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"],  # type: ignore[index]
    ),
    "openai responses": (
        lambda text: {"type": "response.output_text.delta", "sequence_number": 7, "output_index": 2, "delta": text},
        lambda doc: str(doc["delta"]),
    ),
    "anthropic text": (
        lambda text: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        lambda doc: doc["delta"]["text"],  # type: ignore[index]
    ),
    "anthropic tool": (
        lambda text: {"type": "content_block_delta", "index": 3, "delta": {"type": "x", "partial_json": text}},
        lambda doc: doc["delta"]["partial_json"],  # type: ignore[index]
    ),
    "gemini": (
        lambda text: {"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}]},
        lambda doc: doc["candidates"][0]["content"]["parts"][0]["text"],  # type: ignore[index]
    ),
    "nobody's": (lambda text: {"a": [{"b": [[{"c": text}]]}]}, lambda doc: doc["a"][0]["b"][0][0]["c"]),  # type: ignore[index]
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 40])
def test_a_value_said_in_pieces_is_replaced_in_every_dialect(dialect: str, step: int) -> None:
    write, read = DIALECTS[dialect]
    spoken = f"Your key is {KEY}, keep it."
    pieces = [spoken[at : at + step] for at in range(0, len(spoken), step)]
    body = [event(write(piece)) for piece in pieces]
    out = through(stream(), body)
    said = [read(json.loads(line[6:])) for line in out.split(b"\n\n") if line]
    assert "".join(said) == f"Your key is {HIDDEN}, keep it."
    assert [len(piece) for piece in said] == [len(piece) for piece in pieces]


def test_newline_delimited_json_and_arrays_are_joined_too() -> None:
    lines = [json.dumps({"message": {"content": piece}, "done": False}).encode() + b"\n" for piece in in_threes(KEY)]
    out = through(stream("application/x-ndjson"), lines)
    assert "".join(json.loads(line)["message"]["content"] for line in out.splitlines()) == HIDDEN
    array = json.dumps([{"candidates": [{"text": piece}]} for piece in in_threes(KEY)], indent=2).encode()
    out = through(stream("application/json"), [array])
    assert "".join(doc["candidates"][0]["text"] for doc in json.loads(out)) == HIDDEN


def test_events_that_are_no_json_are_joined_too() -> None:
    out = through(stream(), [f"data: {piece}\n\n".encode() for piece in in_threes(KEY)])
    assert out.replace(b"data: ", b"").replace(b"\n\n", b"").decode() == HIDDEN


def test_interleaved_answers_are_told_apart_by_their_index() -> None:
    body = []
    for piece in in_threes(KEY):
        body += [event(chat(piece, 1)), event(chat("words", 0)), event(chat("more", 2))]
    docs = [json.loads(line[6:]) for line in through(stream(), body).split(b"\n\n") if line]
    said = ["".join(doc["choices"][0]["delta"]["content"] for doc in docs[first::3]) for first in range(3)]
    assert said == [HIDDEN, "words" * 10, "more" * 10]


def test_a_value_that_goes_on_in_the_next_block_is_replaced() -> None:
    blocks = [
        {"type": "content_block_delta", "index": at, "delta": {"text": piece}}
        for at, piece in enumerate(in_threes(KEY))
    ]
    out = through(stream(), [event(block) for block in blocks])
    assert "".join(json.loads(line[6:])["delta"]["text"] for line in out.split(b"\n\n") if line) == HIDDEN


def test_tokens_listed_in_an_array_are_one_text() -> None:
    tokens = [{"token": piece, "logprob": -0.5} for piece in in_threes(KEY)]
    out = through(stream(), [event({"choices": [{"logprobs": {"content": tokens}}]})])
    listed = json.loads(out[6:])["choices"][0]["logprobs"]["content"]
    assert "".join(token["token"] for token in listed) == HIDDEN


def test_a_part_that_changes_its_position_is_still_one_text() -> None:
    first = {"parts": [{"thought": "hm"}, {"text": "key: " + KEY[:9]}]}
    second = {"parts": [{"text": KEY[9:] + "."}]}
    docs = [json.loads(line[6:]) for line in through(stream(), [event(first), event(second)]).split(b"\n\n") if line]
    assert docs[0]["parts"][1]["text"] + docs[1]["parts"][0]["text"] == f"key: {HIDDEN}."


def test_escapes_inside_pieces_keep_every_line_at_its_length() -> None:
    secret = 'pä"ss\\w/ö\U0001f511rd-42'
    pieces = ["it is ", 'pä"', "ss", "\\w/", "ö\U0001f511r", "d-42", "\n."]
    body = [event(chat(piece)) for piece in pieces]
    out = through(stream("text/event-stream", None, secret), body)
    assert [len(line) for line in out.split(b"\n")] == [len(line) for line in b"".join(body).split(b"\n")]
    said = "".join(json.loads(line[6:])["choices"][0]["delta"]["content"] for line in out.split(b"\n\n") if line)
    assert said.replace("x", "") == "it is REDACTED\n."


def test_escapes_that_nobody_needs_do_not_hide_a_value() -> None:
    written = "".join(f"\\u{ord(sign):04x}" for sign in KEY[:10]) + KEY[10:]
    body = b'data: {"text":"' + written.encode() + b'"}\n\n'
    out = through(stream(), [body])
    assert len(out) == len(body)
    assert json.loads(out[6:])["text"].rstrip("x") == "REDACTED"


def test_base64_said_in_pieces_is_replaced() -> None:
    text = base64.b64encode(f"user:{KEY}\n".encode()).decode()
    out = through(stream(), [event(chat(piece)) for piece in in_threes(text)])
    said = "".join(json.loads(line[6:])["choices"][0]["delta"]["content"] for line in out.split(b"\n\n") if line)
    assert len(said) == len(text)
    assert "REDACTEDxxxxxxxx" in said
    assert b"a1B2" not in base64.b64decode(said)


def test_nothing_lags_while_nothing_is_suspicious() -> None:
    redactor = stream()
    for text in ["Hello", " users", " ask", "s", "k", " sk", "-", "\n", "", '"quoted"']:
        piece = b"event: x\n" + event(chat(text))
        assert redactor.feed(piece) == piece
    assert redactor.finish() == b""
    assert redactor.replacement is None


def test_six_characters_of_a_value_are_held_until_it_is_clear_what_they_are() -> None:
    redactor = stream()
    first, second, third = event(chat("it is sk-")), event(chat("proj-")), event(chat("ects, plural"))
    assert redactor.feed(first) == first
    given = redactor.feed(second)
    assert b"proj" not in given
    assert given + redactor.feed(third) == second + third


def test_an_unfinished_line_waits_for_its_end() -> None:
    redactor = stream()
    line = event(chat("a1B2c3D4e5F6"))
    assert redactor.feed(line[:-12]) == b""
    assert redactor.feed(line[-12:]) == line


def test_a_text_that_ends_in_the_middle_of_a_value_is_cut_off_there() -> None:
    body = [event(chat(piece)) for piece in in_threes("key: " + KEY[:22])]
    out = through(stream(), body)
    said = "".join(json.loads(line[6:])["choices"][0]["delta"]["content"] for line in out.split(b"\n\n") if line)
    assert said == "key: REDACTED" + "x" * 14
    plain = through(stream("text/plain"), [b"key: " + KEY[:22].encode()])
    assert plain == b"key: REDACTED" + b"x" * 14


def test_a_long_line_is_not_held_and_the_lines_after_it_are_read_again() -> None:
    redactor = stream()
    long = b'data: {"image":"' + b"A" * 3_000_000 + b'"}\n\n'
    pieces = [long[at : at + 65536] for at in range(0, len(long), 65536)]
    waiting = 0
    given = b""
    for piece in pieces:
        given += redactor.feed(piece)
        waiting = max(waiting, len(piece) + 65536 * pieces.index(piece) - len(given))
    assert waiting < 1_200_000
    assert given == long
    rest = b"".join(redactor.feed(event(chat(piece))) for piece in in_threes(KEY)) + redactor.finish()
    assert redactor.replacement is not None
    assert redactor.replacement.startswith(long)
    assert len(redactor.replacement) == len(long) + len(rest)
    assert b"a1B" not in redactor.replacement


def test_a_held_text_that_never_goes_on_does_not_hold_the_stream_for_ever() -> None:
    redactor = stream()
    given = len(redactor.feed(event({"a": "sk-proj-"})))
    noise = event({"b": "z" * 1000})
    waiting = 0
    for number in range(1000):
        given += len(redactor.feed(noise))
        waiting = max(waiting, len(noise) * (number + 1) - given)
    assert waiting < 300_000
    out = redactor.feed(event({"a": KEY[8:]})) + redactor.finish()
    assert b"a1B2" not in out
    assert redactor.replacement is not None
    assert event({"a": "REDACTED"}) in redactor.replacement


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, zstd"])
@pytest.mark.parametrize("media", ["application/json", "text/event-stream"])
def test_a_compressed_answer_with_a_secret_is_withheld_and_replaced(coding: str, media: str) -> None:
    plain = b"".join(event(chat(piece)) for piece in ["x" * 500, *in_threes(KEY), "y" * 500])
    if media == "application/json":
        plain = json.dumps(chat(KEY)).encode()
    packed = encode(plain, coding)
    redactor = stream(media, coding)
    given = b"".join(redactor.feed(packed[at : at + 10]) for at in range(0, len(packed), 10))
    assert redactor.withheld
    assert given != packed
    assert redactor.feed(b"") == b""
    assert redactor.finish() == b""
    assert redactor.replacement is not None
    out = decode(redactor.replacement, coding)
    assert len(out) == len(plain)
    assert b"a1B" not in out
    assert b"RED" in out


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_a_compressed_answer_without_secrets_passes_byte_for_byte(coding: str) -> None:
    packed = encode(b"".join(event(chat(f"word {number}")) for number in range(200)), coding)
    redactor = stream("text/event-stream", coding)
    pieces = [packed[at : at + 50] for at in range(0, len(packed), 50)]
    assert through(redactor, pieces) == packed
    assert not redactor.withheld


def test_a_compressed_answer_that_breaks_off_is_judged_by_what_came() -> None:
    packed = encode(json.dumps(chat(KEY + "and more " * 50)).encode(), "gzip")
    redactor = stream("application/json", "gzip")
    redactor.feed(packed[:-8])
    redactor.finish()
    assert redactor.withheld
    assert redactor.replacement is not None
    assert HIDDEN.encode() in decode(redactor.replacement, "gzip")


def test_damaged_and_unknown_codings_pass() -> None:
    assert through(stream("text/plain", "gzip"), [b"no gzip", b" at all"]) == b"no gzip at all"
    assert through(stream("text/plain", "rot13"), [b"x " + KEY.encode()]) == b"x " + HIDDEN.encode()


def test_an_undeclared_event_stream_is_recognised() -> None:
    out = through(stream("text/plain"), [event(chat(piece)) for piece in in_threes(KEY)])
    assert b"a1B" not in out


def test_other_line_ends_and_a_byte_order_mark_do_not_matter() -> None:
    for ending in (b"\r", b"\r\n"):
        body = b"\xef\xbb\xbf" + b"".join(event(chat(piece)) for piece in in_threes(KEY)).replace(b"\n", ending)
        out = through(stream(), [body[at : at + 11] for at in range(0, len(body), 11)])
        assert len(out) == len(body)
        assert b"a1B" not in out
        assert b"RED" in out


def test_hits_are_counted_once_each() -> None:
    door = Redactor(Secrets([KEY]))
    redactor = door.stream(head("text/event-stream"))
    through(redactor, [event(chat(KEY)), *(event(chat(piece)) for piece in in_threes(KEY + " " + KEY))])
    assert door.count == 3
    redactor = door.stream(head("text/plain", "gzip"))
    through(redactor, [encode(KEY.encode(), "gzip")])
    assert door.count == 4


def test_without_known_values_everything_passes_as_the_same_object() -> None:
    redactor = Redactor(Secrets()).stream(head("text/event-stream", "gzip"))
    piece = b"anything"
    assert redactor.feed(piece) is piece
    assert redactor.finish() == b""


@pytest.mark.parametrize(
    "garbage",
    [
        b'data: {"' + b'\\"' * 50_000 + b"\n",
        b"data: " + b"[" * 100_000 + b"\n",
        b"data: " + b'{"a":' * 50_000 + b"\n\n",
    ],
)
def test_garbage_costs_linear_time_and_passes(garbage: bytes) -> None:
    assert through(stream(), [garbage, garbage]) == garbage * 2


def peak_while(redactor: StreamRedactor, chunk: bytes, count: int) -> int:
    """The most memory that was in use while the answer passed."""
    tracemalloc.start()
    try:
        given = sum(len(redactor.feed(bytes(bytearray(chunk)))) for _ in range(count)) + len(redactor.finish())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert given == count * len(chunk)
    return peak


@pytest.mark.parametrize("media", ["text/plain", "application/json"])
def test_memory_is_bounded_however_long_the_answer(media: str) -> None:
    chunk = b"some text that goes on and on, as models do; " * 1400
    assert peak_while(stream(media, None, KEY * 2), chunk, 150) < 1_000_000


def test_a_very_long_event_stream_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_MOST_KEPT", 1_000_000)
    chunk = event({"delta": "some text that goes on and on, as models do; " * 20}) * 50
    assert peak_while(stream("text/event-stream", None, KEY * 2), chunk, 80) < 2_000_000
