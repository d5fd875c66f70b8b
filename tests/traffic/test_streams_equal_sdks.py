"""Of every recorded answer we read what the vendor's own SDK makes of the same bytes.

Nothing is compared with a stored expectation: the SDK parses the body that our codec reads. Text, thinking, tool calls
(id, name, arguments), the other choices, usage, id, model, stop reason and error are held against each other.
"""

from collections import Counter
from dataclasses import fields, replace

import pytest

from rewind.match.call import understand
from rewind.model.message import Vectors
from rewind.model.usage import Usage
from rewind.providers.openai_responses.read import OpenAIResponsesReader
from support.sdk_readers import LAST_CHUNK, NO_BEGIN, NO_OUTPUT, RAISES, Assembled, Sdks, ours
from support.traffic import Exchange

pytestmark = pytest.mark.traffic

STREAMS = {"anthropic": 64, "openai chat": 57, "openai responses": 47, "google-genai": 45, "botocore": 11}
MCP = 12
"""Streams of JSON-RPC from MCP servers: no model answers there, and no SDK of a model's vendor reads them."""
SHORTFALLS = {RAISES: 2, LAST_CHUNK: 1, NO_OUTPUT: 2, NO_BEGIN: 1}
"""Streams of which an SDK alone does not give everything, and what was compared instead."""
WHOLE = {"anthropic": 103, "openai chat": 63, "openai responses": 87, "google-genai": 54, "botocore": 16}
SHOWN = 500
"""Our error messages end here."""


@pytest.fixture(scope="module")
def sdks() -> Sdks:
    return Sdks()


def read_by_us(exchange: Exchange, theirs: Assembled) -> Assembled:
    reader = understand(exchange.request).provider.reader
    if theirs.shortfall == NO_BEGIN:  # a stored answer fetched again, which is no call to a model
        reader = OpenAIResponsesReader()
    read = ours(reader.answered(exchange.request, exchange.response))
    return replace(read, usage=Usage()) if theirs.shortfall == RAISES else read


def differences(exchange: Exchange, theirs: Assembled) -> list[str]:
    """Where our reading is another than the SDK's."""
    theirs = replace(theirs, error=theirs.error[:SHOWN])
    read = read_by_us(exchange, theirs)
    compared = [one.name for one in fields(Assembled) if one.compare]
    if exchange.vendor == "bedrock/aws":
        compared = [name for name in compared if name not in ("id", "model")]  # AWS tells them in no body
    return [
        f"{exchange.name}: {name} is {getattr(read, name)!r}, but to the SDK {getattr(theirs, name)!r}"
        for name in compared
        if getattr(read, name) != getattr(theirs, name)
    ]


def compare(exchanges: list[Exchange], sdks: Sdks) -> tuple[Counter[str], Counter[str], list[str]]:
    """How many were compared by SDK, what SDKs fell short of, and all differences."""
    compared: Counter[str] = Counter()
    shortfalls: Counter[str] = Counter()
    found: list[str] = []
    for exchange in exchanges:
        if reader := sdks.reader_of(exchange):
            name, read = reader
            theirs = read()
            compared[name] += 1
            shortfalls[theirs.shortfall] += bool(theirs.shortfall)
            found += differences(exchange, theirs)
    return compared, +shortfalls, found


def test_every_stream_comes_to_what_the_vendors_sdk_makes_of_it(exchanges: list[Exchange], sdks: Sdks) -> None:
    streams = [exchange for exchange in exchanges if exchange.stream_format]
    assert len(streams) == 236 == sum(STREAMS.values()) + MCP
    compared, shortfalls, found = compare(streams, sdks)
    print(f"\nstreams compared: {dict(compared)}, {MCP} of MCP servers not")
    for reason, count in shortfalls.items():
        print(f"{count} where the SDK {reason}")
    assert found == []
    assert compared == STREAMS
    assert shortfalls == SHORTFALLS


def test_streams_without_a_model_tell_no_tokens(exchanges: list[Exchange], sdks: Sdks) -> None:
    unread = [exchange for exchange in exchanges if exchange.stream_format and not sdks.reader_of(exchange)]
    assert {exchange.request.head.path for exchange in unread} == {"/mcp"}
    assert len(unread) == MCP
    for exchange in unread:
        answered = understand(exchange.request).provider.reader.answered(exchange.request, exchange.response)
        assert answered.parts, exchange.name
        assert not answered.usage.is_told


def test_every_whole_answer_comes_to_what_the_vendors_sdk_makes_of_it(exchanges: list[Exchange], sdks: Sdks) -> None:
    whole = [exchange for exchange in exchanges if not exchange.stream_format and exchange.kind == "llm"]
    compared, shortfalls, found = compare(whole, sdks)
    print(f"\nwhole answers compared: {dict(compared)}")
    assert found == []
    assert compared == WHOLE
    assert sum(WHOLE.values()) + sum(STREAMS.values()) == 546 + 1  # and the stored answer fetched again
    assert not shortfalls


def test_every_embedding_has_the_vectors_that_the_vendors_sdk_counts(exchanges: list[Exchange], sdks: Sdks) -> None:
    compared: Counter[str] = Counter()
    for exchange in exchanges:
        if exchange.kind == "embedding" and not exchange.failed and (reader := sdks.embedder_of(exchange)):
            name, embed = reader
            theirs = embed()
            compared[name] += 1
            answered = understand(exchange.request).provider.reader.answered(exchange.request, exchange.response)
            assert answered.parts == (Vectors(theirs.count, theirs.dimensions),), exchange.name
            if theirs.tokens is not None:
                assert answered.usage.input == theirs.tokens, exchange.name
    print(f"\nembeddings compared: {dict(compared)}")
    assert compared == {"openai": 4, "google-genai": 3}


def test_a_planted_difference_is_found(exchanges: list[Exchange], sdks: Sdks) -> None:
    stream = next(exchange for exchange in exchanges if exchange.stream_format == "sse")
    reader = sdks.reader_of(stream)
    assert reader is not None
    theirs = reader[1]()
    assert differences(stream, theirs) == []
    for changed in (
        replace(theirs, text=theirs.text + "."),
        replace(theirs, tools=(("id", "name", {}),)),
        replace(theirs, usage=Usage(input=theirs.usage.input)),
    ):
        assert len(differences(stream, changed)) == 1
