"""Bedrock: Converse in one shape, InvokeModel in many, both also in frames."""

import base64
import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import (
    Answered,
    Asked,
    Media,
    Message,
    Other,
    Part,
    Role,
    Text,
    Thinking,
    ToolDefinition,
    ToolResult,
    ToolUse,
    Vectors,
)
from rewind.model.usage import Usage
from rewind.providers.bedrock.read import BedrockReader
from rewind.providers.cohere.read import CohereReader
from support.aws_frames import MEDIA, chunk, event, exception, frame, framed
from support.exchanges import answer_with, request_of

BEDROCK = BedrockReader()


def converse(body: Any = b"", *, stream: bool = False) -> HttpRequest:
    return request_of(body, target=f"/model/some.model-v1%3A0/converse{'-stream' * stream}")


def invoke(body: Any = b"", *, stream: bool = False) -> HttpRequest:
    return request_of(body, target=f"/model/some.model/invoke{'-with-response-stream' * stream}")


def asked_of(body: Any) -> Asked:
    return BEDROCK.asked(converse(body))


def said_by(response: HttpResponse) -> Answered:
    return BEDROCK.answered(converse(stream=True), response)


def invoked(response: HttpResponse) -> Answered:
    return BEDROCK.answered(invoke(), response)


def whole(*content: Any, **more: Any) -> HttpResponse:
    return answer_with({"output": {"message": {"role": "assistant", "content": content}}, **more})


def begun(place: int, **start: Any) -> bytes:
    return event("contentBlockStart", {"contentBlockIndex": place, "start": start})


def piece(place: int, **delta: Any) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": place, "delta": delta, "p": "abcdef"})


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_conversation_with_tools_is_read_whole() -> None:
    asked = asked_of(
        {
            "modelId": "another",
            "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
            "messages": [
                {"role": "user", "content": [{"text": "How warm is it?"}]},
                {
                    "role": "assistant",
                    "content": [
                        {"reasoningContent": {"reasoningText": {"text": "Look it up.", "signature": "s"}}},
                        {"toolUse": {"toolUseId": "t1", "name": "warmth", "input": {"city": "Rome"}}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"toolResult": {"toolUseId": "t1", "content": [{"json": {"degrees": 21}}]}},
                        {"cachePoint": {"type": "default"}},
                    ],
                },
            ],
            "toolConfig": {
                "tools": [
                    {
                        "toolSpec": {
                            "name": "warmth",
                            "description": "Now.",
                            "inputSchema": {"json": {"type": "object"}},
                        }
                    },
                    {"systemTool": {"name": "interpreter"}},
                    {"cachePoint": {"type": "default"}},
                ],
                "toolChoice": {"auto": {}},
            },
            "inferenceConfig": {"maxTokens": 9, "temperature": 0.5},
            "additionalModelRequestFields": {"top_k": 3},
            "guardrailConfig": {"guardrailIdentifier": "g"},
        }
    )
    assert asked == Asked(
        model="some.model-v1:0",
        system=(Text("Be brief."),),
        messages=(
            Message(Role.USER, (Text("How warm is it?"),)),
            Message(Role.ASSISTANT, (Thinking("Look it up."), ToolUse("t1", "warmth", {"city": "Rome"}))),
            Message(Role.TOOL, (ToolResult("t1", (Other("json", {"degrees": 21}),)),)),
        ),
        tools=(
            ToolDefinition("warmth", "Now.", {"type": "object"}),
            ToolDefinition("interpreter", "", {}, hosted=True),
        ),
        parameters={
            "maxTokens": 9,
            "temperature": 0.5,
            "additionalModelRequestFields": {"top_k": 3},
            "guardrailConfig": {"guardrailIdentifier": "g"},
            "toolChoice": {"auto": {}},
        },
    )


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"text": "Hi"}, Text("Hi")),
        ({"guardContent": {"text": {"text": "Hi", "qualifiers": ["query"]}}}, Text("Hi")),
        ({"citationsContent": {"content": [{"text": "a"}, {"text": "b"}], "citations": []}}, Text("ab")),
        ({"document": {"format": "txt", "name": "n", "source": {"text": "Words"}}}, Text("Words")),
        ({"document": {"source": {"content": [{"text": "a"}, {"text": "b"}]}}}, Text("a\nb")),
        ({"reasoningContent": {"redactedContent": "AAAA"}}, Thinking("", sealed=True)),
        ({"reasoningContent": {"reasoningText": {"text": "", "signature": "s"}}}, Thinking("", sealed=True)),
        (
            {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/v.mp4"}}}},
            Media("video", "video/mp4", "s3://b/v.mp4"),
        ),
        ({"audio": {"format": "wav", "source": {}}}, Media("audio", "audio/wav")),
        (
            {"toolUse": {"toolUseId": "t", "name": "n", "input": 1, "type": "server_tool_use"}},
            ToolUse("t", "n", 1, hosted=True),
        ),
        (
            {"toolResult": {"toolUseId": "t", "status": "error", "content": [{"text": "no"}]}},
            ToolResult("t", (Text("no"),), failed=True),
        ),
        ({"somethingNew": {"a": 1}}, Other("somethingNew", {"somethingNew": {"a": 1}})),
    ],
)
def test_every_kind_of_block_is_a_part(block: Any, part: Part) -> None:
    (message,) = asked_of({"messages": [{"role": "user", "content": [block]}]}).messages
    assert message.parts == (part,)


@pytest.mark.parametrize(
    ("kind", "form", "media_type"),
    [("image", "png", "image/png"), ("document", "pdf", "application/pdf"), ("document", "new", "")],
)
def test_data_sent_along_is_told_by_type_and_size(kind: str, form: str, media_type: str) -> None:
    data = base64.b64encode(b"seven b").decode()
    block = {kind: {"format": form, "source": {"bytes": data}}}
    (part,) = asked_of({"messages": [{"role": "user", "content": [block]}]}).messages[0].parts
    assert isinstance(part, Media)
    assert (part.kind, part.media_type, part.size, len(part.digest)) == (kind, media_type, 7, 16)


def test_the_marks_of_a_cache_are_no_part_of_what_the_model_reads() -> None:
    marked = [{"text": "Hi"}, {"cachePoint": {"type": "default"}}]
    first, second = (asked_of({"messages": [{"role": "user", "content": content}]}) for content in (marked, marked[:1]))
    assert first == second


@pytest.mark.parametrize(
    ("target", "model", "streamed"),
    [
        ("/model/m/converse", "m", False),
        ("/model/m/converse-stream", "m", True),
        ("/model/m/invoke-with-response-stream", "m", True),
        (
            "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Feu.m/invoke",
            "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.m",
            False,
        ),
    ],
)
def test_the_path_names_the_model_and_whether_it_streams(target: str, model: str, streamed: bool) -> None:
    asked = BEDROCK.asked(request_of({}, target=target))
    assert (asked.model, asked.streamed) == (model, streamed)


def test_results_nested_without_end_are_borne() -> None:
    block: Any = {"text": "deep"}
    for _ in range(300):
        block = {"toolResult": {"content": [block]}}
    asked = asked_of({"messages": [{"role": "user", "content": [block]}]})
    assert isinstance(asked.messages[0].parts[0], ToolResult)


# ── what Converse answers ────────────────────────────────────────────────────────────────────────────────────

USAGE = {
    "inputTokens": 5,
    "cacheReadInputTokens": 100,
    "cacheWriteInputTokens": 30,
    "outputTokens": 7,
    "totalTokens": 142,
    "cacheDetails": [{"ttl": "5m", "inputTokens": 10}, {"ttl": "1h", "inputTokens": 20}],
}


def test_a_stream_and_its_whole_twin_read_the_same() -> None:
    answer = said_by(
        whole(
            {"reasoningContent": {"reasoningText": {"text": "Let me see.", "signature": "s"}}},
            {"reasoningContent": {"redactedContent": "AAAA"}},
            {"text": "I will look."},
            {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"a": [1, 2]}}},
            {"toolUse": {"toolUseId": "t2", "name": "wait", "input": {}}},
            {"toolUse": {"toolUseId": "t3", "name": "run", "input": {}, "type": "server_tool_use"}},
            {"toolResult": {"toolUseId": "t3", "status": "error", "content": [{"json": {"code": 1}}]}},
            {"image": {"format": "png", "source": {"bytes": "QUJDREVG"}}},
            stopReason="tool_use",
            usage=USAGE,
            serviceTier={"type": "flex"},
        )
    )
    stream = said_by(
        framed(
            event("messageStart", {"role": "assistant"}),
            piece(0, reasoningContent={"text": "Let me "}),
            piece(0, reasoningContent={"text": "see."}),
            piece(0, reasoningContent={"signature": "s"}),
            event("contentBlockStop", {"contentBlockIndex": 0}),
            piece(1, reasoningContent={"redactedContent": "AAAA"}),
            piece(2, text=""),
            piece(2, text="I will "),
            piece(2, text="look."),
            begun(3, toolUse={"toolUseId": "t1", "name": "look"}),
            piece(3, toolUse={"input": '{"a":[1'}),
            piece(3, toolUse={"input": ",2]}"}),
            begun(4, toolUse={"toolUseId": "t2", "name": "wait"}),
            begun(5, toolUse={"toolUseId": "t3", "name": "run", "type": "server_tool_use"}),
            begun(6, toolResult={"toolUseId": "t3", "status": "error", "type": "run_result"}),
            piece(6, toolResult=[{"json": {"code": 1}}]),
            begun(7, image={"format": "png"}),
            piece(7, image={"source": {"bytes": "QUJD"}}),
            piece(7, image={"source": {"bytes": "REVG"}}),
            event("messageStop", {"stopReason": "tool_use"}),
            event("metadata", {"usage": USAGE, "serviceTier": {"type": "flex"}}),
        )
    )
    assert stream == answer
    assert answer.parts[:7] == (
        Thinking("Let me see."),
        Thinking("", sealed=True),
        Text("I will look."),
        ToolUse("t1", "look", {"a": [1, 2]}),
        ToolUse("t2", "wait", {}),
        ToolUse("t3", "run", {}, hosted=True),
        ToolResult("t3", (Other("json", {"code": 1}),), failed=True, hosted=True),
    )
    assert [use.name for use in answer.tool_uses] == ["look", "wait"]
    assert (answer.stop, answer.error, answer.note) == ("tool_use", None, None)


def test_all_the_model_read_is_input_cached_or_not() -> None:
    assert said_by(whole(usage=USAGE)).usage == Usage(
        input=135, output=7, cache_read=100, cache_write=30, more={"cache_write_1h_tokens": 20}
    )


@pytest.mark.parametrize(
    ("told", "tier"),
    [
        ({"serviceTier": {"type": "priority"}, "performanceConfig": {"latency": "standard"}}, "priority"),
        ({"serviceTier": {"type": "default"}, "performanceConfig": {"latency": "optimized"}}, "optimized"),
        ({"serviceTier": {"type": "default"}, "performanceConfig": {"latency": "standard"}}, ""),
    ],
)
def test_a_tier_is_told_where_it_is_not_the_usual_one(told: Any, tier: str) -> None:
    assert said_by(whole(**told)).usage.tier == tier


def test_the_model_that_a_router_chose_is_the_one_that_answered() -> None:
    chosen = {"promptRouter": {"invokedModelId": "arn:aws:bedrock:us-east-1::foundation-model/small.m-v1:0"}}
    assert said_by(framed(event("metadata", {"trace": chosen}))).model == "small.m-v1:0"
    assert said_by(whole({"text": "Hi"})).model is None


# ── damage and errors ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (exception("throttlingException", {"message": "Too many tokens"}), "Too many tokens"),
        (exception("modelStreamErrorException", {"originalStatusCode": 500}), "modelStreamErrorException"),
        (exception("validationException", []), "validationException"),
        (frame([(":message-type", 7, "error"), (":error-code", 7, "E"), (":error-message", 7, "Broken")]), "Broken"),
        (frame([(":message-type", 7, "error"), (":error-code", 7, "InternalError")]), "InternalError"),
    ],
)
def test_an_error_inside_a_stream_is_told_with_what_came_before(told: bytes, message: str) -> None:
    answer = said_by(framed(piece(0, text="So far"), told))
    assert (answer.text, answer.error, answer.note) == ("So far", message, None)


def test_an_error_by_status_has_its_message() -> None:
    assert said_by(answer_with({"message": "No such model."}, status=400)).error == "No such model."
    assert said_by(answer_with(BEDROCK.refusal("Never recorded."), status=400)).error == "Never recorded."


def test_damage_costs_no_more_than_the_damaged_frames() -> None:
    hurt = bytearray(piece(0, text="b"))
    hurt[9] ^= 1
    nameless = frame([(":message-type", 7, "event")], b"{}")
    no_json = frame([(":event-type", 7, "contentBlockDelta")], b"{")
    redacted = piece(0, text="my secret!").replace(b"my secret!", b"REDACTEDxx")
    answer = said_by(
        framed(piece(0, text="a"), bytes(hurt), nameless, no_json, redacted, piece(0, text="c"), b"\0\0\1", b"")
    )
    assert answer.text == "aREDACTEDxxc"
    assert answer.note == "3 damaged frames; 1 frame with a wrong checksum; the stream is cut inside a frame"


def test_a_call_whose_beginning_was_lost_is_shown_without_its_name() -> None:
    assert said_by(framed(piece(0, toolUse={"input": '{"a":1}'}))).parts == (ToolUse("", "", {"a": 1}),)


def test_frames_are_known_whatever_the_content_type_says() -> None:
    body = piece(0, text="Hi")
    for media in ("application/json", "text/event-stream", ""):
        assert said_by(answer_with(body, media=media)).text == "Hi"
    assert said_by(answer_with({"message": "No."}, status=400, media=MEDIA)).error == "No."
    assert said_by(answer_with(b"garbage, not frames", media=MEDIA)).note == "1 damaged frame"
    packed = answer_with(gzip.compress(body), media=MEDIA, headers=(("content-encoding", "gzip"),))
    assert said_by(packed).text == "Hi"


def test_a_request_that_is_no_json_is_noted() -> None:
    asked = asked_of(b'{"messages": [')
    assert (asked.model, asked.messages, asked.note) == ("some.model-v1:0", (), "the request is damaged or not JSON")


# ── InvokeModel ──────────────────────────────────────────────────────────────────────────────────────────────

USER = Role.USER


@pytest.mark.parametrize(
    ("body", "messages", "parameters"),
    [
        (
            {
                "anthropic_version": "bedrock-2023-05-31",
                "max_tokens": 9,
                "messages": [{"role": "user", "content": "Hi"}],
            },
            (Message(USER, (Text("Hi"),)),),
            {"max_tokens": 9},
        ),
        (
            {
                "schemaVersion": "messages-v1",
                "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
                "inferenceConfig": {"maxTokens": 9},
            },
            (Message(USER, (Text("Hi"),)),),
            {"maxTokens": 9},
        ),
        (
            {"inputText": "Hi", "textGenerationConfig": {"maxTokenCount": 9}},
            (Message(USER, (Text("Hi"),)),),
            {"maxTokenCount": 9},
        ),
        ({"prompt": "Hi", "max_gen_len": 9}, (Message(USER, (Text("Hi"),)),), {"max_gen_len": 9}),
        (
            {"texts": ["a", "b"], "input_type": "search_query"},
            (Message(USER, (Text("a"),)), Message(USER, (Text("b"),))),
            {"input_type": "search_query"},
        ),
        (
            {
                "taskType": "SINGLE_EMBEDDING",
                "singleEmbeddingParams": {"text": {"value": "Hi"}, "embeddingDimension": 256},
            },
            (Message(USER, (Text("Hi"),)),),
            {"taskType": "SINGLE_EMBEDDING", "embeddingDimension": 256},
        ),
        (
            {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9},
            (Message(USER, (Text("Hi"),)),),
            {"max_tokens": 9},
        ),
    ],
)
def test_each_maker_has_its_own_way_to_ask(body: Any, messages: Any, parameters: Any) -> None:
    asked = BEDROCK.asked(invoke(body))
    embeds = "embeddingConfig" in body or "texts" in body or "singleEmbeddingParams" in body
    assert asked == Asked(model="some.model", messages=messages, parameters=parameters, embeds=embeds)


def test_a_picture_belongs_to_the_prompt_beside_it() -> None:
    (message,) = BEDROCK.asked(invoke({"inputText": "What?", "inputImage": "QUJD"})).messages
    text, picture = message.parts
    assert text == Text("What?")
    assert isinstance(picture, Media) and (picture.kind, picture.size) == ("image", 3)


def test_command_r_is_read_as_cohere_reads_it() -> None:
    body = {
        "preamble": "Be brief.",
        "chat_history": [{"role": "USER", "message": "Hi"}, {"role": "CHATBOT", "message": "Hello."}],
        "message": "Go on",
        "tools": [{"name": "f", "description": "d", "parameter_definitions": {"a": {}}}],
        "tool_results": [{"call": {"name": "f"}, "outputs": [{"x": 1}]}],
        "temperature": 0,
    }
    asked = BEDROCK.asked(invoke(body))
    assert asked == replace(CohereReader().asked(request_of(body)), model="some.model")
    assert asked.system == (Text("Be brief."),)
    assert [message.text for message in asked.messages] == ["Hi", "Hello.", "Go on", ""]
    assert asked.parameters == {"temperature": 0}


METRICS = {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 3, "outputTokenCount": 4}}


@pytest.mark.parametrize(
    ("answer", "pieces"),
    [
        pytest.param(
            {
                "type": "message",
                "id": "m1",
                "model": "claude",
                "content": [{"type": "text", "text": "Hello"}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 3, "output_tokens": 4},
            },
            [
                {"type": "message_start", "message": {"id": "m1", "model": "claude", "usage": {"input_tokens": 3}}},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
                {"type": "message_stop", **METRICS},
            ],
            id="Anthropic",
        ),
        pytest.param(
            {
                "output": {"message": {"content": [{"text": "Hello"}]}},
                "stopReason": "end_turn",
                "usage": {"inputTokens": 1, "outputTokens": 4, "cacheReadInputTokenCount": 2},
            },
            [
                {"messageStart": {"role": "assistant"}},
                {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hel"}}},
                {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "lo"}}},
                {"messageStop": {"stopReason": "end_turn"}},
                {
                    "metadata": {"usage": {"inputTokens": 1, "outputTokens": 4, "cacheReadInputTokenCount": 2}},
                    **METRICS,
                },
            ],
            id="Nova",
        ),
        pytest.param(
            {
                "inputTextTokenCount": 3,
                "results": [{"tokenCount": 4, "outputText": "Hello", "completionReason": "FINISH"}],
            },
            [
                {"outputText": "Hel", "index": 0, "inputTextTokenCount": 3, "completionReason": None},
                {"outputText": "lo", "index": 0, "totalOutputTextTokenCount": 4, "completionReason": "FINISH"},
            ],
            id="Titan",
        ),
        pytest.param(
            {"generation": "Hello", "prompt_token_count": 3, "generation_token_count": 4, "stop_reason": "stop"},
            [
                {"generation": "Hel", "prompt_token_count": 3, "generation_token_count": 1, "stop_reason": None},
                {"generation": "lo", "prompt_token_count": None, "generation_token_count": 4, "stop_reason": "stop"},
            ],
            id="Llama",
        ),
        pytest.param(
            {"outputs": [{"text": "Hello", "stop_reason": "stop"}], **METRICS},
            [
                {"outputs": [{"text": "Hel", "stop_reason": None}]},
                {"outputs": [{"text": "lo", "stop_reason": "stop"}], **METRICS},
            ],
            id="Mistral",
        ),
        pytest.param(
            {"choices": [{"index": 0, "message": {"content": "Hello"}, "stop_reason": "stop"}], **METRICS},
            [
                {"choices": [{"index": 0, "message": {"content": "Hel"}, "stop_reason": None}]},
                {"choices": [{"index": 0, "message": {"content": "lo"}, "stop_reason": "stop"}], **METRICS},
            ],
            id="Mistral, chatting",
        ),
        pytest.param(
            {"generation_id": "g1", "text": "Hello", "finish_reason": "COMPLETE", **METRICS},
            [
                {"event_type": "text-generation", "text": "Hel", "is_finished": False},
                {"event_type": "text-generation", "text": "lo", "is_finished": False},
                {
                    "event_type": "stream-end",
                    "finish_reason": "COMPLETE",
                    "response": {"text": "Hello"},
                    "generation_id": "g1",
                    **METRICS,
                },
            ],
            id="Command R",
        ),
        pytest.param(
            {"generations": [{"text": "Hello", "finish_reason": "COMPLETE"}], **METRICS},
            [
                {"text": "Hel", "is_finished": False},
                {"text": "lo", "is_finished": True, "finish_reason": "COMPLETE", **METRICS},
            ],
            id="Command",
        ),
        pytest.param(
            {
                "id": "c1",
                "model": "jamba",
                "choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 3, "completion_tokens": 4},
            },
            [
                {"id": "c1", "model": "jamba", "choices": [{"index": 0, "delta": {"content": "Hel"}}]},
                {
                    "id": "c1",
                    "choices": [{"index": 0, "delta": {"content": "lo"}, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
                },
            ],
            id="Jamba",
        ),
        pytest.param(
            {"choices": [{"text": "Hello", "stop_reason": "stop"}], **METRICS},
            [
                {"choices": [{"text": "Hel", "stop_reason": None}]},
                {"choices": [{"text": "lo", "stop_reason": "stop"}], **METRICS},
            ],
            id="DeepSeek R1",
        ),
        pytest.param(
            {"completion": "Hello", "stop_reason": "stop_sequence", **METRICS},
            [
                {"completion": "Hel", "stop_reason": None},
                {"completion": "lo", "stop_reason": "stop_sequence", **METRICS},
            ],
            id="Claude 2",
        ),
    ],
)
def test_each_maker_answers_the_same_in_one_piece_and_in_many(answer: Any, pieces: list[Any]) -> None:
    at_once = invoked(answer_with(answer))
    in_pieces = BEDROCK.answered(invoke(stream=True), framed(*map(chunk, pieces)))
    assert in_pieces == at_once
    assert at_once.parts == (Text("Hello"),)
    assert at_once.stop and at_once.note is None
    assert (at_once.usage.input, at_once.usage.output) == (3, 4)


@pytest.mark.parametrize(
    ("answer", "vectors"),
    [
        ({"embedding": [0.1, 0.2], "embeddingsByType": {"float": [0.1, 0.2]}}, Vectors(1, 2)),
        ({"embeddingsByType": {"binary": [1, 0, 1]}}, Vectors(1, 3)),
        ({"embeddings": [[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]], "texts": ["a", "b"]}, Vectors(2, 3)),
        ({"embeddings": {"float": [[0.1, 0.2]]}}, Vectors(1, 2)),
        ({"embeddings": [{"embeddingType": "TEXT", "embedding": [0.1]}]}, Vectors(1, 1)),
        ({"embeddings": ["AAAA"]}, Vectors(1)),
    ],
)
def test_embeddings_are_told_by_number_and_size(answer: Any, vectors: Vectors) -> None:
    counted = (("X-Amzn-Bedrock-Input-Token-Count", "12"),)
    found = invoked(answer_with(answer, headers=counted))
    assert (found.parts, found.usage) == ((vectors,), Usage(input=12))


def test_tools_are_found_in_every_shape() -> None:
    call = {"id": "t1", "function": {"name": "look", "arguments": '{"a":1}'}}
    chat = {"choices": [{"message": {"content": "", "tool_calls": [call]}, "stop_reason": "tool_calls"}]}
    assert invoked(answer_with(chat)).parts == (ToolUse("t1", "look", {"a": 1}),)
    cohere = {"text": "Looking.", "tool_calls": [{"name": "look", "parameters": {"a": 1}}]}
    expected = (Text("Looking."), ToolUse("", "look", {"a": 1}))
    assert invoked(answer_with(cohere)).parts == expected
    streamed = framed(
        chunk({"event_type": "text-generation", "text": "Look"}),
        chunk({"event_type": "text-generation", "text": "ing."}),
        chunk({"event_type": "tool-calls-generation", **cohere}),
    )
    assert BEDROCK.answered(invoke(stream=True), streamed).parts == expected


def test_generations_that_are_streamed_together_are_told_apart() -> None:
    events = [
        {"index": 0, "is_finished": False, "text": "one "},
        {"index": 1, "is_finished": False, "text": "three "},
        {"index": 0, "is_finished": False, "text": "two"},
        {"index": 1, "is_finished": False, "text": "four"},
        {"index": 1, "is_finished": True, "finish_reason": "MAX_TOKENS"},
        {"index": 0, "is_finished": True, "finish_reason": "COMPLETE"},
    ]
    answer = invoked(framed(*map(chunk, events)))
    assert (answer.text, answer.alternatives) == ("one two", ((Text("three four"),),))
    assert answer.stop == "COMPLETE"


def test_several_generations_are_alternatives() -> None:
    answer = invoked(answer_with({"generations": [{"text": "one"}, {"text": "two"}]}))
    assert (answer.parts, answer.alternatives) == ((Text("one"),), ((Text("two"),),))


def test_drawn_pictures_are_media() -> None:
    (part,) = invoked(answer_with({"images": ["QUJD"]})).parts
    assert isinstance(part, Media) and (part.kind, part.size) == ("image", 3)


def test_what_the_body_does_not_count_is_counted_beside_it() -> None:
    headers = (
        ("x-amzn-bedrock-input-token-count", "3"),
        ("x-amzn-bedrock-cache-read-input-token-count", "40"),
        ("x-amzn-bedrock-output-token-count", "5"),
        ("x-amzn-bedrock-service-tier", "flex"),
    )
    silent = invoked(answer_with({"outputs": [{"text": "Hi"}]}, headers=headers))
    assert silent.usage == Usage(input=43, output=5, cache_read=40, tier="flex")
    telling = invoked(
        answer_with({"generation": "Hi", "prompt_token_count": 9, "generation_token_count": 8}, headers=headers)
    )
    assert telling.usage == Usage(input=9, output=8, tier="flex")
    odd = (("x-amzn-bedrock-input-token-count", "many"),)
    assert invoked(answer_with({"outputs": [{"text": "Hi"}]}, headers=odd)).usage == Usage()


def test_a_piece_that_is_no_base64_or_no_json_is_a_damaged_frame() -> None:
    pieces = [event("chunk", {"bytes": "!!!"}), event("chunk", {"bytes": "e30x"}), chunk({"text": "Hi"})]
    answer = BEDROCK.answered(invoke(stream=True), framed(*pieces))
    assert (answer.text, answer.note) == ("Hi", "2 damaged frames")


STRANGE: tuple[Any, ...] = (None, True, 7, -1.5, "x", [], {}, [None], [[]], {"text": None}, {"a": {"b": []}})
FIELDS = (
    "output", "message", "content", "usage", "stopReason", "contentBlockStart", "contentBlockDelta", "metadata",
    "messageStop", "choices", "results", "outputs", "generations", "embeddings", "embedding", "embeddingsByType",
    "completions", "tool_calls", "images", "type", "event_type", "amazon-bedrock-invocationMetrics", "messages",
    "system", "toolConfig", "inferenceConfig", "prompt", "inputText", "texts", "chat_history", "anthropic_version",
)  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_no_field_of_a_strange_shape_is_too_much(field: str) -> None:
    for strange in STRANGE:
        for document in ({field: strange}, {field: [strange]}, {field: {field: strange}}, {"output": strange}):
            for request in (converse(document), invoke(document)):
                assert BEDROCK.asked(request).note is None
                for response in (
                    answer_with(document),
                    framed(chunk(document)),
                    framed(event(field, strange)),
                    framed(exception(field, strange)),
                ):
                    json.dumps(BEDROCK.answered(request, response).text)
