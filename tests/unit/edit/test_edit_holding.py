"""Edits hold: what a later call repeats of the old values is replaced again, and nothing else is."""

from typing import Any

import pytest

from rewind.edit.apply import edited
from rewind.edit.carry_over import carried_edits
from rewind.model.http import HttpRequest
from rewind.model.message import results_in, text_of
from support.exchanges import request_of
from unit.edit.asking import (
    ANTHROPIC,
    APIS,
    CHAT,
    GEMINI,
    OPENAI_CHAT,
    OSLO,
    QUESTION,
    RESPONSES,
    ROME,
    SYSTEM,
    Api,
    asked,
    document,
    edits,
)

EVERY_ROW = ("system=Another.", "system+=More.", "model=model-y", "temperature=0", "seed=3", "tool.weather.result=−40")


def later(api: Api) -> HttpRequest:
    """The same agent one turn on: its history has grown by an answer and a question."""
    body = api.body
    if "request" in body:
        return api.request(request=_grown_gemini())
    if "contents" in body:
        return api.request(contents=_grown_gemini()["contents"])
    more = [{"role": "assistant", "content": "4 and 21."}, {"role": "user", "content": "Thanks."}]
    name = "input" if "input" in body else "messages"
    return api.request(**{name: [*body[name], *more]})


def _grown_gemini() -> dict[str, Any]:
    more = [{"role": "model", "parts": [{"text": "4 and 21."}]}, {"role": "user", "parts": [{"text": "Thanks."}]}]
    return GEMINI | {"contents": [*GEMINI["contents"], *more]}


def results(request: HttpRequest) -> list[str]:
    return [result.text for result in results_in(asked(request).messages)]


@pytest.mark.parametrize("api", APIS, ids=str)
def test_at_the_forked_step_itself_what_is_held_is_what_was_edited(api: Api) -> None:
    rows = edits(*EVERY_ROW, f"messages[{api.last_user}]=Why?")
    assert carried_edits(api.request(), rows).apply(api.request()) == edited(api.request(), rows)


@pytest.mark.parametrize("api", APIS, ids=str)
def test_later_calls_of_the_same_agent_are_edited_in_all_the_same_places(api: Api) -> None:
    rows = edits(*EVERY_ROW, f"messages[{api.last_user}]=Why?")
    after = carried_edits(api.request(), rows).apply(later(api))
    read = asked(after)
    assert (text_of(read.system), read.model, read.messages[0].text) == ("Another.\nMore.", "model-y", "Why?")
    assert results(after) == ["−40", ROME]
    assert (read.messages[-2].text, read.messages[-1].text) == ("4 and 21.", "Thanks.")
    body = document(after).get("request", document(after))
    settings = body.get("generationConfig") or body.get("options") or body
    assert (settings["temperature"], settings["seed"]) == (0, 3)


@pytest.mark.parametrize("api", APIS, ids=str)
def test_a_call_in_which_nothing_fits_is_the_very_same(api: Api) -> None:
    holding = carried_edits(api.request(), edits(*EVERY_ROW, f"messages[{api.last_user}]=Why?"))
    other = request_of({"model": "model-x", "temperature": 0.5, "messages": [{"role": "user", "content": "Title?"}]})
    assert holding.apply(other) is other


def test_another_agent_keeps_its_model_and_its_parameters() -> None:
    holding = carried_edits(OPENAI_CHAT.request(), edits("model=model-y", "temperature=0"))
    turns = [{"role": "system", "content": "You write titles."}, *CHAT["messages"][1:]]
    other = OPENAI_CHAT.request(messages=turns)
    assert holding.apply(other) is other


def test_a_value_that_the_agent_itself_changed_is_left_alone() -> None:
    holding = carried_edits(OPENAI_CHAT.request(), edits("model=model-y", "temperature=0"))
    assert document(holding.apply(OPENAI_CHAT.request(model="model-z", temperature=0.5))) == CHAT | {
        "model": "model-z",
        "temperature": 0,
    }


def test_a_parameter_that_was_not_there_is_held_where_it_is_not_there() -> None:
    holding = carried_edits(OPENAI_CHAT.request(), edits("seed=7"))
    assert document(holding.apply(OPENAI_CHAT.request()))["seed"] == 7
    assert document(holding.apply(OPENAI_CHAT.request(seed=1)))["seed"] == 1


def test_a_parameter_that_was_taken_out_stays_out() -> None:
    holding = carried_edits(OPENAI_CHAT.request(), edits("temperature="))
    assert "temperature" not in document(holding.apply(later(OPENAI_CHAT)))


def test_an_agent_without_a_system_prompt_is_known_by_its_first_message() -> None:
    def request(*texts: str) -> HttpRequest:
        return request_of({"model": "m", "messages": [{"role": "user", "content": text} for text in texts]})

    holding = carried_edits(request("Plan my day."), edits("system=Be brief.", "model=other"))
    same = holding.apply(request("Plan my day.", "And tomorrow."))
    assert (text_of(asked(same).system), asked(same).model) == ("Be brief.", "other")
    title = request("Give this a title.")
    assert holding.apply(title) is title


def test_an_agent_without_a_system_prompt_is_known_by_its_tools_when_its_history_slides() -> None:
    tools = [{"type": "function", "function": {"name": "weather"}}]

    def request(text: str) -> HttpRequest:
        return request_of({"model": "m", "tools": tools, "messages": [{"role": "user", "content": text}]})

    holding = carried_edits(request("One."), edits("model=other"))
    assert asked(holding.apply(request("Seven."))).model == "other"


def test_a_message_is_found_again_where_the_history_has_moved() -> None:
    holding = carried_edits(OPENAI_CHAT.request(), edits("messages[1]=Why?"))
    moved = OPENAI_CHAT.request(messages=[{"role": "user", "content": "Hello."}, *CHAT["messages"][1:]])
    kept = OPENAI_CHAT.request(
        messages=[*CHAT["messages"][:1], {"role": "user", "content": "x"}, *CHAT["messages"][1:]]
    )
    assert [m["content"] for m in document(holding.apply(moved))["messages"][:2]] == ["Hello.", "Why?"]
    assert [m["content"] for m in document(holding.apply(kept))["messages"][:3]] == [SYSTEM, "x", "Why?"]


def test_an_equal_message_in_another_place_is_left_alone_while_the_old_place_has_it() -> None:
    yes = {"role": "user", "content": "Yes."}
    holding = carried_edits(request_of({"messages": [yes]}), edits("messages[0]=No."))
    after = document(holding.apply(request_of({"messages": [yes, {"role": "assistant", "content": "Ok"}, yes]})))
    assert [message["content"] for message in after["messages"]] == ["No.", "Ok", "Yes."]


def test_a_mark_of_the_cache_that_moved_on_does_not_hide_a_message() -> None:
    marked = {"role": "user", "content": [{"type": "text", "text": QUESTION, "cache_control": {"type": "ephemeral"}}]}
    original = request_of(ANTHROPIC | {"messages": [marked]}, target="/v1/messages")
    holding = carried_edits(original, edits("messages[0]=Why?"))
    after = document(holding.apply(request_of(ANTHROPIC, target="/v1/messages")))
    assert after["messages"][0]["content"] == "Why?"


def test_a_result_is_known_by_its_id_wherever_it_stands() -> None:
    holding = carried_edits(OPENAI_CHAT.request(), edits("tool.weather.result=−40"))
    turns = [{"role": "system", "content": "Shortened."}, *CHAT["messages"][2:]]
    assert results(holding.apply(OPENAI_CHAT.request(messages=turns))) == ["−40", ROME]


def test_another_result_of_the_same_tool_is_left_alone() -> None:
    holding = carried_edits(OPENAI_CHAT.request(), edits("tool.weather.result=−40"))
    other = dict(CHAT["messages"][3], content="5 degrees")
    changed = OPENAI_CHAT.request(messages=[*CHAT["messages"][:3], other, CHAT["messages"][4]])
    assert holding.apply(changed) is changed


def test_equal_results_without_ids_are_told_apart_by_their_order() -> None:
    call = {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {}}}]}
    result = {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"result": OSLO}}}]}
    original = request_of({"contents": [call, result, call, result]}, target="/v1beta/models/m:generateContent")
    rows = edits("tool.weather.result=−40")
    assert results(edited(original, rows)) == [OSLO, "−40"]
    grown = request_of(
        {"contents": [call, result, call, result, call, result]}, target="/v1beta/models/m:generateContent"
    )
    assert results(carried_edits(original, rows).apply(grown)) == [OSLO, "−40", OSLO]


def test_where_the_provider_keeps_the_history_the_system_prompt_is_held_in_each_call() -> None:
    holding = carried_edits(request_of(RESPONSES, target="/v1/responses"), edits("system=Another."))
    body = {"instructions": SYSTEM, "previous_response_id": "resp_1", "input": "Thanks."}
    after = document(holding.apply(request_of(body, target="/v1/responses")))
    assert after == body | {"instructions": "Another."}


def test_a_made_up_answer_holds_nothing() -> None:
    request = OPENAI_CHAT.request()
    assert carried_edits(request, edits("response=Done.")).apply(request) is request


@pytest.mark.parametrize(
    "other",
    [
        request_of(b""),
        request_of(b"hello"),
        request_of(b"[]"),
        request_of({"messages": 4}),
        request_of(CHAT, headers=(("x-amz-date", "1"),)),
        request_of(CHAT, target="/model/m/converse"),
        request_of({"a": 1}, target="/anything"),
    ],
    ids=lambda request: f"{request.head.path} {request.body[:12]!r}",
)
def test_a_later_call_never_fails(other: HttpRequest) -> None:
    rows = edits(*EVERY_ROW, "messages[0]=x", "a.b.c=1")
    assert carried_edits(OPENAI_CHAT.request(), rows).apply(other) is other


def test_nothing_is_held_of_a_request_that_cannot_be_edited() -> None:
    for request in (request_of(b"hello"), request_of(CHAT, target="/model/m/converse")):
        assert carried_edits(request, edits("temperature=0")).apply(OPENAI_CHAT.request()) == OPENAI_CHAT.request()
