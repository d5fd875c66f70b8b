"""``kill -9`` at random moments: what reached the agent whole is on disk, and nothing else is hurt.

The agent notes every answer once it has it whole (one ``write`` per line). After the kill, each noted answer must be
listed by ``inspect``, have the very bytes the agent saw, and be served by ``replay``. ``REWIND_KILL_TRIALS`` sets how
many times; a failing trial names its seed.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rewind.store.library import Library
from support.answers import openai_chat, openai_stream
from support.cli import KEYS, PATIENCE, REWIND, Result, agent_command, plain_environment
from support.effort import effort
from support.lab import Lab
from support.script import Answer, Playbook, Request

pytestmark = [pytest.mark.e2e, pytest.mark.torture]

TRIALS = effort(30, 200, "REWIND_KILL_TRIALS")
REAL_REPLAYS = effort(6, 24)
VICTIMS = ("agent", "rewind", "both")
MakeLab = Callable[[Playbook], Lab]


@dataclass(frozen=True, slots=True)
class Trial:
    """One run that was killed, and what its agent had noted by then."""

    number: int
    victim: str
    ends: frozenset[str]
    """How the session may stand afterwards."""
    notes: tuple[tuple[int, str, int], ...]

    @property
    def name(self) -> str:
        return f"trial-{self.number}"


def play(request: Request) -> Answer:
    """Answers of many sizes, every third one a stream."""
    chance = random.Random(request.body)
    if request.json()["stream"]:
        texts = [chance.randbytes(chance.randint(1, 400)).hex() for _ in range(5)]
        return openai_stream(request, texts, gap=0.002)
    return openai_chat(request, chance.randbytes(chance.randint(1, 8000)).hex())


def run_trial(bench: Lab, number: int) -> Trial:
    """Start a recording, kill at a moment that its number decides, and wait until both are dead."""
    chance = random.Random(number)
    victim = VICTIMS[number % len(VICTIMS)]
    notes = bench.folder / f"notes-{number}"
    command = [*agent_command("steady_caller.py"), str(notes), "100000"]
    talk = bench.folder / f"talk-{number}"
    with talk.open("wb") as stderr:
        process = subprocess.Popen(
            [*REWIND, "record", "--name", f"trial-{number}", *bench.upstream, "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env=plain_environment(bench.home, **KEYS),
            cwd=bench.folder,
            start_new_session=True,
        )
    agent = None
    try:
        if number % 10 == 9:
            # Some die while they start; the moment is the test's own choice, nothing waits for it.
            time.sleep(chance.uniform(0, 0.4))
        else:
            _wait_for_lines(notes, 1 + chance.randint(0, 15), process)
            time.sleep(chance.uniform(0, 0.02))
        agent = _agent_pid(notes)
        victims: dict[str, list[Any]] = {"agent": [agent], "rewind": [process.pid], "both": [agent, process.pid]}
        doomed = victims[victim]
        if agent is None:
            doomed = [process.pid]
        chance.shuffle(doomed)
        for pid in doomed:
            with suppress(ProcessLookupError):  # an agent without its gateway ends by itself
                os.kill(pid, signal.SIGKILL)
        process.wait(PATIENCE)
        agent = _agent_pid(notes)
        if agent is not None:
            _wait_until_dead(agent)
    finally:
        for pid in (process.pid, agent):
            if pid is not None and _alive(pid):
                os.kill(pid, signal.SIGKILL)
        process.wait(PATIENCE)
    Result((f"trial {number}",), b"", talk.read_bytes(), process.returncode).sound()
    # When the agent dies first, Rewind may still have written its end before its own turn came.
    ends = {"ended"} if victim == "agent" and agent in doomed else {"ended", "interrupted"}
    if doomed[0] == process.pid:
        ends = {"interrupted"}
    return Trial(number, victim, frozenset(ends), _read_notes(notes))


def check_trial(bench: Lab, trial: Trial) -> None:
    """Every noted answer is listed with its bytes, and the session says how it stands."""
    shown = bench.rewind("inspect", trial.name, "--json")
    if shown.code == 3 and not trial.notes:
        return  # killed before there was a session
    told = json.loads(shown.ok().stdout)
    assert told["session"]["status"] in trial.ends, trial
    if told["session"]["status"] == "ended":
        assert told["session"]["exit_code"] == 128 + signal.SIGKILL, trial
    steps = told["steps"]
    assert [step["index"] for step in steps] == list(range(1, len(steps) + 1)), trial
    library = Library(bench.home)
    with library.open(library.find(trial.name)) as reader:
        kept = reader.recording().steps
        for number, digest, size in trial.notes:
            assert steps[number]["ending"] == "complete", (trial, steps[number])
            assert steps[number]["response_size"] == size, (trial, steps[number])
            response = kept[number].response
            assert response is not None
            assert hashlib.sha256(reader.blob(response.body)).hexdigest() == digest, (trial, steps[number])


def replay_trial(bench: Lab, trial: Trial) -> None:
    """The agent again, as far as it had come: it is given the same answers, and nobody is asked."""
    notes = bench.folder / f"again-{trial.number}"
    command = [*agent_command("steady_caller.py"), str(notes), str(len(trial.notes))]
    result = bench.replay(trial.name, "--", *command)
    assert _read_notes(notes) == trial.notes, (trial, result.talk)
    assert f"{len(trial.notes)}/" in result.talk, result.talk


@pytest.mark.timeout(1200)
def test_no_answer_that_reached_the_agent_is_lost_by_kill_9(lab: MakeLab) -> None:
    bench = lab(play)
    with ThreadPoolExecutor(2) as pool:
        trials = list(pool.map(lambda number: run_trial(bench, number), range(TRIALS)))
        assert sum(len(trial.notes) for trial in trials) > TRIALS, "the agents hardly came to speak"
        list(pool.map(lambda trial: check_trial(bench, trial), trials))
        told = [trial for trial in trials if trial.notes]
        chosen = random.Random(TRIALS).sample(told, min(REAL_REPLAYS, len(told)))
        list(pool.map(lambda trial: replay_trial(bench, trial), chosen))
    verified = bench.rewind("verify", timeout=300)
    assert verified.code == 0, verified.text + verified.talk
    listed = json.loads(bench.rewind("list", "--json", "--limit", "100000").ok().stdout)
    names = {row["name"] for row in listed["sessions"]}
    assert names >= {trial.name for trial in told}


def _wait_for_lines(notes: Path, wanted: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENCE
    while _line_count(notes) < wanted:
        assert time.monotonic() < deadline, f"the agent never noted {wanted} lines"
        assert process.poll() is None, f"rewind ended by itself with {process.returncode}"
        time.sleep(0.002)


def _line_count(notes: Path) -> int:
    return notes.read_bytes().count(b"\n") if notes.exists() else 0


def _agent_pid(notes: Path) -> int | None:
    return int(notes.read_bytes().split(b"\n")[0]) if _line_count(notes) else None


def _read_notes(notes: Path) -> tuple[tuple[int, str, int], ...]:
    lines = notes.read_text().splitlines()[1:] if notes.exists() else []
    return tuple((int(number), digest, int(size)) for number, digest, size in map(str.split, lines))


def _alive(pid: int) -> bool:
    """Neither gone nor a zombie that nobody has collected."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _wait_until_dead(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while _alive(pid):
        assert time.monotonic() < deadline, "the agent outlived its gateway"
        time.sleep(0.005)
