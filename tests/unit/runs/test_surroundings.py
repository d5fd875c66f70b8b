"""What a run stands on is found out beside it: by git and from lock files, within its time, leaving nothing behind."""

import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from queue import SimpleQueue

import pytest

from rewind.model.session import Surroundings
from rewind.redaction.redactor import Redactor
from rewind.redaction.secrets import Secrets
from rewind.runs.surroundings import LARGEST_CHANGES, LARGEST_LOCK, SurroundingsLookup
from support.repository import Repository, hanging_git

pytestmark = pytest.mark.process

PATIENCE = 60.0
LONG = 3600.0
"""Longer than any test: what ends before has not waited."""
SECRET = "sk-live-0123456789abcdefghij"


def look(folder: Path, environ: Mapping[str, str] | None = None) -> Surroundings:
    """What is told of that folder, given all the time it needs."""
    told: SimpleQueue[Surroundings] = SimpleQueue()
    # A lock file of the test's own: there is something to tell whatever git says.
    (folder / "go.sum").write_text("")
    redactor = Redactor(Secrets.from_environment({"OPENAI_API_KEY": SECRET}))
    looking = SurroundingsLookup(str(folder), environ or os.environ, redactor, told.put, seconds=LONG)
    looking.start()
    found = told.get(timeout=PATIENCE)
    looking.stop()
    assert told.empty(), "it is told once"
    return found


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository.create(tmp_path / "agent")


def test_a_clean_checkout_is_a_commit_on_a_branch(repository: Repository) -> None:
    found = look(repository.folder)
    assert (found.commit, found.branch) == (repository.head, "main")
    assert (found.dirty, found.changes) == (False, None)


def test_a_folder_inside_the_repository_stands_on_all_of_it(repository: Repository) -> None:
    inside = repository.folder / "tools" / "shop"
    inside.mkdir(parents=True)
    repository.write({"agent.py": "print('changed')\n"})
    found = look(inside)
    assert found.commit == repository.head
    assert found.dirty is True
    assert found.changes == look(repository.folder).changes


def test_changes_have_a_digest_that_tells_them_apart(repository: Repository) -> None:
    repository.write({"agent.py": "print('one')\n"})
    one = look(repository.folder)
    again = look(repository.folder)
    repository.write({"agent.py": "print('two')\n"})
    two = look(repository.folder)
    repository.git("add", "agent.py")
    staged = look(repository.folder)
    (repository.folder / "agent.py").unlink()
    gone = look(repository.folder)
    assert one.dirty is two.dirty is gone.dirty is True
    assert one.changes is not None
    assert one.changes.startswith("sc1:")
    assert one.changes == again.changes
    assert staged.changes == two.changes, "what is staged is changed all the same"
    assert len({one.changes, two.changes, gone.changes}) == 3


def test_a_file_that_becomes_a_link_or_can_be_run_is_changed(repository: Repository) -> None:
    agent = repository.folder / "agent.py"
    agent.chmod(0o755)
    runs = look(repository.folder)
    agent.unlink()
    agent.symlink_to("elsewhere.py")
    link = look(repository.folder)
    assert runs.dirty is link.dirty is True
    assert None not in (runs.changes, link.changes)
    assert runs.changes != link.changes


def test_files_that_git_does_not_keep_do_not_make_a_run_dirty(repository: Repository) -> None:
    repository.write({"agent.log": "what the agent leaves behind"})
    assert look(repository.folder).dirty is False


def test_more_changes_than_are_read_are_still_changes(repository: Repository) -> None:
    os.truncate(repository.folder / "agent.py", LARGEST_CHANGES + 1)
    found = look(repository.folder)
    assert (found.dirty, found.changes) == (True, None)


def test_a_changed_submodule_has_no_digest_for_its_inside_is_not_read(repository: Repository, tmp_path: Path) -> None:
    part = Repository.create(tmp_path / "part")
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(part.folder), "part")
    repository.git("commit", "--quiet", "--message", "a submodule")
    assert look(repository.folder).dirty is False
    (repository.folder / "part" / "agent.py").write_text("print('changed')\n")
    found = look(repository.folder)
    assert (found.dirty, found.changes) == (True, None)


def test_a_conflict_is_a_change(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "other")
    repository.commit({"agent.py": "print('theirs')\n"})
    repository.git("checkout", "--quiet", "main")
    repository.commit({"agent.py": "print('ours')\n"})
    with pytest.raises(Exception, match="merge"):
        repository.git("merge", "--quiet", "other")
    found = look(repository.folder)
    assert found.dirty is True
    assert found.changes is not None


def test_a_commit_without_a_branch_has_none(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "--detach")
    found = look(repository.folder)
    assert (found.commit, found.branch) == (repository.head, None)


def test_a_secret_in_the_name_of_a_branch_is_not_told(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", f"try/{SECRET}")
    branch = look(repository.folder).branch
    assert branch is not None
    assert branch.startswith("try/")
    assert SECRET not in branch


def test_looking_writes_nothing(repository: Repository) -> None:
    agent, index = repository.folder / "agent.py", repository.folder / ".git" / "index"
    os.utime(agent, (1_000_000_000, 1_000_000_000))  # the same content, but git has to look at it to know
    before = (index.read_bytes(), index.stat().st_mtime_ns, index.stat().st_ino)
    assert look(repository.folder).dirty is False
    assert (index.read_bytes(), index.stat().st_mtime_ns, index.stat().st_ino) == before
    assert not list((repository.folder / ".git").glob("*.lock"))


def test_where_git_has_nothing_to_say_nothing_is_said(tmp_path: Path) -> None:
    environ = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    plain, without_a_commit = tmp_path / "plain", tmp_path / "without a commit"
    for folder in (plain, without_a_commit):
        folder.mkdir()
    Repository(without_a_commit).git("init", "--quiet")
    for folder in (plain, without_a_commit):
        found = look(folder, environ)
        assert found == Surroundings(locks=found.locks)


def test_without_git_the_rest_is_told(repository: Repository) -> None:
    found = look(repository.folder, {"PATH": str(repository.folder)})
    assert found == Surroundings(locks=found.locks)
    assert list(found.locks) == ["go.sum"]


def test_lock_files_are_told_by_their_digest(tmp_path: Path) -> None:
    contents = {name: f"of {name}".encode() for name in ("uv.lock", "requirements-dev.txt", "yarn.lock")}
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "notes.txt").write_text("none of our business")
    (tmp_path / "poetry.lock").mkdir()
    os.mkfifo(tmp_path / "Cargo.lock")
    (tmp_path / "package-lock.json").symlink_to("uv.lock")
    (tmp_path / "Pipfile.lock").touch()
    os.truncate(tmp_path / "Pipfile.lock", LARGEST_LOCK + 1)
    locks = look(tmp_path).locks
    assert list(locks) == ["go.sum", "package-lock.json", "requirements-dev.txt", "uv.lock", "yarn.lock"]
    for name, data in contents.items():
        assert locks[name] == hashlib.sha256(data).hexdigest()[:16]


def test_a_folder_that_is_gone_says_nothing(tmp_path: Path) -> None:
    told: SimpleQueue[Surroundings] = SimpleQueue()
    looking = SurroundingsLookup(str(tmp_path / "gone"), os.environ, Redactor(Secrets()), told.put)
    looking.start()
    looking._thread.join(PATIENCE)
    looking.stop()
    assert told.empty()


def test_a_git_that_hangs_is_ended_with_the_run(tmp_path: Path) -> None:
    told: SimpleQueue[Surroundings] = SimpleQueue()
    path, pids = hanging_git(tmp_path / "bin")
    (tmp_path / "uv.lock").write_text("version = 1\n")
    looking = SurroundingsLookup(str(tmp_path), {"PATH": str(path)}, Redactor(Secrets()), told.put, seconds=LONG)
    looking.start()
    left_behind = _wait_for_pids(pids)
    looking.stop()  # would take an hour, were it not killed
    assert list(told.get_nowait().locks) == ["uv.lock"]
    assert told.empty()
    _wait_until_gone(left_behind)


def test_a_git_that_takes_too_long_is_ended_before(tmp_path: Path) -> None:
    told: SimpleQueue[Surroundings] = SimpleQueue()
    path, pids = hanging_git(tmp_path / "bin")
    (tmp_path / "uv.lock").write_text("version = 1\n")
    looking = SurroundingsLookup(str(tmp_path), {"PATH": str(path)}, Redactor(Secrets()), told.put, seconds=1.0)
    looking.start()
    assert list(told.get(timeout=PATIENCE).locks) == ["uv.lock"]
    looking.stop()
    assert told.empty()
    if pids.exists():
        _wait_until_gone(_wait_for_pids(pids))


def test_nothing_is_told_once_the_run_is_over(repository: Repository) -> None:
    told: SimpleQueue[Surroundings] = SimpleQueue()
    looking = SurroundingsLookup(str(repository.folder), os.environ, Redactor(Secrets()), told.put)
    looking.stop()
    looking.start()
    looking._thread.join(PATIENCE)
    assert told.empty()


def _wait_for_pids(file: Path) -> list[int]:
    deadline = time.monotonic() + PATIENCE
    while not file.exists():
        assert time.monotonic() < deadline, "git was never asked"
        time.sleep(0.005)
    return [int(pid) for pid in file.read_text().split()]


def _wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + PATIENCE
    for pid in pids:
        while _alive(pid):
            assert time.monotonic() < deadline, f"{pid} was left behind"
            time.sleep(0.005)


def _alive(pid: int) -> bool:
    """Neither gone nor a zombie that nobody has collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
