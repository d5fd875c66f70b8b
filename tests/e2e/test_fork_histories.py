"""Forks of agents that are hard to follow: history that the provider keeps, equal requests, a clock in the prompt."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from support.answers import json_answer, openai_chat
from support.forks import bodies, fork, forked, numbered
from support.lab import Lab
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]

HELD = """
import json, os, sys, urllib.request
before, given = None, []
def ask():
    global before, given
    body = {"model": "gpt-4o-mini", "instructions": "You are a clerk.", "input": given}
    if before:
        body["previous_response_id"] = before
    request = urllib.request.Request(
        "https://api.openai.com/v1/responses",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "none")},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        told = json.load(answer)
    before, given = told["id"], []
    for item in told["output"]:
        if item["type"] == "function_call":
            given.append({"type": "function_call_output", "call_id": item["call_id"], "output": "found"})
        else:
            print(item["content"][0]["text"], flush=True)
    return bool(given)
for text in sys.argv[1:]:
    given.append({"role": "user", "content": text})
    while ask():
        pass
"""
"""Talks to OpenAI Responses and lets the provider keep the history; runs a tool for whoever asks for one."""


def held(*questions: str) -> list[str]:
    return [sys.executable, "-c", HELD, *questions]


def responding(request: Request) -> Answer:
    """A question gets a tool call, a result gets words."""
    name = f"resp_{request.hit:04}"
    (last,) = request.json()["input"][-1:]
    if last.get("type") == "function_call_output" or "plain" in last.get("content", ""):
        words = {"type": "output_text", "text": f"answer {request.hit}", "annotations": []}
        item: dict[str, Any] = {"type": "message", "role": "assistant", "status": "completed", "content": [words]}
    else:
        item = {"type": "function_call", "call_id": f"call_{request.hit}", "name": "search", "arguments": "{}"}
    value = {
        "id": name,
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-4o-mini",
        "output": [{**item, "id": f"it_{request.hit}"}],
        "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
    }
    return json_answer(request, value)


def test_after_a_made_up_answer_the_provider_is_told_the_history_from_its_own_last_answer_on(lab: MakeLab) -> None:
    bench = lab(responding)
    base = bench.record(held("plain a", "plain b", "plain c", "plain d")).ok().session
    once = fork(bench, f"{base}:2", "--set", "response=Made up.").ok()
    assert once.text.splitlines() == ["answer 1", "Made up.", "answer 5", "answer 6"]
    third, fourth = bodies(bench, since=4)
    assert third["previous_response_id"] == "resp_0001", "the last id that the provider had given"
    told = [(item.get("role"), item["content"]) for item in third["input"]]
    assert told[0] == ("user", "plain b") and told[2] == ("user", "plain c")
    assert told[1][0] == "assistant" and told[1][1][0]["text"] == "Made up."
    assert "id" not in third["input"][1], "no name that the provider does not know"
    assert (fourth["previous_response_id"], len(fourth["input"])) == ("resp_0005", 1)
    # The made-up answer is played in a fork of the fork, and the same holds there.
    fork(bench, f"{forked(once)}:3").ok()
    assert bodies(bench, since=6)[0] == third
    assert bench.replay(forked(once)).code == 0


def test_a_made_up_first_answer_leaves_no_id_at_all(lab: MakeLab) -> None:
    bench = lab(responding)
    base = bench.record(held("plain a", "plain b")).ok().session
    fork(bench, f"{base}:1", "--set", "response=Made up.").ok()
    (second,) = bodies(bench, since=2)
    assert "previous_response_id" not in second
    assert len(second["input"]) == 3


def test_an_edit_of_a_result_stays_with_its_own_call_where_equal_requests_come_later(lab: MakeLab) -> None:
    bench = lab(responding)
    base = bench.record(held("a", "b")).ok().session
    fork(bench, f"{base}:2", "--set", "tool.search.result=CHANGED").ok()
    results = [
        item["output"]
        for body in bodies(bench, since=4)
        for item in body["input"]
        if item.get("type") == "function_call_output"
    ]
    assert results == ["CHANGED", "found"]


POLLS = """
import json, os, urllib.request
body = {"model": "gpt-4o-mini", "temperature": 0.7, "messages": [{"role": "user", "content": "done?"}]}
for _ in range(3):
    request = urllib.request.Request(
        "https://api.openai.com/v1/chat/completions", json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer none"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        print(json.load(answer)["choices"][0]["message"]["content"], flush=True)
"""


def test_an_agent_that_asks_the_same_thing_again_and_again_gets_a_made_up_answer_once(lab: MakeLab) -> None:
    bench = lab(lambda request: openai_chat(request, f"no {request.hit}"))
    base = bench.record([sys.executable, "-c", POLLS]).ok().session
    result = fork(bench, f"{base}:2", "--set", "response=perhaps", "--json").ok()
    (run,) = json.loads(result.stdout)["runs"]
    assert (run["answer"]["step"], run["answer"]["text"], run["live"]) == (2, "perhaps", [3])


COUNTED = """
import json, os, sys, time, urllib.error, urllib.request
messages = [{"role": "system", "content": f"You are a clerk. Round: {time.time_ns() // 1000 % 999_983}"}]
for text in sys.argv[1:]:
    messages.append({"role": "user", "content": text})
    body = {"model": "gpt-4o-mini", "temperature": 0.7, "messages": messages}
    request = urllib.request.Request(
        "https://api.openai.com/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer none"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            said = json.load(answer)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        sys.exit(3)
    messages.append({"role": "assistant", "content": said})
    print(said, flush=True)
"""


def counted(*questions: str) -> list[str]:
    return [sys.executable, "-c", COUNTED, *questions]


def test_an_agent_with_another_number_in_its_prompt_can_be_forked_where_drift_is_allowed(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(counted("a", "b", "c")).ok().session
    strict = fork(bench, f"{base}:2", "--set", "temperature=0.1")
    assert strict.code == 4 and bench.provider.calls == 3
    assert f"rewind fork {base}:2 --allow-drift" in strict.talk and "--on-miss live" not in strict.talk
    assert r"ignore_text = ['Round: \S+']" in strict.talk
    result = fork(bench, f"{base}:2", "--allow-drift", "--set", "temperature=0.1").ok()
    assert [body["temperature"] for body in bodies(bench, since=3)] == [0.1, 0.1]
    assert "step 1 from the recording ($0) · 2 drifted · 2 live" in result.talk
    told = json.loads(fork(bench, f"{base}:2", "--allow-drift", "--json").ok().stdout)["runs"][0]
    assert (told["reused"], told["drifted"]) == ([1], [1, 2])
    # Its edits are carried on, though no key is the one that was recorded.
    calls = bench.provider.calls
    fork(bench, f"{forked(result)}:3", "--allow-drift", "--set", "model=gpt-4o").ok()
    assert [(body["temperature"], body["model"]) for body in bodies(bench, since=calls)] == [(0.1, "gpt-4o")]


def test_a_run_that_went_live_past_the_step_says_what_would_have_met_it(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(counted("a", "b")).ok().session
    result = fork(bench, f"{base}:2", "--on-miss", "live")
    assert result.code == 4
    assert "Step 2 was never asked" in result.talk
    assert "differs in messages[0].content" in result.talk and "--allow-drift" in result.talk
