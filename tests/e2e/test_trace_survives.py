"""A trace outlives its writers: killed, forked, on a disk that is full.

Agents acknowledge a step on a pipe once ``step`` has returned. Whatever happens to them, each acknowledged step must be
in the file as a whole line, and its long output whole beside it.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.cli import PATIENCE, plain_environment, run_rewind

pytestmark = pytest.mark.e2e

KILLS = 100

NURSERY = """
import json, os, random, signal, sys, time
from rewind import Trace

folder, kills = sys.argv[1], int(sys.argv[2])
chance = random.Random(7)


def agent(path, run, acknowledge):
    mine = random.Random(run)
    with Trace(path, run=run) as trace:
        for count in range(10_000):
            size = mine.choice((10, 300, 5_000, 200_000))
            if mine.random() < 0.3:
                trace.step("tool_result", count=count, output=mine.randbytes(size // 2).hex())
            else:
                trace.step("llm_call", count=count, content="x" * size)
            os.write(acknowledge, b"%d\\n" % count)
    os._exit(1)  # nobody lives that long


for kill in range(kills):
    path, run = os.path.join(folder, f"{kill % 10}.jsonl"), f"run-{kill}"
    theirs, ours = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(theirs)
        agent(path, run, ours)
    os.close(ours)
    first = os.read(theirs, 1)  # it lives, and has written
    time.sleep(chance.random() * chance.choice((0.0005, 0.005, 0.02)))  # any moment will do
    os.kill(child, signal.SIGKILL)
    heard = first
    while piece := os.read(theirs, 65536):
        heard += piece
    os.close(theirs)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    *whole, _ = heard.split(b"\\n")
    print(json.dumps([path, run, len(whole)]))
"""


def python(script: str, *arguments: str, home: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        # Newer Pythons warn of forks beside threads, which is what one of these is about.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=plain_environment(home),
        check=False,
        **more,
    )


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a trace that are JSON; all others must be what a kill leaves, the beginning of one."""
    found = []
    for line in path.read_bytes().split(b"\n"):
        try:
            found.append(json.loads(line))
        except ValueError:
            assert not line or line.startswith(b'{"kind":"'), line[:80]
    return found


def test_a_hundred_kills_lose_no_step_that_was_acknowledged(tmp_path: Path) -> None:
    done = python(NURSERY, str(tmp_path), str(KILLS), home=tmp_path / "store")
    assert done.returncode == 0, done.stderr
    trials = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(trials) == KILLS
    by_file: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for path in {path for path, _, _ in trials}:
        runs = by_file.setdefault(path, {})
        for line in whole_lines(Path(path)):
            runs.setdefault(line["run"], []).append(line)
    acknowledged = 0
    for path, run, count in trials:
        lines = by_file[path][run]
        assert [line["count"] for line in lines][:count] == list(range(count)), run
        assert len(lines) <= count + 1
        acknowledged += count
        for line in lines[:count]:
            for name in line.get("cut", {}).values():
                data = (Path(f"{path}.blobs") / name.removeprefix("sha256:")).read_bytes()
                assert f"sha256:{hashlib.sha256(data).hexdigest()}" == name
    assert acknowledged > KILLS


FAMILY = """
import json, os, sys, threading
from rewind import Trace

trace = Trace(sys.argv[1], run="family")
busy = threading.Event()


def chatter():
    while not busy.is_set():
        trace.step("chatter", text="x" * 500)


threads = [threading.Thread(target=chatter) for _ in range(2)]
for thread in threads:
    thread.start()
children = []
for number in range(12):
    child = os.fork()  # while others are in the midst of a step
    if child == 0:
        for count in range(100):
            trace.step("child", number=number, count=count, text="y" * (count * 13 % 6000))
        trace.close()
        os._exit(0)
    children.append(child)
codes = [os.waitpid(child, 0)[1] for child in children]
busy.set()
for thread in threads:
    thread.join()
trace.step("final", codes=codes, pid=1)
trace.close()
print(json.dumps(children))
"""


def test_forked_processes_share_a_trace_and_never_a_line(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    done = python(FAMILY, str(path), home=tmp_path / "store")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    # An empty line may stand where one process saw another in the midst of its write; it says nothing.
    lines = [json.loads(line) for line in path.read_text().splitlines() if line]
    assert {line["run"] for line in lines} == {"family"}
    assert lines[-1]["codes"] == [0] * 12 and lines[-1]["pid_"] == 1
    children = json.loads(done.stdout)
    for number, pid in enumerate(children):
        own = [line for line in lines if line["kind"] == "child" and line["number"] == number]
        assert [line["count"] for line in own] == list(range(100))
        assert {line["pid"] for line in own} == {pid}
    assert all("pid" not in line for line in lines if line["kind"] == "chatter")


FULL = """
import resource, sys
from rewind import Trace

resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
with Trace(sys.argv[1]) as trace:
    for count in range(100):
        trace.step("note", count=count, text="x" * 1000)
    trace.step("tool_result", output="y" * 100_000)
print("the agent is done")
"""


def test_a_full_disk_costs_steps_and_never_the_run(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    done = python(FULL, str(path), home=tmp_path / "store")
    assert (done.returncode, done.stdout) == (0, "the agent is done\n")
    assert done.stderr.count("\n") == 2, done.stderr
    assert "lost a step: File too large" in done.stderr and "could not keep a long output whole" in done.stderr
    kept = whole_lines(path)
    assert [line["count"] for line in kept] == list(range(len(kept))) and 20 < len(kept) < 30
    blobs = Path(f"{path}.blobs")
    assert not blobs.exists() or list(blobs.iterdir()) == []
    shown = run_rewind(["inspect", path], tmp_path / "store").ok()
    assert "unfinished, as a crash leaves it" in shown.text


def test_a_folder_that_may_not_be_written_is_told_and_the_agent_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    if os.geteuid() == 0:  # who may write everywhere but there
        folder = Path("/sys/kernel")
    script = "import sys; from rewind import Trace; t = Trace(sys.argv[1]); t.step('a'); t.step('b'); print('done')"
    done = python(script, str(folder / "t.jsonl"), home=tmp_path / "store")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.stderr.count("\n") == 2 and "cannot be opened" in done.stderr and "lost a step" in done.stderr


AGENT = """
import sys
from rewind import Trace

path, policy = sys.argv[1], sys.argv[2]
messages = [{"role": "system", "content": "You handle refunds."}, {"role": "user", "content": "Refund order 8821."}]


def said(**message):
    return {"role": "assistant", "content": None, **message}


def asks(name, number, arguments):
    call = {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return said(tool_calls=[call])


with Trace(path) as trace:
    turns = [asks("lookup", 1, '{"order": 8821}'), asks("policy", 2, "{}")]
    outputs = ["paid 3 days ago", policy]
    for turn, output in zip(turns, outputs):
        trace.step("llm_call", model="gpt-5-mini", messages=messages, content=turn)
        name, call = turn["tool_calls"][0]["function"]["name"], turn["tool_calls"][0]["id"]
        trace.step("tool_call", id=call, name=name)
        trace.step("tool_result", id=call, output=output)
        messages += [turn, {"role": "tool", "tool_call_id": call, "content": output}]
    allowed = "30 days" in policy
    last = asks("refund", 3, '{"order": 8821}') if allowed else said(content="I cannot refund that.")
    trace.step("llm_call", model="gpt-5-mini", messages=messages, content=last)
    trace.step("final", text="refunded" if allowed else "refused")
"""


def test_bisect_of_two_traces_names_what_made_the_bad_one_bad(tmp_path: Path) -> None:
    for name, policy in (("good", "Refunds within 30 days."), ("bad", "Refunds within 2 days.")):
        assert python(AGENT, str(tmp_path / f"{name}.jsonl"), policy, home=tmp_path / "store").returncode == 0
    found = run_rewind(["bisect", "good.jsonl", "bad.jsonl"], tmp_path / "store", cwd=tmp_path)
    assert found.code == 1
    assert "First divergence at step 5 (llm_call · gpt-5-mini" in found.text
    assert re.search(r"^Causes? +(1 +)?tool output changed: policy\(", found.text, re.MULTILINE)
    assert 'refund({"order":8821})' in found.text and "I cannot refund that." in found.text
