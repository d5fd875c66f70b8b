"""What is run again is no other recording: it costs nothing, and `last` and the name keep meaning what was recorded."""

import sys
import time
from collections.abc import Callable

import pytest

from rewind.model.session import Session
from rewind.reading.prices import load_prices
from rewind.reading.stats import usage_stats
from rewind.store.library import Library
from support.answers import openai_chat
from support.cli import KEYS, plain_environment, run
from support.lab import Lab
from support.script import Playbook

pytestmark = pytest.mark.e2e

AGENT = """
import json, os, sys, urllib.request
import rewind

questions = sys.argv[1:] or ["one", "two"]
with rewind.session("desk", mode=os.environ.get("OWN_MODE", "record"), cassette="desk.rw",
                    connect_to=os.environ.get("DETOUR", "").split()) as run:
    for question in questions:
        body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": question}]}
        request = urllib.request.Request(
            "https://api.openai.com/v1/chat/completions", json.dumps(body).encode(), {"content-type": "text/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            print(json.load(answer)["choices"][0]["message"]["content"])
    assert os.environ.get("OWN_MODE") == "off" or len(run.steps) == len(questions)
assert os.environ.get("OWN_MODE") == "off" or run.result is not None
"""


@pytest.fixture
def bench(lab: Callable[[Playbook], Lab]) -> Lab:
    made = lab(lambda request: openai_chat(request, f"about {request.json()['messages'][-1]['content']}"))
    (made.folder / "agent.py").write_text(AGENT)
    return made


def by_itself(bench: Lab, *questions: str, **more: str) -> None:
    """The agent records itself, nobody around it."""
    detours = " ".join(f"{host}:443:127.0.0.1:{bench.provider.port}" for host in bench.hosts)
    env = plain_environment(bench.home, **KEYS, DETOUR=detours, REWIND_UPSTREAM_CA=str(bench.trust.ca_file), **more)
    run([sys.executable, "agent.py", *questions], env, cwd=bench.folder).ok()


def sessions(bench: Lab) -> list[Session]:
    return Library(bench.home).sessions()


def spent(bench: Lab) -> tuple[int, float | None]:
    total = usage_stats(bench.home, load_prices(), now=time.time()).report.total
    return total.calls, total.cost


def named(bench: Lab, ref: str) -> str:
    return Library(bench.home).find(ref).id


def test_replays_and_forks_of_a_program_that_records_itself_leave_its_recording_alone(bench: Lab) -> None:
    by_itself(bench)
    (recorded,) = sessions(bench)
    before, cassette = spent(bench), (bench.folder / "desk.rw").read_bytes()
    assert before[0] == 2 and before[1]
    for _ in range(2):
        replayed = bench.replay("desk").ok()
        assert "2/2 steps replayed" in replayed.talk, replayed.talk
    assert sessions(bench) == [recorded]
    assert spent(bench) == before
    assert (named(bench, "last"), named(bench, "desk")) == (recorded.id, recorded.id)
    assert (bench.folder / "desk.rw").read_bytes() == cassette
    assert not list((bench.home / "run").rglob("journal.jsonl"))

    # A fork is a session of its own, and the only one.
    forked = bench.rewind("fork", "desk:2", "--set", "response=else", env=KEYS)
    assert forked.code == 0, forked.talk
    fork, *rest = sessions(bench)
    assert rest == [recorded] and fork.start.forked_from
    assert named(bench, "desk") == recorded.id
    assert spent(bench) == before


def test_what_is_recorded_inside_and_outside_was_asked_once(bench: Lab) -> None:
    outer = bench.record([sys.executable, "agent.py"]).ok().session
    inner, _ = sessions(bench)
    assert (inner.start.name, inner.start.part_of) == ("desk", outer)
    assert spent(bench)[0] == 2
    assert named(bench, "last") == outer
    assert named(bench, "desk") == inner.id
    bench.replay(outer).ok()
    bench.replay("desk").ok()
    assert len(sessions(bench)) == 2 and spent(bench)[0] == 2
    # Without the one around it, it stands for itself.
    bench.rewind("rm", outer).ok()
    assert spent(bench)[0] == 2 and named(bench, "last") == inner.id


def test_a_replay_with_live_answers_is_found_by_its_id_and_pays_for_these_alone(bench: Lab) -> None:
    ask = [sys.executable, "agent.py"]
    quiet = {"OWN_MODE": "off"}
    recorded = bench.record(ask, options=("--name", "desk"), env=quiet).ok().session
    live = bench.rewind("replay", "desk", "--on-miss", "live", *bench.upstream, "--", *ask, "one", "new", env=quiet)
    assert live.code in (0, 1), live.talk
    kept, _ = sessions(bench)
    assert kept.start.replay_of == recorded
    assert spent(bench)[0] == 3
    assert (named(bench, "last"), named(bench, "desk")) == (recorded, recorded)
    assert named(bench, kept.id) == kept.id


def test_what_extend_adds_takes_the_name_and_what_it_only_repeats_does_not(bench: Lab) -> None:
    by_itself(bench, "one")
    (first,) = sessions(bench)
    by_itself(bench, "one", OWN_MODE="extend")
    assert (named(bench, "last"), named(bench, "desk")) == (first.id, first.id)
    by_itself(bench, "one", "two", OWN_MODE="extend")
    newest = sessions(bench)[0]
    assert (named(bench, "last"), named(bench, "desk")) == (newest.id, newest.id)
    assert spent(bench)[0] == 2
