"""One trial: an agent is recorded, the provider goes away, and it is replayed elsewhere, days later."""

import json
import secrets
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from support.cli import KEYS, REWIND, Result, plain_environment, run
from support.provider import FakeProvider
from support.real_agents.provider import NOTE, ModelApis
from support.real_agents.table import HERE, INSTALLED, Place, RealAgent
from support.trust import PROVIDER_NAMES, Trust

PATIENCE = 100.0
AHEAD = 3 * 86400
CLOCK = INSTALLED / "clock.so"
"""Made from ``clock.c``."""
HEADLINE = f"{'agent':30}{'steps':>6}{'LLM':>5}{'exact':>7}{'renamed':>9}{'telemetry':>11}{'misses':>8}  names"


@dataclass
class Trial:
    """What both runs of an agent left."""

    agent: RealAgent
    turns: list[str]
    """What the model was made to do while the agent was recorded."""
    recorded: Result
    replayed: Result
    steps: list[dict[str, Any]]
    """The recorded steps, as ``inspect --json`` has them."""
    reached_network: bool = False

    @cached_property
    def verdict(self) -> dict[str, Any]:
        """What ``replay --json`` says; empty if it said nothing."""
        try:
            found: dict[str, Any] = json.loads(self.replayed.stdout)
        except ValueError:
            return {}
        return found

    @property
    def llm_calls(self) -> int:
        return sum(step["kind"] == "llm_call" for step in self.steps)

    @property
    def faults(self) -> list[str]:
        """All that is wrong; nothing for an agent that replays."""
        found = self.verdict
        if not found:
            return [f"the replay said nothing: exit {self.replayed.code}: {self.replayed.talk[-2000:]}"]
        faults = [miss["report"].partition("\nWhat to do")[0] for miss in found["misses"]]
        if self.replayed.code != 0:
            faults.append(f"exit {self.replayed.code}; output {found['output']}: {found['output_difference'][:2000]}")
        if found["drifted"] or found["live"] or found["network_calls"] or self.reached_network:
            faults.append("an answer did not come from the recording, or not as itself")
        if found["unasked"]:
            faults.append(f"never asked for: {found['unasked']}")
        if self.llm_calls < 2 or self.llm_calls < len(self.turns):
            faults.append(f"{len(self.turns)} turns of the model, {self.llm_calls} LLM calls recorded")
        return faults

    @property
    def row(self) -> str:
        """The agent's line in the table."""
        found = self.verdict
        renamed = found.get("renamed") or []
        kinds = sorted({name["kind"] for step in renamed for name in step["names"]})
        numbers = f"{found.get('total', '—'):>6}{self.llm_calls:>5}{found.get('exact', '—'):>7}{len(renamed):>9}"
        misses = len(found["misses"]) if found else "—"
        return f"{self.agent.name:30}{numbers}{found.get('telemetry', '—'):>11}{misses:>8}  {', '.join(kinds)}"


def missing_install(agent: RealAgent) -> str | None:
    """Why this agent cannot run here; None when it can."""
    if agent.install and not (INSTALLED / agent.install / ".ready").exists():
        return f"{agent.install} is not installed: make .agents/{agent.install}/.ready"
    return missing_clock()


def missing_clock() -> str | None:
    """Why no process can be put ahead here; None when one can."""
    return None if CLOCK.exists() else "the shifted clock is not built: make .agents/clock.so"


def run_trial(agent: RealAgent, folder: Path, trust: Trust) -> Trial:
    """Record and replay that agent; everything it leaves stays in the folder."""
    here = _place(agent, folder / "first", "the old harbour")
    there = _place(agent, folder / f"second-{secrets.token_hex(3)}", "North_Light.2 (copy)")
    store = folder / "store"
    apis = ModelApis(agent.script)
    with FakeProvider(apis, trust=trust, names=(*PROVIDER_NAMES, *agent.hosts)) as provider:
        # Whatever host is asked for, nothing leaves this machine.
        upstream = [f"--connect-to=::127.0.0.1:{provider.port}", f"--upstream-ca={trust.ca_file}"]
        hosts = [f"--host={host}" for host in agent.hosts]
        keys = KEYS | {"CODEX_API_KEY": KEYS["OPENAI_API_KEY"]}
        recorded = _rewind(agent, here, store, "record", *upstream, *hosts, more=keys)
        (folder / "record.err").write_bytes(recorded.stderr)
        assert recorded.code == 0, f"{agent.name} could not be recorded: {recorded.talk[-3000:]}{recorded.text[-2000:]}"
        assert NOTE in recorded.text, f"{agent.name} did not say what the note says: {recorded.text[-2000:]}"
        provider.go_away()
        before = provider.connections
        replayed = _rewind(agent, there, store, "replay", recorded.session, "--json", *upstream, more=_later(agent))
        (folder / "replay.json").write_bytes(replayed.stdout)
        (folder / "replay.err").write_bytes(replayed.stderr)
        reached_network = provider.connections > before
    shown = run([*REWIND, "inspect", recorded.session, "--json"], plain_environment(store), cwd=here.project).ok()
    return Trial(agent, apis.turns, recorded, replayed, json.loads(shown.stdout)["steps"], reached_network)


def _rewind(agent: RealAgent, place: Place, store: Path, *words: str, more: dict[str, str]) -> Result:
    variables = {"HOME": str(place.home), "TMPDIR": str(place.temporary), **more}
    command = [*REWIND, *words, "--", *agent.command(INSTALLED / agent.install, place)]
    return run(command, plain_environment(store) | variables, cwd=place.project, timeout=PATIENCE).sound()


def _place(agent: RealAgent, folder: Path, project: str) -> Place:
    place = Place(project=folder / project, home=folder / "home", temporary=folder / "tmp")
    for made in (place.project, place.home, place.temporary):
        made.mkdir(parents=True)
    (place.project / "note.txt").write_text(NOTE + "\n")
    if agent.program:
        shutil.copy(HERE / "programs" / agent.program, place.project)
    if agent.program.endswith(".mjs"):
        (place.project / "node_modules").symlink_to(INSTALLED / agent.install / "node_modules")
    agent.prepare(place)
    return place


def _later(agent: RealAgent) -> dict[str, str]:
    """Variables that put a process, and all it starts, some days ahead."""
    if agent.static:
        return {"TZ": "LAB-23:59:59"}
    return clock_ahead()


def clock_ahead() -> dict[str, str]:
    """Variables under which a process, and all it starts, reads a clock of some days later."""
    return {"LD_PRELOAD": str(CLOCK), "REWIND_LAB_CLOCK": str(AHEAD)}
