"""What a command loads before it does its work: every module is time that a person, or an agent, waits.

The budgets are a little above what is loaded today. Raise one only with a reason, and a look at ``-X importtime``.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rewind as package

pytestmark = pytest.mark.process

SOURCES = str(Path(package.__file__).parents[1])
WATCHED = """
import json, os, sys
sys.path.insert(0, {sources!r})

def tell():
    with open({report!r}, "w") as file:
        json.dump(sorted(sys.modules), file)
    os._exit(0)

def stop_at_the_agent(event, arguments):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.fork") and {stop}:
        tell()

sys.addaudithook(stop_at_the_agent)
from rewind.cli.main import run
run({arguments!r})
tell()
"""


def loaded(tmp_path: Path, *arguments: str, stop_at_the_agent: bool = False) -> set[str]:
    """The modules that a fresh interpreter has when the command is done, or is about to start an agent."""
    report = tmp_path / "modules.json"
    code = WATCHED.format(sources=SOURCES, report=str(report), arguments=list(arguments), stop=stop_at_the_agent)
    env = {**os.environ, "REWIND_HOME": str(tmp_path / "store")}
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=env)
    return set(json.loads(report.read_text()))


def ours(modules: set[str]) -> int:
    return sum(name.partition(".")[0] == "rewind" for name in modules)


@pytest.mark.parametrize(
    ("arguments", "most", "never"),
    [
        (["--help"], 7, {"click", "re", "json", "dataclasses"}),
        (["list"], 72, {"duckdb", "asyncio", "ssl"}),
        (["rm", "nothing"], 66, {"duckdb", "asyncio", "ssl", "rewind.gateway.server", "rewind.providers.catalogue"}),
        (["prune", "--max-size", "1G"], 66, {"duckdb", "asyncio", "ssl", "rewind.providers.catalogue"}),
        (["record", "--help"], 20, {"duckdb", "asyncio"}),
        (["inspect", "--help"], 122, {"duckdb", "asyncio"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_loads_no_more_than_its_budget(tmp_path: Path, arguments: list[str], most: int, never: set[str]):
    modules = loaded(tmp_path, *arguments)
    already = loaded(tmp_path, "--version")  # what the interpreter itself brings
    assert ours(modules) <= most
    assert not never & (modules - already)


SLOW = {"asyncio", "ssl", "cryptography", "duckdb", "rewind.gateway.server", "rewind.providers.catalogue"}
"""What no agent should wait for."""


def test_a_recorded_agent_waits_for_few_modules(tmp_path: Path):
    loaded(tmp_path, "record", "true")  # makes the CA
    modules = loaded(tmp_path, "record", "true", stop_at_the_agent=True)
    assert "rewind.runs.record" in modules, "the agent was about to start"
    assert ours(modules) <= 81
    assert not SLOW - {"ssl"} & modules  # which knows where the system's roots are


def test_a_replayed_agent_waits_for_few_modules(tmp_path: Path):
    loaded(tmp_path, "record", "true")
    modules = loaded(tmp_path, "replay", "last", stop_at_the_agent=True)
    assert "rewind.runs.replay" in modules, "the agent was about to start"
    assert ours(modules) <= 100
    assert not SLOW & modules
