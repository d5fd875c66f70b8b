"""Another folder, another day, other ids: the recording still answers, and says what it was not exact in."""

import json
import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rewind.store.cassette.seal import Manifest, seal
from support.answers import openai_chat
from support.cli import KEYS
from support.lab import Lab
from support.real_agents.trial import clock_ahead, missing_clock
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


@pytest.mark.parametrize("around", [True, False], ids=["rewind and the agent", "the agent alone"])
def test_on_another_day_the_recording_answers(lab: MakeLab, around: bool) -> None:
    if reason := missing_clock():
        if os.environ.get("REWIND_TESTS_NEED_AGENTS"):
            pytest.fail(reason)
        pytest.skip(reason)
    bench = lab(obeying)
    here = agent(bench, "here")
    command = [sys.executable, "agent.py", "refund"]
    session = bench.record(command, cwd=here).ok().session
    if around:
        again = bench.replay(session, "--json", "--", *command, cwd=here, env=clock_ahead())
    else:
        later = [f"{name}={value}" for name, value in clock_ahead().items()]
        again = bench.replay(session, "--json", "--", "env", *later, *command, cwd=here)
    told = json.loads(again.ok().stdout)
    assert (told["played"], told["total"], told["misses"]) == (2, 2, [])
    assert {name["kind"] for step in told["renamed"] for name in step["names"]} >= {"date", "time"}


def test_a_fork_is_answered_by_other_names_up_to_its_step(lab: MakeLab) -> None:
    bench = lab(obeying)
    here, there = agent(bench, "here"), agent(bench, "there")
    command = [sys.executable, "agent.py", "refund"]
    session = bench.record(command, cwd=here).ok().session
    asked = bench.provider.calls
    words = ["fork", f"{session}:2", *bench.upstream, "--json", "--set", "temperature=0", "--", *command]
    forked = json.loads(bench.rewind(*words, env=KEYS, cwd=there).ok().stdout)["runs"][0]
    assert bench.provider.calls == asked + 1, "only the step itself went live"
    assert (forked["reused"], len(forked["live"]), forked["misses"]) == ([1], 1, [])
    assert [step["step"] for step in forked["renamed"]] == [1]
    written = {path.stem for path in there.glob("*.txt")}
    assert {name["asked"] for name in forked["renamed"][0]["names"] if name["kind"] == "id"} == written


def test_what_the_user_ignores_in_the_output_does_not_count(lab: MakeLab) -> None:
    bench = lab(obeying)
    here = agent(bench, "here")
    session = bench.record([sys.executable, "agent.py", "refund"], cwd=here).ok().session
    chatty = [sys.executable, "-c", AGENT + "print('build', 17)", "refund"]
    assert bench.replay(session, "--", *chatty, cwd=here).code == 1
    ignoring = bench.replay(session, "--ignore-output", r"build \d+\n", "--", *chatty, cwd=here).ok()
    assert b"ignored text" in ignoring.stderr
    wrong = bench.replay(session, "--ignore-output", "(", "--", *chatty, cwd=here)
    assert (wrong.code, b"not a valid regular expression" in wrong.stderr) == (2, True)


def test_where_a_run_ran_is_no_reason_why_it_parted_from_another(lab: MakeLab) -> None:
    bench = lab(obeying)
    here, there = agent(bench, "here"), agent(bench, "there")
    command = [sys.executable, "-c", AGENT.replace("time.perf_counter()", "1.0")]
    first, second, other = (
        bench.record([*command, topic], cwd=folder).ok().session
        for topic, folder in (("refund", here), ("refund", there), ("return", there))
    )
    bench.rewind("bisect", first, second).ok()
    parted = json.loads(bench.rewind("bisect", first, other, "--json").stdout)
    assert str(there) not in json.dumps(parted["causes"])


def test_a_folder_whose_name_is_no_text_is_a_folder(lab: MakeLab) -> None:
    bench = lab(obeying)
    here, there = agent(bench, "here"), agent(bench, os.fsdecode(b"th\xe8re"))
    command = [sys.executable, "agent.py", "refund"]
    for one, other in ((here, there), (there, here)):
        session = bench.record(command, cwd=one).session
        again = bench.replay(session, "--json", "--", *command, cwd=other)
        assert json.loads(again.stdout)["session"], again.talk


FACTS = {
    "an offset of no zone": {"utc_offset": "9" * 400},
    "a folder that no system has": {"home": "/\udcff\ud800", "temp": "/\0"},
    "endless names": {"home": "/" + "a/" * 200_000, "user": "b" * 100_000},
    "patterns and words": {"home": "/(.*)+", "temp": "/[[", "user": "the", "host": ".*"},
}


def test_a_strangers_cassette_may_say_anything_of_its_run(lab: MakeLab) -> None:
    bench = lab(obeying)
    here, there = agent(bench, "here"), agent(bench, "there")
    command = [sys.executable, "agent.py", "refund"]
    session = bench.record(command, cwd=here).ok().session
    bench.rewind("export", session, "-o", "a.rw").ok()
    begin, _, records = (bench.folder / "a.rw").read_text().partition("\n")
    manifest = Manifest(steps=json.loads(begin)["steps"], size=json.loads(begin)["size"])
    for name, told in FACTS.items():
        claimed = json.dumps(told).join(re.split(r'(?<="facts": ){[^}]*}', records))
        assert claimed != records
        (bench.folder / "b.rw").write_bytes(seal(claimed, manifest))
        again = bench.replay(str(bench.folder / "b.rw"), "--json", "--", *command, cwd=there)
        assert json.loads(again.ok().stdout)["played"] == 2, name


def test_bytes_that_are_no_text_are_compared_as_bytes(lab: MakeLab) -> None:
    bench = lab(obeying)
    here = agent(bench, "here")
    printing = AGENT + "sys.stdout.flush(); sys.stdout.buffer.write(bytes.fromhex(os.environ['PICTURE']))"
    command = [sys.executable, "-c", printing, "refund"]
    session = bench.record(command, cwd=here, env={"PICTURE": "89fe00ff"}).ok().session
    told = json.loads(bench.replay(session, "--json", cwd=here, env={"PICTURE": "89fe00ff"}).ok().stdout)
    assert told["output"] == "renamed", "the durations differ, and the picture does not"
    other = bench.replay(session, "--json", cwd=here, env={"PICTURE": "89fd00ff"})
    assert (other.code, json.loads(other.stdout)["output"]) == (1, "different")


def test_ignored_text_in_another_place_is_told(lab: MakeLab) -> None:
    bench = lab(obeying)
    here = agent(bench, "here")
    command = [sys.executable, "-c", AGENT.partition("topics =")[0] + "ask([]); print(os.environ['LINES_'])"]
    bench.provider.playbook = lambda request: openai_chat(request, "yes")
    session = bench.record(command, cwd=here, env={"LINES_": "one tick two"}).ok().session
    again = bench.replay(session, "--ignore-output", "tick ?| tick", cwd=here, env={"LINES_": "one two tick"})
    assert again.ok().talk.rstrip().endswith("output identical but for 1 ignored text")


def test_the_names_of_a_replay_are_shown_afterwards(lab: MakeLab) -> None:
    bench = lab(obeying)
    here, there = agent(bench, "here"), agent(bench, "there")
    command = [sys.executable, "agent.py", "refund"]
    session = bench.record(command, cwd=here).ok().session
    bench.replay(session, "--", *command, cwd=there).ok()
    shown = bench.rewind("inspect", session).ok().stdout.decode()
    assert "last replay" in shown
    assert "2 steps the same but for" in shown
    told = json.loads(bench.rewind("inspect", session, "--json").ok().stdout)
    assert [step["step"] for step in told["last_replay"]["renamed"]] == [1, 2]


def test_deleting_a_session_forgets_the_names_of_its_replays(lab: MakeLab) -> None:
    bench = lab(obeying)
    here, there = agent(bench, "here"), agent(bench, "there")
    command = [sys.executable, "agent.py", "refund"]
    session = bench.record(command, cwd=here).ok().session
    bench.replay(session, "--", *command, cwd=there).ok()
    notes = bench.home / "replays.jsonl"
    assert str(here).encode() in notes.read_bytes()
    bench.rewind("rm", session).ok()
    assert str(here).encode() not in notes.read_bytes()
    assert session.encode() in notes.read_bytes(), "the savings are still counted"


def test_the_same_miss_is_told_once_and_names_what_would_have_helped(lab: MakeLab) -> None:
    bench = lab(obeying)
    here, there = agent(bench, "here"), agent(bench, "there")
    command = [sys.executable, "agent.py", "refund"]
    session = bench.record(command, cwd=here).ok().session
    missed = bench.replay(session, "--exact", "--", *command, cwd=there)
    advice = missed.stderr.decode().partition("What to do\n")[2].splitlines()
    assert missed.code == 4
    assert advice[0].endswith(f"rewind replay {session} -- {' '.join(command)}")
    (there / "pyproject.toml").write_text('[tool.rewind]\nmatch = "exact"\n')
    assert bench.replay(session, "--", *command, cwd=there).code == 4
    variable, _, *words = shlex.split(advice[0].partition(":")[2])
    assert bench.rewind(*words, env=dict([variable.split("=")]), cwd=there).ok(), "also where a file forbids names"
    forked = bench.rewind("fork", f"{session}:2", *bench.upstream, "--", *command, cwd=there)
    advice = forked.stderr.decode().partition("What to do\n")[2].splitlines()
    assert (forked.code, advice[0].endswith(f"REWIND_MATCH=renamed rewind fork {session}:2 …")) == (4, True)
    retries = [
        sys.executable,
        "-c",
        "import urllib.error\n" + AGENT.replace("def talk", RETRIES + "def talk"),
        "return",
    ]
    missed = bench.replay(session, "--", *retries, cwd=there)
    assert missed.stderr.decode().count("Never recorded") == 1
    assert "miss, 3 times: " in missed.stderr.decode()


RETRIES = """
first_ask = ask

def ask(messages):
    for _ in range(3):
        try:
            return first_ask(messages)
        except urllib.error.HTTPError:
            pass
    raise SystemExit(1)

"""
