"""Google Gemini: contents asked, answered and streamed, read into the neutral shape."""

import json
from typing import Any

import pytest

from rewind.model.http import HttpResponse
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
from rewind.providers.gemini.read import GeminiCountingReader, GeminiEmbeddingsReader, GeminiReader
from support.exchanges import answer_with, request_of, stream_of

GEMINI = GeminiReader()
EMBEDDINGS = GeminiEmbeddingsReader()
PATH = "/v1beta/models/gemini-x:generateContent"
ON_VERTEX = "/v1/projects/p/locations/l/publishers/google/models/text-embedding-9:predict"


def asked(body: Any, target: str = PATH) -> Asked:
    return GEMINI.asked(request_of(body, target=target))


def answered(response: HttpResponse) -> Answered:
    return GEMINI.answered(request_of({}, target=PATH), response)


def candidate(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": list(parts)}, **more}


def chunk(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"candidates": [candidate(*parts, **more)], "modelVersion": "gemini-x-1", "responseId": "r1"}


CALL = {"functionCall": {"name": "look", "args": {"at": 1}}, "thoughtSignature": "c2ln"}
USAGE = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 40,
    "toolUsePromptTokenCount": 7,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 5,
    "totalTokenCount": 132,
    "promptTokensDetails": [
        {"modality": "TEXT", "tokenCount": 60},
        {"modality": "IMAGE", "tokenCount": 10},
        {"modality": "DOCUMENT", "tokenCount": 30},
    ],
    "toolUsePromptTokensDetails": [{"modality": "TEXT", "tokenCount": 7}],
    "cacheTokensDetails": [{"modality": "AUDIO", "tokenCount": 40}],
    "candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": 20}],
    "serviceTier": "flex",
}
WHOLE = {
    **chunk({"text": "Hm, well.", "thought": True}, {"text": "Hello there."}, CALL, finishReason="STOP"),
    "usageMetadata": USAGE,
}
PIECES = (
    {**chunk({"text": "Hm, ", "thought": True}), "usageMetadata": {"promptTokenCount": 1}},
    chunk({"text": "well.", "thought": True}, {"text": "Hello "}),
    chunk({"text": "there."}),
    {**chunk(CALL, {"text": "", "thoughtSignature": "c2ln"}, finishReason="STOP"), "usageMetadata": USAGE},
)


@pytest.mark.parametrize(
    "response",
    [
        answer_with(WHOLE),
        answer_with([WHOLE]),
        stream_of(WHOLE),
        answer_with(list(PIECES)),
        stream_of(*PIECES),
        stream_of(*({"response": piece, "traceId": "t"} for piece in PIECES)),
    ],
    ids=["object", "list", "event", "list of pieces", "events", "Code Assist"],
)
def test_an_answer_reads_the_same_however_it_comes(response: HttpResponse) -> None:
    assert answered(response) == Answered(
        id="r1",
        model="gemini-x-1",
        parts=(Thinking("Hm, well."), Text("Hello there."), ToolUse("", "look", {"at": 1})),
        stop="STOP",
        usage=Usage(
            input=107,
            output=25,
            cache_read=40,
            reasoning=5,
            more={
                "input_tool_tokens": 7,
                "input_text_tokens": 67,
                "input_image_tokens": 40,
                "input_text_tool_tokens": 7,
                "cache_audio_read_tokens": 40,
                "output_text_tokens": 20,
            },
            tier="flex",
        ),
    )


def test_a_list_that_is_cut_is_read_as_far_as_it_came() -> None:
    body = b"[" + json.dumps(chunk({"text": "Hello"})).encode() + b',\n{"candidates": [{"con'
    reading = answered(answer_with(body))
    assert (reading.text, reading.note) == ("Hello", "damaged or cut JSON")


def test_a_repeated_answer_is_one_turn_with_the_parts_of_that_answer() -> None:
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}]
    contents += [piece["candidates"][0]["content"] for piece in PIECES]
    contents += [{"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {}}}]}]
    assert asked({"contents": contents}).messages == (
        Message(Role.USER, (Text("Hi"),)),
        Message(Role.ASSISTANT, answered(answer_with(WHOLE)).parts),
        Message(Role.TOOL, (ToolResult("", (), "look"),)),
    )


@pytest.mark.parametrize("spelling", ["camel", "snake"])
def test_a_request_in_either_spelling(spelling: str) -> None:
    camel = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Look"}, {"inlineData": {"mimeType": "image/png"}}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "look"}}]},
            {"role": "function", "parts": [{"functionResponse": {"id": "c", "name": "look"}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": {"type": "object"}}]}],
        "generationConfig": {"temperature": 0},
        "toolConfig": {"mode": "ANY"},
    }
    snake = {
        "system_instruction": {"parts": {"text": "Be brief."}},
        "contents": [
            {"role": "user", "parts": [{"text": "Look"}, {"inline_data": {"mime_type": "image/png"}}]},
            {"role": "model", "parts": [{"function_call": {"id": "c", "name": "look", "args": {}}}]},
            {"role": "function", "parts": [{"function_response": {"id": "c", "name": "look"}}]},
        ],
        "tools": {"function_declarations": [{"name": "look", "parameters_json_schema": {"type": "object"}}]},
        "generation_config": {"temperature": 0},
        "toolConfig": {"mode": "ANY"},
    }
    conversation = asked(camel if spelling == "camel" else snake)
    picture = conversation.messages[0].parts[1]
    assert isinstance(picture, Media) and (picture.kind, picture.media_type) == ("image", "image/png")
    assert conversation == Asked(
        model="gemini-x",
        system=(Text("Be brief."),),
        messages=(
            Message(Role.USER, (Text("Look"), picture)),
            Message(Role.ASSISTANT, (ToolUse("c", "look", {}),)),
            Message(Role.TOOL, (ToolResult("c", (), "look"),)),
        ),
        tools=(ToolDefinition("look", "", {"type": "object"}),),
        parameters={"toolConfig": {"mode": "ANY"}, "temperature": 0},
    )


def test_code_assist_wraps_the_request_and_names_the_model_beside_it() -> None:
    wrapped = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "generationConfig": {"topK": 3}}
    body = {"model": "gemini-x", "project": "p", "request": wrapped}
    assert asked(body, target="/v1internal:streamGenerateContent?alt=sse") == Asked(
        model="gemini-x",
        messages=(Message(Role.USER, (Text("Hi"),)),),
        parameters={"project": "p", "topK": 3},
        streamed=True,
    )


def test_tools_that_google_runs_are_hosted() -> None:
    tools = [{"googleSearch": {}, "codeExecution": {}}, {"urlContext": {}}, {"computerUse": {"environment": 1}}]
    assert asked({"tools": tools}).tools == (
        ToolDefinition("googleSearch", "", {}, hosted=True),
        ToolDefinition("codeExecution", "", {}, hosted=True),
        ToolDefinition("urlContext", "", {}, hosted=True),
        ToolDefinition("computerUse", "", {"environment": 1}),
    )


@pytest.mark.parametrize(
    ("response", "text", "failed"),
    [
        ({"result": "a door"}, "a door", False),
        ({"output": "a door"}, "a door", False),
        ({"result": {"doors": 2}}, '{"doors": 2}', False),
        ({"error": "no light"}, "no light", True),
        ({"error": "no light", "code": 4}, '{"error": "no light", "code": 4}', False),
        ({"content": "Tür"}, '{"content": "Tür"}', False),
        ({}, "", False),
    ],
)
def test_a_functions_result_is_a_text_that_people_can_read(response: Any, text: str, failed: bool) -> None:
    part = {"functionResponse": {"id": "c", "name": "look", "response": response}}
    (message,) = asked({"contents": [{"role": "user", "parts": [part]}]}).messages
    (result,) = message.parts
    assert message.role is Role.TOOL
    assert isinstance(result, ToolResult)
    assert (result.id, result.name, result.text, result.failed) == ("c", "look", text, failed)


def test_a_function_may_give_back_a_picture_and_the_user_may_add_words() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
    response = {"functionResponse": {"name": "look", "response": {"result": "a door"}, "parts": [picture]}}
    (message,) = asked({"contents": [{"role": "user", "parts": [response, {"text": "See?"}]}]}).messages
    result, words = message.parts
    assert message.role is Role.USER and words == Text("See?")
    assert isinstance(result, ToolResult)
    text, media = result.parts
    assert text == Text("a door")
    assert isinstance(media, Media) and (media.kind, media.size) == ("image", 3)


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            {"fileData": {"fileUri": "gs://bucket/a.mp4", "mimeType": "video/mp4"}},
            Media("video", "video/mp4", "gs://bucket/a.mp4"),
        ),
        (
            {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
            ToolUse("", "code_execution", {"language": "PYTHON", "code": "print(1)"}, hosted=True),
        ),
        (
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            ToolResult("", (Text("1"),), "code_execution", hosted=True),
        ),
        (
            {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "boom"}},
            ToolResult("", (Text("boom"),), "code_execution", failed=True, hosted=True),
        ),
        (
            {"toolCall": {"id": "t", "toolType": "FILE_SEARCH"}, "thoughtSignature": "c2ln"},
            ToolUse("t", "FILE_SEARCH", {}, hosted=True),
        ),
        (
            {"tool_response": {"id": "t", "tool_type": "FILE_SEARCH", "response": {"result": "oak"}}},
            ToolResult("t", (Text("oak"),), "FILE_SEARCH", hosted=True),
        ),
        ({"hologram": {"size": 3}}, Other("hologram", {"hologram": {"size": 3}})),
    ],
)
def test_every_kind_of_part_is_read_alike_asked_and_answered(block: Any, part: Part) -> None:
    assert answered(answer_with(chunk(block))).parts == (part,)
    asked_before = asked({"contents": [{"role": "model", "parts": [block]}]})
    assert asked_before.messages == (Message(Role.ASSISTANT, (part,)),)


def test_a_signature_alone_is_no_part() -> None:
    assert answered(answer_with(chunk({"thoughtSignature": "c2ln"}))).parts == ()


def test_a_painted_picture_stands_between_the_words() -> None:
    painted = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
    before, picture, after = answered(
        stream_of(chunk({"text": "Here: "}), chunk(painted), chunk({"text": "Nice."}))
    ).parts
    assert (before, after) == (Text("Here: "), Text("Nice."))
    assert isinstance(picture, Media) and (picture.kind, picture.size) == ("image", 3)


def test_other_candidates_are_alternatives_in_streams_too() -> None:
    whole = {"candidates": [candidate({"text": "ab"}), candidate({"text": "cd"}, index=1)]}
    pieces = (
        {"candidates": [candidate({"text": "c"}, index=1)]},
        {"candidates": [candidate({"text": "a"}, index=0), candidate({"text": "d"}, index=1)]},
        {"candidates": [candidate({"text": "b"}, index=0)]},
    )
    expected = Answered(parts=(Text("ab"),), alternatives=((Text("cd"),),))
    assert answered(answer_with(whole)) == answered(stream_of(*pieces)) == expected


def test_a_first_candidate_without_words_keeps_its_place() -> None:
    stopped = {"index": 0, "finishReason": "SAFETY"}
    reading = answered(answer_with({"candidates": [stopped, candidate({"text": "b"}, index=1)]}))
    assert (reading.parts, reading.alternatives, reading.stop) == ((), ((Text("b"),),), "SAFETY")


def test_a_blocked_prompt_is_told() -> None:
    reading = answered(answer_with({"promptFeedback": {"blockReason": "SAFETY"}}))
    assert (reading.stop, reading.note, reading.parts) == ("blocked: SAFETY", "blocked: SAFETY", ())


def test_arguments_that_come_by_json_path_are_put_together() -> None:
    def partial(path: str, **value: Any) -> dict[str, Any]:
        return {"functionCall": {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}}

    streamed = stream_of(
        chunk({"functionCall": {"id": "c", "name": "look", "willContinue": True}}),
        chunk(partial("$.room.name", stringValue="hal")),
        chunk(partial("$.room.name", stringValue="l")),
        chunk(partial("$.doors[0]", numberValue=2)),
        chunk(partial("$.doors[1]", boolValue=True)),
        chunk(partial("$['by night']", nullValue="NULL_VALUE")),
        chunk({"functionCall": {}}),
        chunk({"functionCall": {"name": "go", "args": {}}}),
        chunk({"text": "Done."}),
    )
    arguments = {"room": {"name": "hall"}, "doors": [2, True], "by night": None}
    assert answered(streamed).parts == (ToolUse("c", "look", arguments), ToolUse("", "go", {}), Text("Done."))


def test_provisioned_traffic_is_another_tier_and_the_usual_one_is_none() -> None:
    def tier(word: str) -> str:
        return answered(answer_with({"usageMetadata": {"trafficType": word}})).usage.tier

    assert (tier("PROVISIONED_THROUGHPUT"), tier("ON_DEMAND")) == ("PROVISIONED_THROUGHPUT", "")


def test_embeddings_of_ai_studio() -> None:
    body = {
        "requests": [
            {"model": "models/e", "content": {"parts": [{"text": word}]}, "taskType": "RETRIEVAL_QUERY"}
            for word in ("door", "oak")
        ]
    }
    request = request_of(body, target="/v1beta/models/e:batchEmbedContents")
    assert EMBEDDINGS.asked(request) == Asked(
        model="e",
        messages=(Message(Role.USER, (Text("door"),)), Message(Role.USER, (Text("oak"),))),
        parameters={"taskType": "RETRIEVAL_QUERY"},
        embeds=True,
    )
    many = answer_with({"embeddings": [{"values": [0.1, 0.2]}, {"values": [0.3, 0.4]}]})
    assert EMBEDDINGS.answered(request, many) == Answered(parts=(Vectors(2, 2),))
    one = answer_with({"embedding": {"values": [0.1, 0.2, 0.3]}, "usageMetadata": {"promptTokenCount": 4}})
    assert EMBEDDINGS.answered(request, one) == Answered(parts=(Vectors(1, 3),), usage=Usage(input=4))


def test_embeddings_on_vertex() -> None:
    instances = [{"content": "door", "task_type": "RETRIEVAL_QUERY"}, {"content": "oak"}]
    body = {"instances": instances, "parameters": {"outputDimensionality": 2}}
    request = request_of(body, target=ON_VERTEX)
    assert EMBEDDINGS.claims(request.head)
    assert EMBEDDINGS.asked(request) == Asked(
        model="text-embedding-9",
        messages=(Message(Role.USER, (Text("door"),)), Message(Role.USER, (Text("oak"),))),
        parameters={"task_type": "RETRIEVAL_QUERY", "outputDimensionality": 2},
        embeds=True,
    )
    rows = [{"embeddings": {"values": [0.1, 0.2], "statistics": {"token_count": 3.0}}} for _ in instances]
    reading = EMBEDDINGS.answered(request, answer_with({"predictions": rows}))
    assert reading == Answered(parts=(Vectors(2, 2),), usage=Usage(input=6))


def test_other_predictions_on_vertex_are_not_claimed() -> None:
    painter = request_of({}, target=ON_VERTEX.replace("text-embedding-9", "imagen-9"))
    stranger = request_of({}, target=ON_VERTEX.replace("/google/", "/somebody/"))
    assert not EMBEDDINGS.claims(painter.head)
    assert not EMBEDDINGS.claims(stranger.head)


def test_counting_is_shown_and_counts_for_nobody() -> None:
    counting = GeminiCountingReader()
    wrapped = {"generateContentRequest": {"contents": [{"parts": [{"text": "Hi"}]}]}}
    request = request_of(wrapped, target="/v1beta/models/gemini-x:countTokens")
    assert counting.asked(request).messages == (Message(Role.USER, (Text("Hi"),)),)
    reading = counting.answered(request, answer_with({"totalTokens": 1234}))
    assert (reading.text, reading.usage.is_told) == ("1,234 tokens", False)


@pytest.mark.parametrize(
    "body",
    [
        {"contents": "Hi", "systemInstruction": "Be brief.", "tools": "none"},
        {"contents": [None, 1, [], {"parts": [None, 3, "a", {"text": 5}, {"functionCall": "x"}]}]},
        {"candidates": [None, {"content": "x"}, {"content": {"parts": {"text": []}}, "index": -4}]},
        {"candidates": {"content": 1}, "usageMetadata": {"promptTokensDetails": [None, {"modality": {}}]}},
        {"candidates": [candidate({"functionCall": {"partialArgs": [{"jsonPath": "$" + "[9]" * 999}]}})]},
        {"requests": [None], "embeddings": [3], "predictions": {"embeddings": 1}},
    ],
)
def test_strange_shapes_are_borne(body: Any) -> None:
    request = request_of(body, target=PATH)
    for provider in (GEMINI, EMBEDDINGS, GeminiCountingReader()):
        assert provider.asked(request).note is None
        assert provider.answered(request, answer_with(body)).error is None
        assert provider.answered(request, stream_of(body, body)).error is None


def test_a_result_nested_beyond_measure_is_borne() -> None:
    deep = b'{"a":' * 600 + b"1" + b"}" * 600
    part = b'{"functionResponse": {"name": "look", "response": ' + deep + b"}}"
    body = b'{"contents": [{"role": "user", "parts": [' + part + b"]}]}"
    (message,) = GEMINI.asked(request_of(body, target=PATH)).messages
    assert message.role is Role.TOOL
