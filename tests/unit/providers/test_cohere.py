"""Cohere Chat, the second version and the first."""

import json
from typing import Any

import pytest

from rewind.model.message import (
    Answered,
    Asked,
    Media,
    Message,
    Other,
    Role,
    Text,
    Thinking,
    ToolDefinition,
    ToolResult,
    ToolUse,
)
from rewind.model.usage import Usage
from rewind.pricing.rates import counts_of
from rewind.providers.cohere.read import CohereReader
from support.exchanges import answer_with, request_of, stream_of

COHERE = CohereReader()
HOST = "api.cohere.com"


def asked(body: Any, target: str = "/v2/chat") -> Asked:
    return COHERE.asked(request_of(body, host=HOST, target=target))


def whole(document: Any, **more: Any) -> Answered:
    return COHERE.answered(request_of({}, host=HOST, target="/v2/chat"), answer_with(document, **more))


def streamed(*documents: Any) -> Answered:
    return COHERE.answered(request_of({}, host=HOST, target="/v2/chat"), stream_of(*documents))


@pytest.mark.parametrize(
    ("request_", "claimed"),
    [
        (request_of(host=HOST, target="/v2/chat"), True),
        (request_of(host="api.cohere.ai", target="/v1/chat"), True),
        (request_of(host="x.services.ai.azure.com", target="/providers/cohere/v2/chat"), True),
        (request_of(host="llm.internal", target="/v2/chat", headers=(("X-Fern-SDK-Name", "cohere"),)), True),
        (request_of(host="chat.example", target="/v2/chat"), False),
        (request_of(host=HOST, target="/v2/embed"), False),
        (request_of(host=HOST, target="/v2/chat", method="GET"), False),
    ],
)
def test_the_vendor_must_show(request_: Any, claimed: bool) -> None:
    assert COHERE.claims(request_.head) is claimed


# ── /v2 ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_conversation_with_tools() -> None:
    read = asked(
        {
            "model": "command-x",
            "messages": [
                {"role": "system", "content": "Be kind."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Hi"},
                        {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
                    ],
                },
                {
                    "role": "assistant",
                    "tool_plan": "I look.",
                    "tool_calls": [
                        {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}
                    ],
                },
                {
                    "role": "tool",
                    "tool_call_id": "t1",
                    "content": [{"type": "document", "document": {"id": "1", "data": '{"found": true}'}}],
                },
            ],
            "tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}],
            "stream": True,
            "temperature": 0.3,
        }
    )
    assert read == Asked(
        model="command-x",
        system=(Text("Be kind."),),
        messages=(
            Message(Role.USER, (Text("Hi"), Media("image", "", "https://a.example/b.png"))),
            Message(Role.ASSISTANT, (Thinking("I look."), ToolUse("t1", "look", {"a": 1}))),
            Message(Role.TOOL, (ToolResult("t1", (Text('{"found": true}'),)),)),
        ),
        tools=(ToolDefinition("look", "", {}),),
        parameters={"temperature": 0.3},
        streamed=True,
    )


USAGE = {
    "billed_units": {"input_tokens": 10.0, "output_tokens": 4.0},
    "tokens": {"input_tokens": 500, "output_tokens": 40},
}


READ_AND_BILLED = Usage(input=500, output=40, more={"billed_input_tokens": 10, "billed_output_tokens": 4})


def event(kind: str, *, index: int | None = None, **message: Any) -> Any:
    return {"type": kind, "index": index, "delta": {"message": message}}


def test_a_stream_with_tool_calls_and_its_whole_twin_read_the_same() -> None:
    calls = [{"id": name, "type": "function", "function": {"name": name, "arguments": '{"a":1}'}} for name in "xy"]
    message = {"role": "assistant", "tool_plan": "I will look.", "tool_calls": calls}
    read = whole({"id": "m1", "finish_reason": "TOOL_CALL", "message": message, "usage": USAGE})
    assert read == streamed(
        {
            "id": "m1",
            "type": "message-start",
            "delta": {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": []}},
        },
        event("tool-plan-delta", tool_plan="I will "),
        event("tool-plan-delta", tool_plan="look."),
        *(
            piece
            for index, name in enumerate("xy")
            for piece in (
                event(
                    "tool-call-start",
                    index=index,
                    tool_calls={"id": name, "type": "function", "function": {"name": name, "arguments": ""}},
                ),
                event("tool-call-delta", index=index, tool_calls={"function": {"arguments": '{"a"'}}),
                event("tool-call-delta", index=index, tool_calls={"function": {"arguments": ":1}"}}),
                {"type": "tool-call-end", "index": index},
            )
        ),
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": USAGE}},
    )
    assert read == Answered(
        id="m1",
        parts=(Thinking("I will look."), ToolUse("x", "x", {"a": 1}), ToolUse("y", "y", {"a": 1})),
        stop="TOOL_CALL",
        usage=READ_AND_BILLED,
    )


def test_a_stream_with_thinking_and_text_and_its_whole_twin_read_the_same() -> None:
    content = [{"type": "thinking", "thinking": "Let me see."}, {"type": "text", "text": "Four."}]
    read = whole({"id": "m1", "finish_reason": "COMPLETE", "message": {"content": content}})
    assert read == streamed(
        {"id": "m1", "type": "message-start", "delta": {"message": {"content": []}}},
        event("content-start", index=0, content={"type": "thinking", "thinking": ""}),
        event("content-delta", index=0, content={"thinking": "Let me "}),
        event("content-delta", index=0, content={"thinking": "see."}),
        event("content-start", index=1, content={"type": "text", "text": ""}),
        event("content-delta", index=1, content={"text": "Fo"}),
        event("content-delta", index=1, content={"text": "ur."}),
        event("citation-start", citations={"start": 0, "end": 4}),
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
    )
    assert read.parts == (Thinking("Let me see."), Text("Four."))


def test_pieces_of_arguments_go_to_the_call_with_their_number() -> None:
    def piece(index: int, **function: str) -> Any:
        return event("tool-call-delta", index=index, tool_calls={"function": function})

    read = streamed(piece(0, name="a"), piece(1, name="b"), piece(0, arguments="[0]"), piece(1, arguments="[1]"))
    assert read.tool_uses == (ToolUse("", "a", [0]), ToolUse("", "b", [1]))


def test_the_input_is_what_was_read_and_the_bill_is_what_is_paid() -> None:
    counts = counts_of(whole({"usage": USAGE}).usage)
    assert counts == {"input_tokens": 10, "output_tokens": 4}


@pytest.mark.parametrize(("cut", "arguments"), [(False, {}), (True, None)])
def test_a_streamed_call_without_arguments_reads_as_its_whole_twin(cut: bool, arguments: Any) -> None:
    def calls(text: str) -> Any:
        return {"id": "t1", "type": "function", "function": {"name": "now", "arguments": text}}

    start = event("tool-call-start", index=0, tool_calls=calls(""))
    read = streamed(start, *([] if cut else [{"type": "tool-call-end", "index": 0}]))
    assert read.parts == (ToolUse("t1", "now", arguments),)
    assert cut or read.parts == whole({"message": {"tool_calls": [calls("{}")]}}).parts


def test_tokens_are_told_where_no_bill_is() -> None:
    assert whole({"usage": {"tokens": {"input_tokens": 7, "output_tokens": 8}}}).usage == Usage(input=7, output=8)


def test_errors_by_status_and_at_the_end_of_a_stream() -> None:
    assert whole({"id": "x", "message": "no such model"}, status=404).error == "no such model"
    late = {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "generation failed"}}
    read = streamed(event("content-delta", index=0, content={"text": "We"}), late)
    assert (read.text, read.stop, read.error) == ("We", "ERROR", "generation failed")


# ── /v1 ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_conversation_of_the_first_version() -> None:
    read = asked(
        {
            "model": "command-x",
            "preamble": "Be kind.",
            "chat_history": [
                {"role": "USER", "message": "Hi"},
                {"role": "CHATBOT", "message": "I look.", "tool_calls": [{"name": "look", "parameters": {"a": 1}}]},
                {"role": "TOOL", "tool_results": [{"call": {"name": "look"}, "outputs": [{"found": 1}]}]},
            ],
            "message": "And now?",
            "tools": [{"name": "look", "description": "d", "parameter_definitions": {"a": {"type": "int"}}}],
            "temperature": 0,
        },
        target="/v1/chat",
    )
    assert read == Asked(
        model="command-x",
        system=(Text("Be kind."),),
        messages=(
            Message(Role.USER, (Text("Hi"),)),
            Message(Role.ASSISTANT, (Text("I look."), ToolUse("", "look", {"a": 1}))),
            Message(Role.TOOL, (ToolResult("", (Other("output", {"found": 1}),), name="look"),)),
            Message(Role.USER, (Text("And now?"),)),
        ),
        tools=(ToolDefinition("look", "d", {"a": {"type": "int"}}),),
        parameters={"temperature": 0},
    )


OLDER = {
    "response_id": "r1",
    "generation_id": "g1",
    "text": "I look.",
    "tool_calls": [{"name": "look", "parameters": {"a": 1}}],
    "finish_reason": "COMPLETE",
    "meta": USAGE,
}
OLDER_EVENTS = (
    {"event_type": "stream-start", "generation_id": "g1"},
    {"event_type": "text-generation", "text": "I "},
    {"event_type": "tool-calls-chunk", "text": "look."},
    {"event_type": "tool-calls-chunk", "tool_call_delta": {"index": 0, "name": "look"}},
    {"event_type": "tool-calls-chunk", "tool_call_delta": {"index": 0, "parameters": '{"a":'}},
    {"event_type": "tool-calls-chunk", "tool_call_delta": {"index": 0, "parameters": "1}"}},
    {"event_type": "tool-calls-generation", "tool_calls": OLDER["tool_calls"]},
    {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": OLDER},
)


def test_a_stream_of_the_first_version_and_its_whole_twin_read_the_same() -> None:
    lines = answer_with("\n".join(map(json.dumps, OLDER_EVENTS)).encode(), media="application/stream+json")
    in_lines = COHERE.answered(request_of({}, host=HOST, target="/v1/chat"), lines)
    assert whole(OLDER) == streamed(*OLDER_EVENTS) == in_lines
    assert in_lines == Answered(
        id="r1", parts=(Text("I look."), ToolUse("", "look", {"a": 1})), stop="COMPLETE", usage=READ_AND_BILLED
    )


@pytest.mark.parametrize("events", [OLDER_EVENTS[:-1], OLDER_EVENTS[:-2]])
def test_a_cut_stream_of_the_first_version_is_told_by_its_pieces(events: Any) -> None:
    assert streamed(*events).parts == (Text("I look."), ToolUse("", "look", {"a": 1}))


@pytest.mark.parametrize(
    "document",
    [
        5,
        {"message": 5},
        {"delta": {"message": {"content": {"text": 5}, "tool_calls": {"function": 5}}}},
        {"event_type": "tool-calls-chunk", "tool_call_delta": 5},
        {"chat_history": [5], "tool_results": [5], "message": {"a": 1}, "event_type": 5},
    ],
)
def test_documents_of_any_shape_are_borne(document: Any) -> None:
    assert whole(document).text == ""
    assert isinstance(asked(document), Asked)


def test_the_refusal_is_read_as_an_error() -> None:
    assert whole(COHERE.refusal("Rewind: never recorded."), status=400).error == "Rewind: never recorded."
