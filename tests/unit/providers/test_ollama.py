"""Ollama's own API, in one object or in lines."""

import base64
import json
from typing import Any

import pytest

from rewind.model.http import HttpResponse
from rewind.model.message import (
    Answered,
    Asked,
    Media,
    Message,
    Role,
    Text,
    Thinking,
    ToolDefinition,
    ToolResult,
    ToolUse,
)
from rewind.model.usage import Usage
from rewind.providers.ollama.read import OllamaReader
from support.exchanges import answer_with, request_of

OLLAMA = OllamaReader()


def asked(body: Any, target: str = "/api/chat") -> Asked:
    return OLLAMA.asked(request_of(body, target=target))


def answered(*lines: Any) -> Answered:
    return OLLAMA.answered(request_of({"model": "llama"}, target="/api/chat"), lines_of(*lines))


def lines_of(*lines: Any, end: bytes = b"") -> HttpResponse:
    return answer_with("\n".join(map(json.dumps, lines)).encode() + end, media="application/x-ndjson")


def test_a_conversation_with_a_picture_a_tool_and_its_result() -> None:
    read = asked(
        {
            "model": "llama",
            "messages": [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": "What is it?", "images": [base64.b64encode(b"12345").decode()]},
                {
                    "role": "assistant",
                    "content": "",
                    "thinking": "Hm",
                    "tool_calls": [{"function": {"name": "look", "arguments": {"a": 1}}}],
                },
                {"role": "tool", "tool_name": "look", "content": "a cat"},
            ],
            "tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}],
            "format": "json",
            "options": {"temperature": 0},
        }
    )
    assert (read.model, read.system, read.streamed) == ("llama", (Text("Be kind."),), True)
    question, answer, result = read.messages
    assert question.text == "What is it?"
    assert [(part.kind, part.size) for part in question.parts if isinstance(part, Media)] == [("image", 5)]
    assert answer == Message(Role.ASSISTANT, (Thinking("Hm"), ToolUse("", "look", {"a": 1})))
    assert result == Message(Role.TOOL, (ToolResult("", (Text("a cat"),), name="look"),))
    assert read.tools == (ToolDefinition("look", "", {}),)
    assert read.parameters == {"format": "json", "options": {"temperature": 0}}


def test_a_prompt_to_generate_from() -> None:
    read = asked({"prompt": "Once", "system": "Be brief.", "stream": False, "think": True}, "/api/generate")
    assert (read.system, read.messages) == ((Text("Be brief."),), (Message(Role.USER, (Text("Once"),)),))
    assert (read.streamed, read.parameters) == (False, {"think": True})


def test_lines_and_their_whole_twin_read_the_same() -> None:
    tool = {"function": {"name": "look", "arguments": {"a": 1}}}
    end = {"done": True, "done_reason": "stop", "prompt_eval_count": 4, "eval_count": 5}
    message = {"role": "assistant", "thinking": "Hm, so", "content": "Hello", "tool_calls": [tool, tool]}
    whole = answered({"model": "llama", "message": message, **end})
    assert whole == answered(
        {"model": "llama", "message": {"content": "", "thinking": "Hm, "}, "done": False},
        {"model": "llama", "message": {"content": "", "thinking": "so"}, "done": False},
        {"model": "llama", "message": {"content": "Hel"}, "done": False},
        {"model": "llama", "message": {"content": "", "tool_calls": [tool]}, "done": False},
        {"model": "llama", "message": {"content": "", "tool_calls": [tool]}, "done": False},
        {"model": "llama", "message": {"content": "lo"}, "done": False},
        {"model": "llama", "message": {"content": ""}, **end},
    )
    use = ToolUse("", "look", {"a": 1})
    assert whole == Answered(
        model="llama", parts=(Thinking("Hm, so"), Text("Hello"), use, use), stop="stop", usage=Usage(input=4, output=5)
    )


def test_generated_text_in_lines() -> None:
    read = answered(
        {"response": "", "thinking": "Hm", "done": False},
        {"response": "Once", "done": False},
        {"response": " upon", "done": True, "done_reason": "length", "eval_count": 2},
    )
    assert read.parts == (Thinking("Hm"), Text("Once upon"))
    assert (read.stop, read.usage) == ("length", Usage(output=2))


def test_a_drawn_picture() -> None:
    (picture,) = answered({"response": "", "image": "QUJD", "done": True}).parts
    assert isinstance(picture, Media) and (picture.kind, picture.size) == ("image", 3)


def test_an_error_and_a_cut_inside_the_lines() -> None:
    assert answered({"message": {"content": "We"}}, {"error": "out of memory"}).error == "out of memory"
    torn = OLLAMA.answered(
        request_of({}, target="/api/chat"), lines_of({"message": {"content": "We"}}, end=b'\n{"mess')
    )
    assert (torn.text, torn.note) == ("We", "damaged or cut JSON")


@pytest.mark.parametrize("document", [5, {"message": 5}, {"message": {"tool_calls": [5]}, "done": 1}, {"response": 5}])
def test_documents_of_any_shape_are_borne(document: Any) -> None:
    assert answered(document).text == ""
    assert isinstance(asked(document), Asked)


def test_the_refusal_is_read_as_an_error() -> None:
    refused = answer_with(OLLAMA.refusal("Rewind: never recorded."), status=400)
    assert OLLAMA.answered(request_of({}), refused).error == "Rewind: never recorded."
