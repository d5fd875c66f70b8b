"""MCP over HTTP: recognised by its headers, shown by what is called."""

from typing import Any

import pytest

from rewind.match.canonical import Canonical, canonical_body
from rewind.model.http import Headers, HttpRequest, HttpResponse
from rewind.model.message import Answered, Media, Message, Other, Part, Role, Text, ToolResult, ToolUse
from rewind.model.step import StepKind
from rewind.providers.catalogue import BUILT_IN
from rewind.providers.mcp import API, McpReader
from support.exchanges import answer_with, request_of, stream_of

MCP = McpReader()
ACCEPT = ("Accept", "application/json, text/event-stream")
VERSION = ("MCP-Protocol-Version", "2025-06-18")
SESSION = ("Mcp-Session-Id", "1234")


def request(
    body: Any = b"",
    *,
    headers: Headers = (ACCEPT, VERSION),
    host: str = "tools.example",
    target: str = "/mcp",
    method: str = "POST",
) -> HttpRequest:
    return request_of(body, host=host, target=target, method=method, headers=headers)


def message(method: str, params: Any = None, number: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def result(value: Any, number: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": value}


def asked(body: Any) -> tuple[Message, ...]:
    return MCP.asked(request(body)).messages


def answered(response: HttpResponse) -> Answered:
    return MCP.answered(request(CALL), response)


CALL = message("tools/call", {"name": "look_up", "arguments": {"word": "rewind"}, "_meta": {"progressToken": 1}})


# ── who is recognised ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "head",
    [
        request(headers=(VERSION,), target="/anything"),
        request(headers=(SESSION,), target="/"),
        request(headers=(SESSION,), method="GET"),
        request(headers=(SESSION,), method="DELETE"),
        request(headers=(ACCEPT,)),
        request(headers=(ACCEPT,), target="/v1/mcp/"),
        request(headers=(ACCEPT,), target="/mcp/some-server?profile=x"),
        request(headers=(ACCEPT,), target="/sse"),
        request(headers=(ACCEPT,), target="/", host="mcp.example.com"),
        request(headers=(("accept", "text/event-stream, application/json;q=0.9"),)),
    ],
)
def test_a_request_to_a_tool_server_is_recognised(head: HttpRequest) -> None:
    assert MCP.claims(head.head)


@pytest.mark.parametrize(
    "head",
    [
        request(headers=()),
        request(headers=(("accept", "application/json"),)),
        request(headers=(("accept", "text/event-stream"),)),
        request(headers=(ACCEPT,), target="/v1/things"),
        request(headers=(ACCEPT,), target="/v1/mcpherson"),
        request(headers=(ACCEPT,), method="GET"),
        request(headers=(ACCEPT,), method="PUT"),
        request(headers=(VERSION,), method="OPTIONS"),
    ],
)
def test_what_only_looks_a_little_like_it_is_not(head: HttpRequest) -> None:
    assert not MCP.claims(head.head)


@pytest.mark.parametrize(
    "target", ["/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1beta/models/g:generateContent", "/api/chat"]
)
def test_a_call_to_a_model_is_not_claimed_whatever_it_accepts(target: str) -> None:
    call = request(headers=(ACCEPT,), target=target)
    assert not MCP.claims(call.head)
    assert any(provider.reader.claims(call.head) for provider in BUILT_IN)


def test_a_step_of_a_tool_server_is_no_call_to_a_model() -> None:
    assert (API.name, API.kind) == ("mcp", StepKind.HTTP_CALL)


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_tool_call_is_shown_with_its_arguments() -> None:
    found = MCP.asked(request(CALL))
    assert found.messages == (Message(Role.ASSISTANT, (ToolUse("1", "look_up", {"word": "rewind"}),)),)
    assert (found.model, found.parameters, found.note) == (None, {}, None)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (message("tools/list"), "tools/list"),
        (
            message("initialize", {"clientInfo": {"name": "agent", "version": "2.0"}, "protocolVersion": "x"}),
            "initialize agent 2.0",
        ),
        (message("prompts/get", {"name": "greeting", "arguments": {"to": "me"}}), "prompts/get greeting"),
        (message("resources/read", {"uri": "file:///a.txt"}), "resources/read file:///a.txt"),
        (message("logging/setLevel", {"level": "debug"}), "logging/setLevel debug"),
        (
            message("completion/complete", {"ref": {"type": "ref/prompt", "name": "greeting"}}),
            "completion/complete greeting",
        ),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, "notifications/initialized"),
    ],
)
def test_any_other_message_is_shown_by_method_and_subject(body: Any, text: str) -> None:
    assert asked(body) == (Message(Role.USER, (Text(text),)),)


def test_the_parameters_of_a_single_message_are_kept() -> None:
    body = message("prompts/get", {"name": "greeting", "arguments": {"to": "me"}, "_meta": {"progressToken": 1}})
    assert MCP.asked(request(body)).parameters == {"name": "greeting", "arguments": {"to": "me"}}


def test_what_the_client_answers_the_server_is_shown() -> None:
    assert asked(result({"roots": []}, 7)) == (
        Message(Role.USER, (Text("answer to 7"), Other("result", {"roots": []}))),
    )


def test_a_batch_is_taken_apart() -> None:
    batch = [CALL, message("tools/list", number="b")]
    assert [type(one.parts[0]) for one in asked(batch)] == [ToolUse, Text]
    response = answer_with([result({"tools": []}, "b"), result({"content": []}, 1)])
    parts = MCP.answered(request(batch), response).parts
    assert parts == (Text("0 tools"), ToolResult("1", (), "look_up"))


@pytest.mark.parametrize(("method", "text"), [("GET", "listen to the server"), ("DELETE", "end the session")])
def test_a_request_without_a_body_says_what_it_is_for(method: str, text: str) -> None:
    assert MCP.asked(request(method=method)).messages == (Message(Role.USER, (Text(text),)),)


def test_a_damaged_request_is_noted() -> None:
    found = MCP.asked(request(b'{"jsonrpc":'))
    assert (found.messages, found.note) == ((), "the request is damaged or not JSON")


# ── what is answered ─────────────────────────────────────────────────────────────────────────────────────────


def test_json_and_events_read_the_same() -> None:
    content = {"content": [{"type": "text", "text": "to wind back"}], "isError": False}
    whole, stream = answered(answer_with(result(content))), answered(stream_of(result(content)))
    assert whole == stream == Answered(parts=(ToolResult("1", (Text("to wind back"),), "look_up"),))


def test_what_a_server_sends_along_is_kept() -> None:
    log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "Looking"}}
    found = answered(stream_of(log, result({"content": []})))
    assert found.parts == (Other("notifications/message", log["params"]), ToolResult("1", (), "look_up"))


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "text", "text": "Hi"}, Text("Hi")),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "Words"}}, Text("Words")),
        (
            {"type": "resource_link", "uri": "https://x.example/a.png", "mimeType": "image/png", "name": "a"},
            Media("image", "image/png", "https://x.example/a.png"),
        ),
        ({"type": "new", "a": 1}, Other("new", {"type": "new", "a": 1})),
    ],
)
def test_every_kind_of_content_is_a_part(block: Any, part: Part) -> None:
    assert answered(answer_with(result({"content": [block]}))).parts == (ToolResult("1", (part,), "look_up"),)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "data": "QUJD", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a.png", "blob": "QUJD", "mimeType": "image/png"}},
    ],
)
def test_data_is_told_by_type_and_size(block: Any) -> None:
    (found,) = answered(answer_with(result({"content": [block]}))).parts
    assert isinstance(found, ToolResult) and isinstance(picture := found.parts[0], Media)
    assert (picture.kind, picture.media_type, picture.size) == ("image", "image/png", 3)


def test_a_result_as_a_value_is_kept_beside_its_text() -> None:
    told = {"content": [{"type": "text", "text": '{"n":1}'}], "structuredContent": {"n": 1}}
    (found,) = answered(answer_with(result(told))).parts
    assert found == ToolResult("1", (Text('{"n":1}'), Other("json", {"n": 1})), "look_up")


def test_a_tool_that_failed_is_no_error_of_the_protocol() -> None:
    found = answered(answer_with(result({"content": [{"type": "text", "text": "No."}], "isError": True})))
    assert found.parts == (ToolResult("1", (Text("No."),), "look_up", failed=True),)
    assert found.error is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            {"protocolVersion": "2025-06-18", "serverInfo": {"name": "Words", "version": "1.2"}},
            "initialize: Words 1.2, protocol 2025-06-18",
        ),
        ({"tools": [{"name": "a"}, {"name": "b"}]}, "2 tools: a, b"),
        ({"tools": [{"name": "a"}], "nextCursor": "x"}, "1 tool: a and more"),
        ({"prompts": [{"name": "greeting"}]}, "1 prompt: greeting"),
        ({"resources": [{"uri": "file:///a"}, {"name": "b"}]}, "2 resources: file:///a, b"),
        ({"resourceTemplates": []}, "0 resource templates"),
        ({"contents": [{"uri": "file:///a", "text": "Words"}]}, "Words"),
        ({"messages": [{"role": "user", "content": {"type": "text", "text": "Hello"}}]}, "Hello"),
    ],
)
def test_other_results_have_a_line(value: Any, text: str) -> None:
    assert answered(answer_with(result(value))).parts == (Text(text),)


def test_a_result_of_an_unknown_shape_is_kept_and_an_empty_one_says_nothing() -> None:
    assert answered(answer_with(result({"task": {"id": "t"}, "_meta": {}}))).parts == (
        Other("result", {"task": {"id": "t"}}),
    )
    assert answered(answer_with(result({}))).parts == ()
    assert answered(answer_with(b"", status=202)) == Answered()


def test_an_error_of_the_protocol_is_told_in_json_and_in_events() -> None:
    told = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Unknown tool: look"}}
    for response in (answer_with(told), stream_of(told), answer_with(told, status=400)):
        assert answered(response).error == "Unknown tool: look"
    assert answered(answer_with(MCP.refusal("Never recorded."), status=400)).error == "Never recorded."


# ── what makes two requests the same ─────────────────────────────────────────────────────────────────────────


def canonical(body: Any) -> Canonical:
    return canonical_body(request(body), API.volatile, ())


def test_a_token_of_progress_does_not_count_and_the_id_does() -> None:
    other = {**CALL, "params": {**CALL["params"], "_meta": {"progressToken": 9}}}
    assert canonical(CALL) == canonical(other)
    assert canonical([CALL]) == canonical([other])
    assert canonical(CALL) != canonical({**CALL, "id": 2})


STRANGE: tuple[Any, ...] = (None, True, 7, -1.5, "x", [], {}, [None], [[]], {"type": None}, {"a": {"b": []}})
FIELDS = (
    "id", "method", "params", "result", "error", "content", "tools", "structuredContent", "isError", "serverInfo",
    "prompts", "resources", "contents", "messages", "nextCursor", "protocolVersion",
)  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_no_field_of_a_strange_shape_is_too_much(field: str) -> None:
    for strange in STRANGE:
        for document in ({field: strange}, {"result": {field: strange}}, {"result": {field: [strange]}}, strange):
            assert MCP.asked(request(document)).note is None
            for response in (answer_with(document), stream_of(document), stream_of([document])):
                assert MCP.answered(request(document), response).note is None
