"""Answers that nobody gave: read back by our codecs and by the vendors' own SDKs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rewind.edit.apply import answer_for
from rewind.edit.edits import SetResponse, TextValue, parse_edit
from rewind.errors import CannotEdit, UsageError
from rewind.model.http import HttpRequest, HttpResponse
from rewind.model.message import Answered, ToolResult, text_of
from rewind.providers.catalogue import identify
from rewind.wire.eventstream import read_frames
from support.exchanges import request_of
from support.sdk_readers import Sdks, ours
from support.traffic import Exchange
from support.wire_examples import EXAMPLES

TEXT = "It is “warm” there: 21 °C ✓\n\n" + "Take a hat. " * 40
ONE_TOOL = {"tool": "weather", "arguments": {"city": "Rome", "unit": "°C", "deep": [{"a": None}]}}
TEXT_AND_TOOLS = {"text": "I look.", "tools": [{"name": "weather", "arguments": {"city": "Rome"}}, {"name": "clock"}]}
NO_TOOLS = ("legacy", "generate", "Llama", "Titan", "InvokeModel: Mistral")
"""APIs that are given a prompt and call nothing."""


def _asked() -> Iterator[tuple[str, HttpRequest, str]]:
    """Every model that is asked, in every form; what Bedrock's makers are called tells their shapes."""
    for example in EXAMPLES:
        if "embeddings" in example.api or "counting" in example.api or example.api in ("MCP", "`@rewind.tool`"):
            continue
        _, _, maker = example.api.partition("InvokeModel: ")
        for how, request in (("whole", example.request), *((one.format, one.request) for one in example.streams)):
            named = request.head.path.replace("model-x", f"vendor.{maker.lower()}-8b")
            yield (
                f"{example.api}, {how}",
                request_of(request.body, target=named) if maker in ("Llama", "Mistral") else request,
                how,
            )


ALL_ASKED = list(_asked())
ASKED = [(name, request, how) for name, request, how in ALL_ASKED if identify(request.head).speaker is not None]
READ_ONLY = [request for _, request, _ in ALL_ASKED if identify(request.head).speaker is None]
every_form = pytest.mark.parametrize(("request_", "how"), [pytest.param(r, h, id=n) for n, r, h in ASKED])
with_tools = pytest.mark.parametrize(
    ("request_", "how"), [pytest.param(r, h, id=n) for n, r, h in ASKED if not any(word in n for word in NO_TOOLS)]
)


def made(request: HttpRequest, value: str | dict[str, Any]) -> HttpResponse:
    text = value if isinstance(value, str) else json.dumps(value)
    edit = parse_edit(f"response={text}")
    assert isinstance(edit, SetResponse)
    response = answer_for(request, edit)
    assert sum(chunk.size for chunk in response.chunks) == len(response.body)
    assert response.head.status == 200
    return response


def read(request: HttpRequest, response: HttpResponse) -> Answered:
    answered = identify(request.head).reader.answered(request, response)
    assert (answered.error, answered.note) == (None, None)
    return answered


def is_streamed(how: str) -> bool:
    return how != "whole"


@every_form
def test_a_text_is_answered_in_the_form_that_was_asked_for(request_: HttpRequest, how: str) -> None:
    response = made(request_, TEXT)
    answered = read(request_, response)
    assert answered.text == TEXT
    assert not answered.usage.input and not answered.usage.output
    media = response.head.header("content-type") or ""
    expected = {
        "SSE": "text/event-stream",
        "NDJSON": "json",
        "AWS frames": "application/vnd.amazon.eventstream",
        "JSON list": "application/json",
        "whole": "application/json",
    }
    assert expected[how] in media
    framing = {name for name, _ in response.head.headers} & {"content-length", "transfer-encoding"}
    assert framing == ({"transfer-encoding"} if is_streamed(how) else {"content-length"})


@pytest.mark.parametrize("request_", READ_ONLY)
@pytest.mark.parametrize("value", [TEXT, ONE_TOOL])
def test_no_text_stands_for_an_answer_that_the_client_could_not_read(
    request_: HttpRequest, value: str | dict[str, Any]
) -> None:
    with pytest.raises(CannotEdit, match="an API that Rewind reads and does not write"):
        made(request_, value)
    assert json.loads(made(request_, {"completion": "whole"}).body) == {"completion": "whole"}


@every_form
def test_an_empty_text_is_an_answer_too(request_: HttpRequest, how: str) -> None:
    assert read(request_, made(request_, "")).text == ""


@with_tools
def test_a_tool_is_asked_for(request_: HttpRequest, how: str) -> None:
    answered = read(request_, made(request_, ONE_TOOL))
    assert [(use.name, use.arguments) for use in answered.tool_uses] == [("weather", ONE_TOOL["arguments"])]
    assert answered.text == ""


@with_tools
def test_words_and_several_tools_go_together(request_: HttpRequest, how: str) -> None:
    answered = read(request_, made(request_, TEXT_AND_TOOLS))
    assert answered.text == "I look."
    assert [(use.name, use.arguments) for use in answered.tool_uses] == [("weather", {"city": "Rome"}), ("clock", {})]
    told = [use.id for use in answered.tool_uses if use.id]
    assert len(set(told)) == len(told)


@pytest.mark.e2e
@pytest.mark.parametrize("value", [TEXT, "", json.dumps(ONE_TOOL), json.dumps(TEXT_AND_TOOLS)])
@every_form
def test_the_vendors_own_sdk_reads_the_same(request_: HttpRequest, how: str, value: str) -> None:
    if value.startswith("{") and "legacy" in request_.head.path:
        return
    try:
        response = made(request_, value)
    except CannotEdit:
        return
    formats = {"SSE": "sse", "JSON list": "json-array", "AWS frames": "aws-eventstream"}
    exchange = Exchange(
        cassette="",
        index=0,
        vendor="",
        kind="llm",
        stream_format=formats.get(how, ""),
        request=request_,
        response=response,
    )
    reader = SDKS.reader_of(exchange)
    if reader is None:
        return
    _, assembled = reader
    seen = assembled()
    mine = ours(read(request_, response))
    assert (seen.text, seen.tools, seen.stop, seen.error) == (mine.text, mine.tools, mine.stop, "")
    assert (seen.id, seen.model) == (mine.id, mine.model)


SDKS = Sdks()


def test_the_sdks_read_a_good_part_of_all_forms() -> None:
    """So that the test above cannot pass by reading nothing."""
    known = set()
    for _, request, how in ASKED:
        formats = {"SSE": "sse", "JSON list": "json-array", "AWS frames": "aws-eventstream"}
        exchange = Exchange(
            cassette="",
            index=0,
            vendor="",
            kind="llm",
            stream_format=formats.get(how, ""),
            request=request,
            response=made(request, TEXT),
        )
        if (reader := SDKS.reader_of(exchange)) is not None:
            known.add((reader[0], is_streamed(how)))
    names = ("anthropic", "openai chat", "openai responses", "google-genai", "botocore")
    assert known == {(name, streamed) for name in names for streamed in (True, False)}


def test_frames_fit_their_checksums() -> None:
    request = request_of({"messages": []}, target="/model/m/converse-stream")
    stream = read_frames(made(request, TEXT).body)
    assert stream.frames and all(frame.intact for frame in stream.frames)
    assert (stream.lost, stream.cut) == (0, False)


def test_a_stream_that_asked_for_its_usage_is_told_that_there_was_none() -> None:
    body = {"model": "m", "messages": [], "stream": True}
    assert b'"usage"' not in made(request_of(body), TEXT).body
    counted = made(request_of(body | {"stream_options": {"include_usage": True}}), TEXT)
    assert b'"choices":[],"usage":{"prompt_tokens":0' in counted.body
    assert counted.body.endswith(b"data: [DONE]\n\n")


def test_the_same_call_gets_the_same_ids_and_another_call_others() -> None:
    def ids(question: str) -> list[str]:
        request = request_of({"messages": [{"role": "user", "content": question}]})
        return [use.id for use in read(request, made(request, TEXT_AND_TOOLS)).tool_uses]

    assert ids("a") == ids("a")
    assert not set(ids("a")) & set(ids("b"))
    assert all(len(one) == 9 and one.isalnum() for one in ids("a"))


# ── the API's own document ───────────────────────────────────────────────────────────────────────────────────

OWN = (
    "Anthropic Messages",
    "OpenAI Chat Completions",
    "OpenAI Responses",
    "Gemini",
    "Bedrock Converse",
    "Cohere Chat",
    "Ollama chat",
)


@pytest.mark.parametrize("example", [one for one in EXAMPLES if one.api in OWN], ids=lambda one: one.api)
def test_a_whole_document_is_given_as_it_is_and_streamed_where_a_stream_was_asked_for(example: Any) -> None:
    document = json.loads(example.whole.body)
    whole = made(example.request, document)
    assert json.loads(whole.body) == document
    recorded = read(example.request, example.whole)
    for stream in example.streams:
        told = read(stream.request, made(stream.request, document))
        assert (told.text, told.tool_uses, told.stop) == (recorded.text, recorded.tool_uses, recorded.stop)
        assert (told.id, told.model) == (recorded.id, recorded.model)


def test_a_document_of_another_shape_is_given_whole_also_where_a_stream_was_asked_for() -> None:
    for target in ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/chat"):
        request = request_of({"model": "m", "messages": [], "stream": True}, target=target)
        response = made(request, {"error": {"message": "Overloaded."}})
        assert json.loads(response.body) == {"error": {"message": "Overloaded."}}
        assert identify(request.head).reader.answered(request, response).error == "Overloaded."


# ── other ways to say it ─────────────────────────────────────────────────────────────────────────────────────


def test_a_text_that_is_itself_json_goes_under_text() -> None:
    request = request_of({"messages": []})
    assert json.loads(read(request, made(request, {"text": {"city": "Rome"}})).text) == {"city": "Rome"}
    assert read(request, made(request, "[1, 2]")).text == "[1, 2]"
    assert read(request, made(request, '{"city": "Ro')).text == '{"city": "Ro'


def test_the_older_functions_are_called_in_their_own_way() -> None:
    request = request_of({"messages": [], "functions": [{"name": "weather"}]})
    document = json.loads(made(request, ONE_TOOL).body)
    assert document["choices"][0]["message"]["function_call"]["name"] == "weather"
    with pytest.raises(CannotEdit, match="only one"):
        made(request, TEXT_AND_TOOLS)


def test_a_tool_that_takes_a_text_of_its_own_is_called_with_it() -> None:
    for target in ("/v1/responses", "/v1/chat/completions"):
        for stream in (True, False):
            request = request_of({"input": "x", "messages": [], "stream": stream}, target=target)
            answered = read(request, made(request, {"tool": "patch", "arguments": "*** Begin"}))
            assert [(use.name, use.arguments) for use in answered.tool_uses] == [("patch", "*** Begin")]


@pytest.mark.parametrize(
    "value", [{"tools": "weather"}, {"tools": ["weather"]}, {"tools": [{"arguments": {}}]}, {"tool": 3}]
)
def test_a_tool_without_a_name_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        made(request_of({"messages": []}), value)
    assert (refused.value.hint or "").startswith('response={"tool"')


def test_code_assist_is_answered_in_its_wrapping() -> None:
    for target in ("/v1internal:generateContent", "/v1internal:streamGenerateContent?alt=sse"):
        request = request_of({"model": "m", "request": {"contents": []}}, target=target)
        response = made(request, TEXT)
        assert b'{"response":{"candidates"' in response.body
        assert read(request, response).text == TEXT


def test_vectors_and_counts_are_not_made_up_from_words() -> None:
    for example in EXAMPLES:
        if "embeddings" in example.api or "counting" in example.api:
            with pytest.raises(CannotEdit, match="asks for"):
                made(example.request, TEXT)
            assert json.loads(made(example.request, {"data": []}).body) == {"data": []}


def test_a_model_of_an_unknown_maker_needs_the_whole_document() -> None:
    request = request_of({"prompt": "Once"}, target="/model/somebody.else-1/invoke")
    with pytest.raises(CannotEdit, match=r"does not know the shape of an answer of somebody\.else-1"):
        made(request, TEXT)
    assert json.loads(made(request, {"said": "x"}).body) == {"said": "x"}


def test_what_is_no_model_answers_with_the_text_or_the_document_itself() -> None:
    web = request_of({"q": 1}, target="/search")
    assert made(web, "found").body == b"found"
    assert json.loads(made(web, {"text": "found"}).body) == {"text": "found"}
    tool = next(example for example in EXAMPLES if example.api == "`@rewind.tool`").request
    assert json.loads(made(tool, "found").body) == {"result": "found"}
    assert json.loads(made(tool, {"found": 3}).body) == {"result": {"found": 3}}


@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "text/event-stream"])
def test_a_tool_server_answers_under_the_id_it_was_asked_with(accept: str) -> None:
    body = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "weather"}}
    request = request_of(body, target="/mcp", headers=(("mcp-session-id", "s"), ("accept", accept)))
    (result,) = read(request, made(request, "21 °C")).parts
    assert isinstance(result, ToolResult)
    assert (text_of(result.parts), result.name) == ("21 °C", "weather")


def test_a_reference_that_nobody_looked_up_is_refused() -> None:
    with pytest.raises(UsageError, match="has not been looked up"):
        made(request_of({"messages": []}), "@7f3a:4")


def test_the_value_is_taken_to_the_letter() -> None:
    request = request_of({"messages": []})
    assert read(request, answer_for(request, SetResponse(TextValue("@home\x00\ud83d")))).text == "@home\x00\ufffd"
