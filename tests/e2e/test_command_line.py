"""The command line as a user meets it: real processes, a real gateway, a scripted provider."""

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.answers import openai_chat
from support.cli import KEYS, PATIENCE, REWIND, plain_environment
from support.lab import Lab
from support.script import Answer, Playbook, Request, routes

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]

AGENT = """
import json, os, sys, urllib.request
questions, code = sys.argv[2:], int(sys.argv[1])
for question in questions:
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": question}]}
    request = urllib.request.Request(
        "https://api.openai.com/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "")},
    )
    try:
        answer = json.load(urllib.request.urlopen(request, timeout=60))
        print(answer["choices"][0]["message"]["content"], flush=True)
    except urllib.error.HTTPError as error:
        print("refused", error.code, flush=True)
sys.exit(code)
"""


def numbered(request: Request) -> Answer:
    return openai_chat(request, f"hit {request.hit}")


@pytest.fixture
def bench(lab: MakeLab) -> Lab:
    bench = lab(routes({"/v1/chat/completions": numbered}))
    (bench.folder / "agent.py").write_text(AGENT)
    return bench


def agent(bench: Lab, *questions: str, code: int = 0) -> list[str]:
    return [sys.executable, str(bench.folder / "agent.py"), str(code), *questions]


def sessions(bench: Lab) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(bench.rewind("list", "--json").ok().stdout)["sessions"]
    return rows


def test_a_recording_passes_on_output_and_exit_code_and_ends_with_its_summary(bench: Lab) -> None:
    ran = bench.record(agent(bench, "one", "two", code=3), options=["--name", "refund", "--tag", "ticket=4711"])
    assert ran.code == 3
    assert ran.stdout == b"hit 1\nhit 2\n"
    summary, *_, hint = ran.talk.splitlines()
    assert summary.startswith(f"Session recorded: {ran.session}  (2 LLM calls, ")
    assert " tokens, " in summary
    assert summary.endswith(" s)")
    assert hint == f"→ rewind inspect {ran.session}"
    (row,) = sessions(bench)
    assert (row["name"], row["tags"], row["exit_code"], row["llm_calls"]) == ("refund", {"ticket": "4711"}, 3, 2)


def test_options_after_the_command_belong_to_the_command(bench: Lab) -> None:
    show = ["-c", "import sys; print(sys.argv[1:])"]
    ran = bench.rewind("record", sys.executable, *show, "--name", "x", "-q", "--", "--help").ok()
    assert ran.text == "['--name', 'x', '-q', '--', '--help']\n"
    assert sessions(bench)[0]["name"] is None


def test_quiet_says_nothing_when_all_went_well(bench: Lab) -> None:
    assert bench.record(agent(bench, "one"), options=["-q"]).ok().talk == ""


def test_a_run_without_any_llm_call_says_so_and_why_that_may_be(bench: Lab) -> None:
    ran = bench.rewind("record", "true").ok()
    assert "0 LLM calls" in ran.talk
    assert "no LLM call was seen" in ran.talk
    assert "--all-hosts" in ran.talk
    assert "no LLM call was seen" in bench.rewind("record", "-q", "true").ok().talk


def test_a_command_that_does_not_exist_is_exit_code_2_and_leaves_nothing(bench: Lab) -> None:
    ran = bench.rewind("record", "no-such-command-anywhere", "--name", "x")
    assert ran.code == 2
    assert ran.talk.startswith("rewind: ")
    assert "'no-such-command-anywhere'" in ran.talk
    assert "Traceback" not in ran.talk
    assert sessions(bench) == []


def test_a_port_that_is_taken_is_exit_code_6_and_the_command_does_not_run(bench: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = bench.rewind("record", "--port", str(port), "--", "touch", "it-ran")
    assert ran.code == 6
    assert str(port) in ran.talk
    assert "Traceback" not in ran.talk
    assert not (bench.folder / "it-ran").exists()
    assert sessions(bench) == []


def test_a_store_that_cannot_be_used_does_not_stop_the_agent(bench: Lab) -> None:
    bench.home.mkdir()
    (bench.home / "format").write_text("rewind-store 999\n")
    ran = bench.rewind("record", sys.executable, "-c", "print('still here'); raise SystemExit(5)")
    assert (ran.code, ran.text) == (5, "still here\n")
    assert "was not recorded" in ran.talk
    assert "999" in ran.talk
    assert "Session recorded" not in ran.talk
    assert sorted(path.name for path in bench.home.iterdir()) == ["format"]


def test_a_replay_of_the_same_agent_is_identical(bench: Lab) -> None:
    recorded = bench.record(agent(bench, "one", "two"))
    replayed = bench.replay(recorded.session)
    assert (replayed.code, replayed.stdout) == (0, recorded.stdout)
    assert replayed.talk == "2/2 steps replayed · 0 network calls · saved <$0.0001 · output identical\n"


def test_another_output_is_exit_code_1_with_a_diff(bench: Lab) -> None:
    recorded = bench.record(agent(bench, "one"))
    command = ["sh", "-c", '"$@"; echo "one more line"', "sh", *agent(bench, "one")]
    replayed = bench.replay(recorded.session, "--", *command)
    assert replayed.code == 1
    assert "+one more line" in replayed.talk.splitlines()
    assert replayed.talk.splitlines()[-1] == "1/1 steps replayed · 0 network calls · saved <$0.0001 · output different"


def test_another_exit_code_is_exit_code_1(bench: Lab) -> None:
    recorded = bench.record(agent(bench, "one"))
    replayed = bench.replay(recorded.session, "--", *agent(bench, "one", code=3))
    assert replayed.code == 1
    assert replayed.talk.splitlines()[-1].endswith("output identical · exit code 3, recorded 0")


def test_a_miss_is_exit_code_4_with_its_report(bench: Lab) -> None:
    recorded = bench.record(agent(bench, "the recorded question"))
    replayed = bench.replay(recorded.session, "--", *agent(bench, "another question"))
    assert replayed.code == 4
    assert replayed.text.startswith("refused 4")
    assert "miss: " in replayed.talk
    assert "question" in replayed.talk
    assert "1 miss" in replayed.talk.splitlines()[-1]
    assert "Traceback" not in replayed.talk


def test_a_replay_as_json_has_stdout_for_itself(bench: Lab) -> None:
    recorded = bench.record(agent(bench, "one"))
    replayed = bench.replay(recorded.session, "--json").ok()
    result = json.loads(replayed.stdout)
    assert result["schema"] == "rewind/replay@1"
    assert (result["played"], result["total"], result["output"]) == (1, 1, "identical")
    assert replayed.talk == "hit 1\n"


@pytest.mark.parametrize("latency", ["none", "recorded", "0.5"])
def test_a_replay_may_take_its_time(bench: Lab, latency: str) -> None:
    recorded = bench.record(agent(bench, "one"))
    bench.replay(recorded.session, "--latency", latency).ok()


def test_every_way_to_name_a_session_works(bench: Lab) -> None:
    first = bench.record(agent(bench, "one"), options=["--name", "mine"]).session
    second = bench.record(agent(bench, "one")).session
    for name, session in (("last", second), ("last~1", first), ("mine", first), (first, first)):
        shown = json.loads(bench.rewind("inspect", name, "--json").ok().stdout)
        assert shown["session"]["id"] == session


def test_a_reader_that_leaves_early_meets_no_complaint(bench: Lab) -> None:
    for _ in range(3):
        bench.rewind("record", "-q", "true").ok()
    words = " ".join([*REWIND, "list"])
    piped = subprocess.run(
        ["bash", "-c", f"{words} | head -1; echo ${{PIPESTATUS[0]}}; {words} --json | true; echo ${{PIPESTATUS[0]}}"],
        env=plain_environment(bench.home),
        cwd=bench.folder,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert piped.stderr == b""
    title, *codes = piped.stdout.decode().splitlines()
    assert title.startswith("id ")
    assert set(codes) <= {"0", "141"}


def test_a_closed_stdout_does_not_let_the_agent_write_into_the_store(bench: Lab) -> None:
    words = " ".join([*REWIND, "record", "-q", "--", "echo", "into-the-journal"])
    subprocess.run(
        ["sh", "-c", f"{words} >&-"], env=plain_environment(bench.home), cwd=bench.folder, timeout=PATIENCE, check=True
    )
    (folder,) = (bench.home / "sessions").iterdir()
    for line in (folder / "journal.jsonl").read_text().splitlines():
        json.loads(line)
    assert bench.rewind("verify").ok()


def test_output_that_cannot_be_written_is_one_sentence(bench: Lab) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    bench.rewind("record", "-q", "true").ok()
    for command in ("list", "list --json", "--help"):
        full = subprocess.run(
            ["sh", "-c", f"{' '.join(REWIND)} {command} > /dev/full"],
            env=plain_environment(bench.home),
            cwd=bench.folder,
            capture_output=True,
            timeout=PATIENCE,
        )
        assert full.returncode == 6, command
        assert full.stderr == b"rewind: The output could not be written: No space left on device.\n", command


def test_a_killed_recording_is_listed_and_can_be_inspected(bench: Lab) -> None:
    """It is killed as soon as the agent tells that it has two whole answers."""
    wait = ["sh", "-c", '"$@"; exec sleep 60', "sh", *agent(bench, "one", "two")]
    process = subprocess.Popen(
        [*REWIND, "record", *bench.upstream, "--", *wait],
        env=plain_environment(bench.home, **KEYS),
        cwd=bench.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == [b"hit 1\n", b"hit 2\n"]
        (running,) = sessions(bench)
        assert running["status"] == "running"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
        assert process.stdout is not None
        process.stdout.close()
    (row,) = sessions(bench)
    assert (row["status"], row["llm_calls"], row["exit_code"]) == ("interrupted", 2, None)
    assert "interrupted" in bench.rewind("inspect", "last").ok().text
    assert [step["ending"] for step in bench.steps("last")] == ["complete", "complete"]
    assert b"hit 2" in bench.body("last", 2)
    bench.rewind("verify").ok()


def test_ctrl_c_ends_the_agent_and_keeps_the_session(bench: Lab) -> None:
    """The agent sleeps in its own process; its first answer shows that the gateway is up."""
    wait = ["sh", "-c", '"$@"; exec sleep 60', "sh", *agent(bench, "one")]
    process = subprocess.Popen(
        [*REWIND, "record", *bench.upstream, "--", *wait],
        env=plain_environment(bench.home, **KEYS),
        cwd=bench.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"hit 1\n"
    os.killpg(process.pid, signal.SIGINT)
    _, talk = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert b"Session recorded" in talk
    assert b"bug in Rewind" not in talk
    assert [row["status"] for row in sessions(bench)] == ["ended"]


def test_a_projects_file_that_redirects_the_providers_is_announced(bench: Lab) -> None:
    (bench.folder / "pyproject.toml").write_text('[tool.rewind]\nupstream_proxy = "http://me:pass@127.0.0.1:9"\n')
    talk = bench.rewind("record", "true").ok().talk
    assert "upstream_proxy = http://me:***@127.0.0.1:9" in talk
    assert "pyproject.toml" in talk


def test_init_prepares_a_store_and_does_no_harm_twice(bench: Lab) -> None:
    first = bench.rewind("init").ok()
    assert "python" in first.text
    assert str(bench.home) in first.talk
    bench.rewind("record", "-q", "true").ok()
    again = json.loads(bench.rewind("init", "--json").ok().stdout)
    assert again["schema"] == "rewind/setup@1"
    assert any(client["name"] == "python" and client["found"] for client in again["clients"])
    assert len(sessions(bench)) == 1


def test_init_makes_a_store_for_the_project(bench: Lab) -> None:
    env = {"REWIND_HOME": ""}
    ran = bench.rewind("init", "--project", env=env).ok()
    assert str(bench.folder / ".rewind") in ran.talk
    assert (bench.folder / ".rewind" / ".gitignore").read_text() == "*\n"
    bench.rewind("record", "-q", "true", env=env).ok()
    shown = json.loads(bench.rewind("config", "--json", env=env).ok().stdout)
    assert shown["settings"][0]["origins"] == [{"kind": "folder", "where": "./.rewind"}]
    assert list((bench.folder / ".rewind" / "sessions").iterdir())
    bench.rewind("init", "--project", env=env).ok()


def test_init_makes_a_lasting_authority_once(bench: Lab) -> None:
    ran = json.loads(bench.rewind("init", "--ca", "--json").ok().stdout)
    certificate = Path(ran["certificate"])
    before = certificate.read_bytes()
    assert before.startswith(b"-----BEGIN CERTIFICATE-----")
    assert b"PRIVATE" not in before
    again = bench.rewind("init", "--ca").ok()
    assert str(certificate) in again.talk
    assert certificate.read_bytes() == before


def test_help_costs_little_more_than_python_itself(tmp_path: Path) -> None:
    """The best of several runs each, so that a busy machine is not a failed promise."""

    def best(*words: str) -> float:
        times = []
        for _ in range(12):
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, *words],
                env=plain_environment(tmp_path / "store"),
                stdout=subprocess.DEVNULL,
                check=True,
            )
            times.append(time.perf_counter() - began)
        return statistics.fmean(sorted(times)[:3])

    assert best("-m", "rewind", "--help") < 5 * best("-c", "pass")
