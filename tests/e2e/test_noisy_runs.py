"""Agents on the real SDKs and a model that never repeats itself: bisect gives the right verdict on the command line."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.incidents import coding, refund_desk
from support.incidents.intent import call
from support.incidents.live import LiveModel
from support.incidents.stage import Setup
from support.lab import Lab
from support.script import Playbook

pytestmark = pytest.mark.e2e
LEVEL = 2


def spec(setup: Setup, role: str, results: dict[str, list[str]], path: Path) -> str:
    """The program that ``noisy_agent.py`` runs."""
    told = setup.roles[role]
    tools = [{"name": one.name, "description": one.description, "schema": one.schema} for one in told.tools]
    described: dict[str, Any] = {"model": told.model, "system": told.system, "tools": tools, "results": results}
    path.write_text(json.dumps({**described, "question": setup.question}))
    return str(path)


def desk_results(setup: Setup, run: str) -> dict[str, list[str]]:
    tools = [tool.name for tool in setup.roles["desk"].tools]
    return {name: [refund_desk.tool_result(setup, call(name, amount=1), Random(f"{run} {name}"))] for name in tools}


def coder_results(setup: Setup, run: str) -> dict[str, list[str]]:
    random = Random(run)
    paths = ["README.md", "CONTRIBUTING.md", "settings.toml", "CHANGELOG.md"]
    modules = [path for path in setup.facts["paths"] if "/gen/" not in path]
    tests = [f"tests/test_{path.rpartition('/')[2]}" for path in modules]
    meant = [
        *(call("read_file", path=path) for path in (*paths, *modules, *tests)),
        *(call("edit_file", path=path) for path in (*paths, *modules)),
        *(call("run_tests", target=target) for target in (*tests, "all")),
        *(call("list_dir", path="."), call("run_linter"), call("git_commit")),
    ]
    found = {
        f"{one.tool} {one.decisive.get('path') or one.decisive.get('target') or ''}".strip(): [
            coding.tool_result(setup, one, random, {})
        ]
        for one in meant
    }
    hits = coding.tool_result(setup, call("grep"), random, {})
    return {**found, "grep": [hits, "net.py:12:def old_fetch(url):"]}


def desk(setup: Setup) -> Setup:
    return setup.with_role("desk", api="anthropic", model="claude-sonnet-4-5", snapshot="claude-sonnet-4-5-20250929")


def coder(setup: Setup) -> Setup:
    return setup.with_role("coder", api="chat", model="gpt-4o", snapshot="gpt-4o-2024-08-06")


def test_a_refund_that_was_declined_and_two_that_were_not(lab: Callable[[Playbook], Lab], tmp_path: Path) -> None:
    setup = desk(refund_desk.AGENT.setup(Random("real")))
    late = setup.with_facts(days=46)
    model = LiveModel(mind=refund_desk.desk_mind, role="desk", setup=setup, level=LEVEL)
    shop = lab(model)
    sessions = []
    for name, world in (("good", setup), ("again", setup), ("bad", late)):
        model.run = name
        described = spec(world, "desk", desk_results(world, name), tmp_path / f"{name}.json")
        sessions.append(shop.record("noisy_agent.py", "anthropic", described).ok().session)
    good, again, bad = sessions

    same = shop.rewind("bisect", good, again)
    assert same.code == 0, same.stdout

    parted = shop.rewind("bisect", good, bad)
    assert parted.code == 1, parted.stdout
    found = json.loads(shop.rewind("bisect", good, bad, "--json").stdout)
    assert found["step"] == {"good": 5, "bad": 5}
    assert found["causes"][0]["kind"] == "tool-output"
    assert "days_since_delivery" in parted.text and "46" in parted.text


def test_a_setting_that_was_read_sixteen_steps_before_it_mattered(
    lab: Callable[[Playbook], Lab], tmp_path: Path
) -> None:
    setup = coder(coding.AGENT.setup(Random("real")))
    setup = replace(setup, skips=frozenset({"plan"}))
    other = setup.with_facts(slow_timeout=7)
    model = LiveModel(mind=coding.coder_mind, role="coder", setup=setup, level=LEVEL)
    shop = lab(model)
    sessions = []
    for name, world in (("good", setup), ("bad", other)):
        model.run = name
        described = spec(world, "coder", coder_results(world, name), tmp_path / f"{name}.json")
        sessions.append(shop.record("noisy_agent.py", "openai", described).ok().session)

    parted = shop.rewind("bisect", *sessions)
    assert parted.code == 1, parted.stdout
    found = json.loads(shop.rewind("bisect", *sessions, "--json").stdout)
    assert found["step"] == {"good": 18, "bad": 18}
    assert found["causes"][0]["kind"] == "tool-output"
    assert str(setup.facts["slow_timeout"]) in parted.text
    assert "timeout_seconds" in parted.text
