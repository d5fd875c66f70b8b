"""``rewind messages`` and ``rewind.messages``: a recorded conversation, ready to be asked on from."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rewind as package
from rewind.errors import SessionNotFound, UsageError
from rewind.match.call import understand
from rewind.model.http import HttpRequest
from rewind.model.step import StepKind
from rewind.providers.catalogue import identify
from support.exchanges import request_of
from unit.cli.shelf import Rewind, Shelf, a_request, an_answer

SYSTEM = "Answer in one line."


def chat(*turns: dict[str, Any], system: str = SYSTEM) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "system", "content": system}, *turns]}


def said(content: str | None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def completion(message: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message}]}


CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
USER = {"role": "user", "content": "How warm?"}
ASKS = said(None, tool_calls=[CALL])
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "21 °C"}
ANSWER = said("It is warm.")
TALK = [(chat(USER), completion(ASKS)), (chat(USER, ASKS, RESULT), completion(ANSWER))]


def record(
    shelf: Shelf,
    session: str,
    talk: list[tuple[Any, Any]],
    *,
    target: str = "/v1/chat/completions",
    kind_known: bool = False,
) -> None:
    writer = shelf.begin(session)
    for index, (asked, answered) in enumerate(talk, 1):
        head = request_of(target=asked.pop("target", target)).head
        body = json.dumps(asked).encode()
        call = understand(HttpRequest(head=head, body=body))
        kind = StepKind.LLM_CALL if kind_known else call.provider.kind
        ts = 1_700_000_000.0 + index
        writer.request(a_request(index, head=head, ts=ts, match_key=call.key, kind=kind), body)
        if answered is not None:
            reply = json.dumps(answered).encode()
            writer.response(index, an_answer(len(reply)), reply)
    writer.end(ended=1_700_000_100.0, exit_code=0, redactions=0, remarks=())


@pytest.fixture
def talked(shelf: Shelf) -> str:
    record(shelf, "aaaaaaaa", [(dict(asked), answered) for asked, answered in TALK])
    return "aaaaaaaa"


def fresh(api: str, found: dict[str, Any]) -> HttpRequest:
    names = {"openai": "messages", "responses": "input", "anthropic": "messages", "gemini": "contents"}
    targets = {
        "openai": "/v1/chat/completions",
        "responses": "/v1/responses",
        "anthropic": "/v1/messages",
        "gemini": "/v1beta/models/m:generateContent",
    }
    beside = {"anthropic": "system", "gemini": "systemInstruction"}.get(api)
    body = {names[api]: found["messages"], **({beside: found["system"]} if beside else {})}
    return request_of(body, target=targets[api])


def test_the_list_is_what_was_asked_last_and_its_answer(rewind: Rewind, talked: str) -> None:
    ran = rewind("messages", talked)
    assert (ran.code, ran.talk) == (0, "")
    assert ran.json() == [{"role": "system", "content": SYSTEM}, USER, ASKS, RESULT, ANSWER]


def test_up_to_a_step_its_answer_is_the_last_message(rewind: Rewind, talked: str) -> None:
    for arguments in ([talked, "--upto", "1"], [f"{talked}:1"], ["last:1", "--upto", "1"]):
        assert rewind("messages", *arguments).json() == [{"role": "system", "content": SYSTEM}, USER, ASKS]


@pytest.mark.parametrize("api", ["openai", "responses", "anthropic", "gemini"])
def test_every_shape_says_the_same_and_the_system_prompt_is_not_lost(rewind: Rewind, talked: str, api: str) -> None:
    found = rewind("messages", talked, "--as", api, "--json").json()
    assert found["schema"] == "rewind/messages@1"
    assert (found["session"], found["step"], found["thread"], found["api"], found["model"]) == (talked, 2, 1, api, "m")
    request = fresh(api, found)
    asked = identify(request.head).reader.asked(request)
    assert [part.text for part in asked.system if hasattr(part, "text")] == [SYSTEM]
    assert [message.text for message in asked.messages] == ["How warm?", "", "", "It is warm."]
    assert rewind("messages", talked, "--as", api).json() == found["messages"]


@pytest.mark.parametrize("api", ["anthropic", "gemini"])
def test_a_system_prompt_that_stands_beside_the_list_is_spoken_of(rewind: Rewind, talked: str, api: str) -> None:
    ran = rewind("messages", talked, "--as", api)
    assert SYSTEM not in ran.text
    assert f"{api} takes the system prompt outside the list: --json has it" in ran.talk
    assert SYSTEM in str(rewind("messages", talked, "--as", api, "--json").json()["system"])


def test_what_is_left_out_is_said_on_stderr_and_in_the_json(rewind: Rewind, shelf: Shelf) -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    answer = {"type": "message", "content": [thinking, {"type": "text", "text": "Yes."}]}
    record(shelf, "bbbbbbbb", [({"messages": [USER]}, answer)], target="/v1/messages")
    ran = rewind("messages", "bbbbbbbb", "--as", "openai")
    assert ran.json() == [USER, said("Yes.")]
    assert ran.talk == "thinking left out: only the API that wrote it can read it\n"
    assert rewind("messages", "bbbbbbbb", "--as", "openai", "--json").json()["remarks"] == [ran.talk.strip()]
    own = rewind("messages", "bbbbbbbb")
    assert own.json()[-1]["content"][0] == thinking
    assert own.talk == ""


def test_history_that_the_provider_keeps_is_told_from_the_earlier_steps(rewind: Rewind, shelf: Shelf) -> None:
    def answer(number: int, *output: dict[str, Any]) -> dict[str, Any]:
        return {"id": f"resp_{number}", "status": "completed", "output": list(output)}

    call = {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"}
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Warm."}]}
    output = {"type": "function_call_output", "call_id": "c", "output": "21 °C"}
    talk = [
        ({"model": "m", "instructions": SYSTEM, "input": "How warm?"}, answer(1, call)),
        ({"model": "m", "instructions": SYSTEM, "previous_response_id": "resp_1", "input": [output]}, answer(2, text)),
    ]
    record(shelf, "cccccccc", talk, target="/v1/responses")
    assert rewind("messages", "cccccccc").json() == [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "How warm?"},
        call,
        output,
        text,
    ]
    for api in ("openai", "anthropic", "gemini"):
        request = fresh(api, rewind("messages", "cccccccc", "--as", api, "--json").json())
        messages = identify(request.head).reader.asked(request).messages
        assert [message.text for message in messages] == ["How warm?", "", "", "Warm."]


def test_of_several_threads_the_one_of_the_last_call_is_told_or_the_one_named(rewind: Rewind, shelf: Shelf) -> None:
    sub = {"role": "user", "content": "Look up the population of Oslo in the register."}
    talk = [
        (chat(USER), completion(said("First, something else."))),
        (chat(sub, system="You look things up."), completion(said("700,000"))),
    ]
    record(shelf, "dddddddd", talk)
    ran = rewind("messages", "dddddddd")
    assert ran.json()[1:] == [sub, said("700,000")]
    assert ran.talk == "thread 2 of 2, step 2; --thread N\n"
    assert rewind("messages", "dddddddd", "--thread", "1").json()[1:] == [USER, said("First, something else.")]
    assert rewind("messages", "dddddddd:1").talk == ""


def test_a_step_that_is_no_call_to_a_model_means_the_last_one_before_it(rewind: Rewind, shelf: Shelf) -> None:
    talk = [(chat(USER), completion(ANSWER)), ({"q": "oslo", "target": "/search"}, {"found": 3})]
    record(shelf, "eeeeeeee", talk)
    assert rewind("messages", "eeeeeeee", "--upto", "2").json()[-1] == ANSWER


def test_a_call_that_got_no_answer_ends_with_its_question(rewind: Rewind, shelf: Shelf) -> None:
    record(shelf, "ffffffff", [(chat(USER), None)])
    ran = rewind("messages", "ffffffff")
    assert ran.json()[-1] == USER
    assert "no answer" in ran.talk


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["aaaaaaaa", "--upto", "7"], 3, "has no step 7; it has 2, from 1 to 2"),
        (["aaaaaaaa:7"], 3, "has no step 7"),
        (["aaaaaaaa:1", "--upto", "2"], 2, "name different steps"),
        (["aaaaaaaa", "--thread", "4"], 2, "no thread 4 up to that step; its threads are 1 to 1"),
        (["aaaaaaaa", "--as", "smoke"], 2, "'smoke' is not one of"),
        (["nobody"], 3, "No session is called 'nobody'"),
    ],
)
def test_what_is_not_there_is_named(rewind: Rewind, talked: str, arguments: list[str], code: int, why: str) -> None:
    ran = rewind("messages", *arguments)
    assert (ran.code, ran.data) == (code, b"")
    assert why in ran.talk and "try: " in ran.talk


def test_a_session_without_a_model_has_no_messages(rewind: Rewind, shelf: Shelf) -> None:
    record(shelf, "99999999", [({"q": "oslo"}, {"found": 3})], target="/search")
    record(shelf, "99999998", [({"q": "oslo"}, {"found": 3})], target="/unknown", kind_known=True)
    for session in ("99999999", "99999998"):
        ran = rewind("messages", session)
        assert ran.code == 2
        assert "No model was called" in ran.talk


def test_whatever_a_model_wrote_cannot_steer_the_terminal(rewind: Rewind, shelf: Shelf) -> None:
    record(shelf, "88888888", [(chat({"role": "user", "content": "\x1b[2J\u202e"}), completion(ANSWER))])
    ran = rewind("messages", "88888888")
    assert b"\x1b" not in ran.data and ran.data.isascii()
    assert ran.json()[1]["content"] == "\x1b[2J\u202e"


# ── from Python ──────────────────────────────────────────────────────────────────────────────────────────────


def test_python_gets_the_same_list_and_what_stands_beside_it(rewind: Rewind, talked: str, home: Path) -> None:
    for api in ("openai", "responses", "anthropic", "gemini"):
        found = package.messages(talked, as_=api, home=home)
        shown = rewind("messages", talked, "--as", api, "--json").json()
        assert isinstance(found, list)
        assert found == shown["messages"]
        assert (found.api, found.model, found.system) == (api, "m", shown["system"])
        assert (found.step, found.thread, found.remarks) == (2, 1, ())
    assert package.messages(talked, 1, home=str(home))[-1] == ASKS


def test_python_finds_the_store_as_the_commands_do(rewind: Rewind, talked: str) -> None:
    assert package.messages("last", upto=1) == rewind("messages", "last:1").json()


def test_python_meets_the_same_errors(talked: str, home: Path) -> None:
    with pytest.raises(SessionNotFound, match="no step 9"):
        package.messages(talked, upto=9, home=home)
    with pytest.raises(UsageError, match="cannot be written for 'smoke'"):
        package.messages(talked, as_="smoke", home=home)


@pytest.mark.process
def test_importing_rewind_loads_none_of_its_rooms() -> None:
    loaded = "import rewind, sys; print([name for name in sys.modules if name.startswith('rewind.')])"
    ran = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['rewind.version']"
