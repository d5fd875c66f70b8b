"""Sessions of real runs are deleted to the last byte, by name and by the limits of a store; their forks live on."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.answers import openai_chat
from support.canaries import find_canaries
from support.cli import PATIENCE, REWIND, plain_environment
from support.effort import effort
from support.forks import fork, forked, numbered, talks
from support.lab import Lab
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]
ASKED, ANSWERED = "the heron walks at 0123456789", "and the reed sings at 9876543210"
CANARIES = {"asked": ASKED, "answered": ANSWERED}


def telling(request: Request) -> Answer:
    """What is asked, at length, with a canary where a canary was asked for."""
    said = request.json()["messages"][-1]["content"]
    return openai_chat(request, f"{said} {ANSWERED if ASKED in said else 'word ' * 200}")


def sessions(bench: Lab) -> list[str]:
    return [one["id"] for one in json.loads(bench.rewind("list", "--json").ok().stdout)["sessions"]]


def recorded_and_indexed(bench: Lab, env: dict[str, str] | None = None) -> str:
    """A session that is recorded, replayed, searched and counted: wherever its words can be, they are."""
    session = bench.record(talks(f"hello {ASKED}", "again"), options=["--name", ASKED], env=env).ok().session
    assert bench.rewind("search", ASKED).ok().text.count(session)
    assert bench.rewind("list", "--name", ASKED).ok().text.count(session)
    bench.rewind("stats").ok()
    assert {path.name for path in bench.home.glob("*.duckdb")} == {"search.duckdb", "catalog.duckdb"}
    assert find_canaries(bench.home, CANARIES)
    return session


def test_a_deleted_session_is_found_nowhere(lab: MakeLab) -> None:
    bench = lab(telling)
    other = bench.record(talks("something else")).ok().session
    session = recorded_and_indexed(bench)
    bench.replay(session).ok()
    removed = bench.rewind("rm", session).ok()
    assert removed.text.startswith(f"Deleted {session}")
    assert find_canaries(bench.home, CANARIES) == []
    assert sessions(bench) == [other]
    assert f"Nothing recorded contains '{ASKED}'; 1 session searched." in bench.rewind("search", ASKED).ok().talk
    assert bench.rewind("search", "something else").ok().text.count(other)
    assert bench.rewind("inspect", session).code == 3
    assert bench.replay(other).ok()


def test_forks_of_a_deleted_session_replay(lab: MakeLab) -> None:
    bench = lab(numbered)
    base = bench.record(talks("a", "b", "c")).ok().session
    once = forked(fork(bench, f"{base}:2", "--set", "temperature=0.1").ok())
    twice = forked(fork(bench, f"{once}:3", "--set", "temperature=0.9").ok())
    removed = bench.rewind("rm", base, once).ok()
    assert f"1 fork of {once} stays, with a copy of the steps shared with it: {twice}" in removed.text
    assert "gone: it is not in the store any more" in bench.rewind("list", "--tree").ok().text
    assert "3/3 steps replayed" in bench.replay(twice).ok().talk


def test_what_is_recorded_right_now_cannot_be_deleted(lab: MakeLab) -> None:
    bench = lab(telling)
    with bench.recording("--name", "live"):
        (session,) = sessions(bench)
        refused = bench.rewind("rm", "live")
        assert refused.code == 6
        assert f"rewind: {session} is being recorded right now. Nothing was deleted." in refused.talk
        assert "1 running" in bench.rewind("prune", "--older-than", "0s", "--max-size", "1B").ok().talk
    assert sessions(bench) == [session]
    bench.rewind("rm", "live").ok()
    assert sessions(bench) == []


def test_a_replay_goes_on_when_its_session_is_deleted(lab: MakeLab, tmp_path: Path) -> None:
    """The agent of the replay waits before its second question until the session is gone."""
    bench = lab(numbered)
    waits = tmp_path / "waits"
    code = talks()[2].replace(
        "for text in sys.argv[1:]:",
        f"for text in sys.argv[1:]:\n    while len(messages) > 2 and os.path.exists({str(waits)!r}): "
        "__import__('time').sleep(0.01)",
    )
    session = bench.record([sys.executable, "-c", code, "a", "b"]).ok().session
    waits.touch()
    bench.provider.go_away()
    environment = plain_environment(bench.home)
    replay = subprocess.Popen([*REWIND, "replay", session], env=environment, stdout=-1, stderr=-1, cwd=bench.folder)
    assert replay.stdout is not None
    assert b"answer 1" in replay.stdout.readline()
    bench.rewind("rm", session).ok()
    waits.unlink()
    out, talk = replay.communicate(timeout=PATIENCE)
    assert b"answer 2" in out
    assert b"2/2 steps replayed" in talk, talk
    assert replay.returncode == 0


def test_killed_while_deleting_and_the_next_command_finishes(lab: MakeLab) -> None:
    """Killed at some moment: the session is whole, or after the next command no byte of it is left."""
    bench = lab(telling)
    chance = random.Random(7)
    for _ in range(effort(1, 25)):
        session = recorded_and_indexed(bench)
        removing = subprocess.Popen([*REWIND, "rm", session], env=plain_environment(bench.home), stdout=-1, stderr=-1)
        time.sleep(chance.uniform(0.05, 1.0))
        removing.send_signal(signal.SIGKILL)
        removing.communicate(timeout=PATIENCE)
        shown = bench.rewind("inspect", session)
        if shown.code == 0:
            bench.rewind("verify", session).ok()
            bench.rewind("rm", session).ok()
        assert find_canaries(bench.home, CANARIES) == []
        assert sessions(bench) == []


def test_a_run_holds_the_limits_of_its_store_and_says_so(lab: MakeLab) -> None:
    bench = lab(telling)
    pinned = bench.record(talks("to be kept")).ok().session
    bench.rewind("pin", pinned).ok()
    recorded_and_indexed(bench)
    limit = {"REWIND_MAX_SIZE": "1K"}
    ran = bench.record([sys.executable, "-c", "raise SystemExit(7)"], env=limit)
    assert ran.code == 7, "the agent's own"
    assert ran.talk.count("1 old session deleted, ") == 1
    assert "still " in ran.talk
    assert "1 pinned" in ran.talk
    assert find_canaries(bench.home, CANARIES) == []
    assert sessions(bench) == [ran.session, pinned]
    quiet = bench.record(["true"], options=["-q"], env=limit)
    assert "deleted" not in quiet.talk
    assert len(sessions(bench)) == 2


def test_limits_that_cannot_be_held_do_not_fail_the_run(lab: MakeLab) -> None:
    bench = lab(telling)
    bench.record(["true"])
    (bench.home / ".deleted").write_text("in the way")
    ran = bench.record(["true"], env={"REWIND_KEEP_DAYS": "0.0000001"}).ok()
    assert "Not everything could be deleted" in ran.talk
    wrong = bench.record(["true"], env={"REWIND_KEEP_DAYS": "1", "REWIND_KEEP": "fialed"})
    assert (wrong.code, "'fialed'" in wrong.talk) == (2, True)


SDK = """
import logging, rewind
logging.basicConfig(level=logging.INFO, format="%(message)s")
with rewind.session("server", tags={"n": "1"}) as run:
    rewind.note("{text}")
print(run.id)
"""


def test_sessions_of_a_program_are_limited_and_deleted_too(tmp_path: Path) -> None:
    home = tmp_path / "store"

    def program(text: str, **limits: str) -> tuple[str, str]:
        env = plain_environment(home, **limits)
        ran = subprocess.run([sys.executable, "-c", SDK.replace("{text}", text)], env=env, capture_output=True)
        assert ran.returncode == 0, ran.stderr.decode()
        return ran.stdout.decode().strip(), ran.stderr.decode()

    def rewind(*words: str) -> str:
        ran = subprocess.run([*REWIND, *words], env=plain_environment(home), capture_output=True, check=True)
        return ran.stdout.decode()

    first, _ = program(ASKED)
    assert first in rewind("search", ASKED)
    second, talk = program("another", REWIND_KEEP_DAYS="0.0000001")
    assert "1 old session deleted, " in talk
    folders = os.listdir(home / "sessions")
    assert [name[-8:] for name in folders] == [second]
    rewind("list")  # has the time that a program has not: writes the search index anew
    assert find_canaries(home, {"asked": ASKED}) == []
    rewind("rm", "server")
    assert os.listdir(home / "sessions") == []
