"""A stream and the whole answer that says the same are equal values; a stream that was cut tells what had come."""

from dataclasses import replace
from typing import Any

import pytest

from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Answered, Refusal, Text, Thinking, ToolUse
from rewind.providers.catalogue import identify
from support.exchanges import answer_with, request_of, stream_of
from support.wire_examples import EXAMPLES, Example, Stream, anthropic, gemini, openai_responses, said
from support.wire_examples.openai_chat import chunk, completion, counted
from support.wire_examples.said import events, pieces

CLAUDE = request_of({"model": "m"}, target="/v1/messages")
CHAT = request_of({"model": "m"})
RESPONSES = request_of({"model": "m"}, target="/v1/responses")
GEMINI = request_of({}, target="/v1beta/models/m:streamGenerateContent")

STREAMS = [(example, stream) for example in EXAMPLES for stream in example.streams]
each_stream = pytest.mark.parametrize(
    ("example", "stream"), STREAMS, ids=[f"{example.api}, {stream.format}" for example, stream in STREAMS]
)


def answered(request: HttpRequest, response: HttpResponse) -> Answered:
    return identify(request.head).reader.answered(request, response)


@each_stream
def test_a_stream_and_its_whole_twin_read_the_same(example: Example, stream: Stream) -> None:
    whole = answered(example.request, example.whole)
    assert whole.parts
    assert answered(stream.request, stream.response) == whole


@each_stream
def test_the_requests_of_both_differ_in_nothing_but_that_one_asks_for_a_stream(
    example: Example, stream: Stream
) -> None:
    provider = identify(example.request.head)
    whole, streamed = provider.reader.asked(example.request), provider.reader.asked(stream.request)
    assert replace(streamed, streamed=False) == whole


@each_stream
def test_a_stream_that_was_cut_anywhere_tells_the_start_of_what_it_would_have_said(
    example: Example, stream: Stream
) -> None:
    body = stream.response.body
    whole = answered(stream.request, stream.response)
    longest = 0
    for end in range(0, len(body), max(1, len(body) // 150)):
        part = answered(stream.request, replace(stream.response, body=body[:end]))
        assert whole.text.startswith(part.text)
        assert thought(whole).startswith(thought(part))
        assert len(part.text) >= longest
        longest = len(part.text)
        assert [use.name for use in whole.tool_uses[: len(part.tool_uses)]] == [use.name for use in part.tool_uses]
        for use, full in zip(part.tool_uses, whole.tool_uses, strict=False):
            # Arguments that are not whole yet are a text, never another value.
            assert use.arguments == full.arguments or isinstance(use.arguments, str) or not use.arguments
        assert part.error is None
    assert longest > len(whole.text) // 2 or not whole.text


def thought(answer: Answered) -> str:
    return "".join(part.text for part in answer.parts if isinstance(part, Thinking))


@pytest.mark.parametrize("example", [one for one in EXAMPLES if one.broken], ids=lambda one: one.api)
def test_an_error_inside_a_stream_keeps_what_was_said_before(example: Example) -> None:
    assert example.broken is not None
    whole = answered(example.request, example.whole)
    broken = answered(example.broken.request, example.broken.response)
    assert broken.error == said.BROKE_OFF
    assert broken.text == whole.text
    assert broken.tool_uses == whole.tool_uses


def test_deltas_alone_say_what_the_events_that_close_them_repeat() -> None:
    deltas = [
        document
        for document in openai_responses.stream_documents()
        if not document["type"].endswith((".done", ".completed"))
    ]
    whole = answered(RESPONSES, answer_with(openai_responses.response()))
    assert answered(RESPONSES, events(*deltas, named=True)).parts == whole.parts


def test_a_refusal_in_a_stream_is_the_refusal_of_the_whole() -> None:
    words = "I would rather not."
    choice = {"index": 0, "message": {"content": None, "refusal": words}, "finish_reason": "stop"}
    whole = answered(CHAT, answer_with(completion([choice])))
    deltas = [chunk({"refusal": piece}) for piece in pieces(words)]
    stream = events(*deltas, chunk({}, stop="stop"), counted())
    assert whole.parts == (Refusal(words),)
    assert answered(CHAT, stream) == whole


def test_a_refusal_among_the_items_of_a_response() -> None:
    words = "I would rather not."
    item = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "refusal", "refusal": words}]}
    whole = openai_responses.response(output=[item])
    where = {"output_index": 0, "content_index": 0, "item_id": "m"}
    begun = openai_responses.response(status="in_progress", output=[], usage=None)
    stream = events(
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        *({"type": "response.refusal.delta", **where, "delta": piece} for piece in pieces(words)),
    )
    expected = answered(RESPONSES, answer_with(whole))
    assert expected.parts == (Refusal(words),)
    assert answered(RESPONSES, stream).parts == expected.parts


def test_an_incomplete_response_says_why() -> None:
    cut = openai_responses.response(status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    whole = answered(RESPONSES, answer_with(cut))
    assert "max_output_tokens" in whole.stop
    documents = openai_responses.stream_documents()[:-1]
    stream = events(*documents, {"type": "response.incomplete", "response": cut}, named=True)
    assert answered(RESPONSES, stream) == whole


HOSTED_ITEMS: list[dict[str, Any]] = [
    {
        "type": "code_interpreter_call",
        "id": "ci_1",
        "status": "completed",
        "container_id": "c",
        "code": "print(4)",
        "outputs": [{"type": "logs", "logs": "4"}],
    },
    {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["weather"], "results": None},
    {
        "type": "mcp_call",
        "id": "mcp_1",
        "server_label": "weather",
        "name": "look",
        "arguments": '{"city": "Rome"}',
        "output": "20 degrees",
        "error": None,
    },
    {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": said.PNG},
    {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_9", "name": "shell", "input": "ls -l"},
]


@pytest.mark.parametrize("item", HOSTED_ITEMS, ids=lambda item: item["type"])
def test_an_item_reads_the_same_in_the_answer_and_in_its_own_event(item: dict[str, Any]) -> None:
    whole = answered(RESPONSES, answer_with(openai_responses.response(output=[item])))
    begun = openai_responses.response(status="in_progress", output=[], usage=None)
    stream = events(
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
    )
    assert answered(RESPONSES, stream).parts == whole.parts
    use = whole.parts[0]
    assert isinstance(use, ToolUse)
    assert use.hosted == (item["type"] != "custom_tool_call")


def test_citations_do_not_disturb_the_text_they_belong_to() -> None:
    cited = {"type": "char_location", "cited_text": "…", "document_index": 0}
    documents = anthropic.stream_documents()
    place = next(n for n, one in enumerate(documents) if one.get("delta", {}).get("type") == "text_delta")
    index = documents[place]["index"]
    citation = {"type": "content_block_delta", "index": index, "delta": {"type": "citations_delta", "citation": cited}}
    stream = events(*documents[: place + 1], citation, *documents[place + 1 :], named=True)
    assert answered(CLAUDE, stream) == answered(CLAUDE, answer_with(anthropic.message()))


def test_two_candidates_in_one_stream_are_kept_apart() -> None:
    def candidate(index: int, text: str, **more: str) -> dict[str, Any]:
        return {"index": index, "content": {"role": "model", "parts": [{"text": text}]}, **more}

    whole = {"candidates": [candidate(0, "One two", finishReason="STOP"), candidate(1, "Three")]}
    stream = stream_of(
        {"candidates": [candidate(0, "One ")]},
        {"candidates": [candidate(1, "Thr")]},
        {"candidates": [candidate(0, "two", finishReason="STOP")]},
        {"candidates": [candidate(1, "ee")]},
    )
    expected = answered(GEMINI, answer_with(whole))
    assert (expected.parts, expected.alternatives) == ((Text("One two"),), ((Text("Three"),),))
    assert answered(GEMINI, stream) == expected


def test_a_blocked_prompt_reads_the_same_in_a_stream() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": gemini.USAGE}
    whole = answered(GEMINI, answer_with(blocked))
    assert "SAFETY" in str(whole)
    assert answered(GEMINI, stream_of(blocked)) == answered(GEMINI, answer_with([blocked])) == whole
