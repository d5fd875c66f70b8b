"""A recorded answer in the names of the run that gets it."""

import gzip
import json
from itertools import pairwise

import pytest

from rewind.model.http import Chunk, HttpResponse, ResponseHead
from rewind.playback.translation import AnswerNames, translated

TABLE = AnswerNames({"/work/alpha/proj": "/else/b", "/work/alpha": "/else", "call_8Hf2kLw0": "call_P3rt0"})


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
    assert translated(response, AnswerNames({})) is response


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
    body = events({"delta": {"text": " /work/alpha"}}, {"delta": {"text": "bet/x"}})
    assert told(answer(body, "text/event-stream")) == body.decode()


def test_a_packed_answer_is_unpacked():
    packed = gzip.compress(b'{"a": "/work/alpha/proj"}')
    got = translated(answer(packed, pieces=(10, len(packed) - 10), **{"Content-Encoding": "gzip"}), TABLE)
    assert got.head.header("content-encoding") is None
    assert json.loads(got.body) == {"a": "/else/b"}
    assert sum(chunk.size for chunk in got.chunks) == len(got.body)


def test_a_name_behind_an_escape_stands_alone():
    body = json.dumps({"a": "the call:\ncall_8Hf2kLw0\tcall_8Hf2kLw0é", "b": "ncall_8Hf2kLw0"}).encode()
    assert json.loads(told(answer(body))) == {"a": "the call:\ncall_P3rt0\tcall_P3rt0é", "b": "ncall_8Hf2kLw0"}


def test_a_name_in_letters_that_json_escapes_is_found_also_in_json_within_json():
    table = AnswerNames({"/work/Bücher": "/else/ü", "call_8Hf2kLw0": 'a"b'})
    document = {"a": "/work/Bücher/x", "arguments": json.dumps({"path": "/work/Bücher/y", "id": "call_8Hf2kLw0"})}
    for body in (json.dumps(document).encode(), json.dumps(document, ensure_ascii=False).encode()):
        got = json.loads(translated(answer(body), table).body)
        assert got["a"] == "/else/ü/x"
        assert json.loads(got["arguments"]) == {"path": "/else/ü/y", "id": "call_8Hf2kLw0"}


def test_an_id_that_some_documents_of_a_stream_repeat_is_replaced_in_each():
    documents = [{"id": name, "delta": {"text": "x"}} for name in ("call_8Hf2kLw0", "call_8Hf2kLw0", "other", "other")]
    got = told(answer(events(*documents), "text/event-stream"))
    assert got.count('"call_P3rt0"') == 2
    assert "call_8Hf2kLw0" not in got


def test_many_names_cost_no_more_than_the_answer_is_long():
    names = AnswerNames({f"call_{number:08d}aB": f"call_{number:08d}cD" for number in range(20_000)})
    body = json.dumps({"ids": [f"call_{number:08d}aB" for number in range(8_000)]}).encode()
    got = json.loads(translated(answer(body), names).body)
    assert got == {"ids": [f"call_{number:08d}cD" for number in range(8_000)]}


@pytest.mark.parametrize("size", [1, 3, 7, 17])
def test_small_pieces_that_end_within_one_name_are_neither_sent_twice_nor_lost(size):
    body = events(
        {"delta": {"text": "see /work/alpha/proj/x and /work/alpha/proj/y"}}, {"delta": {"text": " /work/alpha"}}
    )
    sizes = [size] * (len(body) // size)
    sizes += [len(body) - sum(sizes)] if len(body) % size else []
    got = translated(answer(body, "text/event-stream", pieces=tuple(sizes)), TABLE)
    assert all(chunk.size > 0 for chunk in got.chunks)
    assert sum(chunk.size for chunk in got.chunks) == len(got.body)
    assert texts(got.body.decode()) == ["see /else/b/x and /else/b/y", " /else"]


def test_slashes_that_json_escapes_and_folders_that_only_begin_alike():
    table = AnswerNames({"/work/alpha": "/else", "\\/work\\/alpha": "\\/else"})
    body = rb'{"a": "\/work\/alpha\/x", "b": "/work/alpha.bak", "c": "/work/alpha-old/x", "d": "in /work/alpha."}'
    got = json.loads(translated(answer(body), table).body)
    assert got == {"a": "/else/x", "b": "/work/alpha.bak", "c": "/work/alpha-old/x", "d": "in /else."}
