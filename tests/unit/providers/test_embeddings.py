"""Embeddings of several makes: texts in, vectors out."""

import base64
import struct
from typing import Any

import pytest

from rewind.model.message import Answered, Asked, Media, Message, Other, Part, Role, Text, Vectors
from rewind.model.usage import Usage
from rewind.providers.embeddings import EmbeddingsReader
from support.exchanges import answer_with, request_of

EMBEDDINGS = EmbeddingsReader()


def asked(body: Any, target: str = "/v1/embeddings") -> Asked:
    return EMBEDDINGS.asked(request_of(body, target=target))


def answered(document: Any, **request: Any) -> Answered:
    return EMBEDDINGS.answered(request_of(request, target="/v1/embeddings"), answer_with(document))


def users(*parts: Part) -> tuple[Message, ...]:
    return tuple(Message(Role.USER, (part,)) for part in parts)


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        ({"input": "one"}, users(Text("one"))),
        ({"input": ["one", "two"]}, users(Text("one"), Text("two"))),
        ({"input": [1, 2, 3]}, users(Other("tokens", 3))),
        ({"input": [[1, 2], [3]]}, users(Other("tokens", 2), Other("tokens", 1))),
        ({"texts": ["one"]}, users(Text("one"))),
        ({"prompt": "one"}, users(Text("one"))),
        ({"images": ["https://a.example/b.png"]}, users(Media("image", "", "https://a.example/b.png"))),
        ({"messages": [{"role": "user", "content": "one"}]}, users(Text("one"))),
        ({"inputs": [{"content": [{"type": "text", "text": "one"}]}]}, users(Text("one"))),
    ],
)
def test_every_input_is_a_message(body: Any, messages: tuple[Message, ...]) -> None:
    assert asked(body).messages == messages


def test_the_model_and_all_else_that_was_set() -> None:
    read = asked({"model": "e", "input": "x", "dimensions": 8, "input_type": "query", "truncate": None})
    assert (read.model, read.parameters) == ("e", {"dimensions": 8, "input_type": "query"})
    assert asked({"input": "x"}, target="/openai/deployments/mine/embeddings").model == "mine"


def test_vectors_in_json_and_in_base64_have_the_same_dimensions() -> None:
    numbers = [0.5] * 6
    packed = base64.b64encode(struct.pack("<6f", *numbers)).decode()
    usage = {"prompt_tokens": 7, "total_tokens": 7}
    listed = answered({"model": "e-1", "data": [{"embedding": numbers}] * 2, "usage": usage})
    assert listed == Answered(model="e-1", parts=(Vectors(2, 6),), usage=Usage(input=7))
    assert answered({"model": "e-1", "data": [{"embedding": packed}] * 2, "usage": usage}) == listed


@pytest.mark.parametrize(
    ("kind", "values", "dimensions"),
    [("int8", 16, 16), ("uint8", 16, 16), ("binary", 2, 16), ("ubinary", 2, 16), ("float", 16, 16)],
)
def test_numbers_smaller_than_four_bytes(kind: str, values: int, dimensions: int) -> None:
    listed = answered({"data": [{"embedding": [1] * values}]}, output_dtype=kind)
    assert listed.parts == (Vectors(1, dimensions),)
    size = values * 4 if kind == "float" else values
    packed = base64.b64encode(bytes(size)).decode()
    assert answered({"data": [{"embedding": packed}]}, output_dtype=kind).parts == (Vectors(1, dimensions),)


def test_cohere_names_the_kind_of_its_numbers() -> None:
    billed = {"input_tokens": 4, "image_tokens": 10}
    read = answered({"id": "x", "embeddings": {"float": [[0.1] * 5]}, "meta": {"billed_units": billed}})
    assert read.parts == (Vectors(1, 5),)
    assert read.usage == Usage(input=14, more={"input_image_tokens": 10})
    assert answered({"embeddings": {"binary": [[1, 2]]}}).parts == (Vectors(1, 16),)
    assert answered({"embeddings": [[0.1, 0.2], [0.3, 0.4]]}).parts == (Vectors(2, 2),)


def test_ollama_and_voyage() -> None:
    assert answered({"embeddings": [[0.1, 0.2]], "prompt_eval_count": 3}) == Answered(
        parts=(Vectors(1, 2),), usage=Usage(input=3)
    )
    assert answered({"embedding": [0.1, 0.2]}).parts == (Vectors(1, 2),)
    assert answered({"data": [], "usage": {"total_tokens": 3}}).usage == Usage(input=3)


@pytest.mark.parametrize(
    "document", [5, {"data": 5}, {"data": [5, {"embedding": None}]}, {"embeddings": {"float": 5}}, {"data": [{}]}]
)
def test_documents_without_vectors_are_borne(document: Any) -> None:
    assert answered(document).parts == ()
    assert isinstance(asked(document), Asked)


def test_the_refusal_is_read_as_an_error() -> None:
    refused = answer_with(EMBEDDINGS.refusal("Rewind: never recorded."), status=400)
    assert EMBEDDINGS.answered(request_of({}), refused).error == "Rewind: never recorded."
