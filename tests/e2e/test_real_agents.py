"""Agents that people use, with a tool call each: recorded here, replayed in another folder, days later, no flag."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from support.effort import ALL
from support.real_agents.provider import ModelApis, Script
from support.real_agents.speech import ToolUse
from support.real_agents.table import AGENTS, RealAgent
from support.real_agents.trial import missing_install, run_trial
from support.script import Request
from support.trust import Trust

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

CLIENT = RealAgent(
    name="openai client",
    install="",
    program="openai_client.py",
    command=lambda _installed, place: [sys.executable, "openai_client.py", place.project.name],
    script=Script(ToolUse("read_note", {"path": "note.txt"})),
)
"""Its command line names the project, so what it asks depends on a word of the user's."""


def _need(agent: RealAgent) -> None:
    if reason := missing_install(agent):
        if os.environ.get("REWIND_TESTS_NEED_AGENTS"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent.rota or ALL], ids=lambda agent: agent.name)
def test_an_agent_replays_elsewhere_on_another_day(
    agent: RealAgent, trust: Trust, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    _need(agent)
    trial = run_trial(agent, tmp_path, trust)
    record_property("agent", trial.row)
    assert not trial.faults, "\n".join([trial.row, *trial.faults])
    assert trial.verdict["renamed"] or agent.name == "llm", "neither folder, date nor id was another"


def test_a_trial_finds_an_agent_that_asks_something_else(trust: Trust, tmp_path: Path) -> None:
    _need(CLIENT)
    trial = run_trial(CLIENT, tmp_path, trust)
    assert trial.replayed.code == 4
    assert "harbour" in trial.faults[0] and "Never recorded" in trial.faults[0]


def test_a_provider_says_nothing_of_a_note_that_no_tool_read() -> None:
    apis = ModelApis(CLIENT.script)
    offered = [{"type": "function", "function": {"name": "read_note"}}]
    said = {"role": "assistant", "tool_calls": [{"id": "call_1"}]}
    asked = {"model": "m", "tools": offered, "messages": [{"role": "user", "content": "?"}]}
    assert b"read_note" in apis(_chat(asked)).body
    with pytest.raises(AssertionError, match="did not bring the note"):
        apis(_chat(asked | {"messages": [said, {"role": "tool", "content": "no such file"}]}))


def _chat(body: Mapping[str, object]) -> Request:
    return Request(
        method="POST",
        target="/v1/chat/completions",
        headers=(),
        body=json.dumps(body).encode(),
        raw=b"",
        hit=1,
        nth=1,
        connection=1,
    )
