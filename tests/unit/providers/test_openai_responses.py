"""OpenAI Responses: items asked, answered and streamed, read into the neutral shape."""

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
    Refusal,
    Role,
    Text,
    Thinking,
    ToolDefinition,
    ToolResult,
    ToolUse,
)
from rewind.model.usage import Usage
from rewind.providers.openai_responses.read import OpenAIResponsesReader
from support.exchanges import answer_with, request_of, stream_of

RESPONSES = OpenAIResponsesReader()


def asked(**body: Any) -> Asked:
    return RESPONSES.asked(request_of({"model": "gpt-x", **body}, target="/v1/responses"))


def answered(response: HttpResponse) -> Answered:
    return RESPONSES.answered(request_of({"model": "gpt-x"}, target="/v1/responses"), response)


def response_of(*output: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-x-1",
        "status": "completed",
        "output": list(output),
        **more,
    }


def says(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}],
    "encrypted_content": "c2VhbGVk",
}
LOOK = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": '{"at": 1}'}
ANSWER_PARTS = (Thinking("First.\n\nThen.", sealed=True), Text("Let me look."), ToolUse("call_1", "look", {"at": 1}))

STREAM = (
    {"type": "response.created", "response": response_of(status="in_progress")},
    {"type": "response.output_item.added", "output_index": 0, "item": {**THOUGHT, "summary": []}},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "Fir"},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "st."},
    {"type": "response.reasoning_summary_text.done", "output_index": 0, "summary_index": 1, "text": "Then."},
    {
        "type": "response.output_item.added",
        "output_index": 1,
        "item": {"type": "message", "role": "assistant", "content": []},
    },
    {
        "type": "response.content_part.added",
        "output_index": 1,
        "content_index": 0,
        "part": {"type": "output_text", "text": ""},
    },
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "Let me "},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "look."},
    {"type": "response.output_item.done", "output_index": 1, "item": says("Let me look.")},
    {"type": "response.output_item.added", "output_index": 2, "item": {**LOOK, "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"at"'},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": ": 1}"},
)
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 20},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 12},
    "total_tokens": 130,
}
WHOLE = response_of(THOUGHT, says("Let me look."), LOOK, usage=USAGE, service_tier="flex")


def test_a_stream_and_its_whole_twin_read_the_same() -> None:
    streamed = stream_of(*STREAM, {"type": "response.completed", "response": WHOLE})
    expected = Answered(
        id="resp_1",
        model="gpt-x-1",
        parts=ANSWER_PARTS,
        stop="completed",
        usage=Usage(input=100, output=30, cache_read=60, cache_write=20, reasoning=12, tier="flex"),
    )
    assert answered(answer_with(WHOLE)) == answered(streamed) == expected


def test_a_stream_that_is_cut_keeps_what_its_deltas_gave() -> None:
    assert answered(stream_of(*STREAM)) == Answered(id="resp_1", model="gpt-x-1", parts=ANSWER_PARTS)
    assert answered(stream_of(*STREAM[:-1])).parts[-1] == ToolUse("call_1", "look", '{"at"')


def test_the_items_of_a_stream_count_where_its_last_event_leaves_them_out() -> None:
    end = {"type": "response.completed", "response": response_of(usage=USAGE)}
    reading = answered(stream_of(*STREAM, end))
    assert (reading.parts, reading.stop, reading.usage.input) == (ANSWER_PARTS, "completed", 100)


def test_deltas_without_the_events_around_them_are_read() -> None:
    cut = stream_of({"type": "response.output_text.delta", "delta": "Once upon"}, end=b'data: {"type": "respon')
    assert answered(cut) == Answered(parts=(Text("Once upon"),), note="the stream is cut inside an event")


def test_a_repeated_answer_is_one_turn_with_the_parts_of_that_answer() -> None:
    result = {"type": "function_call_output", "call_id": "call_1", "output": "a door"}
    conversation = asked(
        input=[{"role": "user", "content": "Where am I?"}, THOUGHT, says("Let me look."), LOOK, result]
    )
    assert conversation.messages == (
        Message(Role.USER, (Text("Where am I?"),)),
        Message(Role.ASSISTANT, answered(answer_with(WHOLE)).parts),
        Message(Role.TOOL, (ToolResult("call_1", (Text("a door"),)),)),
    )


def test_instructions_and_leading_system_messages_are_the_system() -> None:
    conversation = asked(
        instructions="Be brief.",
        input=[
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"role": "system", "content": "Be quick."},
        ],
        temperature=0,
        conversation="conv_1",
        previous_response_id="resp_0",
        stream=True,
    )
    assert conversation == Asked(
        model="gpt-x",
        system=(Text("Be brief."), Text("Be kind.")),
        messages=(Message(Role.USER, (Text("Hi"),)), Message(Role.SYSTEM, (Text("Be quick."),))),
        parameters={"temperature": 0},
        streamed=True,
        continues="resp_0",
        history="conv_1",
    )


def test_an_input_may_be_a_plain_text() -> None:
    assert asked(input="Hi").messages == (Message(Role.USER, (Text("Hi"),)),)


def test_pictures_files_and_sounds_are_told_by_what_is_known() -> None:
    content = [
        {"type": "input_image", "image_url": "https://pictures.example/cat.png"},
        {"type": "input_image", "file_id": "file_1"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"},
        {"type": "input_file", "file_data": "QUJD"},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        {"type": "input_hologram", "data": 1},
    ]
    (message,) = asked(input=[{"role": "user", "content": content}]).messages
    *media, unknown = message.parts
    assert unknown == Other("input_hologram", content[-1])
    assert [(part.kind, part.media_type, part.reference, part.size) for part in media if isinstance(part, Media)] == [
        ("image", "", "https://pictures.example/cat.png", None),
        ("image", "", "file_1", None),
        ("document", "application/pdf", "", 3),
        ("file", "", "", 3),
        ("audio", "audio/wav", "", 3),
    ]


@pytest.mark.parametrize(
    ("item", "role", "parts"),
    [
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "123"},
            Role.ASSISTANT,
            (ToolUse("c", "sql", "123"),),
        ),
        (
            {"type": "custom_tool_call_output", "call_id": "c", "output": "one row"},
            Role.TOOL,
            (ToolResult("c", (Text("one row"),)),),
        ),
        (
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "a"}]},
            Role.TOOL,
            (ToolResult("c", (Text("a"),)),),
        ),
        (
            {"type": "computer_call", "id": "i", "call_id": "c", "action": {"type": "click"}},
            Role.ASSISTANT,
            (ToolUse("c", "computer", {"type": "click"}),),
        ),
        (
            {
                "type": "computer_call_output",
                "call_id": "c",
                "output": {"type": "computer_screenshot", "image_url": "https://pictures.example/1"},
            },
            Role.TOOL,
            (ToolResult("c", (Media("image", reference="https://pictures.example/1"),), "computer"),),
        ),
        (
            {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
            Role.ASSISTANT,
            (ToolUse("c", "shell", {"commands": ["ls"]}),),
        ),
        (
            {"type": "shell_call", "call_id": "c", "action": {}, "environment": {"type": "container_reference"}},
            Role.ASSISTANT,
            (ToolUse("c", "shell", {}, hosted=True),),
        ),
        (
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [{"stdout": "a", "stderr": "b", "outcome": {"type": "exit", "exit_code": 1}}],
            },
            Role.TOOL,
            (ToolResult("c", (Text("a"), Text("b"), Other("outcome", {"type": "exit", "exit_code": 1})), "shell"),),
        ),
        (
            {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no such file"},
            Role.TOOL,
            (ToolResult("c", (Text("no such file"),), "apply_patch", failed=True),),
        ),
        (
            {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"queries": ["x"]}},
            Role.ASSISTANT,
            (ToolUse("c", "tool_search", {"queries": ["x"]}),),
        ),
        (
            {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": []},
            Role.TOOL,
            (ToolResult("c", (Other("tools", []),), "tool_search"),),
        ),
        (
            {"type": "tool_search_call", "id": "t", "call_id": None, "execution": "server", "arguments": {}},
            Role.ASSISTANT,
            (ToolUse("", "tool_search", {}, hosted=True),),
        ),
        (
            {"type": "mcp_approval_response", "approval_request_id": "m", "approve": False, "reason": "no"},
            Role.USER,
            (ToolResult("m", (Text("declined: no"),), hosted=True),),
        ),
        (
            {"type": "item_reference", "id": "msg_1"},
            Role.ASSISTANT,
            (Other("item_reference", {"type": "item_reference", "id": "msg_1"}),),
        ),
        ({"id": "msg_1"}, Role.ASSISTANT, (Other("item_reference", {"id": "msg_1"}),)),
        ({"type": "reasoning", "summary": []}, Role.ASSISTANT, (Thinking("", sealed=True),)),
    ],
)
def test_every_kind_of_item_has_its_speaker_and_its_parts(item: Any, role: Role, parts: tuple[Part, ...]) -> None:
    assert asked(input=[item]).messages == (Message(role, parts),)


@pytest.mark.parametrize(
    ("item", "parts"),
    [
        (
            {"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": "doors"}},
            (ToolUse("ws", "web_search", {"type": "search", "query": "doors"}, hosted=True),),
        ),
        (
            {"type": "file_search_call", "id": "fs", "queries": ["doors"], "results": [{"text": "oak"}]},
            (
                ToolUse("fs", "file_search", {"queries": ["doors"]}, hosted=True),
                ToolResult("fs", (Other("results", [{"text": "oak"}]),), "file_search", hosted=True),
            ),
        ),
        (
            {
                "type": "code_interpreter_call",
                "id": "ci",
                "code": "print(1)",
                "outputs": [{"type": "logs", "logs": "1"}],
            },
            (
                ToolUse("ci", "code_interpreter", {"code": "print(1)"}, hosted=True),
                ToolResult("ci", (Text("1"),), "code_interpreter", hosted=True),
            ),
        ),
        (
            {"type": "mcp_call", "id": "m", "name": "ask", "arguments": '{"q": 1}', "output": "yes"},
            (ToolUse("m", "ask", {"q": 1}, hosted=True), ToolResult("m", (Text("yes"),), "ask", hosted=True)),
        ),
        (
            {
                "type": "mcp_call",
                "id": "m",
                "name": "ask",
                "arguments": "{}",
                "error": {"type": "http_error", "message": "gone"},
            },
            (ToolUse("m", "ask", {}, hosted=True), ToolResult("m", (Text("gone"),), "ask", failed=True, hosted=True)),
        ),
        (
            {"type": "mcp_list_tools", "id": "l", "server_label": "s", "tools": [{"name": "ask"}]},
            (ToolResult("l", (Other("tools", [{"name": "ask"}]),), "mcp_list_tools", hosted=True),),
        ),
        (
            {"type": "mcp_approval_request", "id": "m", "name": "ask", "arguments": "{}"},
            (ToolUse("m", "ask", {}, hosted=True),),
        ),
        (
            {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            (Refusal("No."),),
        ),
    ],
)
def test_what_the_provider_runs_itself_is_told_with_its_result(item: Any, parts: tuple[Part, ...]) -> None:
    reading = answered(answer_with(response_of(item)))
    assert reading.parts == parts
    assert reading.tool_uses == ()
    assert asked(input=[item]).messages == (Message(Role.ASSISTANT, parts),)


def test_a_painted_picture_is_media_and_its_last_sketch_where_the_stream_was_cut() -> None:
    item = {"type": "image_generation_call", "id": "ig", "revised_prompt": "a cat", "result": "QUJD"}
    call, picture = answered(answer_with(response_of(item))).parts
    assert call == ToolUse("ig", "image_generation", {"revised_prompt": "a cat"}, hosted=True)
    assert isinstance(picture, Media) and (picture.kind, picture.size) == ("image", 3)
    sketch = {"type": "response.image_generation_call.partial_image", "output_index": 0}
    begun = {"type": "response.output_item.added", "output_index": 0, "item": {**item, "result": None}}
    cut = stream_of(begun, {**sketch, "partial_image_b64": "QQ=="}, {**sketch, "partial_image_b64": "QUJD"})
    assert answered(cut).parts == (call, picture)


@pytest.mark.parametrize(
    ("event", "more", "part"),
    [
        ("response.refusal.delta", {"content_index": 0}, Refusal("ab")),
        ("response.reasoning_text.delta", {"content_index": 0}, Thinking("ab")),
        ("response.custom_tool_call_input.delta", {}, ToolUse("", "custom_tool", "ab")),
        ("response.mcp_call_arguments.delta", {}, ToolUse("", "mcp", "ab", hosted=True)),
        ("response.code_interpreter_call_code.delta", {}, ToolUse("", "code_interpreter", {"code": "ab"}, hosted=True)),
        ("response.shell_call_command.delta", {"command_index": 0}, ToolUse("", "shell", {"commands": ["ab"]})),
        ("response.audio.transcript.delta", {}, Text("ab")),
    ],
)
def test_deltas_of_every_kind_are_joined(event: str, more: dict[str, Any], part: Part) -> None:
    cut = stream_of(*({"type": event, "output_index": 0, "delta": piece, **more} for piece in "ab"))
    assert answered(cut).parts[0] == part


def test_output_of_a_hosted_shell_comes_in_two_streams() -> None:
    event = {"type": "response.shell_call_output_content.delta", "output_index": 0, "command_index": 0}
    cut = stream_of({**event, "delta": {"stdout": "o"}}, {**event, "delta": {"stdout": "k", "stderr": "!"}})
    assert answered(cut).parts == (ToolResult("", (Text("ok"), Text("!")), "shell"),)


def test_an_answer_that_ran_into_its_limit_is_no_error() -> None:
    details = {"reason": "max_output_tokens"}
    whole = response_of(says("Once"), status="incomplete", incomplete_details=details)
    reading = answered(stream_of({"type": "response.incomplete", "response": whole}))
    assert (reading.text, reading.stop, reading.error) == ("Once", "incomplete: max_output_tokens", None)


def test_an_answer_still_under_way_has_no_reason_to_have_stopped() -> None:
    assert answered(answer_with(response_of(status="queued"))).stop == ""


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.failed", "response": {"status": "failed", "error": {"code": "x", "message": "No credit"}}},
        {"type": "error", "code": "x", "message": "No credit", "param": None},
        {"type": "error", "error": {"type": "x", "message": "No credit"}},
    ],
)
def test_an_error_inside_a_stream_is_told_beside_what_came_before(event: Any) -> None:
    reading = answered(stream_of({"type": "response.output_text.delta", "delta": "Once"}, event))
    assert (reading.text, reading.error) == ("Once", "No credit")


def test_tools_of_every_kind() -> None:
    function = {"type": "function", "name": "look", "description": "Look.", "parameters": {"type": "object"}}
    conversation = asked(
        input=[
            {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "go"}]},
            {"role": "user", "content": "Hi"},
        ],
        tools=[
            function,
            {"type": "custom", "name": "sql", "format": {"type": "grammar"}},
            {"type": "namespace", "name": "shop", "tools": [{"type": "function", "name": "buy"}]},
            {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}},
            {"type": "tool_search"},
            {"type": "web_search", "search_context_size": "low"},
            {"type": "mcp", "server_label": "wiki", "server_url": "https://mcp.example"},
            {"type": "shell", "environment": {"type": "local"}},
            {"type": "shell", "environment": {"type": "container_auto"}},
        ],
    )
    assert conversation.tools == (
        ToolDefinition("look", "Look.", {"type": "object"}),
        ToolDefinition("sql", "", {"type": "grammar"}),
        ToolDefinition("buy"),
        ToolDefinition("tool_search", "", {"type": "object"}),
        ToolDefinition("tool_search", "", {}, hosted=True),
        ToolDefinition("web_search", "", {"search_context_size": "low"}, hosted=True),
        ToolDefinition("wiki", "", {"server_label": "wiki", "server_url": "https://mcp.example"}, hosted=True),
        ToolDefinition("shell", "", {"environment": {"type": "local"}}),
        ToolDefinition("shell", "", {"environment": {"type": "container_auto"}}, hosted=True),
        ToolDefinition("go"),
    )
    assert conversation.messages == (Message(Role.USER, (Text("Hi"),)),)


@pytest.mark.parametrize(
    "body",
    [
        {"input": {"role": "user"}, "tools": "none", "instructions": 1},
        {"input": [None, 1, "a", [], {"type": 3, "content": {}}, {"type": "reasoning", "summary": 1}]},
        {"output": [None, {"type": "message", "content": [1, {"type": "output_text", "text": []}]}]},
        {"output": {"type": "message"}, "usage": 7, "status": [], "incomplete_details": "x"},
        {"type": "response.output_text.delta", "output_index": 2**70, "content_index": -1, "delta": 5},
        {"type": "response.output_item.done", "item": "x"},
    ],
)
def test_strange_shapes_are_borne(body: Any) -> None:
    assert RESPONSES.asked(request_of(body, target="/v1/responses")).note is None
    assert answered(answer_with(body)).error is None
    assert answered(stream_of(body, body)).error is None


def test_an_index_from_a_damaged_event_makes_no_endless_list() -> None:
    event = {"type": "response.output_text.delta", "output_index": 0, "content_index": 2**50, "delta": "Hi"}
    assert answered(stream_of(event)).text == "Hi"


def test_a_request_that_is_no_json_says_so() -> None:
    request = request_of(b'{"input": [', target="/v1/responses")
    assert RESPONSES.asked(request) == Asked(note="the request is damaged or not JSON")


def test_a_long_stream_is_read_in_one_go() -> None:
    piece = json.dumps({"type": "response.output_text.delta", "output_index": 0, "delta": "word "})
    body = f"data: {piece}\n\n".encode() * 20_000
    assert len(answered(answer_with(body, media="text/event-stream")).text) == 100_000
