"""Telemetry is not the run: what an agent uploads is recorded, and replays, comparisons and counts go without it."""

import json
import sys
import uuid
from collections.abc import Callable

import httpx
import pytest

from rewind.errors import ReplayMiss
from support.answers import openai_chat
from support.cli import KEYS
from support.lab import Lab
from support.plugin_project import Project, outcomes, provider
from support.script import Answer, Playbook, Request
from support.sdk_bench import MakeBench

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]

AGENT = """
import json, os, sys, urllib.error, urllib.request, uuid

def ask(url, body, method="POST", form="application/json"):
    request = urllib.request.Request(url, body if isinstance(body, bytes) else json.dumps(body).encode(),
                                     {"content-type": form}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()

OPENAI = "https://api.openai.com"
uploads = int(sys.argv[1])
for number in range(uploads):
    span = {"data": [{"id": uuid.uuid4().hex, "batch": number, "of": os.getpid()}]}
    status, _ = ask(OPENAI + "/v1/traces/ingest", span)
    print("traces", status, file=sys.stderr)
for question in sys.argv[2:]:
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": question}]}
    status, answer = ask(OPENAI + "/v1/chat/completions", body)
    print(json.loads(answer)["choices"][0]["message"]["content"] if status == 200 else status, flush=True)
    if uploads:
        events = {"events": [uuid.uuid4().hex]}
        status, _ = ask("https://api.anthropic.com/api/event_logging/v2/batch", events)
        print("events", status, file=sys.stderr)
"""
"""Uploads as many batches as the first argument says, then asks the others, and tells of each that it did."""


def agent(uploads: int, *questions: str) -> list[str]:
    return [sys.executable, "agent.py", str(uploads), *questions]


def made(lab: MakeLab) -> Lab:
    bench = lab(world)
    (bench.folder / "agent.py").write_text(AGENT)
    return bench


def world(request: Request) -> Answer:
    if request.path == "/v1/traces/ingest":
        return Answer(status=204, headers=())
    if request.path.startswith("/api/event_logging/"):
        return Answer(status=202, pieces=(b'{"accepted_count":1}',))
    return openai_chat(request, f"answer to {request.json()['messages'][-1]['content']}")


def test_a_replay_answers_uploads_whatever_they_say_and_counts_them_apart(lab: MakeLab) -> None:
    bench = made(lab)
    recorded = bench.record(agent(2, "One?", "Two?")).ok()
    assert "2 LLM calls, 4 telemetry uploads" in recorded.talk
    again = bench.replay(recorded.session).ok()
    assert again.stdout == recorded.stdout
    assert "2/2 steps replayed" in again.talk and "4 telemetry uploads" in again.talk
    assert again.talk.count("traces 204") == 2 and again.talk.count("events 202") == 2


def test_more_uploads_than_recorded_and_none_at_all_are_as_good(lab: MakeLab) -> None:
    bench = made(lab)
    session = bench.record(agent(1, "One?")).ok().session
    more = bench.replay(session, "--", *agent(7, "One?")).ok()
    assert "1/1 steps replayed" in more.talk and "8 telemetry uploads" in more.talk
    none = bench.replay(session, "--", *agent(0, "One?")).ok()
    assert "1/1 steps replayed" in none.talk and "telemetry" not in none.talk
    told = json.loads(bench.replay(session, "--json", "--", *agent(3, "One?")).ok().stdout)
    assert (told["played"], told["total"], told["telemetry"], told["misses"]) == (1, 1, 4, [])


def test_an_upload_that_was_never_recorded_is_thanked_for(lab: MakeLab) -> None:
    bench = made(lab)
    session = bench.record(agent(0, "One?")).ok().session
    again = bench.replay(session, "--", *agent(1, "One?")).ok()
    assert "traces 200" in again.talk and "events 200" in again.talk
    assert "1/1 steps replayed" in again.talk and "2 telemetry uploads" in again.talk


def test_views_show_uploads_apart_and_count_steps_without_them(lab: MakeLab) -> None:
    bench = made(lab)
    first = bench.record(agent(1, "One?", "Two?")).ok().session
    second = bench.record(agent(3, "One?", "Two?")).ok().session
    shown = bench.rewind("inspect", second).ok().text
    assert "+ 5 telemetry uploads (traces ×3, event_logging ×2): --all shows them" in shown
    assert "/v1/traces/ingest" not in shown and shown.count("gpt-4o-mini") == 2
    everything = bench.rewind("inspect", second, "--all").ok().text
    assert everything.count("/v1/traces/ingest") == 3 and "--all shows them" not in everything
    assert "an upload, and no part of the run" in bench.rewind("inspect", f"{second}:1").ok().text
    marks = [step["telemetry"] for step in bench.steps(second)]
    assert marks == ["traces"] * 3 + [None, "event_logging"] * 2
    listed = json.loads(bench.rewind("list", "--json").ok().stdout)["sessions"]
    assert [(one["steps"], one["llm_calls"], one["telemetry"]) for one in listed] == [(2, 2, 5), (2, 2, 3)]
    filtered = json.loads(bench.rewind("list", "--json", "--model", "gpt").ok().stdout)["sessions"]
    assert filtered == listed
    stats = json.loads(bench.rewind("stats", "--json").ok().stdout)
    assert (stats["total"]["calls"], stats["other_steps"], stats["telemetry"]) == (4, 0, 8)
    differing = bench.rewind("diff", first, second)
    assert differing.code == 0 and "telemetry uploads, not compared: 3 → 5" in differing.text
    assert "traces" not in differing.text
    assert bench.rewind("diff", f"{first}:1", f"{second}:1").code == 2
    assert bench.rewind("bisect", first, second).code == 0
    bench.rewind("export", second, "--markdown", "-o", "run.md").ok()
    report = (bench.folder / "run.md").read_text()
    assert "| steps | 2, 2 of them LLM calls |" in report and "traces ×3" in report
    assert "traces/ingest" not in report and "### Step 4" in report


def test_a_fork_answers_uploads_too_and_sends_none(lab: MakeLab) -> None:
    bench = made(lab)
    session = bench.record(agent(2, "One?", "Two?")).ok().session
    before = bench.provider.calls
    forked = bench.rewind(
        "fork", f"{session}:5", "--set", "model=gpt-4o", *bench.upstream, "--", *agent(5, "One?", "Two?"), env=KEYS
    ).ok()
    assert bench.provider.calls == before + 1, "the second question, and no upload"
    assert "1 live" in forked.talk and "step 3 from the recording" in forked.talk
    assert "7 telemetry uploads" in forked.talk
    new = bench.steps("last")
    assert [step["telemetry"] is None for step in new].count(True) == 2
    refused = bench.rewind("fork", f"{session}:1", "--set", "model=gpt-4o", *bench.upstream, env=KEYS)
    assert refused.code == 2 and "is telemetry" in refused.talk
    bench.replay("last", "--", *agent(0, "One?", "Two?")).ok()


def test_a_replay_stops_at_steps_and_not_at_uploads(lab: MakeLab) -> None:
    bench = made(lab)
    session = bench.record(agent(2, "One?", "Two?")).ok().session
    stopped = bench.replay(session, "--until", "3")
    assert stopped.code == 0 and "1/2 steps replayed" in stopped.talk and "stopped after step 3" in stopped.talk
    refused = bench.replay(session, "--until", "2")
    assert refused.code == 2 and "Step 2 of session" in refused.talk and "is telemetry" in refused.talk


def test_a_live_miss_sends_no_upload(lab: MakeLab) -> None:
    bench = made(lab)
    session = bench.record(agent(1, "One?")).ok().session
    before = bench.provider.calls
    result = bench.rewind("replay", session, "--on-miss", "live", *bench.upstream, "--", *agent(4, "New?"), env=KEYS)
    assert bench.provider.calls == before + 1, result.talk
    assert "5 telemetry uploads" in result.talk and "1 live" in result.talk


def test_rows_of_the_settings_count_at_once_and_a_wrong_one_is_said(lab: MakeLab) -> None:
    bench = made(lab)
    session = bench.record(agent(0, "One?")).ok().session
    (bench.folder / "pyproject.toml").write_text('[tool.rewind]\ntelemetry = ["POST api.openai.com/v1/mine*"]\n')
    asks = [sys.executable, "-c", AGENT.replace("/v1/traces/ingest", "/v1/mine/1"), "2", "One?"]
    again = bench.replay(session, "--", *asks).ok()
    assert "1/1 steps replayed" in again.talk and "3 telemetry uploads" in again.talk
    (bench.folder / "pyproject.toml").write_text('[tool.rewind]\ntelemetry = ["GET api.openai.com/v1/mine"]\n')
    wrong = bench.rewind("list")
    assert wrong.code == 2 and "GET uploads nothing" in wrong.talk and "pyproject.toml" in wrong.talk


# Hosts that are not recorded

ELSEWHERE = """
import json, os, sys, urllib.error, urllib.request

def ask(method, url, body=None, form="application/json"):
    request = urllib.request.Request(url, body, {"content-type": form}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return f"{answer.status} {answer.read().decode()!r}"
    except urllib.error.HTTPError as error:
        return f"{error.code} refused"
    except OSError as error:
        return f"unreachable"

body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "One?"}]}
print(ask("POST", "https://api.openai.com/v1/chat/completions", json.dumps(body).encode())[:3], flush=True)
if os.environ.get("REWIND_OFFLINE") == "1":
    report = lambda *words: print(*words, file=sys.stderr)
    report("posthog", ask("POST", "https://us.i.posthog.com/batch/", b"{}"))
    report("sentry", ask("POST", "https://o1.ingest.sentry.io/api/1/envelope/", b"x", "application/x-sentry-envelope"))
    report("crewai", ask("POST", "https://telemetry.crewai.com:4319/v1/traces", b"x", "application/x-protobuf"))
    report("collector", ask("POST", "http://otel.example.com:4318/v1/traces", b"x", "application/x-protobuf"))
    report("flags", ask("POST", "https://us.i.posthog.com/flags/?v=2", b"{}"))
    report("stranger", ask("POST", "https://tools.example.com/batch/", b"{}"))
"""
"""Asks a model; in a replay it also uploads to hosts that no recording has, and asks them for something."""


def test_uploads_to_hosts_that_are_not_recorded_do_not_fail_in_a_replay(lab: MakeLab) -> None:
    bench = lab(world)
    session = bench.record([sys.executable, "-c", ELSEWHERE]).ok().session
    again = bench.replay(session).ok()
    assert "posthog 200 '{}'" in again.talk
    assert "crewai 200 ''" in again.talk and "collector 200 ''" in again.talk
    assert "flags unreachable" in again.talk and "stranger unreachable" in again.talk
    assert "https://us.i.posthog.com: was not recorded" in again.talk, "what asks for something is told of"
    assert "telemetry.crewai.com" not in again.talk and "otel.example.com: was" not in again.talk
    assert "1/1 steps replayed · " in again.talk and "4 telemetry uploads" in again.talk


# In this process: marked tests, and sessions of a program

MARKED = """
    import os, urllib.request, uuid

    import pytest
    from agent import ask

    def upload(url):
        request = urllib.request.Request(url, uuid.uuid4().bytes, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status

    @pytest.mark.rewind
    def test_marked(rewind_run):
        for _ in range(int(os.environ["UPLOADS"])):
            assert upload("https://api.openai.com/v1/traces/ingest") < 300
        assert ask("hello") == "about hello"
        if os.environ["ELSEWHERE"]:
            assert upload("https://us.i.posthog.com/batch/") == 200
        assert [step.kind for step in rewind_run.steps] == ["llm_call"]
"""


def test_a_marked_test_keeps_uploads_out_of_its_cassette_and_is_not_failed_by_them(lab: MakeLab) -> None:
    def answers(request: Request) -> Answer:
        return Answer(status=204, headers=()) if request.path == "/v1/traces/ingest" else provider(request)

    project = Project.create(lab(answers))
    project.write("tests/test_it.py", MARKED)
    recorded = project.pytest("-q", env={"UPLOADS": "2", "ELSEWHERE": ""})
    assert outcomes(recorded) == {"passed": 1}, recorded.text
    cassette = project.folder / "tests/cassettes/test_it/test_marked.rw"
    written = cassette.read_text()
    assert "traces" not in written and "chat/completions" in written
    again = project.pytest("-q", "--rewind=rewrite", env={"UPLOADS": "5", "ELSEWHERE": ""})
    assert outcomes(again) == {"passed": 1}, again.text
    assert cassette.read_text() == written, "other uploads make no other cassette"
    replayed = project.offline("-q", "--rewind-strict", env={"UPLOADS": "3", "ELSEWHERE": "yes"})
    assert outcomes(replayed) == {"passed": 1}, replayed.text
    assert "blocked" not in replayed.text


def upload(url: str) -> int:
    return httpx.post(url, json={"id": uuid.uuid4().hex}).status_code


@pytest.mark.usefixtures("plain_variables")
def test_a_session_of_a_program_answers_uploads_and_counts_them_apart(bench: MakeBench) -> None:
    lab = bench(world)
    chat = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "One?"}]}
    with lab.session() as run:
        assert upload("https://api.openai.com/v1/traces/ingest") == 204
        httpx.post("https://api.openai.com/v1/chat/completions", json=chat).raise_for_status()
    assert run.result is not None and (run.result.live, run.result.telemetry) == (1, 1)
    with lab.without_provider(), lab.session(mode="replay") as again:
        statuses = [upload("https://api.openai.com/v1/traces/ingest") for _ in range(3)]
        statuses.append(upload("https://us.i.posthog.com/batch/"))
        httpx.post("https://api.openai.com/v1/chat/completions", json=chat).raise_for_status()
    assert statuses == [204, 204, 204, 200]
    result = again.result
    assert result is not None
    assert (result.played, result.total, result.telemetry) == (1, 1, 4)
    assert (result.misses, result.blocked, result.unused) == ((), (), ())


@pytest.mark.usefixtures("plain_variables")
def test_what_such_a_host_is_asked_for_is_still_told(bench: MakeBench) -> None:
    lab = bench(world)
    chat = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "One?"}]}

    def ask(**more: str) -> None:
        with lab.session(**more):
            httpx.post("https://api.openai.com/v1/chat/completions", json=chat).raise_for_status()
            if more:
                with pytest.raises(httpx.HTTPError):
                    upload("https://us.i.posthog.com/flags/?v=2")

    ask()
    with pytest.raises(ReplayMiss, match=r"us\.i\.posthog\.com"):
        ask(mode="replay")
