"""``rewind fork`` with a real agent: what is reused, what goes live, what is kept, and what it may cost."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rewind.demo.run import DemoProvider
from support.answers import anthropic_stream, json_answer, openai_chat, openai_error, openai_stream
from support.cli import KEYS, PATIENCE, REWIND, plain_environment, run_rewind
from support.effort import effort
from support.forks import SYSTEM, bodies, fork, forked, numbered, talks, told
from support.lab import Lab
from support.script import Answer, Playbook, Request
from support.terminal import Seat

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]


def systems(asked: list[dict[str, list[dict[str, str]]]]) -> list[str]:
    return [body["messages"][0]["content"] for body in asked]


# What a fork is


def test_the_prefix_is_played_byte_for_byte_and_only_what_follows_reaches_the_provider(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c", "d")).ok().session
    result = fork(bench, f"{base}:3", "--set", "system=You are kind.").ok()
    assert result.text.splitlines() == [f"answer {n} to {q}" for n, q in ((1, "a"), (2, "b"), (5, "c"), (6, "d"))]
    live = bodies(bench, since=4)
    assert systems(live) == ["You are kind."] * 2, "the edit holds in later calls"
    assert [body["messages"][-1]["content"] for body in live] == ["c", "d"]
    new = forked(result)
    for step in (1, 2):
        for half in ("--request", "--response"):
            assert bench.body(new, step, half) == bench.body(base, step, half)
    assert json.loads(bench.body(new, 3, "--request")) == live[0], "what went out is what is kept"
    assert [row["tape"] for row in bench.steps(new)] == [1, 2, None, None]
    # Two live calls of 21 tokens in and 8 out, and nothing for the prefix.
    assert f"steps 1–2 from the recording ($0) · 2 live (<$0.0001) · → {new}" in result.talk
    assert f"rewind diff {base} {new} · rewind inspect {new}" in result.talk


def test_the_new_session_says_where_it_comes_from(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b"), options=["--name", "base", "--tag", "k=v"]).ok().session
    result = fork(bench, "base:2", "--set", "temperature=0", "--name", "cooler", "--json").ok()
    run = told(result)
    (session,) = json.loads(bench.rewind("list", "--name", "cooler", "--json").ok().stdout)["sessions"]
    expected = {
        "session": base,
        "step": 2,
        "edits": ["temperature=0"],
        "by_hand": False,
        "earlier": [],
        "sample": None,
        "probe": False,
    }
    assert session["id"] == run["session"]
    assert session["forked_from"] == run["forked_from"] == expected
    assert session["tags"] == {"k": "v"}
    assert (run["reused"], run["live"], run["answer"]["step"], run["answer"]["text"]) == ([1], [2], 2, "answer 3 to b")
    assert (run["exit_code"], run["misses"], run["unasked"], run["stopped"]) == (0, [], None, None)
    assert run["tokens"] == 29 and run["cost_usd"] > 0
    shown = bench.rewind("inspect", "cooler").ok().text
    assert f"{base}:2 · temperature=0" in shown
    tree = bench.rewind("list", "--tree").ok().text.splitlines()
    assert tree[0].startswith(base) and tree[1].startswith(f"└─ {run['session']}")
    assert "at step 2: temperature=0" in tree[1]


def test_without_an_edit_the_step_is_asked_again_as_it_is(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    fork(bench, f"{base}:2").ok()
    assert bench.provider.requests[2].raw == bench.provider.requests[1].raw


def test_another_command_can_be_forked_from_its_own_folder(lab: MakeLab, tmp_path: Path) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    result = fork(bench, f"{base}:2", "--set", "model=gpt-4o", "--", *talks("a", "b", "more")).ok()
    assert [body["model"] for body in bodies(bench, since=2)] == ["gpt-4o", "gpt-4o"]
    assert bench.replay(forked(result)).code == 0


def test_the_recorded_stdin_is_given_again_and_kept_again(lab: MakeLab, tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    first, rest = talks()[2].split("for text in sys.argv[1:]:")
    agent.write_text(f"{first}for text in sys.stdin.read().split():{rest}")
    bench = lab(numbered)
    base = bench.record([sys.executable, str(agent)], stdin=b"a b c").ok().session
    once = forked(fork(bench, f"{base}:3").ok())
    twice = fork(bench, f"{once}:3").ok()
    assert twice.text.splitlines()[-1] == "answer 5 to c"
    assert bench.replay(forked(twice)).code == 0


# Forks of forks


def test_a_fork_of_a_fork_keeps_what_the_first_had_changed_and_both_replay_alone(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c", "d")).ok().session
    once = forked(fork(bench, f"{base}:2", "--set", "system+=Be brief.").ok())
    twice = forked(fork(bench, f"{once}:3", "--set", "temperature=0.1").ok())
    live = bodies(bench, since=7)
    assert [(body["messages"][0]["content"], body["temperature"]) for body in live] == [
        (f"{SYSTEM}\nBe brief.", 0.1)
    ] * 2
    assert bench.body(twice, 2, "--request") == bench.body(once, 2, "--request")
    assert b"Be brief." in bench.body(twice, 2, "--request")
    for session in (once, twice):
        result = bench.replay(session)
        assert result.code == 0, result.talk
        assert "4/4 steps replayed · 0 network calls" in result.talk
    third = fork(bench, f"{twice}:1", "--dry-run")
    assert "system+=Be brief. (of an earlier fork)" in third.text


def test_a_fork_at_the_same_step_adds_to_what_was_changed_there(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    once = forked(fork(bench, f"{base}:2", "--set", "system+=One.").ok())
    twice = forked(fork(bench, f"{once}:2", "--set", "system+=Two.").ok())
    fork(bench, f"{twice}:2", "--set", "system+=Three.").ok()
    assert systems(bodies(bench, since=2)) == [
        f"{SYSTEM}\nOne.",
        f"{SYSTEM}\nOne.\nTwo.",
        f"{SYSTEM}\nOne.\nTwo.\nThree.",
    ]


def test_an_agent_that_has_learned_the_change_is_answered_by_the_fork(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    new = forked(fork(bench, f"{base}:1", "--set", "system=You are kind.").ok())
    learned = [word.replace(SYSTEM, "You are kind.") for word in talks("a", "b")]
    assert bench.replay(new, "--", *learned).code == 0


def test_a_fork_whose_miss_went_live_in_a_replay_is_kept_with_what_had_gone_out(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    new = forked(fork(bench, f"{base}:2", "--set", "system=You are kind.").ok())
    more = bench.rewind(
        "replay", new, *bench.upstream, "--on-miss=live", "--json", "--", *talks("a", "b", "c"), env=KEYS
    )
    kept = json.loads(more.stdout)["kept_as"]
    assert b"You are kind." in bench.body(kept, 2, "--request")
    assert bench.replay(kept).code == 0


# Parallel calls

GATHERS = """
import asyncio, random, sys
from openai import AsyncOpenAI
async def ask(client, text):
    await asyncio.sleep(random.random() / 50)
    answer = await client.chat.completions.create(model="gpt-4o-mini", messages=[
        {"role": "system", "content": "You are a clerk."}, {"role": "user", "content": text}])
    return f"{text}: {answer.choices[0].message.content}"
async def main():
    async with AsyncOpenAI(max_retries=0) as client:
        texts = random.sample("abcd", 4)
        print("\\n".join(sorted(await asyncio.gather(*(ask(client, text) for text in texts)))))
asyncio.run(main())
"""


def test_parallel_calls_around_the_cut_go_by_step_whatever_their_order(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record([sys.executable, "-c", GATHERS]).ok().session
    texts = {
        row["index"]: json.loads(bench.body(base, row["index"], "--request"))["messages"][-1]["content"]
        for row in bench.steps(base)
    }
    recorded = dict(line.split(": ") for line in bench.rewind("replay", base).ok().text.splitlines())
    for _ in range(effort(1, 3)):
        before = bench.provider.calls
        result = fork(bench, f"{base}:3", "--set", "system=You are kind.").ok()
        live = {body["messages"][-1]["content"]: body for body in bodies(bench, since=before)}
        assert set(live) == {texts[3], texts[4]}, "the steps decide, not the count"
        assert live[texts[3]]["messages"][0]["content"] == "You are kind."
        answers = dict(line.split(": ") for line in result.text.splitlines())
        assert [answers[texts[step]] for step in (1, 2)] == [recorded[texts[step]] for step in (1, 2)]
        assert bench.rewind("replay", forked(result)).ok().text == result.text


# An answer that is put in


@pytest.mark.parametrize("agent", ["openai_stream.py", "anthropic_stream.py"])
def test_an_answer_that_is_put_in_reaches_the_sdk_as_a_stream_and_nobody_is_asked(lab: MakeLab, agent: str) -> None:
    def play(request: Request) -> Answer:
        if request.path == "/v1/messages":
            return anthropic_stream(request, ["Once ", "upon"])
        return openai_stream(request, ["Once ", "upon"])

    bench = lab(play)
    base = bench.record(agent).ok().session
    last = len(bench.steps(base))
    calls = bench.provider.calls
    result = fork(bench, f"{base}:{last}", "--set", "response=The end, and no more.").ok()
    assert bench.provider.calls == calls
    (line,) = result.lines
    assert line["error"] is None
    assert "".join(piece or "" for piece in line.get("texts") or line["pieces"]) == "The end, and no more."
    assert "0 live" in result.talk
    new = forked(result)
    assert [row["tape"] for row in bench.steps(new)] == [*range(1, last), 0]
    assert bench.replay(new).ok().text == result.text
    (session,) = [row for row in json.loads(bench.rewind("list", "--json").stdout)["sessions"] if row["id"] == new]
    assert (session["cost_usd"], session["unpriced"], session["replayed"]) == (0, 0, last)


# Requests that are not where they should be


def test_a_request_before_the_cut_that_was_not_recorded_is_refused_and_explained(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c")).ok().session
    result = fork(bench, f"{base}:3", "--", *talks("a", "x", "c"))
    assert result.code == 4
    assert bench.provider.calls == 3
    assert result.text.splitlines()[1].startswith("424 Rewind: this call was never recorded")
    assert "miss: Never recorded" in result.talk
    assert f"rewind fork {base}:3 --allow-drift" in result.talk
    assert "--on-miss live" not in result.talk, "with another history the step would never be asked"
    assert (
        "Step 3 was never asked: the run ended before it. Of the steps before it, 2 was not asked either."
        in result.talk
    )
    assert "What came nearest: " in result.talk and "differs in messages[3].content" in result.talk
    assert "The agent ended with exit code 3." in result.talk
    assert [row["status"] for row in bench.steps(forked(result))] == [200, 424], "what the agent was told is kept"
    assert bench.replay(forked(result), "--", *talks("a", "x", "c")).code == 0


def test_such_a_request_may_go_live(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c")).ok().session
    result = fork(bench, f"{base}:3", "--on-miss", "live", "--", *talks("a", "x", "c"))
    assert result.code == 4, "the step itself was never asked"
    assert bench.provider.calls == 5


def test_a_run_that_ends_before_the_cut_says_so(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c")).ok().session
    result = fork(bench, f"{base}:3", "--set", "system=x", "--", *talks("a"))
    assert result.code == 4
    assert "Step 3 was never asked: the run ended before it. Of the steps before it, 2 was not asked" in result.talk


def test_a_step_that_is_not_there_and_a_session_without_a_step_are_one_sentence(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    missing = fork(bench, f"{base}:7")
    assert missing.code == 3
    assert "has no step 7; it has 2, from 1 to 2" in missing.talk and f"rewind inspect {base}:2" in missing.talk
    for name, sentence in (
        (f"{base}:2.1", "is a tool call, and a fork starts at a step"),
        (f"{base}:-1", "'-1' is not a valid step: steps count from 1"),
        (f"{base}:two", "'two' is not a valid step: steps count from 1"),
    ):
        wrong_step = fork(bench, name)
        assert wrong_step.code == 2 and sentence in wrong_step.talk
        assert f"rewind inspect {base}" in wrong_step.talk
    whole = fork(bench, base)
    assert whole.code == 2 and "needs the step" in whole.talk
    wrong = fork(bench, f"{base}:1", "--set", "nonsense")
    assert wrong.code == 2 and "'nonsense' is not a valid edit" in wrong.talk
    assert bench.provider.calls == 2


def test_an_edit_that_looks_like_a_mistake_costs_nothing_unless_it_is_meant(lab: MakeLab, tmp_path: Path) -> None:
    bench = lab(numbered)
    base = bench.record(talks("one")).ok().session
    for edit, sentence in (
        ("sytem=Be kind.", "openai-chat has no parameter sytem that Rewind knows of. Nothing was run."),
        ("temperature=hot", "temperature takes a number, not hot. Nothing was run."),
    ):
        for options in ((), ("--dry-run",), ("--json",), ("--samples", "3")):
            refused = fork(bench, f"{base}:1", "--set", edit, *options)
            assert refused.code == 2 and sentence in refused.talk, refused.talk
            assert "--force sends it as it is" in refused.talk
    assert "did you mean system=?" in fork(bench, f"{base}:1", "--set", "sytem=Be kind.").talk
    assert bench.provider.calls == 1
    fork(bench, f"{base}:1", "--set", "sytem=Be kind.", "--force").ok()
    assert bodies(bench, since=1)[0]["sytem"] == "Be kind."

    command = ["fork", f"{base}:1", *bench.upstream, "--set", "brand_new=7"]
    for answer, code, calls in (("n", 2, 2), ("y", 0, 3)):
        with Seat(command, bench.home, KEYS, cwd=tmp_path) as seat:
            assert "no parameter brand_new" in seat.sees("Send it as it is?")
            seat.type(answer + "\n")
            ended, _ = seat.ends()
        assert (ended, bench.provider.calls) == (code, calls)
    assert bodies(bench, since=2)[0]["brand_new"] == 7


def test_a_call_that_fails_is_asked_again_with_the_same_edit_and_the_good_answer_counts(lab: MakeLab) -> None:
    def moody(request: Request) -> Answer:
        if "kind" in str(request.json()["messages"]) and request.nth == 1:
            return openai_error(request, 429, "slow down", headers=(("retry-after-ms", "1"),))
        return numbered(request)

    bench = lab(moody)
    base = bench.record("openai_retry.py").ok().session
    calls = bench.provider.calls
    result = fork(bench, f"{base}:1", "--set", "system=You are kind.", "--json").ok()
    asked = bodies(bench, since=calls)
    assert len(asked) >= 2 and asked[0] == asked[1]
    assert told(result)["answer"]["step"] == 2
    assert told(result)["answer"]["error"] is None


# Keys and surroundings


def test_the_real_key_reaches_the_provider_and_no_key_reaches_the_disk(lab: MakeLab) -> None:
    bench = lab(numbered)
    secret = "sk-proj-" + "".join(random.SystemRandom().choices("abcdefghijkmnpqrstuvwxyz23456789", k=40))
    keys = {"OPENAI_API_KEY": secret}
    base = bench.record(talks("a", "b"), env=keys).ok().session
    result = fork(bench, f"{base}:2", "--set", f"system=Your key is {secret}.", env=keys).ok()
    live = bench.provider.requests[-1]
    assert live.header("authorization") == f"Bearer {secret}"
    assert secret in live.json()["messages"][0]["content"], "what goes out is what was asked for"
    held = [path for path in bench.home.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert not held
    (session,) = [
        row for row in json.loads(bench.rewind("list", "--json").stdout)["sessions"] if row["id"] == forked(result)
    ]
    assert session["forked_from"]["edits"][0].startswith("system=Your key is REDACTED")


def test_a_key_that_is_missing_is_named_and_no_dummy_takes_its_place(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b"), env={"OPENAI_API_KEY": KEYS["OPENAI_API_KEY"]}).ok().session
    result = fork(bench, f"{base}:2", env={})
    assert "OPENAI_API_KEY, " in result.talk or "OPENAI_API_KEY " in result.talk
    assert "not set here" in result.talk
    assert bench.provider.requests[-1].header("authorization") == "Bearer none"


def test_base_urls_of_now_win_over_those_of_then(tmp_path: Path) -> None:
    home, agent = tmp_path / "store", [sys.executable, "-m", "rewind.demo.agent", "8821"]
    with DemoProvider() as then:
        env = {"ANTHROPIC_BASE_URL": then.url, "ANTHROPIC_API_KEY": "sk-ant-demo-key-0001"}
        base = run_rewind(["record", "--", *agent], home, env, cwd=tmp_path).ok().session
        recorded = then.asked
    with DemoProvider() as now:
        env["ANTHROPIC_BASE_URL"] = now.url
        edit = "system+=Refund only after explicit confirmation."
        result = run_rewind(["fork", f"{base}:3", "--set", edit], home, env, cwd=tmp_path).ok()
        assert (recorded, now.asked) == (4, 1)
    assert "I cannot complete this action without explicit confirmation." in result.text
    assert run_rewind(["replay", forked(result)], home, cwd=tmp_path).ok().text == result.text


# Money


def test_a_price_that_is_not_known_and_a_limit_do_not_go_together(tmp_path: Path) -> None:
    home, agent = tmp_path / "store", [sys.executable, "-m", "rewind.demo.agent", "8821"]
    with DemoProvider() as provider:
        own_address = provider.url.removesuffix("/rewind-demo")  # under the other one it has a price
        env = {"ANTHROPIC_BASE_URL": own_address, "ANTHROPIC_API_KEY": "sk-ant-demo-key-0001"}
        base = run_rewind(["record", "--", *agent], home, env, cwd=tmp_path).ok().session
        result = run_rewind(["fork", f"{base}:3", "--max-cost", "1"], home, env, cwd=tmp_path)
        assert result.code == 2
        assert (
            "The price of claude-sonnet-4-6 at 127.0.0.1 is not known, so --max-cost cannot be enforced" in result.talk
        )
        assert provider.asked == 4
    assert len(json.loads(run_rewind(["list", "--json"], home).stdout)["sessions"]) == 1


def costly(request: Request) -> Answer:
    """A million tokens for whoever is kind: 15 cents."""
    answer = numbered(request)
    if "kind" not in str(request.json()["messages"][0]):
        return answer
    value = json.loads(answer.body)
    return json_answer(request, value | {"usage": {"prompt_tokens": 1_000_000, "completion_tokens": 0}})


def test_when_the_limit_is_reached_nothing_more_is_asked_and_the_run_is_told_to_be_stopped(lab: MakeLab) -> None:
    bench = lab(costly)
    base = bench.record(talks("a", "b", "c", "d", "e")).ok().session
    result = fork(bench, f"{base}:2", "--set", "system=Be kind.", "--max-cost", "0.20")
    assert result.code == 5
    assert bench.provider.calls == 5 + 2, "15 cents are spent, 5 are left: the second one goes over"
    last = result.text.splitlines()[-1]
    assert last.startswith("424 Rewind: the limit of $0.2 is reached: $0.3 is spent")
    assert "this run: was stopped: the limit of $0.2 is reached" in result.talk
    assert "2 live ($0.300)" in result.talk
    again = bench.replay(forked(result))
    assert again.code == 0, "the refusal is part of the session"


def test_a_sample_that_no_longer_fits_is_not_started(lab: MakeLab) -> None:
    bench = lab(lambda request: costly(request))
    keyed = [word.replace(SYSTEM, "Be kind.") for word in talks("a", "b")]
    base = bench.record(keyed).ok().session
    result = fork(bench, f"{base}:2", "--samples", "5", "--max-cost", "$0.35")
    assert result.code == 0, result.talk
    assert bench.provider.calls == 2 + 2
    assert "3 samples not started: a run may cost $0.150, and $0.050 of $0.350 is left" in result.talk
    never = fork(bench, f"{base}:1", "--max-cost", "0.10")
    assert never.code == 2 and "Nothing was run." in never.talk
    assert bench.provider.calls == 4


def test_samples_are_sessions_of_their_own_and_equal_answers_are_counted(lab: MakeLab) -> None:
    def wavering(request: Request) -> Answer:
        return openai_chat(request, "yes" if request.nth % 3 else "no")

    bench = lab(wavering)
    base = bench.record(talks("a", "b")).ok().session
    result = fork(bench, f"{base}:2", "--samples", "3").ok()
    assert "3 samples, step 2 answered in 2 ways:" in result.talk
    assert "  2 × yes" in result.talk and "  1 × no" in result.talk
    sessions = json.loads(bench.rewind("list", "--json").stdout)["sessions"]
    assert sorted(row["forked_from"]["sample"] for row in sessions if row["forked_from"]) == [1, 2, 3]


def test_samples_that_decide_the_same_in_other_words_are_one_group(lab: MakeLab) -> None:
    said = [
        "You get 28 days, says the handbook.",
        "According to the handbook, you get 28 days.",
        "You get 24 days, says the handbook.",
    ]

    def wavering(request: Request) -> Answer:
        return openai_chat(request, said[(request.hit - 2) % 3])

    bench = lab(wavering)
    base = bench.record(talks("How many days?")).ok().session
    result = fork(bench, f"{base}:1", "--samples", "3").ok()
    assert "3 samples, step 1 answered in 2 ways, 3 wordings:" in result.talk
    for line in (f"  2 × {said[0]}", f"    ≈ {said[1]}", f"  1 × {said[2]}", "differs in: 28"):
        assert line in result.talk, result.talk
    grouped = json.loads(fork(bench, f"{base}:1", "--samples", "3", "--json").ok().stdout)["decisions"]
    assert [(group["samples"], len(group["texts"])) for group in grouped] == [([1, 2], 2), ([3], 1)]
    assert grouped[0]["differs_in"] == [] and "24" in grouped[1]["differs_in"][0]


def test_a_name_in_an_edit_is_looked_up_once_for_all_samples(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b")).ok().session
    other = bench.record([word.replace(SYSTEM, "You are kind.") for word in talks("a")]).ok().session
    result = fork(bench, f"{base}:2", "--set", "system=@last:1", "--samples", "2", "--json").ok()
    runs = json.loads(result.stdout)["runs"]
    assert [run["forked_from"]["edits"] for run in runs] == [[f"system=@{other}:1"]] * 2
    assert systems(bodies(bench, since=3)) == ["You are kind."] * 2


def test_a_dry_run_says_what_would_happen_and_touches_nothing(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c")).ok().session
    before = {path: path.stat().st_mtime_ns for path in bench.home.rglob("*")}
    connections = bench.provider.connections
    result = fork(bench, f"{base}:2", "--set", "model=gpt-4o", "--samples", "4", "--dry-run").ok()
    assert {path: path.stat().st_mtime_ns for path in bench.home.rglob("*")} == before
    assert bench.provider.connections == connections
    assert "step 1 from the recording · $0" in result.text
    assert "steps 2–3 (2 × gpt-4o)" in result.text
    one = fork(bench, f"{base}:3", "--dry-run").ok().text
    assert "step 3 (gpt-4o-mini)" in one
    # 2 × (21 × $2.50 + 8 × $10) a million, by the new model's price, four times.
    assert "$0.0011 for 4 samples; $0.00026" in result.text
    told_plan = json.loads(fork(bench, f"{base}:2", "--dry-run", "--json").ok().stdout)
    assert told_plan["schema"] == "rewind/fork_plan@1"
    assert (told_plan["reused"], [one["step"] for one in told_plan["live"]]) == ([1], [2, 3])
    assert told_plan["estimate_usd"] == pytest.approx(2 * (21 * 0.15 + 8 * 0.60) / 1e6)


# By hand


def editor(tmp_path: Path, code: str) -> dict[str, str]:
    """An editor that does what the code says to ``text``, the content of the file at ``path``."""
    script = tmp_path / "editor.py"
    script.write_text(
        "import os, pathlib, sys\npath = pathlib.Path(sys.argv[-1])\n"
        "assert path.parent.stat().st_mode & 0o77 == path.stat().st_mode & 0o77 == 0, 'others could read it'\n"
        f"text = path.read_text()\n{code}\npath.write_text(text)\n"
    )
    return KEYS | {"EDITOR": f"{sys.executable} {script} --wait", "TMPDIR": str(tmp_path)}


def test_what_is_saved_in_the_editor_goes_out_as_the_step(lab: MakeLab, tmp_path: Path) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c")).ok().session
    env = editor(tmp_path, "text = text.replace('\"b\"', '\"B\"').replace('0.7', '0.2')")
    result = fork(bench, f"{base}:2", "--edit", "--set", "system+=Be brief.", env=env).ok()
    second, third = bodies(bench, since=3)
    assert (second["messages"][-1]["content"], second["temperature"]) == ("B", 0.2)
    assert (third["messages"][3]["content"], third["temperature"]) == ("b", 0.7), "by hand is for that step alone"
    assert systems([second, third]) == [f"{SYSTEM}\nBe brief."] * 2
    assert not list(tmp_path.glob("rewind-*")), "nothing is left behind"
    assert bench.replay(forked(result)).code == 0
    assert "edited by hand" in bench.rewind("list", "--tree").text


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("pass", "You changed nothing in the editor. Nothing was run."),
        ("text = text[:-5]", "What you saved is not valid JSON"),
        ("sys.exit(3)", "ended with exit code 3. Nothing was run."),
        ("text = '[1, 2]'", "What you saved is not a JSON object. Nothing was run."),
        ("text = 'null'", "What you saved is not a JSON object. Nothing was run."),
        ("text = text.replace('0.7', 'NaN')", "What you saved is not valid JSON (NaN is not a JSON number)"),
        ("text = ' \\n'", "The file is empty, so the fork is called off. Nothing was run."),
    ],
    ids=["unchanged", "no JSON", "a failing editor", "a list", "null", "NaN", "empty"],
)
def test_an_editor_that_gives_nothing_useful_runs_nothing(
    lab: MakeLab, tmp_path: Path, code: str, sentence: str
) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a")).ok().session
    result = fork(bench, f"{base}:1", "--edit", env=editor(tmp_path, code))
    assert result.code == 2
    assert sentence in result.talk
    assert bench.provider.calls == 1
    kept = list(tmp_path.glob("rewind-*/step-1.json"))
    assert bool(kept) == ("JSON" in sentence), "somebody's work is not thrown away"


def test_an_editor_that_is_not_there_is_one_clear_sentence(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a")).ok().session
    result = fork(bench, f"{base}:1", "--edit", env=KEYS | {"VISUAL": "no-such-editor"})
    assert result.code == 6 and "'no-such-editor' could not be started" in result.talk


# Death


def test_a_fork_that_is_killed_leaves_a_session_that_can_be_read(lab: MakeLab) -> None:
    reached, never = threading.Event(), threading.Event()

    def hangs(request: Request) -> Answer:
        if request.hit <= 3:
            return numbered(request)
        reached.set()
        return Answer(pieces=(b'{"choices": ', b"[]}"), hold=never)

    bench = lab(hangs)
    base = bench.record(talks("a", "b", "c")).ok().session
    process = subprocess.Popen(
        [*REWIND, "fork", f"{base}:3", *bench.upstream, "--set", "temperature=0"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=plain_environment(bench.home, **KEYS),
        cwd=bench.folder,
        start_new_session=True,
    )
    try:
        assert reached.wait(PATIENCE)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
        never.set()
    shown = json.loads(bench.rewind("inspect", "last", "--json").ok().stdout)
    assert shown["session"]["status"] == "interrupted"
    assert shown["session"]["forked_from"]["session"] == base
    assert [(row["index"], row["tape"]) for row in shown["steps"][:2]] == [(1, 1), (2, 2)]
    assert shown["damage"] == []
    assert bench.rewind("verify", "last").code == 0
    # What the live call has cost nobody knows, on no screen.
    listed = json.loads(bench.rewind("list", "--json").ok().stdout)["sessions"][0]
    assert (listed["cost_usd"], listed["unpriced"], listed["replayed"]) == (None, 1, 2)
    for words in (("list",), ("list", "--tree"), ("list", "--limit", "0"), ("inspect", "last")):
        screen = bench.rewind(*words).ok().text
        assert "—" in screen and "$0+" not in screen, words
    assert "— (1 call unpriced)" in screen
    assert "→ —" in bench.rewind("diff", base, "last").text
    # And the step that died can be forked again.
    bench.provider.playbook = numbered
    assert fork(bench, "last:3").ok().text.splitlines()[-1] == "answer 5 to c"
