"""What would put a cause right."""

import json
from typing import Any

from rewind.compare.cause import CauseKind
from rewind.compare.divergence import bisect
from rewind.compare.remedy import Remedy, remedies
from rewind.edit.edits import SetMessage
from unit.compare.chats import Chat, Tape

CHAT: dict[str, Any] = {"path": "/v1/chat/completions", "host": "api.openai.com"}


def put_back(a: Tape, b: Tape) -> list[Remedy]:
    return list(remedies(bisect(a.run(), b.run())))


def written(remedy: Remedy) -> list[str]:
    return [edit.written for edit in remedy.edits]


def asked(answer: str, *, question: str = "Refund me.", **chat: Any) -> Tape:
    tape = Tape()
    Chat(tape, **chat).user(question).says(answer)
    return tape


def test_a_prompt_a_model_and_parameters_are_taken_from_the_good_run() -> None:
    bad = asked("No.", system="Be harsh.", model="claude-opus-5", settings={"max_tokens": 100, "top_k": 5})
    found = put_back(asked("Yes."), bad)
    assert [one.kind for one in found] == [CauseKind.MODEL, CauseKind.SYSTEM, CauseKind.PARAMETERS]
    assert [written(one) for one in found] == [["model=@7f3a2b9c:1"], ["system=@7f3a2b9c:1"], ["top_k="]]


def test_tools_that_the_good_run_did_not_have_are_taken_out() -> None:
    tools = [{"name": "refund", "description": "", "input_schema": {"type": "object"}}]
    (found,) = put_back(asked("Yes."), asked("No.", tools=tools))
    assert written(found) == ["tools="]


def test_a_question_is_put_back_where_it_stands() -> None:
    (found,) = put_back(asked("Yes."), asked("No.", question="Why?"))
    assert found.kind is CauseKind.INPUT and written(found) == ["messages[0]=@7f3a2b9c:1"]


def test_a_result_is_put_back_by_the_name_of_its_tool() -> None:
    tapes = []
    for given, said in (("active", "Yes."), ("frozen", "No.")):
        tape = Tape()
        Chat(tape).user("Refund me.").says("", [("look", {})]).results(given).says(said)
        tapes.append(tape)
    (found,) = put_back(*tapes)
    assert written(found) == ["tool.look.result=@7f3a2b9c:2"]


def test_what_the_model_chose_by_itself_cannot_be_put_back() -> None:
    assert put_back(asked("Yes."), asked("No.")) == []


def chat(system: str, question: str, answer: str) -> Tape:
    """Over an API that keeps the prompt among the messages."""
    tape = Tape()
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    choice = {"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
    tape.add({"model": "gpt-4o", "messages": messages}, {"id": "c", "model": "gpt-4o", "choices": [choice]}, **CHAT)
    return tape


def test_a_question_is_put_back_without_the_prompt_that_stands_before_it() -> None:
    found = put_back(chat("Be kind.", "Refund me.", "Yes."), chat("Be harsh.", "Why?", "No."))
    assert [one.kind for one in found] == [CauseKind.SYSTEM, CauseKind.INPUT]
    assert found[1].edits == (SetMessage(1, found[0].edits[0].value),)


def test_a_whole_conversation_is_put_back_behind_the_prompt_of_the_bad_run() -> None:
    bad = Tape()
    messages = [
        {"role": "system", "content": "Be harsh."},
        {"role": "user", "content": "By the way."},
        {"role": "user", "content": "Refund me."},
    ]
    choice = {"index": 0, "message": {"role": "assistant", "content": "No."}, "finish_reason": "stop"}
    bad.add({"model": "gpt-4o", "messages": messages}, {"id": "c", "model": "gpt-4o", "choices": [choice]}, **CHAT)
    found = put_back(chat("Be kind.", "Refund me.", "Yes."), bad)
    value = json.loads(written(found[1])[0].partition("=")[2])
    assert value == [{"role": "system", "content": "Be harsh."}, {"role": "user", "content": "Refund me."}]
