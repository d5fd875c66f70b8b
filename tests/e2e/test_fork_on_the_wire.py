"""``rewind fork``, byte for byte: every row of the patch grammar as the provider gets it, and nothing else changed."""

import copy
import gzip
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.answers import anthropic_message, gemini_content, json_answer, openai_chat
from support.effort import effort, sample
from support.forks import fork, forked, forking, sets
from support.lab import Gate, Lab
from support.provider import FakeProvider
from support.rawhttp import Reply, ask, message
from support.script import Answer, Playbook, Request
from support.trust import Trust

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]
Body = dict[str, Any]

OPENAI, ANTHROPIC = "api.openai.com", "api.anthropic.com"
TARGETS = {OPENAI: "/v1/chat/completions", ANTHROPIC: "/v1/messages"}
KEY_LINES = {
    OPENAI: ("Authorization", "Bearer sk-test-0123456789abcdef0123456789"),
    ANTHROPIC: ("x-api-key", "sk-ant-test-0123456789abcdef0123"),
}


def turns(
    host: str, *, system: str = "You are a clerk.", result: str = '{"status": "active"}', **more: Any
) -> list[Body]:
    """Three calls of a conversation: a question, the result of a tool, and a word of thanks."""
    if host == OPENAI:
        call = {"id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": "{}"}}
        said: list[Body] = [{"role": "system", "content": system}, {"role": "user", "content": "Look up 8821."}]
        after = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": result},
        ]
        fixed: Body = {"model": "gpt-4o-mini", "temperature": 0.7}
    else:
        use = {"type": "tool_use", "id": "toolu_1", "name": "lookup", "input": {}}
        given = {"type": "tool_result", "tool_use_id": "toolu_1", "content": result}
        said = [{"role": "user", "content": "Look up 8821."}]
        after = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [given]}]
        fixed = {"model": "claude-sonnet-4-5", "max_tokens": 100, "temperature": 0.7, "system": system}
    thanks = [{"role": "assistant", "content": "It is active."}, {"role": "user", "content": "Thanks."}]
    return [{**fixed, **more, "messages": messages} for messages in (said, [*said, *after], [*said, *after, *thanks])]


def answers(request: Request) -> Answer:
    if request.path == TARGETS[ANTHROPIC]:
        return anthropic_message(request, f"answer {request.hit}")
    return openai_chat(request, f"answer {request.hit}")


def raw(host: str, body: Body) -> bytes:
    lines = [("X-Odd", "two  spaces"), KEY_LINES[host], ("Content-Type", "application/json")]
    return message("POST", TARGETS[host], host, json.dumps(body).encode(), lines)


def asked(gate: Gate, host: str, *requests: bytes) -> list[Reply]:
    with gate.tls(host) as line:
        return [ask(line, request) for request in requests]


def recorded(lab: Lab, host: str, *requests: bytes, options: tuple[str, ...] = ()) -> str:
    with lab.recording(*options) as gate:
        asked(gate, host, *requests)
    return gate.ended().ok().session


@contextmanager
def sent(lab: Lab, session: str, host: str, requests: list[bytes], *edits: str) -> Iterator[list[Request]]:
    """What reaches the provider when step 2 is forked with these edits and all is asked again."""
    before = lab.provider.calls
    with forking(lab, f"{session}:2", *sets(edits)) as gate:
        replies = asked(gate, host, *requests)
    assert [reply.status for reply in replies] == [200] * len(requests), gate.ended().talk
    yield lab.provider.requests[before:]
    assert gate.ended().code == 0, gate.ended().talk
    again = lab.rewind("inspect", forked(gate.ended()), "--json").ok()
    assert len(json.loads(again.stdout)["steps"]) == len(requests)


Change = Callable[[Body], Any]


def system_set(body: Body) -> None:
    if "system" in body:
        body["system"] = "You are kind."
    else:
        body["messages"][0]["content"] = "You are kind."


def system_extended(body: Body) -> None:
    if "system" in body:
        body["system"] += "\nBe brief."
    else:
        body["messages"][0]["content"] += "\nBe brief."


def question_set(body: Body) -> None:
    next(turn for turn in body["messages"] if turn["role"] == "user")["content"] = "Look up 4711."


def result_set(body: Body) -> None:
    for turn in body["messages"]:
        if turn["role"] == "tool":
            turn["content"] = '{"status": "blocked"}'
        elif isinstance(turn["content"], list) and turn["content"][0]["type"] == "tool_result":
            turn["content"][0]["content"] = '{"status": "blocked"}'


def last_set(body: Body) -> None:
    """The last message at the step is the tool's result, and its text is that."""
    for turn in body["messages"]:
        if turn["role"] == "tool":
            turn["content"] = "It is blocked."
        elif isinstance(turn["content"], list) and turn["content"][0]["type"] == "tool_result":
            turn["content"][0]["content"] = "It is blocked."


def put(name: str, value: Any) -> Change:
    return lambda body: body.update({name: value})


ROWS: dict[str, tuple[dict[str, str] | str, Change]] = {
    "system=": ("system=You are kind.", system_set),
    "system+=": ("system+=Be brief.", system_extended),
    "model=": ("model=other-model", put("model", "other-model")),
    "a parameter that was there": ("temperature=0.2", put("temperature", 0.2)),
    "a parameter that was not": ("top_p=0.5", put("top_p", 0.5)),
    "a parameter inside another": ("metadata.user_id=u1", put("metadata", {"user_id": "u1"})),
    "a parameter taken out": ("temperature=", lambda body: body.pop("temperature")),
    "messages[i]=": ({OPENAI: "messages[1]=Look up 4711.", ANTHROPIC: "messages[0]=Look up 4711."}, question_set),
    "messages[i]= as JSON": (
        {
            OPENAI: 'messages[1]={"role": "user", "content": "Look up 4711."}',
            ANTHROPIC: 'messages[0]={"role": "user", "content": "Look up 4711."}',
        },
        question_set,
    ),
    "messages[-1]=": ("messages[-1]=It is blocked.", last_set),
    "tool.NAME.result=": ('tool.lookup.result={"status": "blocked"}', result_set),
}


HOSTS_IN_TURN = [(OPENAI, ANTHROPIC), (ANTHROPIC, OPENAI)]
"""Which host comes first for even and for odd rows, so that a sample of every second case has both."""


@pytest.mark.parametrize(
    ("row", "host"), sample([(row, host) for n, row in enumerate(ROWS) for host in HOSTS_IN_TURN[n % 2]], every=2)
)
def test_every_row_of_the_grammar_reaches_the_wire_and_holds(lab: MakeLab, host: str, row: str) -> None:
    bench = lab(answers)
    bodies = turns(host)
    requests = [raw(host, body) for body in bodies]
    session = recorded(bench, host, *requests)
    edit, change = ROWS[row]
    with sent(bench, session, host, requests, edit if isinstance(edit, str) else edit[host]) as live:
        assert len(live) == 2, "the first step came from the recording"
        for request, original, before in zip(live, requests[1:], bodies[1:], strict=True):
            expected = copy.deepcopy(before)
            change(expected)
            assert request.json() == expected
            assert other_lines(request.raw) == other_lines(original)
    new = bench.rewind("list", "--json", "--limit", "1").ok()
    (told,) = json.loads(new.stdout)["sessions"]
    assert bench.body(told["id"], 2, "--request") == live[0].body


def other_lines(request: bytes) -> list[bytes]:
    """The head less its length."""
    lines = request.partition(b"\r\n\r\n")[0].split(b"\r\n")
    return [line for line in lines if not line.lower().startswith(b"content-length:")]


PLACES: dict[str, Change] = {
    "system": system_set,
    "model": put("model", "good-model"),
    "temperature": put("temperature", 0.1),
    "messages[-1]": result_set,
    "tool.lookup.result": result_set,
}


@pytest.mark.parametrize(
    ("place", "host"),
    sample([(place, host) for n, place in enumerate(PLACES) for host in HOSTS_IN_TURN[n % 2]], every=2),
)
def test_a_value_is_taken_from_another_session(lab: MakeLab, host: str, place: str) -> None:
    bench, change = lab(answers), PLACES[place]
    bodies = turns(host)
    requests = [raw(host, body) for body in bodies]
    other = turns(host, system="You are kind.", result='{"status": "blocked"}', model="good-model", temperature=0.1)
    good = recorded(bench, host, *(raw(host, body) for body in other), options=("--name", "good"))
    session = recorded(bench, host, *requests)
    with sent(bench, session, host, requests[:2], f"{place}=@good:2") as live:
        expected = copy.deepcopy(bodies[1])
        change(expected)
        assert [request.json() for request in live] == [expected]
    (newest,) = json.loads(bench.rewind("list", "--json", "--limit", "1").stdout)["sessions"]
    assert newest["forked_from"]["edits"] == [f"{place}=@{good}:2"], "names move on, ids stay"


@pytest.mark.parametrize("host", [OPENAI, ANTHROPIC])
def test_an_answer_is_taken_from_another_session_to_the_byte(lab: MakeLab, host: str) -> None:
    bench = lab(answers)
    requests = [raw(host, body) for body in turns(host)]
    good = recorded(bench, host, *requests)
    session = recorded(bench, host, *requests)
    calls = bench.provider.calls
    with forking(bench, f"{session}:2", "--set", f"response=@{good}:1") as gate:
        _, second = asked(gate, host, *requests[:2])
    assert bench.provider.calls == calls
    assert second.body == bench.body(good, 1)


def test_several_edits_are_made_together(lab: MakeLab) -> None:
    bench = lab(answers)
    bodies = turns(OPENAI)
    requests = [raw(OPENAI, body) for body in bodies]
    session = recorded(bench, OPENAI, *requests)
    edits = ("system=You are kind.", "temperature=0.2", 'tool.lookup.result={"status": "blocked"}')
    with sent(bench, session, OPENAI, requests, *edits) as live:
        for request, before in zip(live, bodies[1:], strict=True):
            expected = copy.deepcopy(before)
            for change in (system_set, put("temperature", 0.2), result_set):
                change(expected)
            assert request.json() == expected


# How a request was written


def chunked(body: Body) -> bytes:
    data = json.dumps(body).encode()
    pieces = b"".join(b"%x\r\n%b\r\n" % (len(data[at : at + 40]), data[at : at + 40]) for at in range(0, len(data), 40))
    head = message("POST", TARGETS[OPENAI], OPENAI, None, [("Transfer-Encoding", "chunked"), ("A", "1")])
    return head + pieces + b"0\r\n\r\n"


def packed(body: Body) -> bytes:
    lines = [("Content-Encoding", "gzip"), ("A", "1"), ("Content-Type", "application/json")]
    return message("POST", TARGETS[OPENAI], OPENAI, gzip.compress(json.dumps(body).encode(), mtime=0), lines)


@pytest.mark.parametrize("written", [chunked, packed], ids=["chunked", "gzip"])
def test_a_body_in_pieces_or_compressed_goes_out_whole_and_plain(
    lab: MakeLab, written: Callable[[Body], bytes]
) -> None:
    bench = lab(answers)
    bodies = turns(OPENAI)
    requests = [written(body) for body in bodies]
    session = recorded(bench, OPENAI, *requests)
    with sent(bench, session, OPENAI, requests, "system=You are kind.") as live:
        for request, before in zip(live, bodies[1:], strict=True):
            system_set(before)
            assert request.json() == before
            assert request.header("content-length") == str(len(request.body))
            assert request.header("transfer-encoding") == request.header("content-encoding") == ""
            assert request.header("a") == "1"
    (newest,) = json.loads(bench.rewind("list", "--json", "--limit", "1").stdout)["sessions"]
    shown = json.loads(bench.rewind("inspect", f"{newest['id']}:2", "--json").stdout)
    names = {name.lower() for name, _ in shown["request"]["headers"]}
    assert not names & {"transfer-encoding", "content-encoding"} and "content-length" in names
    with bench.replaying(newest["id"]) as gate:
        replies = asked(gate, OPENAI, *requests)
    assert [reply.status for reply in replies] == [200] * 3
    assert gate.ended().code == 0


def test_without_an_edit_not_a_byte_is_changed(lab: MakeLab) -> None:
    bench = lab(answers)
    requests = [written(body) for body in turns(OPENAI) for written in (chunked, packed)]
    session = recorded(bench, OPENAI, *requests)
    before = [request.raw for request in bench.provider.requests]
    with forking(bench, f"{session}:1") as gate:
        asked(gate, OPENAI, *requests)
    assert [request.raw for request in bench.provider.requests[len(before) :]] == before


def test_a_model_in_the_address_is_changed_there_and_the_key_beside_it_stays(lab: MakeLab) -> None:
    host, key = "generativelanguage.googleapis.com", "AIzaTest0123456789abcdef0123456789"
    bench = lab(lambda request: gemini_content(request, f"answer {request.hit}"))
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}).encode()
    target = f"/v1beta/models/gemini-2.5-flash:generateContent?key={key}"
    request = message("POST", target, host, body, [("Content-Type", "application/json")])
    session = recorded(bench, host, request)
    with forking(bench, f"{session}:1", "--set", "model=gemini-2.5-pro") as gate:
        asked(gate, host, request)
    live = bench.provider.requests[-1]
    assert live.target == f"/v1beta/models/gemini-2.5-pro:generateContent?key={key}"
    assert live.body == body
    new = forked(gate.ended().ok())
    (row,) = bench.steps(new)
    assert "gemini-2.5-pro" in row["url"] and key not in row["url"]
    with bench.replaying(new) as again:
        assert asked(again, host, request)[0].status == 200
    assert again.ended().code == 0


# Parallel calls


@pytest.mark.parametrize("seed", range(effort(1, 4)))
def test_requests_in_any_order_go_by_their_step(lab: MakeLab, seed: int) -> None:
    bench = lab(answers)
    bodies = [{"model": "m", "messages": [{"role": "user", "content": f"question {n}"}]} for n in range(1, 5)]
    requests = [raw(OPENAI, body) for body in bodies]
    with bench.recording() as gate:
        first = asked(gate, OPENAI, *requests)
    session = gate.ended().ok().session
    order = random.Random(seed).sample(range(4), 4)
    with forking(bench, f"{session}:3", "--set", "temperature=0") as gate:
        lines = [gate.tls(OPENAI) for _ in order]
        replies = {at: ask(line, requests[at]) for line, at in zip(lines, order, strict=True)}
        for line in lines:
            line.close()
    assert [bytes(replies[at].raw) for at in (0, 1)] == [bytes(first[at].raw) for at in (0, 1)]
    live = [request.json() for request in bench.provider.requests[4:]]
    assert {body["messages"][0]["content"] for body in live} == {"question 3", "question 4"}
    assert next(body for body in live if "question 3" in str(body))["temperature"] == 0
    # Another conversation, known by its first message: the edit is not for it, whenever it comes.
    assert next(body for body in live if "question 4" in str(body)) == bodies[3]


# What cannot be edited

BEDROCK = "bedrock-runtime.us-east-1.amazonaws.com"


def test_a_signed_request_is_refused_with_the_reason_and_its_answer_can_still_be_set(
    trust: Trust, tmp_path: Path
) -> None:
    def converses(request: Request) -> Answer:
        output = {"message": {"role": "assistant", "content": [{"text": "Hello."}]}}
        return json_answer(request, {"output": output, "stopReason": "end_turn"})

    body = {"messages": [{"role": "user", "content": [{"text": "Hi"}]}], "inferenceConfig": {"temperature": 1}}
    signed = [
        ("Authorization", "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/20261101/us-east-1/bedrock/aws4_request"),
        ("X-Amz-Date", "20261101T000000Z"),
        ("Content-Type", "application/json"),
    ]
    request = message("POST", "/model/anthropic.claude-x/converse", BEDROCK, json.dumps(body).encode(), signed)
    with FakeProvider(converses, trust=trust, names=(BEDROCK,)) as provider:
        bench = Lab(tmp_path, trust, provider, hosts=(BEDROCK,))
        session = recorded(bench, BEDROCK, request)
        for options in (("--set", "temperature=0"), ("--edit",)):
            result = fork(bench, f"{session}:1", *options)
            assert result.code == 2
            assert "signed by the agent (AWS SigV4)" in result.talk and "response=" in result.talk
        assert provider.calls == 1
        with forking(bench, f"{session}:1", "--set", "response=No.") as gate:
            (reply,) = asked(gate, BEDROCK, request)
        assert json.loads(reply.body)["output"]["message"]["content"] == [{"text": "No."}]
        assert provider.calls == 1


def test_of_a_call_that_is_no_llm_call_only_the_answer_can_be_set(lab: MakeLab) -> None:
    host = "tools.example.com"
    bench = lab(lambda request: json_answer(request, {"hit": request.hit}))
    request = message("GET", "/weather?city=Oslo", host)
    session = recorded(bench, host, request, options=("--host", host))
    refused = fork(bench, f"{session}:1", "--set", "temperature=0")
    assert refused.code == 2
    assert "Step 1 is not an LLM call (GET tools.example.com): its request cannot be edited" in refused.talk
    with forking(bench, f"{session}:1", "--set", 'response={"warm": true}') as gate:
        (reply,) = asked(gate, host, request)
    assert json.loads(reply.body) == {"warm": True}
    assert bench.provider.calls == 1


def test_an_edit_that_does_not_fit_the_recorded_request_runs_nothing(lab: MakeLab) -> None:
    bench = lab(answers)
    session = recorded(bench, OPENAI, *(raw(OPENAI, body) for body in turns(OPENAI)))
    for edit, reason in (
        ("messages[9]=x", "no messages[9]: they are 0 to 3"),
        ("tool.refund.result=x", "no new result of 'refund'"),
        ("system=@last:9", "has no step 9"),
    ):
        result = fork(bench, f"{session}:2", "--set", edit)
        assert result.code in (2, 3) and reason in result.talk, result.talk
    twice = fork(bench, f"{session}:2", "--set", "response=a", "--set", "response=b")
    assert twice.code == 2 and "more than once" in twice.talk
    assert bench.provider.calls == 3
