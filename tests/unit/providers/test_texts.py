"""The words of an exchange: all of them, and whose they are."""

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewind.model.http import HttpRequest
from rewind.providers import anthropic, http
from rewind.providers.catalogue import identify
from rewind.providers.summary import Passage, TextKind, answered_texts, asked_texts
from support.exchanges import answer_with, request_of, stream_of

CLAUDE: dict[str, Any] = {"host": "api.anthropic.com", "target": "/v1/messages"}
ORDERS: dict[str, Any] = {"host": "shop.example", "target": "/orders"}


def asked(request: HttpRequest) -> list[tuple[str, str]]:
    return [(kind.value, text) for kind, text in asked_texts(identify(request.head), request)]


def http_words(body: Any, **more: Any) -> str:
    """What is found in the body of a call that no codec reads."""
    (_, *rest) = asked_texts(http.API, request_of(body, **ORDERS, **more))
    return rest[0].text if rest else ""


def test_every_part_of_a_request_is_there_under_its_speaker():
    body = {
        "system": "Be brief.",
        "tools": [
            {
                "name": "refund",
                "description": "Gives money back.",
                "input_schema": {"properties": {"order": {"type": "string", "description": "Its number"}}},
            }
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Where is my order?"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Look it up.", "signature": "x"},
                    {"type": "tool_use", "id": "t1", "name": "refund", "input": {"order": "A-1", "why": ["late"]}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "Done: 4 €"}]}
                ],
            },
        ],
    }
    assert asked(request_of(body, **CLAUDE)) == [
        ("system", "Be brief."),
        ("tool_definition", "refund\nGives money back.\nproperties.order.description: Its number"),
        ("user", "Where is my order?"),
        ("thinking", "Look it up."),
        ("tool_use", "refund\norder: A-1\nwhy: late"),
        ("tool_result", "Done: 4 €"),
    ]


def test_arguments_read_the_same_from_an_answer_and_from_the_next_request():
    arguments = {"path": 'the "big" file', "lines": [1, 2], "deep": {"flag": True, "none": None}}
    answer = answer_with(
        {"choices": [{"message": {"tool_calls": [{"function": {"name": "read", "arguments": json.dumps(arguments)}}]}}]}
    )
    request = request_of({"messages": []})
    (answered,) = answered_texts(identify(request.head), request, answer)
    repeated = {"role": "assistant", "tool_calls": [{"function": {"name": "read", "arguments": json.dumps(arguments)}}]}
    assert asked(request_of({"messages": [repeated]})) == [answered]
    assert answered.text == 'read\npath: the "big" file\nlines: 1\nlines: 2\ndeep.flag: true'


def test_a_streamed_answer_is_joined_before_it_is_searched():
    answer = stream_of(
        {"choices": [{"index": 0, "delta": {"content": "ref"}}]},
        {"choices": [{"index": 0, "delta": {"content": "und"}}]},
        {"choices": [{"index": 1, "delta": {"content": "another choice"}}]},
    )
    request = request_of({"messages": [], "stream": True})
    found = list(answered_texts(identify(request.head), request, answer))
    assert found == [Passage(TextKind.ASSISTANT, "refund"), Passage(TextKind.ASSISTANT, "another choice")]


def test_an_error_is_told_as_one():
    request = request_of({"messages": []}, **CLAUDE)
    answer = answer_with({"type": "error", "error": {"message": "Overloaded"}}, status=529)
    assert list(answered_texts(anthropic.API, request, answer)) == [(TextKind.ERROR, "Overloaded")]


def test_other_calls_are_searched_by_url_and_body():
    request = request_of({"q": "caf\u00e9"}, host="shop.example", target="/find%20it?term=two+words", method="GET")
    assert asked(request) == [("http", "GET https://shop.example/find it?term=two words"), ("http", "q: café")]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"a": {"b": ["x", {"c": 2}]}, "ok": False}, "a.b: x\na.b.c: 2\nok: false"),
        (b'{"a": "one"}\n{"a": "two \\u00e9"}\n', "a: one\na: two é\n"),
        (b'event: x\ndata: {"a": "one"}\n\ndata: [DONE]\n', "event: x\na: one\n\ndata: [DONE]\n"),
        (b"plain words", "plain words"),
        (b'{"cut": "off', '{"cut": "off'),
        ({"vector": [0.1] * 17, "few": [1, 2]}, "few: 1\nfew: 2"),
        ({"picture": "QUJD" * 100, "name": "cat"}, "name: cat"),
        (b"\x89PNG\0\0\0", ""),
    ],
)
def test_a_body_is_read_as_people_would(body: Any, words: str):
    assert http_words(body) == words


def test_content_encoding_is_taken_off():
    assert http_words(gzip.compress(b"hidden words"), headers=(("Content-Encoding", "gzip"),)) == "hidden words"


def test_pictures_are_left_out_whatever_their_bytes():
    assert http_words(b"letters only", media="image/svg+xml") == ""


@pytest.mark.parametrize("body", [b'{"messages": [{"role": "user", "content": "half a sen', b"\xff\xfe nothing"])
def test_what_a_codec_cannot_read_is_searched_as_it_stands(body: bytes):
    (passage,) = asked_texts(anthropic.API, request_of(body, **CLAUDE))
    assert passage == (TextKind.HTTP, body.decode("utf-8", "replace"))


def test_vectors_are_no_words():
    request = request_of({"input": ["one", "two"]}, target="/v1/embeddings")
    answer = answer_with({"data": [{"embedding": [0.25] * 8}]})
    assert [text for _, text in asked(request)] == ["one", "two"]
    assert list(answered_texts(identify(request.head), request, answer)) == []


def test_deep_documents_are_read_without_a_stack():
    depth = 400
    text = http_words(b'{"k":' * depth + b'"deepest"' + b"}" * depth)
    assert text.endswith(": deepest")
    assert len(text) < 200


@given(body=st.binary(max_size=200), target=st.sampled_from(["/v1/messages", "/v1/chat/completions", "/x"]))
def test_nothing_raises_and_every_text_can_be_written(body: bytes, target: str):
    request = request_of(body, target=target)
    provider = identify(request.head)
    for kind, text in [*asked_texts(provider, request), *answered_texts(provider, request, answer_with(body))]:
        assert kind
        assert text.encode()
