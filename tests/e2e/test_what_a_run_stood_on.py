"""A recording says what its run stood on, and no run waits for that."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.cli import PATIENCE, Result, run_rewind
from support.repository import Repository, hanging_git

pytestmark = pytest.mark.e2e

AGENT = f"""
import os, sys, time
from pathlib import Path
(journal,) = Path(os.environ["REWIND_HOME"]).glob("sessions/*-" + os.environ["REWIND_SESSION"] + "/journal.jsonl")
deadline = time.monotonic() + {PATIENCE}
while b'"kind":"surroundings"' not in journal.read_bytes():
    assert time.monotonic() < deadline, "nothing was found out"
    time.sleep(0.005)
print("done")
"""
"""Ends once its own journal says what it stands on."""


def record(folder: Path, *words: str, **env: str) -> Result:
    command = words or (sys.executable, "-c", AGENT)
    return run_rewind(["record", "--", *command], store(folder), env, cwd=folder)


def store(folder: Path) -> Path:
    return folder.parent / "store"


def inspect(folder: Path, session: str = "last") -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(
        run_rewind(["inspect", session, "--json"], store(folder), cwd=folder).ok().stdout
    )
    return shown


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "agent")


def test_a_recording_names_its_commit_and_its_lock_files(repository: Repository) -> None:
    repository.write({"uv.lock": "version = 1\n"})
    recorded = record(repository.folder).ok()
    assert recorded.text == "done\n"
    told = inspect(repository.folder, recorded.session)["surroundings"]
    assert told == {
        "commit": repository.head,
        "branch": "main",
        "dirty": False,
        "changes": None,
        "locks": {"uv.lock": "dbab12665d98aef0"},
    }
    shown = run_rewind(["inspect", "last"], store(repository.folder), cwd=repository.folder).ok().text
    assert f"commit     {repository.head[:12]} on main\n" in shown
    assert "locks      uv.lock dbab1266\n" in shown
    assert run_rewind(["verify"], store(repository.folder), cwd=repository.folder).code == 0


def test_two_runs_on_uncommitted_changes_can_be_told_apart(repository: Repository) -> None:
    digests = []
    for text in ("print('one')\n", "print('two')\n", "print('two')\n"):
        repository.write({"agent.py": text})
        record(repository.folder).ok()
        told = inspect(repository.folder)["surroundings"]
        assert told["dirty"] is True
        digests.append(told["changes"])
    one, two, again = digests
    assert one != two == again


def test_outside_of_a_repository_only_lock_files_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "requirements.txt").write_text("openai==2.15.0\n")
    record(folder, GIT_CEILING_DIRECTORIES=str(tmp_path)).ok()
    told = inspect(folder)["surroundings"]
    assert (told["commit"], told["branch"], told["dirty"], told["changes"]) == (None, None, None, None)
    assert list(told["locks"]) == ["requirements.txt"]


def test_without_git_a_run_is_recorded_all_the_same(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    repository.write({"uv.lock": ""})
    record(repository.folder, PATH=str(tmp_path / "empty")).ok()
    told = inspect(repository.folder)["surroundings"]
    assert (told["commit"], list(told["locks"])) == (None, ["uv.lock"])


def test_a_run_with_nothing_to_tell_has_no_such_line(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    folder.mkdir()
    record(folder, sys.executable, "-c", "print('hi')", GIT_CEILING_DIRECTORIES=str(tmp_path)).ok()
    assert inspect(folder)["surroundings"] is None
    (journal,) = store(folder).glob("sessions/*/journal.jsonl")
    assert b'"kind":"surroundings"' not in journal.read_bytes()


def test_a_git_that_hangs_delays_nobody_and_does_not_stay(repository: Repository, tmp_path: Path) -> None:
    path, pids = hanging_git(tmp_path / "bin")
    repository.write({"uv.lock": ""})
    until_git_is_asked = (
        f"import time; from pathlib import Path\nwhile not Path({str(pids)!r}).exists(): time.sleep(0.005)"
    )
    record(repository.folder, sys.executable, "-c", until_git_is_asked, PATH=f"{path}{os.pathsep}{os.defpath}").ok()
    told = inspect(repository.folder)["surroundings"]
    assert (told["commit"], list(told["locks"])) == (None, ["uv.lock"])
    deadline = time.monotonic() + PATIENCE
    for pid in map(int, pids.read_text().split()):
        while Path(f"/proc/{pid}").exists() and "(zombie)" not in Path(f"/proc/{pid}/status").read_text():
            assert time.monotonic() < deadline, "git outlived the run"
            time.sleep(0.005)


def test_a_killed_recording_has_what_was_known(repository: Repository) -> None:
    killed = record(repository.folder, sys.executable, "-c", AGENT + "\nos.kill(os.getppid(), 9)\n")
    assert killed.code == -9
    told = inspect(repository.folder)
    assert told["session"]["status"] == "interrupted"
    assert told["surroundings"]["commit"] == repository.head


def test_a_secret_in_a_branch_is_found_nowhere_in_the_store(repository: Repository) -> None:
    secret = "sk-live-0123456789abcdefghij"
    repository.git("checkout", "--quiet", "-b", f"try-{secret}")
    record(repository.folder, OPENAI_API_KEY=secret).ok()
    told = inspect(repository.folder)["surroundings"]
    assert told["branch"].startswith("try-")
    for file in store(repository.folder).rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file
