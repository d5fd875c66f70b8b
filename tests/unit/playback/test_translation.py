"""A recorded answer in the names of the run that gets it."""

import gzip
import json
from itertools import pairwise

import pytest

from rewind.model.http import Chunk, HttpResponse, ResponseHead
from rewind.playback.translation import translated

TABLE = {"/work/alpha/proj": "/else/b", "/work/alpha": "/else", "call_8Hf2kLw0": "call_P3rt0"}


def answer(body: bytes, media="application/json", *, pieces=(), **headers) -> HttpResponse:
    named = (("Content-Type", media), ("Content-Length", str(len(body))), *headers.items())
    sizes = pieces or (len(body),)
    assert sum(sizes) == len(body)
    return HttpResponse(
        head=ResponseHead(status=200, reason="OK", headers=named),
        body=body,
        chunks=tuple(Chunk(at, size) for at, size in enumerate(sizes)),
    )


def told(response: HttpResponse) -> str:
    got = translated(response, TABLE)
    assert sum(chunk.size for chunk in got.chunks) == len(got.body)
    assert got.head.header("content-length") == str(len(got.body))
    return got.body.decode()


def test_folders_and_ids_that_stand_alone_are_replaced():
    body = b'{"a": "/work/alpha/proj/x.py", "b": "/work/alphabet", "c": "call_8Hf2kLw0", "d": "xcall_8Hf2kLw0"}'
    assert json.loads(told(answer(body))) == {
        "a": "/else/b/x.py",
        "b": "/work/alphabet",
        "c": "call_P3rt0",
        "d": "xcall_8Hf2kLw0",
    }


def test_an_answer_without_such_a_name_is_the_very_same():
    response = answer(b'{"text": "hello"}')
    assert translated(response, TABLE) is response
    assert translated(response, {}) is response


def events(*documents: object) -> bytes:
    return b"".join(b"data: " + json.dumps(document).encode() + b"\n\n" for document in documents)


def texts(body: str) -> list[str]:
    return [json.loads(line[6:])["delta"]["text"] for line in body.splitlines() if line.startswith("data: {")]


@pytest.mark.parametrize("cuts", [(3,), (12,), (5, 13), (1, 2, 3, 15), ()])
def test_a_name_that_a_model_said_in_pieces_is_said_whole(cuts):
    said = 'read "/work/alpha/proj/x.py" now'
    places = [0, *cuts, len(said)]
    pieces = [said[start:end] for start, end in pairwise(places)]
    documents = [{"type": "text", "index": 0, "id": "call_8Hf2kLw0", "delta": {"text": piece}} for piece in pieces]
    body = events(*documents) + b"data: [DONE]\n\n"
    got = told(answer(body, "text/event-stream", pieces=(*(len(events(document)) for document in documents), 14)))
    assert "".join(texts(got)) == 'read "/else/b/x.py" now'
    assert got.count('"id": "call_P3rt0"') == len(pieces)


def test_what_only_begins_like_a_name_is_left_alone_over_pieces():
    body = events({"delta": {"text": "/work/alpha"}}, {"delta": {"text": "bet/x"}})
    assert told(answer(body, "text/event-stream")) == body.decode()


def test_a_packed_answer_is_unpacked():
    packed = gzip.compress(b'{"a": "/work/alpha/proj"}')
    got = translated(answer(packed, pieces=(10, len(packed) - 10), **{"Content-Encoding": "gzip"}), TABLE)
    assert got.head.header("content-encoding") is None
    assert json.loads(got.body) == {"a": "/else/b"}
    assert sum(chunk.size for chunk in got.chunks) == len(got.body)
