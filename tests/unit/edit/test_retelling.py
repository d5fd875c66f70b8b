"""A conversation told in another API's words says the same; in its own it is as it was."""

import json
from base64 import b64decode
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pytest
from anthropic.types import MessageParam
from google.genai.types import Content
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from rewind.edit.transcript import AnsweredCall, Transcript, transcript_of, writer_of
from rewind.model.http import HttpRequest
from rewind.model.message import (
    Answered,
    Asked,
    Media,
    Message,
    Other,
    Part,
    Refusal,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from rewind.providers.api import LossLog
from rewind.providers.catalogue import SHAPES
from rewind.providers.shared.write import with_matched_ids
from support.exchanges import answer_with, request_of, stream_of
from support.wire_examples import EXAMPLES, said
from unit.edit.asking import asked

TARGETS = {
    "openai": "/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
}
NAMES = {"openai": "messages", "responses": "input", "anthropic": "messages", "gemini": "contents"}


def _written(
    system: tuple[Part, ...], messages: Sequence[Message], api: str, losses: LossLog
) -> tuple[Any, list[dict[str, Any]]]:
    return writer_of(api).conversation(system, messages, losses)


every_shape = pytest.mark.parametrize("api", SHAPES)


def request_with(api: str, system: Any, messages: list[dict[str, Any]], **more: Any) -> HttpRequest:
    """A fresh call with such a list."""
    beside = {"anthropic": "system", "gemini": "systemInstruction"}.get(api, "")
    told = {beside: system} if system is not None else {}
    return request_of({**told, NAMES[api]: messages, **more}, target=TARGETS[api])


def fresh(told: Transcript) -> HttpRequest:
    return request_with(told.api, told.system, told.messages)


def lines(system: tuple[Part, ...], messages: tuple[Message, ...]) -> list[tuple[str, Any]]:
    """A conversation in the order in which it is said, however it is cut into messages.

    Within a turn of the model its words stand before its calls, as some APIs have it; with what a user says, the
    results come first.
    """
    told: list[tuple[str, Any]] = [("system", "".join(part.text for part in system if isinstance(part, Text)))]
    for speaker, run in groupby(messages, key=lambda message: message.role is Role.ASSISTANT):
        parts = [part for message in run for part in message.parts]
        words = "".join(part.text for part in parts if isinstance(part, Text | Refusal))
        calls = [part for part in parts if isinstance(part, ToolUse) and not part.hosted]
        results = [part for part in parts if isinstance(part, ToolResult) and not part.hosted]
        told += [("result", (result.id, result.text, result.failed)) for result in results]
        told += [("model" if speaker else "user", words)] * bool(words)
        told += [("call", (call.id, call.name, call.arguments)) for call in calls]
        told += [("media", (part.kind, part.digest, part.reference)) for part in parts if isinstance(part, Media)]
    return told


def same(one: Asked, other: Asked, *, but_failed: bool = False) -> bool:
    """Whether both say the same; OpenAI's APIs have no word for a tool that failed."""

    def rows(read: Asked) -> list[tuple[str, Any]]:
        return [
            (kind, value[:2]) if but_failed and kind == "result" else (kind, value)
            for kind, value in lines(read.system, read.messages)
        ]

    return rows(one) == rows(other)


def _talks() -> dict[str, tuple[str, tuple[Message, ...]]]:
    user, model, tool = Role.USER, Role.ASSISTANT, Role.TOOL
    weather = ToolUse("call_a", "weather", {"city": "Oslo", "deep": [{"°": None}]})
    clock = ToolUse("call_b", "clock", {})
    return {
        "one question": ("", (Message(user, (Text("Hello ✓"),)),)),
        "question and answer": ("Be kind.", (Message(user, (Text("Hello"),)), Message(model, (Text("Hi"),)))),
        "parallel tools": (
            "Be kind.",
            (
                Message(user, (Text("How warm?"),)),
                Message(model, (Text("I look."), weather, clock)),
                Message(tool, (ToolResult("call_a", (Text("4 °C"),), "weather"),)),
                Message(tool, (ToolResult("call_b", (Text('{"hour": 3}'),), "clock"),)),
                Message(model, (Text("4 °C at three."),)),
            ),
        ),
        "a tool that failed, and words beside its result": (
            "",
            (
                Message(user, (Text("How warm?"),)),
                Message(model, (weather,)),
                Message(user, (ToolResult("call_a", (Text("no network"),), "weather", failed=True), Text("Well?"))),
                Message(model, (Text("I cannot tell."),)),
            ),
        ),
        "an empty result": (
            "Be kind.",
            (
                Message(user, (Text("Go."),)),
                Message(model, (clock,)),
                Message(tool, (ToolResult("call_b", (), "clock"),)),
            ),
        ),
        "several texts": ("Be kind.", (Message(user, (Text("One. "), Text("Two."))), Message(model, (Text("Ok"),)))),
        "the model speaks last and asks for tools": ("", (Message(user, (Text("Go."),)), Message(model, (weather,)))),
    }


TALKS = _talks()


@pytest.mark.parametrize("source", SHAPES)
@pytest.mark.parametrize("target", SHAPES)
@pytest.mark.parametrize("name", TALKS)
def test_every_api_tells_what_every_other_told(source: str, target: str, name: str) -> None:
    system, messages = TALKS[name]
    parts = (Text(system),) if system else ()
    beside, turns = _written(parts, messages, source, LossLog())
    request = request_with(source, beside, turns)
    but_failed = bool({source, target} & {"openai", "responses"})
    assert same(asked(request), Asked(system=parts, messages=messages), but_failed=but_failed)
    told = transcript_of([AnsweredCall(request=request, response=None)], target)
    assert same(asked(fresh(told)), Asked(system=parts, messages=messages), but_failed=but_failed)
    if source == target:
        assert told.messages == turns


@pytest.mark.parametrize("source", SHAPES)
@pytest.mark.parametrize("target", SHAPES)
def test_a_picture_and_a_document_travel_with_their_bytes(source: str, target: str) -> None:
    api = {"openai": "OpenAI Chat Completions", "responses": "OpenAI Responses"}.get(source, "")
    api = api or {"anthropic": "Anthropic Messages", "gemini": "Gemini"}[source]
    example = next(one for one in EXAMPLES if one.api == api)
    told = transcript_of([AnsweredCall(request=example.request, response=None)], target)
    read = asked(fresh(told))
    media = [part for message in read.messages for part in message.parts if isinstance(part, Media)]
    sizes = [len(b64decode(one)) for one in (said.PNG, said.PDF)]
    assert [(one.kind, one.size) for one in media] == list(zip(("image", "document"), sizes, strict=True))
    assert said.PNG in json.dumps(told.messages) and said.PDF in json.dumps(told.messages)
    assert not any("place is marked" in remark for remark in told.remarks)


TAKEN: dict[str, TypeAdapter[Any]] = {
    "openai": TypeAdapter(list[ChatCompletionMessageParam]),
    "responses": TypeAdapter(list[ResponseInputItemParam]),
    "anthropic": TypeAdapter(list[MessageParam]),
    "gemini": TypeAdapter(list[Content]),
}
"""What the vendors' own SDKs say that they take."""


@every_shape
@pytest.mark.parametrize("name", [*TALKS, "pictures"])
def test_what_is_written_is_what_the_sdk_takes(api: str, name: str) -> None:
    picture, paper = (Media("image", "image/png", "", "d1", 3), Media("document", "application/pdf", "", "d2", 3))
    pictures = (
        Message(Role.USER, (Text("Look."), picture, paper)),
        Message(Role.ASSISTANT, (ToolUse("c", "draw", {}),)),
        Message(Role.TOOL, (ToolResult("c", (Text("done"), picture), "draw"),)),
    )
    system, messages = TALKS.get(name, ("Be kind.", pictures))
    losses = LossLog(data={"d1": "AAAA", "d2": "BBBB"})
    _, turns = _written((Text(system),) if system else (), messages, api, losses)
    # Only writing it out again walks all the lists inside.
    TAKEN[api].dump_json(TAKEN[api].validate_python(turns))


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────


def calls_and_results(messages: tuple[Message, ...]) -> tuple[list[str], list[str]]:
    parts = [part for message in messages for part in message.parts]
    return (
        [part.id for part in parts if isinstance(part, ToolUse)],
        [part.id for part in parts if isinstance(part, ToolResult)],
    )


def test_calls_without_ids_get_some_and_results_the_same() -> None:
    gemini = {
        "contents": [
            {"role": "user", "parts": [{"text": "Go."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "a"}}, {"functionCall": {"name": "b"}}]},
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "b", "response": {"result": "B"}}},
                    {"functionResponse": {"name": "a", "response": {"result": "A"}}},
                ],
            },
            {"role": "model", "parts": [{"functionCall": {"name": "a"}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {"result": "AA"}}}]},
        ]
    }
    request = request_of(gemini, target=TARGETS["gemini"])
    for api in ("openai", "responses", "anthropic"):
        calls, results = calls_and_results(
            asked(fresh(transcript_of([AnsweredCall(request=request, response=None)], api))).messages
        )
        assert len(set(calls)) == 3 and all(len(one) == 9 and one.isalnum() for one in calls)
        assert results == [calls[1], calls[0], calls[2]]


def test_ids_that_are_used_twice_or_that_no_other_api_takes_are_drawn_anew() -> None:
    def turn(name: str, text: str) -> tuple[Message, Message]:
        call = Message(Role.ASSISTANT, (ToolUse(name, "a", {}),))
        return call, Message(Role.TOOL, (ToolResult(name, (Text(text),)),))

    messages = with_matched_ids([*turn("call_0", "one"), *turn("call_0", "two"), *turn("functions.a:0", "three")])
    calls, results = calls_and_results(messages)
    assert calls == results
    assert calls[0] == "call_0" and len(set(calls)) == 3
    assert all(part.name == "a" for message in messages for part in message.parts if isinstance(part, ToolResult))


def test_a_result_whose_call_is_not_shown_keeps_its_id_and_is_named_if_anybody_knows_its_tool() -> None:
    result = Message(Role.TOOL, (ToolResult("call_0", (Text("x"),)),))
    assert with_matched_ids([result])[0].parts == (ToolResult("call_0", (Text("x"),)),)
    assert with_matched_ids([result], {"call_0": "weather"})[0].parts == (
        ToolResult("call_0", (Text("x"),), "weather"),
    )
    _, (content,) = _written((), with_matched_ids([result]), "gemini", LossLog())
    assert content["parts"][0]["functionResponse"]["name"] == "unknown"


# ── what cannot be told ──────────────────────────────────────────────────────────────────────────────────────


@every_shape
def test_what_is_left_out_is_remarked(api: str) -> None:
    losses = LossLog()
    parts = (
        Thinking("hm"),
        Thinking("", sealed=True),
        ToolUse("s", "web_search", {}, hosted=True),
        ToolResult("s", (Text("found"),), hosted=True),
        Other("container_upload", {}),
        Text("Hello"),
    )
    _, turns = _written((), (Message(Role.ASSISTANT, parts),), api, losses)
    assert "Hello" in str(turns) and "hm" not in str(turns) and "found" not in str(turns)
    assert dict(losses.counts) == {
        "thinking left out: only the API that wrote it can read it": 2,
        "call of a hosted tool left out: the provider ran it itself": 1,
        "container_upload left out: no other API has it": 1,
    }


@every_shape
def test_a_file_that_only_its_provider_has_is_marked_in_its_place(api: str) -> None:
    losses = LossLog()
    picture = Media("image", "image/png", "file-123")
    _, turns = _written((), (Message(Role.USER, (Text("Look: "), picture)),), api, losses)
    assert asked(request_with(api, None, turns)).messages[0].text == "Look: [image left out: image/png, file-123]"
    assert dict(losses.counts) == {"image: only its place is marked": 1}


@every_shape
def test_a_link_is_handed_on(api: str) -> None:
    picture = Media("image", "image/png", "https://pictures.example/a.png")
    _, turns = _written((), (Message(Role.USER, (picture,)),), api, LossLog())
    assert "https://pictures.example/a.png" in str(turns) and "left out" not in str(turns)


@every_shape
def test_a_turn_that_has_nothing_left_to_say_is_left_out(api: str) -> None:
    _, turns = _written(
        (), (Message(Role.ASSISTANT, (Thinking("hm"),)), Message(Role.USER, (Text("Go."),))), api, LossLog()
    )
    assert len(turns) == 1


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_a_system_message_in_the_middle_is_the_users_where_there_is_no_such_role(api: str) -> None:
    losses = LossLog()
    _, turns = _written((), (Message(Role.SYSTEM, (Text("From now on, French."),)),), api, losses)
    assert turns[0]["role"] == "user"
    assert dict(losses.counts) == {"system message inside the conversation written as the user's": 1}


@every_shape
def test_arguments_that_are_no_object_stay_a_text_where_the_api_has_such_tools(api: str) -> None:
    losses = LossLog()
    use = ToolUse("c", "patch", "*** Begin")
    turns = _written(
        (),
        (Message(Role.ASSISTANT, (use,)), Message(Role.TOOL, (ToolResult("c", (Text("ok"),), "patch"),))),
        api,
        losses,
    )[1]
    (call, *_), *_ = (message.parts for message in asked(request_with(api, None, turns)).messages)
    assert isinstance(call, ToolUse)
    if api in ("openai", "responses"):
        assert call.arguments == "*** Begin" and not losses.counts
    else:
        assert call.arguments == {"input": "*** Begin"} and losses.counts


# ── in its own words ─────────────────────────────────────────────────────────────────────────────────────────

OWN = {
    "Anthropic Messages": "anthropic",
    "OpenAI Responses": "responses",
    "Gemini": "gemini",
    "OpenAI Chat Completions": "openai",
}


@pytest.mark.parametrize("example", [one for one in EXAMPLES if one.api in OWN], ids=lambda one: one.api)
def test_a_streamed_answer_is_put_back_as_the_whole_one(example: Any) -> None:
    whole = transcript_of([AnsweredCall(request=example.request, response=example.whole)])
    assert whole.api == OWN[example.api]
    for stream in example.streams:
        told = transcript_of([AnsweredCall(request=stream.request, response=stream.response)])
        assert told.messages == whole.messages
    sent = json.loads(example.request.body)[NAMES[whole.api]]
    first = 1 if whole.api == "responses" else 0
    assert whole.messages[first : first + len(sent)] == sent


def test_anthropics_thinking_goes_back_with_its_signature() -> None:
    example = next(one for one in EXAMPLES if one.api == "Anthropic Messages")
    told = transcript_of([AnsweredCall(request=example.request, response=example.streams[0].response)])
    assert told.messages[-1] == {"role": "assistant", "content": json.loads(example.whole.body)["content"]}
    assert told.system == json.loads(example.request.body)["system"]


def test_geminis_signatures_go_back_with_their_parts() -> None:
    example = next(one for one in EXAMPLES if one.api == "Gemini")
    told = transcript_of([AnsweredCall(request=example.request, response=example.streams[0].response)])
    assert told.messages[-1] == json.loads(example.whole.body)["candidates"][0]["content"]


def test_items_go_back_without_the_names_that_tie_them_to_thinking_the_provider_keeps() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c",
        "name": "a",
        "arguments": "{}",
        "status": "completed",
    }
    request = request_of({"model": "m", "instructions": "Be kind.", "input": "Go."}, target=TARGETS["responses"])
    response = answer_with({"output": [reasoning, call]})
    told = transcript_of([AnsweredCall(request=request, response=response)])
    assert told.messages == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Go."},
        {"type": "function_call", "call_id": "c", "name": "a", "arguments": "{}"},
    ]
    assert told.remarks == ("thinking left out: only the provider has it",)
    sealed = answer_with({"output": [{**reasoning, "encrypted_content": "…"}, call]})
    kinds = [one.get("type") for one in transcript_of([AnsweredCall(request=request, response=sealed)]).messages]
    assert kinds[2:] == ["reasoning", "function_call"]


def test_calls_that_came_in_pieces_are_joined() -> None:
    request = request_of({"contents": []}, target="/v1beta/models/m:streamGenerateContent?alt=sse")
    call = {"name": "a", "partialArgs": [{"jsonPath": "$.city", "stringValue": "Ro"}], "willContinue": True}
    rest = {"partialArgs": [{"jsonPath": "$.city", "stringValue": "me"}]}
    response = stream_of(*({"candidates": [{"content": {"parts": [{"functionCall": one}]}}]} for one in (call, rest)))
    told = transcript_of([AnsweredCall(request=request, response=response)])
    assert told.messages[-1]["parts"][0]["functionCall"]["args"] == {"city": "Rome"}


def test_what_the_provider_keeps_is_told_from_the_calls_before() -> None:
    def call(body: dict[str, Any], text: str) -> AnsweredCall:
        message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        request = request_of({"model": "m", "instructions": "Be kind.", **body}, target=TARGETS["responses"])
        return AnsweredCall(request=request, response=answer_with({"id": "resp_1", "output": [message]}))

    both = [call({"input": "One?"}, "One."), call({"input": "Two?", "previous_response_id": "resp_1"}, "Two.")]
    for api in SHAPES:
        read = asked(fresh(transcript_of(both, api)))
        assert [message.text for message in read.messages] == ["One?", "One.", "Two?", "Two."]
        assert lines(read.system, ())[0] == ("system", "Be kind.")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Ollama chat", "openai"),
        ("Cohere Chat", "openai"),
        ("Bedrock Converse", "openai"),
        ("Bedrock InvokeModel: Claude", "anthropic"),
    ],
)
def test_an_api_without_a_shape_is_told_in_the_nearest(name: str, expected: str) -> None:
    example = next(one for one in EXAMPLES if one.api == name)
    told = transcript_of([AnsweredCall(request=example.request, response=example.whole)])
    assert told.api == expected
    assert told.remarks[-1].endswith(f"written as {expected}")
    assert asked(fresh(told)).messages[-1].text == said.TEXT


def test_without_an_answer_the_list_ends_with_the_question() -> None:
    request = request_of({"messages": [{"role": "user", "content": "Go."}]})
    for response in (None, answer_with({"error": {"message": "no"}}, status=500), answer_with({"choices": []})):
        told = transcript_of([AnsweredCall(request=request, response=response)])
        assert told.messages == [{"role": "user", "content": "Go."}]
        assert told.remarks == ("no answer: the list ends with what was asked",)


def test_other_choices_and_a_cut_answer_are_remarked() -> None:
    request = request_of({"messages": []})
    choices = [{"index": n, "message": {"content": text}} for n, text in enumerate("ab")]
    assert any(
        "other choices" in one
        for one in transcript_of([AnsweredCall(request=request, response=answer_with({"choices": choices}))]).remarks
    )
    cut = answer_with(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: {"cho', media="text/event-stream")
    assert any("not whole" in one for one in transcript_of([AnsweredCall(request=request, response=cut)]).remarks)


def test_the_answer_of_a_chat_goes_back_as_words_and_calls() -> None:
    example = next(one for one in EXAMPLES if one.api == "… as DeepSeek, xAI and vLLM speak it")
    told = transcript_of([AnsweredCall(request=example.request, response=example.streams[0].response)])
    assert set(told.messages[-1]) == {"role", "content", "tool_calls"}
    assert Answered(parts=asked(fresh(told)).messages[-1].parts).tool_uses
