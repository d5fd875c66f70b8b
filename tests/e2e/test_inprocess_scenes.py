"""What has to be seen from the first moment of a process: clients that were live before, forks, children, proxies."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.answers import openai_chat, openai_stream
from support.cli import AGENTS, KEYS, PATIENCE, plain_environment
from support.inprocess import MakeStage, Stage, stages
from support.lab import Lab
from support.parent_proxy import ParentProxy
from support.script import Answer, Playbook, Request
from support.trust import Trust

pytestmark = pytest.mark.e2e


@pytest.fixture
def stage(trust: Trust, tmp_path: Path) -> Iterator[MakeStage]:
    with stages(trust, tmp_path) as make:
        yield make


def numbered(request: Request) -> Answer:
    asked = request.json()["messages"][-1]["content"]
    if request.json().get("stream"):
        return openai_stream(request, [f"{asked} ", *"abcdefgh"], gap=0.02)
    return openai_chat(request, f"{asked}: hit {request.hit}")


def scene(stage: Stage, name: str, **env: str) -> dict[str, Any]:
    ca = str(stage.trust.ca_file)
    done = subprocess.run(
        [
            sys.executable,
            "-X",
            "dev",
            str(AGENTS / "inprocess_scenes.py"),
            name,
            str(stage.home),
            str(stage.provider.port),
        ],
        env=plain_environment(stage.home, SSL_CERT_FILE=ca, REQUESTS_CA_BUNDLE=ca, **KEYS, **env),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("name", "clients"),
    [
        ("live_before_sync", ["httpx", "requests", "urllib3"]),
        ("live_before_async", ["httpx", "aiohttp"]),
        ("live_before_async_uvloop", ["httpx", "aiohttp"]),
    ],
)
def test_clients_that_were_live_are_recorded_and_replayed_and_live_again(
    stage: MakeStage, name: str, clients: list[str]
) -> None:
    there = stage(numbered)
    found = scene(there, name)
    count = len(clients)

    def answers(text: str, first_hit: int) -> list[str]:
        return [f"{client} {text}: hit {first_hit + at}" for at, client in enumerate(clients)]

    assert found["before"] == answers("live", 1)
    assert found["recorded"]["value"] == answers("in the run", count + 1)
    assert found["recorded"]["live"] == count and found["recorded"]["remarks"] == []
    assert found["between"] == answers("live", 2 * count + 1)
    assert found["replayed"]["value"] == answers("in the run", count + 1)
    assert found["replayed"]["played"] == count and found["replayed"]["blocked"] == []
    assert found["after"] == answers("live", 3 * count + 1)
    assert there.provider.calls == 4 * count


def test_an_answer_under_way_is_left_alone_and_its_connection_is_not_used_in_the_replay(stage: MakeStage) -> None:
    there = stage(numbered)
    found = scene(there, "stream_under_way")
    assert found["first"] and found["whole"]
    assert found["value"] != "answered"
    assert found["remarks"] == ["api.openai.com: a connection from before the replay was closed when it was used"]
    assert there.provider.calls == 2


def test_forked_workers_reach_the_gateway_of_their_parent(stage: MakeStage) -> None:
    there = stage(numbered)
    found = scene(there, "forked", PYTHONWARNINGS="ignore::DeprecationWarning")
    recorded, replayed = found["recorded"], found["replayed"]
    assert sorted(value.split(":")[0] for value in recorded["value"]) == ["one", "two"]
    assert recorded["live"] == 2
    assert replayed["value"] == recorded["value"]
    assert replayed["played"] == replayed["total"] == 2
    assert there.provider.calls == 2


def test_a_forked_child_that_begins_a_run_has_a_gateway_of_its_own(stage: MakeStage) -> None:
    there = stage(numbered)
    found = scene(there, "forked_with_a_run_of_its_own", PYTHONWARNINGS="ignore::DeprecationWarning")
    assert found["child"]["value"] == "the child: hit 2"
    assert found["child"]["live"] == 1
    assert found["parent"]["value"] == ["the parent: hit 1", "the parent again: hit 3"]
    assert found["parent"]["live"] == 2
    assert not found["parent"]["remarks"] and not found["child"]["remarks"]


def test_a_forked_child_runs_its_tools_and_leaves_the_session_of_its_parent_alone(stage: MakeStage) -> None:
    found = scene(stage(numbered), "forked_tools", PYTHONWARNINGS="ignore::DeprecationWarning")
    ran = "ran ran ran ran"
    assert found["ends"] == {"_exit": ran, "exit": ran, "multiprocessing": ran}
    assert found["untouched"], "no file of the parent's session has changed by a byte"
    assert found["crowd"] == [ran] * 15
    assert found["steps"] == found["own"] > 0
    assert found["damage"] == [] and found["remarks"] == []


def test_a_run_within_a_recorded_process_is_recorded_by_both(lab: Callable[[Playbook], Lab]) -> None:
    there = lab(numbered)
    command = [sys.executable, str(AGENTS / "inprocess_scenes.py"), "nested", str(there.home), "443"]
    recorded = there.record(command).ok()
    assert json.loads(recorded.stdout)["value"] == "x: hit 1"
    assert json.loads(recorded.stdout)["live"] == 1
    assert len(there.steps(recorded.session)) == len(there.steps("inner")) == 1
    replayed = there.replay(recorded.session, env={"OPENAI_API_KEY": "none"})
    assert json.loads(replayed.stdout)["value"] == "x: hit 1"
    assert there.provider.calls == 1


def test_a_dead_gateway_records_nothing_and_replays_nothing_live(stage: MakeStage) -> None:
    there = stage(numbered)
    found = scene(there, "dead_gateway")
    assert found["recorded"]["value"] == "x: hit 2"
    assert found["recorded"]["remarks"] == ["api.openai.com: was reached without the gateway: not recorded"]
    assert "hit" not in found["replayed"]["value"]
    assert found["replayed"]["blocked"] == [f"api.openai.com:{there.provider.port}"]
    assert there.provider.calls == 2


def test_children_belong_to_the_run_whose_variables_they_were_given(stage: MakeStage) -> None:
    there = stage(numbered)
    found = scene(there, "children")
    assert found["recorded"]["value"] == found["replayed"]["value"] == "a child: hit 1"
    assert found["recorded"]["live"] == 1 and found["replayed"]["played"] == 1
    assert there.provider.calls == 1


def test_the_gateway_takes_the_place_of_the_users_proxy(stage: MakeStage) -> None:
    there = stage(numbered)
    with ParentProxy(("127.0.0.1", there.provider.port)) as proxy:
        found = scene(there, "proxied", HTTPS_PROXY=f"http://127.0.0.1:{proxy.port}")
        assert [head.split()[1] for head in proxy.heads] == [f"api.openai.com:{there.provider.port}"]
    assert found["recorded"]["value"] == found["replayed"]["value"] == "x: hit 1"
    assert found["recorded"]["live"] == found["replayed"]["played"] == 1


def test_a_proxy_that_no_variable_names_is_seen(stage: MakeStage) -> None:
    there = stage(numbered)
    with ParentProxy(("127.0.0.1", there.provider.port)) as proxy:
        found = scene(there, "unknown_proxy", A_PROXY=f"http://127.0.0.1:{proxy.port}")
        assert len(proxy.heads) == 1
    assert found["recorded"]["value"] == "x: hit 2"
    assert "was asked through" in found["recorded"]["remarks"][0]
    assert "hit" not in found["replayed"]["value"]
    assert found["replayed"]["blocked"] == [f"api.openai.com:{there.provider.port}"]
    assert there.provider.calls == 2
