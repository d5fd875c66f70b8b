"""Whatever happens to the bytes of an exchange, nothing raises, and what is lost is not lost in silence."""

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.match.call import understand
from rewind.model.http import Headers, HttpRequest, HttpResponse
from rewind.model.message import Answered, Text
from rewind.model.step import StepKind
from rewind.providers.api import Api
from rewind.providers.catalogue import identify
from rewind.providers.summary import read
from rewind.wire.eventstream import begins_with_a_frame
from support.damage import CODINGS, MEDIA, damaged_request, damaged_response
from support.wire_examples import EXAMPLES, said
from support.wire_examples.said import pieces

Told = tuple[str, HttpRequest, HttpResponse]


def _told() -> Iterator[Told]:
    for example in EXAMPLES:
        yield f"{example.api}, whole", example.request, example.whole
        for stream in example.streams:
            yield f"{example.api}, {stream.format}", stream.request, stream.response
        if example.broken:
            yield f"{example.api}, broken off", example.broken.request, example.broken.response


TOLD = list(_told())
BODIES = [response.body for _, _, response in TOLD] + [request.body for _, request, _ in TOLD]
WHOLE = [(name, request, response) for name, request, response in TOLD if name.endswith(", whole")]
STREAMED = [told for told in TOLD if told not in WHOLE]

exchanges = st.sampled_from(TOLD)
seeds = st.integers(0, 2**32)
each_whole = pytest.mark.parametrize(("name", "request_", "response"), WHOLE, ids=[one[0] for one in WHOLE])


def answered(request: HttpRequest, response: HttpResponse) -> Answered:
    return identify(request.head).reader.answered(request, response)


def check(request: HttpRequest, response: HttpResponse) -> None:
    """Read all that can be read, and see that it can be shown."""
    provider: Api = understand(request).provider
    asked, answer = provider.reader.asked(request), provider.reader.answered(request, response)
    reading = read(provider, request, response)
    for text in (asked.model, asked.note, answer.text, answer.id, answer.stop, answer.note, reading.text):
        (text or "").encode()
    assert len(reading.text) <= 200
    assert reading.error or response.head.status < 400
    for count in (answer.usage.input, answer.usage.output, answer.usage.cache_read, answer.usage.reasoning):
        assert count is None or 0 <= count < 2**56


@given(exchanges, seeds)
def test_no_damage_makes_anything_raise(told: Told, seed: int) -> None:
    _, request, response = told
    dice = random.Random(seed)
    check(damaged_request(dice, request, dice.choice(BODIES)), response)
    check(request, damaged_response(dice, response, dice.choice(BODIES)))


@given(exchanges, exchanges)
def test_nobody_minds_the_answer_of_another_api(asked: Told, told: Told) -> None:
    check(asked[1], told[2])
    check(replace(asked[1], body=told[1].body), asked[2])


@given(st.sampled_from(WHOLE), st.data())
def test_a_whole_answer_that_is_cut_has_a_note(told: Told, data: st.DataObject) -> None:
    _, request, response = told
    end = data.draw(st.integers(1, len(response.body) - 1))
    assert answered(request, replace(response, body=response.body[:end])).note


@given(exchanges, st.data())
def test_a_request_that_is_cut_has_a_note(told: Told, data: st.DataObject) -> None:
    _, request, _ = told
    end = data.draw(st.integers(1, len(request.body) - 1))
    cut = replace(request, body=request.body[:end])
    assert identify(cut.head).reader.asked(cut).note


@given(st.sampled_from(STREAMED), st.data())
def test_a_stream_that_is_cut_inside_a_piece_has_a_note(told: Told, data: st.DataObject) -> None:
    _, request, response = told
    body = response.body
    end = data.draw(st.integers(1, len(body) - 1))
    rest = body[:end].rpartition(b"\n\n")[2]
    read_so_far = answered(request, replace(response, body=body[:end]))
    full = answered(request, response)
    assert full.text.startswith(read_so_far.text)
    if b"data:" in rest and b"[DONE" not in rest[:20]:  # an event that was begun
        assert read_so_far.note


def with_headers(response: HttpResponse, *, without: str, more: Headers) -> HttpResponse:
    kept = tuple((name, value) for name, value in response.head.headers if name.lower() != without)
    return replace(response, head=replace(response.head, headers=(*kept, *more)))


@pytest.mark.parametrize("media", MEDIA)
def test_under_a_wrong_content_type_an_answer_is_read_as_ever_or_has_a_note(media: str) -> None:
    for name, request, response in TOLD:
        if identify(request.head).kind is StepKind.LLM_CALL:
            mistaken = with_headers(response, without="content-type", more=(("content-type", media),))
            read_so = answered(request, mistaken)
            assert read_so == answered(request, response) or read_so.note, name


@pytest.mark.parametrize("media", ["text/plain", "application/octet-stream", "text/event-stream", ""])
def test_json_is_read_whatever_its_content_type_says(media: str) -> None:
    for name, request, response in WHOLE:
        mistaken = with_headers(response, without="content-type", more=(("content-type", media),))
        assert answered(request, mistaken) == answered(request, response), name


@pytest.mark.parametrize("coding", CODINGS)
def test_a_wrong_coding_is_noted(coding: str) -> None:
    for name, request, response in TOLD:
        mistaken = with_headers(response, without="-", more=(("content-encoding", coding),))
        read_so = answered(request, mistaken)
        assert read_so == answered(request, response) or read_so.note, name


@pytest.mark.parametrize(
    ("body", "media"),
    [
        (b"<html>Bad gateway</html>", "text/html"),
        (b"upstream connect error", "text/plain"),
        (b"\x89PNG\r\n\0", "image/png"),
    ],
)
def test_a_good_status_with_nothing_in_it_for_a_model_is_noted(body: bytes, media: str) -> None:
    for name, request, response in WHOLE:
        if identify(request.head).kind is StepKind.LLM_CALL:
            strange = with_headers(response, without="content-type", more=(("content-type", media),))
            assert answered(request, replace(strange, body=body)).note, name


def test_compressed_bytes_without_their_label_are_noted() -> None:
    for name, request, response in TOLD:
        if identify(request.head).kind is StepKind.LLM_CALL:
            assert answered(request, replace(response, body=gzip.compress(response.body))).note, name


@each_whole
def test_bytes_that_are_no_utf8_cost_the_text_one_sign(
    name: str, request_: HttpRequest, response: HttpResponse
) -> None:
    expected = answered(request_, response)
    spelled = json.dumps(json.loads(response.body), ensure_ascii=False).encode()
    spoiled = replace(response, body=spelled.replace("“Rome”".encode(), b"\xe2\x80Rome\xff"))
    read_so = answered(request_, spoiled)
    if expected.text == said.TEXT:
        assert read_so.text == said.TEXT.replace("“Rome”", "�Rome�")
    assert [part for part in read_so.parts if not isinstance(part, Text)] == [
        part for part in expected.parts if not isinstance(part, Text)
    ]
    assert read_so.usage == expected.usage


def numbers_replaced(value: Any, by: Any) -> Any:
    if isinstance(value, dict):
        return {name: numbers_replaced(inner, by) for name, inner in value.items()}
    if isinstance(value, list):
        return [numbers_replaced(inner, by) for inner in value]
    return by if isinstance(value, int) and not isinstance(value, bool) and value > 1 else value


@each_whole
@pytest.mark.parametrize("number", [10**30, -5, 1e300, float("nan"), float("inf"), "12", True, [], {}])
def test_counts_that_no_one_would_believe_are_left_out_and_the_rest_is_kept(
    name: str, request_: HttpRequest, response: HttpResponse, number: Any
) -> None:
    expected = answered(request_, response)
    spoiled = json.dumps(numbers_replaced(json.loads(response.body), number)).encode()
    read_so = answered(request_, replace(response, body=spoiled))
    assert (read_so.id, read_so.model, read_so.stop) == (expected.id, expected.model, expected.stop)
    assert read_so.tool_uses == expected.tool_uses
    if expected.text == said.TEXT:
        assert read_so.text == said.TEXT
        told_beside = any(name.startswith("x-amzn-bedrock") for name, _ in response.head.headers)
        assert told_beside or read_so.usage.output is None


@each_whole
@pytest.mark.parametrize("depth", [50, 400, 5_000, 200_000])
def test_what_is_nested_too_deeply_is_noted_or_passed_over(
    name: str, request_: HttpRequest, response: HttpResponse, depth: int
) -> None:
    expected = answered(request_, response)
    deep = b'"unheard_of": ' + b"[" * depth + b"]" * depth
    body = response.body.replace(b"{", b"{" + deep + b", ", 1)
    read_so = answered(request_, replace(response, body=body))
    assert (read_so.text, read_so.usage) == (expected.text, expected.usage) or read_so.note
    asked = replace(request_, body=request_.body.replace(b"{", b"{" + deep + b", ", 1))
    check(asked, response)


Spot = tuple[str | int, ...]


def spots_in(value: Any, path: Spot = ()) -> Iterator[Spot]:
    """Every place inside a JSON value."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in inside:
        yield from spots_in(inner, (*path, step))


def put_at(value: Any, path: Spot, new: Any) -> Any:
    if not path:
        return new
    step, *rest = path
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    changed = {key: put_at(inner, tuple(rest), new) if key == step else inner for key, inner in steps}
    return changed if isinstance(value, dict) else list(changed.values())


@each_whole
def test_any_value_may_be_of_another_kind(name: str, request_: HttpRequest, response: HttpResponse) -> None:
    asked, told = json.loads(request_.body), json.loads(response.body)
    odd: Any
    for odd in (None, "x", 1e300, [], {"type": [{}]}):
        for spot in spots_in(asked):
            check(replace(request_, body=json.dumps(put_at(asked, spot, odd)).encode()), response)
        for spot in spots_in(told):
            check(request_, replace(response, body=json.dumps(put_at(told, spot, odd)).encode()))


def test_a_surrogate_pair_cut_between_two_pieces_is_joined_by_every_stream() -> None:
    smile = json.dumps("😀")[1:-1]
    for name, request, response in STREAMED:
        halves = (smile[:6].encode(), smile[6:].encode())
        first, second = (json.dumps(piece)[1:-1].encode() for piece in pieces(said.TEXT)[:2])
        body = response.body
        if not begins_with_a_frame(body) and body.count(first) == body.count(second) == 1:
            spoiled = body.replace(first, halves[0]).replace(second, halves[1])
            text = answered(request, replace(response, body=spoiled)).text
            assert text == "😀" + said.TEXT[14:], name
