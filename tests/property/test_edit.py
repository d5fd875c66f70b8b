"""Laws of edits, for any conversation and any bytes."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rewind.edit.apply import answer_for, edited
from rewind.edit.carry_over import carried_edits
from rewind.edit.edits import (
    AppendSystem,
    Edit,
    SetMessage,
    SetModel,
    SetParameter,
    SetResponse,
    SetSystem,
    SetToolResult,
    StepReference,
    TextValue,
    parse_edit,
)
from rewind.edit.references import resolve
from rewind.edit.transcript import AnsweredCall as Told
from rewind.edit.transcript import transcript_of
from rewind.errors import UsageError
from rewind.model.http import HttpRequest
from rewind.model.message import Asked, Message, Role, Text, ToolResult, ToolUse, results_in, text_of
from rewind.providers.anthropic import write as anthropic
from rewind.providers.api import LossLog
from rewind.providers.catalogue import SHAPES, identify
from rewind.providers.gemini import write as gemini
from rewind.providers.ollama import fork as ollama
from rewind.providers.openai_chat import write as openai_chat
from rewind.providers.openai_responses import write as openai_responses
from rewind.providers.shared.write import with_matched_ids
from support.exchanges import answer_with, request_of
from support.wire_examples import EXAMPLES

HEADS = [
    *{example.request.head.path: example.request.head for example in EXAMPLES}.values(),
    *{stream.request.head.path: stream.request.head for one in EXAMPLES for stream in one.streams}.values(),
    request_of(target="/anything").head,
]

# ── any conversation, in any API ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Talk:
    """What is asked, without accent."""

    system: str
    messages: tuple[Message, ...]


def _chat(write: Callable[..., list[dict[str, Any]]], talk: Talk) -> dict[str, Any]:
    system = [{"role": "system", "content": talk.system}] if talk.system else []
    return {"model": "m", "temperature": 1, "messages": [*system, *write(talk.messages, LossLog())]}


def _anthropic(talk: Talk) -> dict[str, Any]:
    system = {"system": talk.system} if talk.system else {}
    return {"model": "m", "max_tokens": 9, **system, "messages": anthropic.messages_for(talk.messages, LossLog())}


def _responses(talk: Talk) -> dict[str, Any]:
    system = {"instructions": talk.system} if talk.system else {}
    return {"model": "m", **system, "input": openai_responses.items_for(talk.messages, LossLog())}


def _gemini(talk: Talk) -> dict[str, Any]:
    system = {"systemInstruction": {"parts": [{"text": talk.system}]}} if talk.system else {}
    return {**system, "contents": gemini.contents_for(talk.messages, LossLog()), "generationConfig": {"topK": 2}}


APIS: dict[str, tuple[str, Callable[[Talk], dict[str, Any]]]] = {
    "chat": ("/v1/chat/completions", lambda talk: _chat(openai_chat.messages_for, talk)),
    "ollama": ("/api/chat", lambda talk: _chat(ollama.messages_for, talk)),
    "anthropic": ("/v1/messages", _anthropic),
    "responses": ("/v1/responses", _responses),
    "gemini": ("/v1beta/models/m:generateContent", _gemini),
}

words = st.text(min_size=1, max_size=20)
names = st.sampled_from(["weather", "clock", "mcp.read_file"])
arguments = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5) | st.none(), max_size=3)


@st.composite
def talks(draw: st.DrawFn) -> Talk:
    messages: list[Message] = [Message(Role.USER, (Text(draw(words)),))]
    for _ in range(draw(st.integers(0, 3))):
        calls = [ToolUse("", draw(names), draw(arguments)) for _ in range(draw(st.integers(0, 2)))]
        said = [Text(draw(words))] if draw(st.booleans()) or not calls else []
        messages.append(Message(Role.ASSISTANT, (*said, *calls)))
        messages += [Message(Role.TOOL, (ToolResult("", (Text(draw(words)),), use.name),)) for use in calls]
        if not calls or draw(st.booleans()):
            messages.append(Message(Role.USER, (Text(draw(words)),)))
    return Talk(draw(st.just("") | words), with_matched_ids(messages))


apis = st.sampled_from(sorted(APIS))


def request_for(api: str, talk: Talk, *, ascii_only: bool = False) -> HttpRequest:
    target, body = APIS[api]
    return request_of(json.dumps(body(talk), ensure_ascii=ascii_only).encode(), target=target)


def asked(request: HttpRequest) -> Asked:
    return identify(request.head).reader.asked(request)


def twice(request: HttpRequest, edit: Edit) -> HttpRequest:
    """The edited request, which another time does not change any more."""
    once = edited(request, [edit])
    assert edited(once, [edit]) is once
    return once


@given(apis, talks(), words, st.booleans())
def test_the_system_prompt_and_nothing_else_becomes_another(api: str, talk: Talk, text: str, ascii_only: bool) -> None:
    request = request_for(api, talk, ascii_only=ascii_only)
    after = twice(request, SetSystem(TextValue(text)))
    assert asked(after) == replace(asked(request), system=(Text(text),))


@given(apis, talks(), words)
def test_what_is_appended_stands_at_the_end(api: str, talk: Talk, text: str) -> None:
    request = request_for(api, talk)
    after = asked(edited(request, [AppendSystem(TextValue(text))]))
    between = "" if not talk.system or talk.system[-1].isspace() else "\n"
    assert after == replace(asked(request), system=(Text(f"{talk.system}{between}{text}"),))


@given(apis, talks(), words.filter(lambda name: not set(name) & set("/:")))
def test_the_model_and_nothing_else_becomes_another(api: str, talk: Talk, name: str) -> None:
    assume(not name.startswith("models"))
    request = request_for(api, talk)
    assert asked(twice(request, SetModel(TextValue(name)))) == replace(asked(request), model=name)


@given(apis, talks(), st.sampled_from(["seed", "topK", "stop"]), st.integers() | words | st.lists(words, max_size=2))
def test_a_parameter_and_nothing_else_becomes_another(api: str, talk: Talk, name: str, value: Any) -> None:
    request = request_for(api, talk)
    after = asked(twice(request, SetParameter((name,), TextValue(json.dumps(value)))))
    before = asked(request)
    if api == "ollama":
        assert after.parameters["options"] == {name: value}
        assert replace(after, parameters=before.parameters) == before
    else:
        assert after == replace(before, parameters={**before.parameters, name: value})
    removed = asked(
        edited(
            edited(request, [SetParameter((name,), TextValue(json.dumps(value)))]),
            [SetParameter((name,), TextValue(""))],
        )
    )
    assert removed.messages == before.messages
    assert name not in removed.parameters


@given(apis, talks(), words, st.data())
def test_a_message_and_no_other_gets_another_text(api: str, talk: Talk, text: str, data: st.DataObject) -> None:
    request = request_for(api, talk)
    body = json.loads(request.body)
    turns = body.get("messages") or body.get("input") or body.get("contents")
    index = data.draw(st.integers(-len(turns), len(turns) - 1))
    edit = SetMessage(index, TextValue(text))
    try:
        after = twice(request, edit)
    except UsageError:
        # A call has no text, and several results have more than one.
        turn = turns[index]
        assert turn.get("type") in ("function_call",) or str(turn).count("esult") + str(turn).count("esponse") > 1
        return
    new_body = json.loads(after.body)
    new_turns = new_body.get("messages") or new_body.get("input") or new_body.get("contents")
    changed = [n for n, (old, new) in enumerate(zip(turns, new_turns, strict=True)) if old != new]
    assert changed in ([], [index % len(turns)])
    # A JSON object would be a message of its own, and these texts are none.
    assert text in _texts(asked(after))


def _texts(read: Asked) -> list[str]:
    said = [text_of(read.system), *(message.text for message in read.messages)]
    parts = [part.text for message in read.messages for part in message.parts if isinstance(part, Text)]
    return [*said, *parts, *(result.text for result in results_in(read.messages))]


@given(apis, talks(), words, names)
def test_the_new_results_of_a_tool_and_no_others_become_another(api: str, talk: Talk, text: str, name: str) -> None:
    request = request_for(api, talk)
    spoke = max((n for n, one in enumerate(talk.messages) if one.role is Role.ASSISTANT), default=-1)
    expected = [
        text if at > spoke and part.name == name else part.text
        for at, message in enumerate(talk.messages)
        for part in message.parts
        if isinstance(part, ToolResult)
    ]
    edit = SetToolResult(name, TextValue(text))
    if text not in expected:
        with pytest.raises(UsageError, match="no new result"):
            edited(request, [edit])
        return
    try:
        after = twice(request, edit)
    except UsageError:
        assert not any(
            part.name == name
            for message in talk.messages[spoke + 1 :]
            for part in message.parts
            if isinstance(part, ToolResult)
        )
        return
    # Google is given objects, so a text that is one comes back in another spelling; these texts are none.
    assert [result.text for result in results_in(asked(after).messages)] == expected
    unchanged = {**json.loads(request.body), "messages": 0, "input": 0, "contents": 0}
    assert {**json.loads(after.body), "messages": 0, "input": 0, "contents": 0} == unchanged


any_edit: st.SearchStrategy[Edit] = st.one_of(
    st.builds(SetSystem, st.builds(TextValue, st.text(max_size=10))),
    st.builds(AppendSystem, st.builds(TextValue, words)),
    st.builds(SetModel, st.builds(TextValue, words)),
    st.builds(
        SetParameter,
        st.lists(st.sampled_from(["temperature", "messages", "request", "tools", "a"]), min_size=1, max_size=3).map(
            tuple
        ),
        st.builds(TextValue, st.sampled_from(["", "0", "[]", '{"a": 1}', "text"])),
    ),
    st.builds(
        SetMessage, st.integers(-4, 4), st.builds(TextValue, st.sampled_from(["text", '{"role": "user"}', "[]"]))
    ),
    st.builds(SetToolResult, names, st.builds(TextValue, st.text(max_size=5))),
)


@given(apis, talks(), st.lists(any_edit, max_size=4))
def test_what_is_held_at_the_forked_step_is_what_was_edited(api: str, talk: Talk, edits: list[Edit]) -> None:
    request = request_for(api, talk)
    try:
        after = edited(request, edits)
    except UsageError:
        return
    assert carried_edits(request, edits).apply(request) == after


@given(st.sampled_from(SHAPES), st.sampled_from(SHAPES), talks())
def test_a_conversation_says_the_same_in_every_api(source: str, target: str, talk: Talk) -> None:
    api = "chat" if source == "openai" else source
    told = transcript_of([Told(request=request_for(api, talk), response=None)], target)
    name, beside = {
        "openai": ("messages", ""),
        "responses": ("input", ""),
        "anthropic": ("messages", "system"),
        "gemini": ("contents", "systemInstruction"),
    }[target]
    system = {beside: told.system} if told.system is not None else {}
    path, _ = APIS["chat" if target == "openai" else target]
    read = asked(request_of({name: told.messages, **system}, target=path))
    assert text_of(read.system) == talk.system
    assert _rows(read.messages) == _rows(talk.messages)
    assert told.remarks == ("no answer: the list ends with what was asked",)


def _rows(messages: tuple[Message, ...]) -> list[tuple[Any, ...]]:
    """What is said, called and given back. What one side says in a row may be one message or several."""
    rows: list[tuple[Any, ...]] = []
    for by_model, run in groupby(messages, key=lambda message: message.role is Role.ASSISTANT):
        parts = [part for message in run for part in message.parts]
        rows += [("result", part.id, part.text) for part in parts if isinstance(part, ToolResult)]
        rows.append((by_model, "".join(part.text for part in parts if isinstance(part, Text))))
        rows += [("call", part.id, part.name, part.arguments) for part in parts if isinstance(part, ToolUse)]
    return rows


# ── any bytes ────────────────────────────────────────────────────────────────────────────────────────────────

keys = st.sampled_from(
    [
        *("model", "messages", "system", "instructions", "input", "contents", "parts", "text", "role", "content"),
        *("type", "tool_calls", "tool_call_id", "id", "name", "function", "arguments", "output", "call_id"),
        *("systemInstruction", "generationConfig", "functionResponse", "response", "request", "prompt", "options"),
        *("tool_use_id", "tool_result", "function_call_output", "tool", "assistant", "user", "temperature"),
    ]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | keys | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=30,
)
bodies = (
    st.binary(max_size=40)
    | json_values.map(lambda value: json.dumps(value).encode())
    | st.dictionaries(keys, json_values, max_size=5).map(lambda value: json.dumps(value).encode())
)
requests = st.builds(lambda head, body: HttpRequest(head=head, body=body), st.sampled_from(HEADS), bodies)


@given(requests, st.lists(any_edit, min_size=1, max_size=3))
def test_a_body_is_edited_or_refused_and_nothing_else_happens(request: HttpRequest, edits: list[Edit]) -> None:
    try:
        after = edited(request, edits)
    except UsageError:
        return
    assert isinstance(json.loads(after.body), dict)
    assert identify(after.head).name == identify(request.head).name


@given(requests, requests, st.lists(any_edit, min_size=1, max_size=3))
def test_a_later_call_never_fails(original: HttpRequest, later: HttpRequest, edits: list[Edit]) -> None:
    after = carried_edits(original, edits).apply(later)
    assert after is later or after != later


@given(requests, st.text(max_size=20) | json_values.map(json.dumps))
def test_an_answer_is_made_up_or_refused_for_any_request(request: HttpRequest, value: str) -> None:
    try:
        response = answer_for(request, SetResponse(TextValue(value)))
    except UsageError:
        return
    assert sum(chunk.size for chunk in response.chunks) == len(response.body)


@given(requests, bodies, requests, any_edit | st.builds(SetResponse, st.builds(TextValue, words)))
def test_a_value_is_taken_or_refused_from_any_step(
    source: HttpRequest, answer: bytes, target: HttpRequest, edit: Edit
) -> None:
    with suppress(UsageError):
        taken = resolve(
            replace(edit, value=StepReference("good", 4)), lambda _session, _step: (source, answer_with(answer))
        )
        if isinstance(taken, SetResponse):
            answer_for(target, taken)
        else:
            edited(target, [taken])


@given(apis, talks(), st.text(max_size=60))
def test_a_made_up_text_is_read_back(api: str, talk: Talk, text: str) -> None:
    request = request_for(api, talk)
    with suppress(ValueError):
        assume(not isinstance(json.loads(text), dict))
    response = answer_for(request, SetResponse(TextValue(text)))
    answered = identify(request.head).reader.answered(request, response)
    assert (answered.text, answered.error, answered.note) == (text, None, None)


@given(st.text(max_size=30))
def test_a_text_is_an_edit_that_gives_it_back_or_is_refused(text: str) -> None:
    try:
        edit = parse_edit(text)
    except UsageError:
        return
    assert parse_edit(edit.written) == edit
