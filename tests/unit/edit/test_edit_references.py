"""``=@SESSION:STEP``: a value of another step, within one API as it was written, across two by what it means."""

from typing import Any

import pytest

from rewind.edit.apply import answer_for, edited
from rewind.edit.edits import Edit, SetResponse, parse_edit
from rewind.edit.references import resolve
from rewind.errors import UsageError
from rewind.model.http import Chunk, HttpRequest, HttpResponse
from rewind.model.message import Text, ToolUse, results_in, text_of
from rewind.providers.catalogue import identify
from support.exchanges import answer_with, request_of
from support.wire_examples import EXAMPLES, said
from unit.edit.asking import ANTHROPIC, APIS, CHAT, OPENAI_CHAT, OSLO, QUESTION, SYSTEM, Api, asked, document, edits

PAIRS = [(source, target) for source in APIS for target in APIS]


def resolved(text: str, request: HttpRequest, response: HttpResponse | None = None) -> Edit:
    asked_for: list[tuple[str, int]] = []

    def look_up(session: str, step: int) -> tuple[HttpRequest, HttpResponse | None]:
        asked_for.append((session, step))
        return request, response

    edit = resolve(parse_edit(text), look_up)
    assert asked_for == [("good", 4)]
    return edit


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=str)
def test_a_system_prompt_is_taken_from_any_api_into_any_other(source: Api, target: Api) -> None:
    edit = resolved("system=@good:4", edited(source.request(), edits("system=From the good run.")))
    assert asked(edited(target.request(), [edit])).system == (Text("From the good run."),)


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=str)
def test_a_message_is_taken_from_any_api_into_any_other(source: Api, target: Api) -> None:
    other = edited(source.request(), edits(f"messages[{source.last_user}]=Another question."))
    edit = resolved(f"messages[{source.last_user}]=@good:4", other)
    # The place is the same number in both, and the first message of a user stands there in only some of them.
    after = edited(target.request(), [edit])
    assert "Another question." in [message.text for message in asked(after).messages]


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=str)
def test_the_result_of_a_tool_is_taken_from_any_api_into_any_other(source: Api, target: Api) -> None:
    edit = resolved("tool.weather.result=@good:4", edited(source.request(), edits("tool.weather.result=−40")))
    results = [result.text for result in results_in(asked(edited(target.request(), [edit])).messages)]
    assert results == ["−40", "21 degrees"]


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=str)
def test_a_model_and_a_parameter_are_taken_from_any_api(source: Api, target: Api) -> None:
    other = edited(source.request(), edits("model=model-z", "temperature=0.125"))
    taken = [resolved(text, other) for text in ("model=@good:4", "temperature=@good:4")]
    after = edited(target.request(), taken)
    assert asked(after).model == "model-z"
    assert "0.125" in str(document(after))


@pytest.mark.parametrize("text", ["system=@good:4", "temperature=@good:4", "messages[0]=@good:4"])
def test_what_was_taken_is_still_written_as_the_reference(text: str) -> None:
    assert resolved(text, OPENAI_CHAT.request()).written == text


def test_an_edit_without_a_reference_looks_nothing_up() -> None:
    def look_up(session: str, step: int) -> tuple[HttpRequest, HttpResponse | None]:
        raise AssertionError("nobody was asked for")

    edit = parse_edit("system=Plain.")
    assert resolve(edit, look_up) is edit


def test_within_one_api_a_system_prompt_moves_block_by_block() -> None:
    blocks = [
        {"type": "text", "text": "One.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Two."},
    ]
    edit = resolved("system=@good:4", request_of(ANTHROPIC | {"system": blocks}, target="/v1/messages"))
    assert document(edited(request_of(ANTHROPIC, target="/v1/messages"), [edit]))["system"] == blocks
    assert text_of(asked(edited(OPENAI_CHAT.request(), [edit])).system) == "One.\n\nTwo."


def test_appending_what_another_step_says_appends_its_text() -> None:
    edit = resolved("system+=@good:4", edited(OPENAI_CHAT.request(), edits("system=More.")))
    assert text_of(asked(edited(OPENAI_CHAT.request(), [edit])).system) == f"{SYSTEM}\nMore."


def test_within_one_api_a_result_moves_as_it_was_written() -> None:
    picture = {"type": "image", "source": {"type": "url", "url": "https://pictures.example/a.png"}}
    result = {"type": "tool_result", "tool_use_id": "call_0", "content": [picture], "is_error": True}
    messages = [*ANTHROPIC["messages"][:2], {"role": "user", "content": [result]}]
    edit = resolved(
        "tool.weather.result=@good:4", request_of(ANTHROPIC | {"messages": messages}, target="/v1/messages")
    )
    after = document(edited(request_of(ANTHROPIC, target="/v1/messages"), [edit]))
    assert after["messages"][2]["content"][0] == result


def test_tools_are_taken_within_one_api_and_not_into_another() -> None:
    tools = [{"type": "function", "function": {"name": "weather"}}]
    edit = resolved("tools=@good:4", request_of(CHAT | {"tools": tools}))
    assert document(edited(OPENAI_CHAT.request(), [edit]))["tools"] == tools
    with pytest.raises(UsageError, match="tools of one API means nothing to another"):
        edited(request_of(ANTHROPIC, target="/v1/messages"), [edit])


def test_bedrock_cannot_be_edited_but_taken_from() -> None:
    bedrock = next(example for example in EXAMPLES if example.api == "Bedrock Converse")
    texts = ("system=@good:4", "temperature=@good:4", "messages[0]=@good:4", "tool.weather.result=@good:4")
    system, temperature, message, result = (resolved(text, bedrock.request) for text in texts)
    after = edited(request_of(ANTHROPIC, target="/v1/messages"), [system, temperature, message, result])
    assert text_of(asked(after).system) == said.SYSTEM
    assert asked(after).messages[0].text.startswith(said.QUESTION)
    assert next(results_in(asked(after).messages)).text == said.RESULT
    assert document(after)["temperature"] == 0.5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("system=@good:4", "Step 4 of good has no system prompt"),
        ("model=@good:4", "does not name a model"),
        ("seed=@good:4", "does not set seed; it sets: max_tokens"),
        ("messages[7]=@good:4", r"has no messages\[7\]: it has 1"),
        ("tool.search.result=@good:4", "brings no new result of 'search'; it brings no new results at all"),
        ("response=@good:4", "has no answer"),
    ],
)
def test_a_step_that_has_no_such_value_is_named(text: str, why: str) -> None:
    request = request_of({"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 1})
    with pytest.raises(UsageError, match=why) as refused:
        resolved(text, request)
    assert (refused.value.hint or "").startswith("rewind inspect good:4")


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────


def answer(request: HttpRequest, edit: Edit) -> HttpResponse:
    assert isinstance(edit, SetResponse)
    return answer_for(request, edit)


def test_an_answer_to_the_same_kind_of_call_is_given_to_the_byte() -> None:
    recorded = HttpResponse(
        head=answer_with(b"", headers=(("x-request-id", "r"),)).head,
        body=b'{"choices": [] }',
        chunks=(Chunk(7, 4), Chunk(9, 12)),
        trailers=(("x-late", "1"),),
    )
    edit = resolved("response=@good:4", OPENAI_CHAT.request(), recorded)
    assert answer(OPENAI_CHAT.request(temperature=1), edit) is recorded


TALKS = [
    (f"{example.api} {how}", request, response)
    for example in EXAMPLES
    for how, request, response in (
        ("whole", example.request, example.whole),
        *((stream.format, stream.request, stream.response) for stream in example.streams),
    )
    if example.api
    in ("Anthropic Messages", "OpenAI Chat Completions", "OpenAI Responses", "Gemini", "Bedrock Converse")
]


@pytest.mark.parametrize("source", TALKS, ids=lambda talk: talk[0])
@pytest.mark.parametrize("target", TALKS, ids=lambda talk: talk[0])
def test_an_answer_is_told_anew_where_it_does_not_fit(
    source: tuple[str, HttpRequest, HttpResponse], target: tuple[str, HttpRequest, HttpResponse]
) -> None:
    edit = resolved("response=@good:4", source[1], source[2])
    given = answer(target[1], edit)
    if source is target:
        assert given is source[2]
    read = identify(target[1].head).reader.answered(target[1], given)
    assert (read.text, read.error, read.note) == (said.TEXT, None, None)
    assert [(use.name, use.arguments) for use in read.tool_uses] == [(name, args) for _, name, args in said.CALLS]


def test_an_error_is_told_as_an_error_of_the_other_api() -> None:
    recorded = answer_with({"error": {"message": "Overloaded."}}, status=529)
    edit = resolved("response=@good:4", OPENAI_CHAT.request(), recorded)
    given = answer(request_of(ANTHROPIC, target="/v1/messages"), edit)
    assert given.head.status == 529
    assert b'"type":"error"' in given.body and b"Overloaded." in given.body


def test_an_answer_of_a_tool_server_gets_the_id_that_is_waited_for() -> None:
    def call(number: int) -> HttpRequest:
        body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "weather"}}
        headers = (("mcp-session-id", "s"), ("accept", "application/json, text/event-stream"))
        return request_of(body, target="/mcp", headers=headers)

    result: dict[str, Any] = {"content": [{"type": "text", "text": OSLO}]}
    recorded = answer_with({"jsonrpc": "2.0", "id": 3, "result": result})
    given = answer(call(8), resolved("response=@good:4", call(3), recorded))
    read = identify(call(8).head).reader.answered(call(8), given)
    assert b'"id":8' in given.body
    assert [part.text for part in read.parts if not isinstance(part, ToolUse) and hasattr(part, "text")] == [OSLO]
