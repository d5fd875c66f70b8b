"""Every row of the grammar reaches the wire of every API, and changes nothing else."""

import json
from dataclasses import replace
from typing import Any

import pytest

from rewind.edit.apply import edited
from rewind.model.http import HttpRequest
from rewind.model.message import Text, ToolResult, results_in, text_of
from support.exchanges import request_of
from unit.edit.asking import (
    ANTHROPIC,
    APIS,
    CHAT,
    CHAT_MESSAGES,
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

every_api = pytest.mark.parametrize("api", APIS, ids=str)


def results(request: HttpRequest) -> list[str]:
    return [result.text for result in results_in(asked(request).messages)]


@every_api
def test_the_system_prompt_becomes_another(api: Api) -> None:
    before, after = api.request(), edited(api.request(), edits("system=Be “brief”."))
    assert asked(after) == replace(asked(before), system=(Text("Be “brief”."),))


@every_api
def test_the_system_prompt_is_added_where_there_was_none(api: Api) -> None:
    without = edited(api.request(), edits("system="))
    assert asked(without) == replace(asked(api.request()), system=())
    assert asked(edited(without, edits(f"system={SYSTEM}"))) == asked(api.request())


@every_api
def test_the_system_prompt_goes_on_in_a_new_line(api: Api) -> None:
    after = edited(api.request(), edits("system+=In Norwegian."))
    assert asked(after) == replace(asked(api.request()), system=(Text(f"{SYSTEM}\nIn Norwegian."),))


@every_api
def test_appending_to_no_system_prompt_begins_one(api: Api) -> None:
    after = edited(api.request(), edits("system=", "system+=In Norwegian."))
    assert text_of(asked(after).system) == "In Norwegian."


@every_api
def test_another_model_is_asked(api: Api) -> None:
    after = edited(api.request(), edits("model=model-y"))
    assert asked(after) == replace(asked(api.request()), model="model-y")


@every_api
def test_a_parameter_is_set(api: Api) -> None:
    after = edited(api.request(), edits(f"{api.parameter}=0"))
    before = asked(api.request())
    if api.name == "ollama":
        assert document(after)["options"] == {"temperature": 0}
    else:
        assert asked(after) == replace(before, parameters={**before.parameters, "temperature": 0})


@every_api
def test_a_parameter_is_taken_out(api: Api) -> None:
    after = edited(api.request(), edits("temperature="))
    assert "temperature" not in str(document(after))
    assert asked(after).messages == asked(api.request()).messages


@every_api
def test_taking_out_what_is_not_there_changes_nothing(api: Api) -> None:
    request = api.request()
    assert edited(request, edits("seed=")) is request


@every_api
def test_a_message_gets_another_text_and_keeps_its_role(api: Api) -> None:
    after = edited(api.request(), edits(f"messages[{api.last_user}]=Is it warm?"))
    first, *others = asked(api.request()).messages
    assert asked(after).messages == (replace(first, parts=(Text("Is it warm?"),)), *others)


@every_api
def test_a_message_is_replaced_whole(api: Api) -> None:
    whole = (
        {"role": "user", "parts": [{"text": "One."}, {"text": "Two."}]}
        if api.body is GEMINI or "request" in api.body
        else {"role": "user", "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]}
    )
    after = edited(api.request(), edits(f"messages[{api.last_user}]={json.dumps(whole)}"))
    assert whole in (document(after).get("request") or document(after)).get(
        "contents", document(after).get("messages", document(after).get("input"))
    )
    assert asked(after).messages[0].text == "One.Two."


@every_api
def test_the_new_result_of_a_tool_becomes_another_and_only_that(api: Api) -> None:
    after = edited(api.request(), edits("tool.weather.result=−40 degrees"))
    assert results(after) == ["−40 degrees", ROME]
    assert asked(edited(after, edits(f"tool.weather.result={OSLO}"))) == asked(api.request())


@every_api
def test_several_edits_go_together(api: Api) -> None:
    after = edited(
        api.request(),
        edits(
            "system=S",
            "model=model-y",
            "temperature=1",
            f"messages[{api.last_user}]=Q",
            "tool.clock.result=T",
            "system+=U",
        ),
    )
    read = asked(after)
    assert (text_of(read.system), read.model, read.messages[0].text) == ("S\nU", "model-y", "Q")
    assert results(after) == [OSLO, "T"]


@every_api
def test_an_edit_that_says_the_same_leaves_every_byte(api: Api) -> None:
    request = api.request()
    assert edited(request, edits(f"system={SYSTEM}", "temperature=0.5")) is request


@every_api
def test_without_an_edit_of_the_request_it_is_the_same_one(api: Api) -> None:
    request = api.request()
    assert edited(request, []) is request
    assert edited(request, edits("response=Done.")) is request


# ── the ways in which a value can be written ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("stop=END", "END"),
        ('stop=["a","b"]', ["a", "b"]),
        ("stop=null", None),
        ("stop=true", True),
        ('stop="7"', "7"),
        ("stop=NaN", "NaN"),
        ('stop={"a": 1', '{"a": 1'),
        ("stop= 7", 7),
    ],
)
def test_a_value_is_json_where_it_is_json(text: str, value: Any) -> None:
    assert document(edited(OPENAI_CHAT.request(), edits(text)))["stop"] == value


def test_a_parameter_inside_another_is_named_by_its_path() -> None:
    after = edited(OPENAI_CHAT.request(), edits("stream_options.include_usage=true", "a.b.c=1"))
    assert document(after)["stream_options"] == {"include_usage": True}
    assert document(after)["a"] == {"b": {"c": 1}}
    again = edited(after, edits("a.b.c="))
    assert document(again)["a"] == {"b": {}}


def test_gemini_keeps_bare_settings_in_its_configuration_and_others_beside_it() -> None:
    request = request_of(GEMINI, target="/v1beta/models/m:generateContent")
    after = document(edited(request, edits("topK=3", "safetySettings=[]", "max_output_tokens=9")))
    assert after["generationConfig"] == {"temperature": 0.5, "topK": 3, "max_output_tokens": 9}
    assert after["safetySettings"] == []


def test_gemini_is_edited_in_the_spelling_it_was_written_in() -> None:
    body = {
        "system_instruction": {"parts": {"text": SYSTEM}},
        "contents": [{"role": "user", "parts": [{"text": QUESTION}]}],
        "generation_config": {"max_output_tokens": 5},
    }
    request = request_of(body, target="/v1beta/models/m:generateContent")
    after = document(edited(request, edits("system+=More.", "maxOutputTokens=7")))
    assert after == body | {
        "system_instruction": {"parts": [{"text": f"{SYSTEM}\nMore."}]},
        "generation_config": {"max_output_tokens": 7},
    }


def test_azure_names_its_deployment_in_the_path_and_the_query_stays() -> None:
    azure = next(api for api in APIS if api.name == "azure")
    after = edited(azure.request(), edits("model=model y"))
    assert after.head.target == "/openai/deployments/model%20y/chat/completions?api-version=2024-10-21"
    assert after.body == azure.request().body


def test_gemini_names_its_model_in_the_path() -> None:
    request = request_of(GEMINI, target="/v1beta/models/model-x%3AstreamGenerateContent?alt=sse")
    after = edited(request, edits("model=models/model-y"))
    assert after.head.target == "/v1beta/models/model-y%3AstreamGenerateContent?alt=sse"


# ── what a message may be made of ────────────────────────────────────────────────────────────────────────────


def test_a_new_text_stands_where_the_old_ones_began_and_pictures_stay() -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://pictures.example/a.png"}}
    content = [picture, {"type": "text", "text": "What"}, {"type": "text", "text": " is this?"}]
    request = request_of({"messages": [{"role": "user", "content": content}]})
    after = document(edited(request, edits("messages[0]=Who is this?")))
    assert after["messages"][0]["content"] == [picture, {"type": "text", "text": "Who is this?"}]


def test_a_mark_of_the_cache_stays_with_the_system_prompt() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    blocks = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two.", **mark}]
    request = request_of(ANTHROPIC | {"system": blocks}, target="/v1/messages")
    replaced = document(edited(request, edits("system=Three.")))["system"]
    assert replaced == [{"type": "text", "text": "Three.", **mark}]
    extended = document(edited(request, edits("system+=Three.")))["system"]
    assert extended == [blocks[0], {"type": "text", "text": "Two.\nThree.", **mark}]


def test_several_system_messages_become_one() -> None:
    turns = [{"role": "developer", "content": "One."}, {"role": "system", "content": "Two."}]
    request = request_of(CHAT | {"messages": [*turns, *CHAT_MESSAGES[1:]]})
    after = document(edited(request, edits("system=Three.")))["messages"]
    assert after[:2] == [{"role": "developer", "content": "Three."}, CHAT_MESSAGES[1]]


def test_a_system_prompt_among_the_items_stays_among_them() -> None:
    item = {"role": "developer", "content": [{"type": "input_text", "text": "One."}]}
    body = {"model": "m", "input": [item, *RESPONSES["input"]]}
    after = document(edited(request_of(body, target="/v1/responses"), edits("system=Two.")))
    assert after["input"][0] == {"role": "developer", "content": [{"type": "input_text", "text": "Two."}]}
    assert "instructions" not in after


def test_an_input_that_is_a_text_stays_one() -> None:
    request = request_of({"model": "m", "input": QUESTION}, target="/v1/responses")
    assert document(edited(request, edits("messages[0]=Why?")))["input"] == "Why?"


def test_a_message_that_only_brings_a_result_is_that_result() -> None:
    after = edited(OPENAI_CHAT.request(), edits("messages[-1]=22 degrees"))
    assert results(after) == [OSLO, "22 degrees"]
    one = dict(ANTHROPIC, messages=[*ANTHROPIC["messages"][:2], {**ANTHROPIC["messages"][2]}])
    one["messages"][2] = {"role": "user", "content": ANTHROPIC["messages"][2]["content"][:1]}
    assert results(edited(request_of(one, target="/v1/messages"), edits("messages[-1]=5"))) == ["5"]


def test_words_are_put_before_the_calls_of_a_message_that_had_none() -> None:
    after = edited(request_of(ANTHROPIC, target="/v1/messages"), edits("messages[1]=I look."))
    kinds = [block["type"] for block in document(after)["messages"][1]["content"]]
    assert kinds == ["text", "tool_use", "tool_use"]


# ── what a tool may give back ────────────────────────────────────────────────────────────────────────────────


def test_a_result_that_is_given_is_no_error() -> None:
    failed = {"type": "tool_result", "tool_use_id": "call_0", "content": "no network", "is_error": True}
    body = dict(ANTHROPIC, messages=[*ANTHROPIC["messages"][:2], {"role": "user", "content": [failed]}])
    after = edited(request_of(body, target="/v1/messages"), edits("tool.weather.result=4"))
    assert list(results_in(asked(after).messages)) == [ToolResult("call_0", (Text("4"),))]


def test_gemini_is_given_an_object() -> None:
    request = request_of(GEMINI, target="/v1beta/models/m:generateContent")

    def response(text: str) -> Any:
        after = document(edited(request, edits(f"tool.weather.result={text}")))
        return after["contents"][2]["parts"][0]["functionResponse"]["response"]

    assert response("warm") == {"result": "warm"}
    assert response('{"degrees": 4}') == {"degrees": 4}
    assert response("[4]") == {"result": "[4]"}


def test_json_stays_the_text_that_was_written_where_an_api_takes_texts() -> None:
    after = edited(OPENAI_CHAT.request(), edits('tool.weather.result={"degrees":  4}'))
    assert document(after)["messages"][3]["content"] == '{"degrees":  4}'


def test_all_new_results_of_a_tool_are_meant_and_no_older_ones() -> None:
    def call(name: str) -> dict[str, Any]:
        return {"id": name, "type": "function", "function": {"name": "weather", "arguments": "{}"}}

    turns = [
        {"role": "assistant", "tool_calls": [call("a")]},
        {"role": "tool", "tool_call_id": "a", "content": "old"},
        {"role": "assistant", "tool_calls": [call("b"), call("c")]},
        {"role": "tool", "tool_call_id": "b", "content": "new"},
        {"role": "tool", "tool_call_id": "c", "content": "new too"},
    ]
    after = edited(request_of({"messages": turns}), edits("tool.weather.result=X"))
    assert results(after) == ["old", "X", "X"]


def test_where_the_provider_keeps_the_calls_their_tools_are_told_apart() -> None:
    outputs = [{"type": "function_call_output", "call_id": name, "output": name.upper()} for name in ("a", "b")]
    body = {"model": "m", "previous_response_id": "resp_1", "input": outputs}
    request = request_of(body, target="/v1/responses")
    after = edited(request, edits("tool.clock.result=X"), names={"a": "weather", "b": "clock"})
    assert results(after) == ["A", "X"]


def test_the_only_new_result_is_meant_where_nothing_tells_whose_it_is() -> None:
    output = {"type": "function_call_output", "call_id": "a", "output": "A"}
    body = {"model": "m", "previous_response_id": "resp_1", "input": [output]}
    after = edited(request_of(body, target="/v1/responses"), edits("tool.weather.result=X"))
    assert results(after) == ["X"]


# ── APIs without messages ────────────────────────────────────────────────────────────────────────────────────


def test_a_prompt_is_the_only_message() -> None:
    request = request_of({"model": "m", "prompt": "Once"}, target="/v1/completions")
    assert document(edited(request, edits("messages[0]=Twice", "max_tokens=3"))) == {
        "model": "m",
        "prompt": "Twice",
        "max_tokens": 3,
    }


def test_ollama_generates_from_a_prompt_and_a_system_prompt() -> None:
    request = request_of({"model": "m", "prompt": "Once", "system": "Tell."}, target="/api/generate")
    after = document(edited(request, edits("system+=Briefly.", "num_ctx=10", "think=false")))
    assert after == {
        "model": "m",
        "prompt": "Once",
        "system": "Tell.\nBriefly.",
        "options": {"num_ctx": 10},
        "think": False,
    }


def test_any_json_has_parameters() -> None:
    request = request_of({"query": "a", "limit": 3}, target="/search", host="search.example")
    assert document(edited(request, edits("limit=5"))) == {"query": "a", "limit": 5}
