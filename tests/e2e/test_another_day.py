"""Another folder, another day, other ids: the recording still answers, and says what it was not exact in."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.answers import openai_chat
from support.lab import Lab
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]

AGENT = """
import datetime, json, os, sys, threading, time, urllib.request, uuid

def ask(messages):
    body = json.dumps({"model": "gpt-4o-mini", "messages": messages}).encode()
    request = urllib.request.Request(
        "https://api.openai.com/v1/chat/completions", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]

def talk(topic):
    now = datetime.datetime.now(datetime.UTC)
    system = f"You are in {os.getcwd()}. Today is {now:%A, %B %d, %Y}, {now.isoformat()}. Session {uuid.uuid4()}."
    messages = [{"role": "system", "content": system}, {"role": "user", "content": topic}]
    first = ask(messages)
    with open(first.split()[-1], "w") as file:
        file.write("done")
    messages += [
        {"role": "assistant", "content": first},
        {"role": "tool", "tool_call_id": "call_1", "content": f"written in {time.perf_counter():.3f}s"},
    ]
    return ask(messages)

topics = sys.argv[1:]
if topics[0] == "together":
    threads = [threading.Thread(target=lambda: print(talk("the same question"), flush=True)) for _ in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
else:
    for topic in topics:
        print(talk(topic), f"(took {time.perf_counter():.2f} s)", flush=True)
"""


def obeying(request: Request) -> Answer:
    """Names a file in the agent's own folder, then repeats the session's id."""
    messages = request.json()["messages"]
    system = messages[0]["content"]
    folder, session = system.split(".")[0].removeprefix("You are in "), system.split("Session ")[1].rstrip(".")
    if len(messages) == 2:
        return openai_chat(request, f"write to {folder}/{session}.txt")
    return openai_chat(request, f"session {session} is done")


def agent(bench: Lab, name: str) -> Path:
    """A folder with the agent in it."""
    folder = bench.folder / name
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    return folder


def test_a_run_elsewhere_is_answered_in_its_own_names(lab: MakeLab) -> None:
    bench = lab(obeying)
    here, there = agent(bench, "here"), agent(bench, "there")
    command = [sys.executable, "agent.py"]
    session = bench.record([*command, "refund"], cwd=here).ok().session
    again = bench.replay(session, "--json", "--", *command, "refund", cwd=there).ok()
    told = json.loads(again.stdout)
    assert (told["played"], told["total"], told["exact"], told["misses"]) == (2, 2, 0, [])
    assert {name["kind"] for step in told["renamed"] for name in step["names"]} >= {"folder", "id", "time", "duration"}
    assert told["output"] == "renamed"
    assert len(list(there.glob("*.txt"))) == 1, "the answer names the folder of the run that got it"
    assert len(list(here.glob("*.txt"))) == 1, "and nothing was written where it was recorded"
    shown = bench.replay(session, "--", *command, "refund", cwd=there).ok()
    assert b"2/2 steps replayed (0 exact, 2 but for " in shown.stderr
    assert b"output identical but for " in shown.stderr
    assert bench.replay(session, "--exact", "--", *command, "refund", cwd=there).code == 4
    assert bench.replay(session, "--", *command, "return", cwd=there).code == 4


def test_conversations_side_by_side_that_differ_in_an_id_keep_their_own_answers(lab: MakeLab) -> None:
    bench = lab(obeying)
    here, there = agent(bench, "here"), agent(bench, "there")
    command = [sys.executable, "agent.py", "together"]
    session = bench.record(command, cwd=here).ok().session
    told = json.loads(bench.replay(session, "--json", "--", *command, cwd=there).stdout)
    assert (told["played"], told["total"], told["misses"]) == (6, 6, [])
    ids = {name["asked"] for step in told["renamed"] for name in step["names"] if name["kind"] == "id"}
    written = {path.stem for path in there.glob("*.txt")}
    assert ids == written, "each was answered by its own id"
    assert len(ids) == 3
