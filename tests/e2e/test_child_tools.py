"""Tools under `@rewind.tool` in a program that the command line runs: recorded, and in a replay not run again."""

import json
import sys
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from rewind.store.library import Library
from support.answers import openai_chat
from support.cli import KEYS, Result, plain_environment, run
from support.lab import Lab
from support.rawhttp import ask as raw_ask
from support.rawhttp import message
from support.script import Playbook, Request

pytestmark = pytest.mark.e2e

TOOLS = """
import asyncio, json, os, pathlib, subprocess, sys, threading, urllib.request
import rewind

done = pathlib.Path("done.txt")

def mark(what):
    with done.open("a") as file:
        file.write(what + "\\n")

def ask(question, *more):
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": question}, *more]}
    request = urllib.request.Request(
        "https://api.openai.com/v1/chat/completions", json.dumps(body).encode(), {"content-type": "text/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]

@rewind.tool
def refund(order, amount=5):
    mark(f"refund {order}")
    return {"order": order, "amount": amount, "pair": (1, 2)}
"""
AGENT = (
    TOOLS
    + """
@rewind.tool
async def later(word):
    mark(word)
    await asyncio.sleep(0)
    return word.upper()

@rewind.tool
def counted(upto):
    for number in range(upto):
        mark(f"item {number}")
        yield number

@rewind.tool
def fails():
    mark("fails")
    raise KeyError("no such order")

@rewind.tool
def asks_a_model(question):
    mark("asks")
    return ask(question)

@rewind.tool
def in_a_thread(number):
    mark(f"thread {number}")
    return number * 2

if sys.argv[1:] == ["child"]:
    print("child", refund("of the child"))
    sys.exit()
print(ask("one"))
print(refund(7), refund(7), refund(order="8", amount=2))
print(asyncio.run(later("soon")), list(counted(3)))
try:
    fails()
except KeyError as error:
    print("failed", error)
print(asks_a_model("inside"))
found = {}
threads = [threading.Thread(target=lambda n=n: found.__setitem__(n, in_a_thread(n))) for n in range(4)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
print(sorted(found.items()))
print(subprocess.run([sys.executable, __file__, "child"], capture_output=True, text=True, check=True).stdout)
print(rewind.note("half way", order=7))
print(ask("two"), os.environ.get("REWIND_REPLAY"), file=sys.stderr)
"""
)


def said(request: Request) -> str:
    """The question, and the tone it was asked in."""
    *before, last = (message["content"] for message in request.json()["messages"])
    return f"about {last}" + "".join(f" ({tone})" for tone in before)


@pytest.fixture
def bench(lab: Callable[[Playbook], Lab]) -> Lab:
    return lab(lambda request: openai_chat(request, said(request)))


def agent(bench: Lab, code: str = AGENT, *args: str) -> list[str]:
    (bench.folder / "agent.py").write_text(code)
    return [sys.executable, "agent.py", *args]


def done(bench: Lab) -> list[str]:
    """What was really done since this was last asked."""
    file = bench.folder / "done.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    return lines


def test_tools_of_every_kind_are_recorded_and_answered_by_the_recording(bench: Lab) -> None:
    recorded = bench.record(agent(bench)).ok()
    assert len(done(bench)) == 14
    steps = bench.steps(recorded.session)
    kinds = [step["kind"] for step in steps]
    assert (kinds.count("tool_call"), kinds.count("llm_call"), kinds.count("note")) == (12, 3, 1)

    replayed = bench.replay(recorded.session)
    assert replayed.code == 0, replayed.talk
    assert "run for real" not in replayed.talk
    assert replayed.stdout == recorded.stdout
    assert done(bench) == []
    # What the tool had asked for itself is not asked where the tool is not run.
    assert "14/14 steps replayed · 0 network calls" in replayed.talk
    assert "about two 1" in replayed.talk and "about two None" in recorded.talk

    live = bench.replay(recorded.session, "--tools", "live", "--json")
    assert live.code == 0, live.talk
    assert len(done(bench)) == 14
    told = json.loads(live.stdout)
    assert (told["played"], told["total"], told["live"], told["tools_run"]) == (3, 3, 0, 12)

    # A cassette answers as well.
    bench.rewind("export", recorded.session, "--output", "run.rw").ok()
    assert bench.replay("run.rw", "--", *agent(bench)).stdout == recorded.stdout
    assert done(bench) == []


OTHERWISE = (
    TOOLS
    + """
class Handle:
    pass

@rewind.tool
def opened():
    mark("opened")
    return Handle()

print(ask("one"))
for order in sys.argv[1:]:
    try:
        print(refund(order))
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
try:
    print(type(opened()).__name__)
except rewind.ResultLost as error:
    print("lost", error)
"""
)


def test_what_was_not_recorded_is_a_miss_and_is_never_run(bench: Lab) -> None:
    without = bench.record(agent(bench, TOOLS + "print(ask('one'))\n")).ok().session
    recorded = bench.record(agent(bench, OTHERWISE, "7")).ok()
    assert done(bench) == ["refund 7", "opened"]
    assert "a replay cannot give back what it returned" in recorded.talk

    other = bench.replay(recorded.session, "--", *agent(bench, OTHERWISE, "7", "8"))
    assert other.code == 4
    assert done(bench) == []
    assert "ReplayMiss Rewind: this call was never recorded" in other.text
    assert "arguments.order" in other.talk and "--tools live" in other.talk
    assert "lost The tool 'opened' cannot be replayed" in other.text

    # Recorded without tools: none is run for that.
    bare = bench.replay(without, "--", *agent(bench, OTHERWISE, "7"))
    assert bare.code == 4 and done(bench) == [], bare.talk


TALK = (
    TOOLS
    + """
print(ask("one"))
print(refund(1))
print(ask("two"))
print(refund(2))
print(ask("three"))
"""
)


def test_a_fork_runs_tools_from_its_step_on(bench: Lab) -> None:
    base = bench.record(agent(bench, TALK)).ok().session
    done(bench)
    words = ["fork", f"{base}:3", "--set", "system=Be kind.", *bench.upstream]
    forked = bench.rewind(*words, env=KEYS)
    assert forked.code == 0, forked.talk
    assert done(bench) == ["refund 2"]
    new = Library(bench.home).find("last").id
    assert [(step["kind"], step["tape"] is not None) for step in bench.steps(new)] == [
        ("llm_call", True), ("tool_call", True), ("llm_call", False), ("tool_call", False), ("llm_call", False),
    ]  # fmt: skip
    assert bench.rewind(*words, "--tools", "live", env=KEYS).code == 0
    assert done(bench) == ["refund 1", "refund 2"]
    # A tool call is a step like any other: what it gives back can be made up, and it is not run.
    put = bench.rewind("fork", f"{base}:2", "--set", 'response={"order": "made up"}', *bench.upstream, env=KEYS)
    assert put.code == 0, put.talk
    assert "made up" in put.text and done(bench) == ["refund 2"]
    # The fork replays by itself, and nothing is done.
    assert bench.replay(new).code == 0 and done(bench) == []


def test_a_probe_runs_no_tool(bench: Lab) -> None:
    kind = TALK.replace('"messages": [', '"messages": [{"role": "system", "content": "KIND"}, ')
    good = bench.record(agent(bench, kind)).ok().session
    bad = bench.record(agent(bench, kind.replace("KIND", "CURT"))).ok().session
    done(bench)
    proven = bench.rewind("bisect", good, bad, "--prove", "--yes", *bench.upstream, env=KEYS)
    assert proven.code == 1, proven.talk
    probes = [session for session in Library(bench.home).sessions() if session.is_probe]
    assert probes and done(bench) == []


def by_itself(bench: Lab, command: list[str]) -> Result:
    detours = " ".join(f"{host}:443:127.0.0.1:{bench.provider.port}" for host in bench.hosts)
    env = plain_environment(bench.home, **KEYS, DETOUR=detours, REWIND_UPSTREAM_CA=str(bench.trust.ca_file))
    return run(command, env, cwd=bench.folder).ok()


def test_a_program_that_records_itself_is_answered_by_its_recording_too(bench: Lab) -> None:
    inside = TALK.replace(
        'print(ask("one"))',
        'with rewind.session("desk", connect_to=os.environ.get("DETOUR", "").split()):\n  if 1:\n    print(ask("one"))',
    ).replace("\nprint(", "\n    print(")
    command = agent(bench, inside)
    outer = bench.record(command).ok().session
    recorded = by_itself(bench, command)
    assert done(bench) == ["refund 1", "refund 2"] * 2
    replayed = bench.replay("desk")
    assert replayed.code == 0, replayed.talk
    assert "5/5 steps replayed" in replayed.talk
    assert replayed.stdout == recorded.stdout and done(bench) == []

    # Recorded on both sides, each of the two answers.
    inner = next(session.id for session in Library(bench.home).sessions() if session.start.part_of == outer)
    for session in (outer, inner):
        again = bench.replay(session)
        assert again.code == 0 and "5/5 steps replayed" in again.talk, again.talk
    assert done(bench) == []


def test_tools_that_are_not_recorded_are_said_to_run_for_real(bench: Lab) -> None:
    sentence = "The agent's own tools were not recorded, so they run for real (@rewind.tool records them)."
    call = {"id": "call_1", "type": "function", "function": {"name": "refund", "arguments": "{}"}}
    spoken = {"role": "assistant", "content": "", "tool_calls": [call]}
    brought = {"role": "tool", "tool_call_id": "call_1", "content": "done"}
    plain = TOOLS + f"print(ask('one'), ask('one', {spoken!r}, {brought!r}))"
    session = bench.record(agent(bench, plain)).ok().session
    dry = bench.rewind("fork", f"{session}:2", "--set", "system=x", "--dry-run").ok()
    assert sentence in " ".join(dry.text.split())
    again = bench.replay(session, "--json")
    assert again.talk.count(sentence) == 1 and json.loads(again.stdout)["played"] == 2, again.talk


def test_nobody_else_puts_an_answer_into_a_recording(bench: Lab) -> None:
    """Without the run's token there are no tool calls; a tool that never returns is a call without an answer."""
    with bench.recording() as gate:
        url = urlsplit(gate.variables["REWIND_TOOLS_URL"])
        for path, status in (("/0123/call/refund", 404), (f"{url.path}/end/1/200", 404), (f"{url.path}/call/x", 202)):
            with gate.plain() as line:
                reply = raw_ask(line, message("POST", f"http://tools.rewind.invalid{path}", "tools.rewind.invalid"))
                assert reply.status == status
    session = gate.ended().session
    (step,) = bench.steps(session)
    assert (step["kind"], step["status"]) == ("tool_call", None)
