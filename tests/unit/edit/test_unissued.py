"""Answers that the provider never gave: later calls go on from the last one that it did."""

import json
from typing import Any

from rewind.edit.apply import answer_for
from rewind.edit.carry_over import MadeUpAnswers
from rewind.edit.edits import SetResponse, parse_edit
from rewind.model.http import HttpRequest
from rewind.providers.catalogue import identify
from support.exchanges import request_of


def asked(given: Any, before: str | None = None, **more: Any) -> HttpRequest:
    body = {"model": "gpt-5", "input": given, **more}
    named = {} if before is None else {"previous_response_id": before}
    return request_of(body | named, target="/v1/responses")


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def made_up(known: MadeUpAnswers, request: HttpRequest, value: str) -> str:
    """Makes up an answer; its name."""
    edit = parse_edit(f"response={value}")
    assert isinstance(edit, SetResponse)
    answer = answer_for(request, edit)
    known.add(request, answer)
    return identify(request.head).reader.answered(request, answer).id


def sent(known: MadeUpAnswers, request: HttpRequest) -> Any:
    return json.loads(known.apply(request).body)


def test_a_call_goes_on_from_the_last_answer_that_the_provider_gave() -> None:
    known = MadeUpAnswers()
    name = made_up(known, asked([user("b")], "resp_real"), "Made up.")
    body = sent(known, asked([user("c")], name, instructions="Be kind."))
    assert (body["previous_response_id"], body["instructions"]) == ("resp_real", "Be kind.")
    assert [item["content"] for item in (body["input"][0], body["input"][2])] == ["b", "c"]
    assert body["input"][1]["content"][0]["text"] == "Made up." and "id" not in body["input"][1]


def test_streams_tools_and_bare_texts_are_told_as_well() -> None:
    known = MadeUpAnswers()
    name = made_up(known, asked("look", stream=True), '{"tool": "search", "arguments": {"q": "oslo"}}')
    result = {"type": "function_call_output", "call_id": "x", "output": "cold"}
    body = sent(known, asked([result], name))
    assert "previous_response_id" not in body
    first, call, last = body["input"]
    assert (first, last) == (user("look"), result)
    assert (call["type"], call["name"]) == ("function_call", "search")
    assert json.loads(call["arguments"]) == {"q": "oslo"}


def test_one_made_up_answer_may_follow_another() -> None:
    known = MadeUpAnswers()
    first = made_up(known, asked([user("a")], "resp_real"), "One.")
    second = made_up(known, asked([user("b")], first), "Two.")
    body = sent(known, asked("c", second))
    assert body["previous_response_id"] == "resp_real"
    assert [item["role"] for item in body["input"]] == ["user", "assistant"] * 2 + ["user"]


def test_an_item_that_the_agent_only_refers_to_is_written_out() -> None:
    known, request = MadeUpAnswers(), asked([user("a")])
    made_up(known, request, "One.")
    edit = parse_edit("response=One.")
    assert isinstance(edit, SetResponse)
    (item,) = json.loads(answer_for(request, edit).body)["output"]
    body = sent(known, asked([user("a"), {"type": "item_reference", "id": item["id"]}, user("b")]))
    assert body["input"][1]["content"][0]["text"] == "One."


def test_whoever_goes_on_from_a_real_answer_is_left_alone_to_the_byte() -> None:
    known = MadeUpAnswers()
    request = asked([user("c")], "resp_real")
    assert known.apply(request) is request
    made_up(known, asked([user("b")], "resp_real"), "Made up.")
    assert known.apply(request) is request
    chat = request_of({"model": "gpt-5", "messages": [user("a")]})
    made_up(known, chat, "No history is kept there.")
    assert known.apply(chat) is chat
