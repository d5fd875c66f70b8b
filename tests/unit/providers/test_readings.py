"""What each provider tells of an exchange."""

import json
from dataclasses import replace
from typing import Any

import pytest

from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.step import Reading
from rewind.model.usage import Usage
from rewind.providers.catalogue import identify
from rewind.providers.summary import read as read_with
from rewind.wire.encoding import encode
from support.aws_frames import chunk, event, exception, framed
from support.exchanges import answer_with, request_of, stream_of


def read(request: HttpRequest, response: HttpResponse) -> Reading:
    return read_with(identify(request.head), request, response)


CLAUDE = request_of({"model": "claude-x"}, target="/v1/messages")
CHAT = request_of({"model": "gpt-x"})
RESPONSES = request_of({"model": "gpt-x"}, target="/v1/responses")
GEMINI = request_of({}, target="/v1beta/models/gemini-x:generateContent")
OLLAMA = request_of({"model": "llama"}, target="/api/chat")
EMBED = request_of({"model": "emb"}, target="/v1/embeddings")
CONVERSE = request_of({}, target="/model/nova%3A0/converse")


def test_an_anthropic_message_with_cached_input() -> None:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 1000,
        "output_tokens": 7,
    }
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hello."}]
    answer = answer_with({"type": "message", "model": "claude-x-1", "content": content, "usage": usage})
    assert read(CLAUDE, answer) == Reading(
        model="claude-x-1", text="Hello.", usage=Usage(input=1110, output=7, cache_read=100, cache_write=1000)
    )


def test_an_anthropic_stream_with_a_tool_call_and_cumulative_usage() -> None:
    answer = stream_of(
        {"type": "message_start", "message": {"model": "c", "usage": {"input_tokens": 5, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let me look."}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "name": "look", "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ":1}"}},
        {"type": "message_delta", "usage": {"output_tokens": 20}},
        {"type": "message_delta", "usage": {"output_tokens": 31, "input_tokens": 6}},
    )
    assert read(CLAUDE, answer) == Reading(model="c", text='→ look({"a":1})', usage=Usage(input=6, output=31))


def test_an_anthropic_error_that_comes_inside_a_stream() -> None:
    answer = stream_of(
        {"type": "message_start", "message": {"model": "c"}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    )
    assert read(CLAUDE, answer).error == "Overloaded"


def test_counted_tokens_are_shown_and_not_taken_for_usage() -> None:
    request = request_of({"model": "c"}, target="/v1/messages/count_tokens")
    assert read(request, answer_with({"input_tokens": 1234})) == Reading(model="c", text="1,234 tokens")


def test_a_chat_completion() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    answer = answer_with({"model": "gpt-x-1", "choices": [{"index": 0, "message": {"content": "Hi"}}], "usage": usage})
    assert read(CHAT, answer) == Reading(model="gpt-x-1", text="Hi", usage=Usage(input=3, output=4))


def test_a_chat_stream_with_parallel_tool_calls() -> None:
    def delta(**more: Any) -> dict[str, Any]:
        return {"model": "g", "choices": [{"index": 0, "delta": more}]}

    answer = stream_of(
        delta(tool_calls=[{"index": 0, "id": "1", "function": {"name": "a", "arguments": ""}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '{"x":'}}]),
        delta(tool_calls=[{"index": 1, "id": "2", "function": {"name": "b", "arguments": "{}"}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": "1}"}}]),
        {"choices": [], "usage": {"prompt_tokens": 8, "completion_tokens": 9}},
        end=b"data: [DONE]\n\n",
    )
    assert read(CHAT, answer) == Reading(model="g", text='→ a({"x":1}) → b({})', usage=Usage(input=8, output=9))


def test_tool_calls_without_numbers_are_told_apart_by_their_names() -> None:
    def delta(**function: str) -> dict[str, Any]:
        return {"choices": [{"delta": {"tool_calls": [{"function": function}]}}]}

    answer = stream_of(delta(name="a", arguments="{"), delta(arguments="}"), delta(name="b", arguments="{}"))
    assert read(CHAT, answer).text == "→ a({}) → b({})"


def test_a_surrogate_pair_cut_between_two_deltas_is_joined() -> None:
    pieces = [f'data: {{"choices":[{{"delta":{{"content":"{half}"}}}}]}}\n\n' for half in (r"\ud83d", r"\ude00")]
    answer = answer_with("".join(pieces).encode(), media="text/event-stream")
    assert read(CHAT, answer).text == "😀"


def test_of_several_choices_the_first_is_shown() -> None:
    choices = [{"index": n, "message": {"content": f"answer {n}"}} for n in range(3)]
    assert read(CHAT, answer_with({"choices": choices})).text == "answer 0"


def test_legacy_completions_and_content_in_parts_and_refusals() -> None:
    assert read(CHAT, answer_with({"choices": [{"text": "once"}]})).text == "once"
    parts = [{"type": "text", "text": "in "}, {"type": "text", "text": "parts"}]
    assert read(CHAT, answer_with({"choices": [{"message": {"content": parts}}]})).text == "in parts"
    refusal = {"choices": [{"message": {"content": None, "refusal": "I won't."}}]}
    assert read(CHAT, answer_with(refusal)).text == "I won't."


def test_an_azure_deployment_is_the_model_where_the_body_names_none() -> None:
    request = request_of({}, target="/openai/deployments/my-gpt/chat/completions")
    assert identify(request.head).reader.asked(request).model == "my-gpt"


def test_a_response_whole_and_streamed_reads_the_same() -> None:
    output = [{"type": "reasoning", "summary": []}, {"type": "function_call", "name": "look", "arguments": '{"a":1}'}]
    whole = {"object": "response", "model": "g", "output": output, "usage": {"input_tokens": 5, "output_tokens": 6}}
    streamed = stream_of(
        {"type": "response.created", "response": {"model": "g", "output": []}},
        {"type": "response.output_item.done", "output_index": 1, "item": output[1]},
        {"type": "response.completed", "response": whole},
    )
    expected = Reading(model="g", text='→ look({"a":1})', usage=Usage(input=5, output=6))
    assert read(RESPONSES, answer_with(whole)) == read(RESPONSES, streamed) == expected


def test_a_failed_response_and_a_stream_cut_before_its_end() -> None:
    failed = stream_of({"type": "response.failed", "response": {"error": {"code": "x", "message": "No credit"}}})
    assert read(RESPONSES, failed).error == "No credit"
    cut = stream_of({"type": "response.output_text.delta", "delta": "Once upon"}, end=b'data: {"type": "respon')
    assert read(RESPONSES, cut) == Reading(model="gpt-x", text="Once upon", note="the stream is cut inside an event")


GEMINI_PARTS = [{"text": "thinking", "thought": True}, {"text": "Hi"}]
GEMINI_ANSWER = {
    "candidates": [{"content": {"parts": GEMINI_PARTS}}],
    "usageMetadata": {"promptTokenCount": 2, "candidatesTokenCount": 3, "thoughtsTokenCount": 4},
    "modelVersion": "gemini-x-1",
}


@pytest.mark.parametrize(
    "response", [answer_with(GEMINI_ANSWER), answer_with([GEMINI_ANSWER]), stream_of(GEMINI_ANSWER)]
)
def test_gemini_reads_the_same_as_object_list_and_events(response: HttpResponse) -> None:
    assert read(GEMINI, response) == Reading(model="gemini-x-1", text="Hi", usage=Usage(input=2, output=7, reasoning=4))


def test_a_gemini_list_that_is_cut_is_read_as_far_as_it_came() -> None:
    body = b"[" + json.dumps(GEMINI_ANSWER).encode() + b',\n{"candidates": [{"con'
    reading = read(GEMINI, answer_with(body))
    assert (reading.text, reading.note) == ("Hi", "damaged or cut JSON")


def test_a_gemini_function_call_an_embedding_and_a_blocked_prompt() -> None:
    call = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]}}]}
    assert read(GEMINI, answer_with(call)).text == '→ f({"a":1})'
    assert read(GEMINI, answer_with({"promptFeedback": {"blockReason": "SAFETY"}})).note == "blocked: SAFETY"
    request = request_of({}, target="/v1beta/models/e:embedContent")
    assert read(request, answer_with({"embedding": {"values": [0.1, 0.2]}})) == Reading(model="e", text="1 vector of 2")


def test_ollama_answers_in_lines() -> None:
    lines = [
        {"model": "llama", "message": {"content": "Hel"}, "done": False},
        {"model": "llama", "message": {"content": "lo"}, "done": False},
        {"model": "llama", "done": True, "prompt_eval_count": 4, "eval_count": 5},
    ]
    body = "\n".join(map(json.dumps, lines)).encode()
    answer = answer_with(body, media="application/x-ndjson")
    reading = read(OLLAMA, answer)
    assert (reading.text, reading.usage) == ("Hello", Usage(input=4, output=5))
    assert reading.note is None
    tool = {"message": {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}, "done": True}
    assert read(OLLAMA, answer_with(tool)).text == '→ f({"a":1})'


def test_embeddings_of_several_makes() -> None:
    openai = {"data": [{"embedding": [0.1] * 8}, {"embedding": [0.2] * 8}], "usage": {"prompt_tokens": 6}}
    assert read(EMBED, answer_with(openai)) == Reading(model="emb", text="2 vectors of 8", usage=Usage(input=6))
    cohere = {"embeddings": {"float": [[0.1, 0.2]]}, "meta": {"billed_units": {"input_tokens": 3}}}
    assert read(EMBED, answer_with(cohere)) == Reading(model="emb", text="1 vector of 2", usage=Usage(input=3))
    assert read(EMBED, answer_with({"data": [{"embedding": "AAAA"}]})).text == "1 vector"


def test_bedrock_converse_whole_and_in_frames() -> None:
    usage = {"inputTokens": 1, "cacheReadInputTokens": 10, "outputTokens": 2}
    blocks = [{"text": "Hm."}, {"toolUse": {"name": "f", "input": {"a": 1}}}]
    whole = answer_with({"output": {"message": {"content": blocks}}, "usage": usage})
    frames = (
        event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hm."}}),
        event("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": {"name": "f"}}}),
        event("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"a":1}'}}}),
        event("metadata", {"usage": usage}),
    )
    expected = Reading(model="nova:0", text='→ f({"a":1})', usage=Usage(input=11, output=2, cache_read=10))
    assert read(CONVERSE, whole) == read(CONVERSE, framed(*frames)) == expected
    cut = read(CONVERSE, framed(*frames, b"\0\0\1"))
    assert cut == replace(expected, note="the stream is cut inside a frame")
    broken = framed(exception("throttlingException", {"message": "Too many tokens"}))
    assert read(CONVERSE, broken).error == "Too many tokens"


def test_bedrock_invoke_carries_anthropic_documents() -> None:
    request = request_of({}, target="/model/claude/invoke-with-response-stream")
    piece = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}
    counted = (("x-amzn-bedrock-input-token-count", "12"),)
    answer = framed(chunk(piece), headers=counted)
    assert read(request, answer) == Reading(model="claude", text="Hi", usage=Usage(input=12))


@pytest.mark.parametrize("request_", [CLAUDE, CHAT, RESPONSES, GEMINI, OLLAMA, EMBED, CONVERSE])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "No such model"}}, "No such model"),
        ({"error": "No such model"}, "No such model"),
        ({"message": "No such model"}, "No such model"),
        ([{"error": {"code": 404, "message": "No such model"}}], "No such model"),
        ({"detail": [{"msg": "No such model"}]}, "No such model"),
        (b"No such model", "No such model"),
        (b"", "HTTP 404"),
    ],
)
def test_errors_are_told_whatever_their_shape(request_: HttpRequest, body: Any, message: str) -> None:
    assert read(request_, answer_with(body, status=404)).error == message


@pytest.mark.parametrize("request_", [CLAUDE, CHAT, RESPONSES, GEMINI, OLLAMA, EMBED, CONVERSE, request_of(target="/")])
def test_a_refusal_is_read_as_an_error_by_its_own_provider(request_: HttpRequest) -> None:
    provider = identify(request_.head)
    refusal = answer_with(provider.reader.refusal("Rewind: never recorded."), status=400)
    assert read_with(provider, request_, refusal).error == "Rewind: never recorded."


def test_refusals_have_the_shape_of_their_api() -> None:
    assert identify(CLAUDE.head).reader.refusal("m")["type"] == "error"
    assert set(identify(CHAT.head).reader.refusal("m")["error"]) == {"message", "type", "param", "code"}
    assert set(identify(GEMINI.head).reader.refusal("m")["error"]) == {"code", "message", "status"}


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_compressed_answers_are_read_also_when_cut(coding: str) -> None:
    answer = {"choices": [{"message": {"content": "Hello"}}]}
    body = encode(json.dumps(answer).encode(), coding)
    assert read(CHAT, answer_with(body, headers=(("content-encoding", coding),))).text == "Hello"
    stream = encode(stream_of(answer).body * 3000, coding)[:-2]
    cut = answer_with(stream, media="text/event-stream", headers=(("content-encoding", coding),))
    assert read(CHAT, cut).note == "the compressed data breaks off"


def test_what_cannot_be_read_is_said() -> None:
    assert read(CHAT, answer_with(b'{"choices": [')).note == "damaged or cut JSON"
    assert read(CHAT, answer_with(b"data: {oops\n\n", media="text/event-stream")).note == "1 damaged event"
    unknown = answer_with(b"x", headers=(("content-encoding", "snappy"),))
    assert read(CHAT, unknown).note == "unknown content coding 'snappy'"


def test_long_answers_are_shortened_and_can_be_written() -> None:
    answer = {"choices": [{"message": {"content": "long " * 1000 + "\ud800"}}]}
    text = read(CHAT, answer_with(answer)).text
    assert len(text) == 200
    assert text.endswith("…")
    assert read(CHAT, answer_with({"choices": [{"message": {"content": "a\ud800b"}}]})).text.encode()


def test_any_other_exchange_shows_the_start_of_its_body() -> None:
    page = request_of(method="GET", target="/")
    assert read(page, answer_with(b"<h1>Hi</h1>", media="text/html")) == Reading(text="<h1>Hi</h1>")
    assert read(page, answer_with(b"\x89PNG\0", media="image/png")).text == "5 bytes of image/png"
    told = stream_of({"jsonrpc": "2.0", "error": {"code": 1, "message": "no such tool"}})
    assert read(page, told).error == "no such tool"
