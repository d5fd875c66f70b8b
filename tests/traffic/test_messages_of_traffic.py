"""Real calls: told in every API's words, edited, and answered with a made-up answer."""

import json
import re
from collections import Counter
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest

from rewind.edit.apply import answer_for, edited, is_signed
from rewind.edit.carry_over import carried_edits
from rewind.edit.edits import Edit, SetMessage, SetModel, SetParameter, SetResponse, SetSystem, TextValue
from rewind.edit.transcript import AnsweredCall as Told
from rewind.edit.transcript import Transcript, shape_of, transcript_of
from rewind.errors import CannotEdit
from rewind.model.http import HttpRequest
from rewind.model.message import Message, Other, Part, Refusal, Role, Text, ToolResult, ToolUse, text_of
from rewind.providers.catalogue import SHAPES, identify
from support.exchanges import request_of
from support.traffic import Exchange

pytestmark = pytest.mark.traffic

TARGETS = {
    "openai": ("/v1/chat/completions", "messages", ""),
    "responses": ("/v1/responses", "input", ""),
    "anthropic": ("/v1/messages", "messages", "system"),
    "gemini": ("/v1beta/models/m:generateContent", "contents", "systemInstruction"),
}
LEFT_OUT = re.compile(r"\[(image|audio|video|document|file) left out[^\]]*\]")


@pytest.fixture(scope="module")
def calls(exchanges: list[Exchange]) -> list[Exchange]:
    """The calls to models; embeddings belong to no conversation."""
    found = [one for one in exchanges if one.kind == "llm" and not asked(one.request).embeds]
    assert len(found) > 500
    return found


def asked(request: HttpRequest) -> Any:
    return identify(request.head).reader.asked(request)


def fresh(told: Transcript) -> HttpRequest:
    target, name, beside = TARGETS[told.api]
    system = {beside: told.system} if told.system is not None else {}
    return request_of({name: told.messages, **system}, target=target)


def rows(system: tuple[Part, ...], messages: tuple[Message, ...]) -> list[tuple[Any, ...]]:
    """What is said, called and given back, in order; within a turn its words come before its calls."""
    told: list[tuple[Any, ...]] = [("system", text_of(system))]
    for speaks, run in groupby(messages, key=lambda message: message.role is Role.ASSISTANT):
        parts = [part for message in run for part in message.parts]
        words = "".join(part.text for part in parts if isinstance(part, Text | Refusal))
        results = [part for part in parts if isinstance(part, ToolResult) and not part.hosted]
        calls = [part for part in parts if isinstance(part, ToolUse) and not part.hosted]
        told += [("result", LEFT_OUT.sub("", _given_back(result))) for result in results]
        told += [("model" if speaks else "user", LEFT_OUT.sub("", words))]
        told += [("call", call.name, {} if call.arguments is None else call.arguments) for call in calls]
    return [row for row in told if row[1] or row[0] == "result"]


def _given_back(result: ToolResult) -> str:
    return "".join(
        json.dumps(part.value, ensure_ascii=False) if isinstance(part, Other) else part.text
        for part in result.parts
        if isinstance(part, Text | Refusal | Other)
    )


def test_every_call_reads_the_same_in_all_four_shapes(
    calls: list[Exchange], capsys: pytest.CaptureFixture[str]
) -> None:
    different: list[str] = []
    pairs: Counter[str] = Counter()
    remarks: Counter[str] = Counter()
    for call in calls:
        one = Told(request=call.request, response=call.response)
        said = [Message(Role.ASSISTANT, one.answered.parts)] if one.answered is not None else []
        expected = rows(one.asked.system, (*one.asked.messages, *said))
        for api in SHAPES:
            told = transcript_of([one], api)
            read = asked(fresh(told))
            pairs[f"{shape_of(call.request) or call.vendor} → {api}"] += 1
            remarks.update(re.sub(r" \(\d+×\)", "", remark) for remark in told.remarks)
            if rows(read.system, read.messages) != expected:
                different.append(f"{call.name} as {api}")
    with capsys.disabled():
        print(f"\n{sum(pairs.values())} tellings of {len(calls)} calls: {dict(pairs)}")
        print(f"remarks: {dict(remarks)}")
    assert different == []


def test_in_every_shape_a_result_has_the_id_of_its_call_and_no_id_is_used_twice(calls: list[Exchange]) -> None:
    for call in calls:
        one = Told(request=call.request, response=call.response)
        for api in SHAPES:
            if shape_of(call.request) == api:
                continue  # in its own words it is as the agent sent it
            messages = asked(fresh(transcript_of([one], api))).messages
            parts = [part for message in messages for part in message.parts]
            uses = [part.id for part in parts if isinstance(part, ToolUse)]
            results = [part.id for part in parts if isinstance(part, ToolResult)]
            assert len(set(uses)) == len(uses), call.name
            assert all(uses) and all(results), call.name
            unknown = set(results) - set(uses)
            known = {part.id for message in one.asked.messages for part in message.parts if isinstance(part, ToolUse)}
            assert not unknown & known, call.name


def test_edits_change_what_they_name_and_nothing_else(calls: list[Exchange]) -> None:
    changed: Counter[str] = Counter()
    for call in calls:
        before = asked(call.request)
        if is_signed(call.request):
            with pytest.raises(CannotEdit, match="signed"):
                edited(call.request, [SetParameter(("temperature",), TextValue("0.125"))])
            continue
        if before.note or not call.request.body:
            continue
        edits: list[tuple[Edit, dict[str, Any]]] = [
            (SetSystem(TextValue("Be brief.")), {"system": (Text("Be brief."),)}),
            (SetModel(TextValue("model-y")), {"model": "model-y"}),
            (
                SetParameter(("temperature",), TextValue("0.125")),
                {"parameters": {**before.parameters, "temperature": 0.125}},
            ),
        ]
        for edit, expected in edits:
            after = edited(call.request, [edit])
            assert asked(after) == replace(before, **expected), call.name
            assert edited(after, [edit]) is after, call.name
            assert carried_edits(call.request, [edit]).apply(call.request) == after, call.name
            changed[identify(call.request.head).name] += 1
    assert changed["openai-chat"] > 100 and changed["anthropic"] > 100
    assert changed["gemini"] > 50 and changed["openai-responses"] > 50


def test_a_message_that_is_edited_is_the_only_one_that_changes(calls: list[Exchange]) -> None:
    edits = 0
    for call in calls:
        edit = SetMessage(-1, TextValue("Never mind."))
        try:
            after = edited(call.request, [edit])
        except CannotEdit:
            continue
        edits += 1
        old, new = asked(call.request), asked(after)
        assert "Never mind." in str(new.messages[-1:]), call.name
        assert new.messages[:-1] == old.messages[:-1], call.name
        assert carried_edits(call.request, [edit]).apply(call.request) == after, call.name
    assert edits > 400


def test_every_call_can_be_given_a_made_up_answer(calls: list[Exchange]) -> None:
    text = "Never mind: “it is fine” ✓. " * 5
    refused: list[str] = []
    for call in calls:
        try:
            response = answer_for(call.request, SetResponse(TextValue(text)))
        except CannotEdit as reason:
            refused.append(reason.message)
            continue
        read = identify(call.request.head).reader.answered(call.request, response)
        assert (read.text, read.error, read.note) == (text, None, None), call.name
    assert [message for message in refused if "does not know the shape" not in message] == []
    assert len(refused) < 5
