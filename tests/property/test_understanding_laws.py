"""Laws of wire, providers and match that hold for any bytes."""

import copy
import json
import random
from dataclasses import replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from rewind.match.call import understand
from rewind.match.difference import ABSENT, differences, word_diff
from rewind.match.nearest import RecordedCall, explain_miss
from rewind.model.http import HttpRequest, RequestHead
from rewind.providers.catalogue import BUILT_IN, FALLBACK, identify
from rewind.providers.summary import read
from rewind.wire.encoding import StreamDecoder, UndecodableBody, decode, decode_as_far_as_possible, encode
from rewind.wire.sse import parse_events
from support.exchanges import answer_with, request_of
from support.wire_examples import EXAMPLES

HEADS = [
    *{example.request.head.path: example.request.head for example in EXAMPLES}.values(),
    *{stream.request.head.path: stream.request.head for one in EXAMPLES for stream in one.streams}.values(),
    request_of(target="/anything").head,
]
"""One of every path that somebody claims, and one that nobody does."""
MEDIA = [
    *("application/json", "text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream"),
    *("multipart/form-data; boundary=b", "application/x-www-form-urlencoded", "image/png", ""),
]
CODINGS = ["gzip", "deflate", "br", "zstd", "gzip, br", "identity"]

stream_bytes = st.lists(
    st.sampled_from([b"data", b"event", b":", b" ", b"\r", b"\n", b"\r\n", b"x", b"\xef\xbb\xbf", b"\xff", b"id: 1"])
).map(b"".join)
words = st.sampled_from(
    [
        *("type", "message", "choices", "delta", "content", "tool_calls", "function", "name", "arguments", "usage"),
        *("output", "item", "response", "candidates", "parts", "functionCall", "usageMetadata", "error", "index"),
        *("content_block", "content_block_start", "input_json_delta", "tool_use", "message_start", "model", "text"),
        *("promptTokenCount", "input_tokens", "prompt_tokens", "data", "embedding", "embeddings", "toolUse", "id"),
        *("response.output_item.done", "function_call", "messages", "tool_call_id", "input", "call_id", "bytes"),
    ]
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | words
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=4), inner, max_size=5),
    max_leaves=25,
)


@given(stream_bytes, stream_bytes)
def test_what_follows_changes_no_event_that_was_complete(body: bytes, more: bytes) -> None:
    before = [event for event in parse_events(body) if not body[: event.end].endswith(b"\r")]
    assert parse_events(body + more)[: len(before)] == before


@given(stream_bytes)
def test_an_event_is_found_again_at_its_offsets(body: bytes) -> None:
    for event in parse_events(body):
        again = parse_events(body[event.start : event.end])
        assert [(found.event, found.data) for found in again] == [(event.event, event.data)]


@given(st.binary(max_size=4000), st.sampled_from(CODINGS), st.integers(1, 500))
def test_decoding_undoes_encoding_however_it_is_cut(body: bytes, coding: str, size: int) -> None:
    encoded = encode(body, coding)
    assert decode(encoded, coding) == body
    decoder = StreamDecoder(coding)
    pieces = [encoded[start : start + size] for start in range(0, len(encoded), size)]
    assert b"".join(map(decoder.feed, pieces)) == body


@given(st.binary(max_size=300), st.sampled_from(CODINGS), st.integers(0, 300))
def test_damaged_codings_raise_one_error_and_give_what_they_can(body: bytes, coding: str, cut: int) -> None:
    for data in (body, encode(body, coding)[:cut], encode(body, coding)[:cut] + b"?" + encode(body, coding)[cut:]):
        try:
            plain = decode(data, coding)
        except UndecodableBody:
            assert decode_as_far_as_possible(data, coding)[1] is not None
        else:
            assert decode_as_far_as_possible(data, coding) == (plain, None)


def asking(head: RequestHead, body: Any, media: str = "application/json") -> HttpRequest:
    """A request to that place; anything but bytes is written as JSON."""
    others = tuple((name, value) for name, value in head.headers if name.lower() != "content-type")
    return replace(request_of(body), head=replace(head, headers=(("content-type", media), *others)))


@example(head=HEADS[0], media="application/json", status=400, asked=b"", answered=b"\t")
@given(
    head=st.sampled_from(HEADS),
    media=st.sampled_from(MEDIA),
    status=st.sampled_from([200, 400, 529]),
    asked=st.binary(max_size=200) | json_values,
    answered=st.binary(max_size=200)
    | json_values
    | st.lists(json_values, max_size=3).map(
        lambda documents: b"".join(b"data: " + json.dumps(document).encode() + b"\n\n" for document in documents)
    ),
)
def test_nothing_that_is_asked_or_answered_makes_us_raise(
    head: RequestHead, media: str, status: int, asked: Any, answered: Any
) -> None:
    request = asking(head, asked, media)
    call = understand(request)
    reading = read(call.provider, request, answer_with(answered, media=media, status=status))
    assert json.dumps(reading.text, ensure_ascii=False).encode()
    assert len(reading.text) <= 200
    assert (reading.error is not None) or status == 200
    miss = explain_miss(call, [RecordedCall(1, call, True)], session="s")
    assert miss.nearest == 1


@given(json_values)
def test_every_provider_reads_any_json_without_raising(document: Any) -> None:
    for head in HEADS:
        request = asking(head, document)
        provider = identify(request.head)
        assert provider in (*BUILT_IN, FALLBACK)
        read(provider, request, answer_with(document))
        assert isinstance(provider.reader.asked(request).model, str | None)


def shuffled(value: Any, dice: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        dice.shuffle(keys)
        return {key: shuffled(value[key], dice) for key in keys}
    return [shuffled(child, dice) for child in value] if isinstance(value, list) else value


@given(json_values, st.sampled_from(HEADS), st.randoms(use_true_random=False))
def test_the_order_of_keys_makes_no_difference(body: Any, head: RequestHead, dice: random.Random) -> None:
    other = json.dumps(shuffled(body, dice), indent=dice.choice([None, 2])).encode()
    assert understand(asking(head, body)).key == understand(asking(head, other)).key


texts = st.text(min_size=1, max_size=12).filter(lambda text: "REDACTED" not in text)
ids = st.lists(st.integers(0, 5).map(str), min_size=1, max_size=6)


def conversation(names: list[str], said: list[str]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": text} for text in said]
    for name in names:
        messages.append({"role": "assistant", "tool_calls": [{"id": name, "function": {"name": "f"}}]})
        messages.append({"role": "tool", "tool_call_id": name, "content": "done"})
    return {"model": "m", "messages": messages}


def key_of(body: Any) -> str:
    return understand(request_of(body)).key


@given(ids, st.lists(texts, max_size=3), st.permutations(range(6)))
def test_renaming_all_ids_alike_keeps_the_key(names: list[str], said: list[str], new: list[int]) -> None:
    renamed = [f"call_{new[int(name)]}" for name in names]
    assert key_of(conversation(names, said)) == key_of(conversation(renamed, said))


@given(ids, ids)
def test_ids_tied_together_in_another_way_change_the_key(one: list[str], other: list[str]) -> None:
    def ties(names: list[str]) -> list[int]:
        return [names.index(name) for name in names]

    same = ties(one) == ties(other)
    assert (key_of(conversation(one, [])) == key_of(conversation(other, []))) == same


@given(st.lists(texts, min_size=1, max_size=5), st.data())
def test_changing_any_text_changes_the_key(said: list[str], data: st.DataObject) -> None:
    changed = list(said)
    changed[data.draw(st.integers(0, len(said) - 1))] += data.draw(texts)
    assert key_of(conversation([], said)) != key_of(conversation([], changed))


@given(json_values, json_values)
def test_differences_are_empty_for_equal_bodies_and_lead_from_one_to_the_other(one: Any, other: Any) -> None:
    assert list(differences(one, copy.deepcopy(one))) == []
    alike = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    found = list(differences(one, other))
    assert (not found) == alike
    for difference in found:
        assert difference.recorded is not ABSENT or difference.asked is not ABSENT
        assert len(difference.shown()) < 1000
        assert difference.where


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_word_diff_of_short_texts_holds_both(one: str, other: str) -> None:
    shown = word_diff(one, other)
    if one == other:
        assert "[-" not in shown.replace(one, "")
    assert len(shown) < 1000


@given(st.binary(max_size=200))
def test_a_request_of_any_bytes_has_a_stable_key(body: bytes) -> None:
    for media in MEDIA:
        request: HttpRequest = request_of(body, media=media)
        assert understand(request).key == understand(request).key
