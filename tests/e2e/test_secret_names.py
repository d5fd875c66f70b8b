"""A secret in what people and machines name: sessions, tags, folders, branches, tests. It reaches no file."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from rewind.store.library import Library
from support.canaries import find_canaries
from support.forks import fork, forked, numbered, talks
from support.lab import Lab
from support.plugin_project import Project, outcomes, provider
from support.script import Playbook, routes
from support.sdk_bench import MakeBench

pytestmark = pytest.mark.e2e

MakeLab = Callable[[Playbook], Lab]
SECRET = "q7Zp2vX9mK4tR8sW1nB6"
HIDDEN = "REDACTED".ljust(len(SECRET), "x")
VARIABLES = {"DEPLOY_PAT": SECRET}


def inside(folder: Path) -> list[str]:
    return ["sh", "-c", 'cd "$0" && exec "$@"', str(folder)]


def repository(folder: Path) -> Path:
    """A folder whose name, branch, lock file and remote hold the secret."""
    folder.mkdir()
    (folder / f"requirements-{SECRET}.txt").write_text("openai==2.0\n")
    for words in (
        ("init", "-q", "-b", f"fix-{SECRET}"),
        ("remote", "add", "origin", f"https://ada:{SECRET}@example.com/agent.git"),
        ("add", "."),
        ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-q", "-m", "all"),
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def test_names_tags_folder_and_provenance_of_recordings_and_what_comes_of_them(lab: MakeLab) -> None:
    bench = lab(numbered)
    folder = repository(bench.folder / f"work-{SECRET}")
    agent = talks("a", "b")
    recorded = bench.record(
        agent,
        options=["--name", f"run {SECRET}", "--tag", f"ticket={SECRET}", "--tag", "origin=https://ada:pw1@host/"],
        env=VARIABLES | {"OPENAI_ORG_BASE_URL": f"https://ada:{SECRET}@example.com/v1"},
        prefix=inside(folder),
    ).ok()
    assert "secrets removed" in recorded.talk
    shown = json.loads(bench.rewind("inspect", recorded.session, "--json").ok().stdout)["session"]
    assert shown["name"] == f"run {HIDDEN}"
    assert shown["tags"] == {"ticket": HIDDEN, "origin": "https://ada:REDACTED@host/"}
    assert shown["cwd"].endswith(f"work-{HIDDEN}")
    kept = bench.rewind(
        "replay",
        recorded.session,
        "--on-miss",
        "live",
        *bench.upstream,
        "--",
        *agent,
        env=VARIABLES,
        prefix=inside(folder),
    )
    assert "2/2" in kept.talk, kept.talk
    edited = ("--set", f"system=say {SECRET}", "--name", f"fork {SECRET}")
    made = fork(bench, f"{recorded.session}:2", *edited, "--", *agent, env=VARIABLES, prefix=inside(folder)).ok()
    assert SECRET not in made.talk
    bench.rewind("export", forked(made), "-o", "fork.rw").ok()
    elsewhere = Lab(folder=bench.folder / "elsewhere", trust=bench.trust, provider=bench.provider)
    elsewhere.folder.mkdir()
    elsewhere.rewind("import", bench.folder / "fork.rw", "--name", f"copy {SECRET}", env=VARIABLES).ok()
    har = bench.folder / "one.har"
    har.write_bytes(bench.rewind("export", recorded.session, "--har", "-o", "-").ok().stdout)
    elsewhere.rewind("import", har, "--name", f"har {SECRET}", env=VARIABLES).ok()
    trace = bench.folder / "one.jsonl"
    trace.write_text('{"kind":"tool_call","ts":1.0,"run":"r","name":"x","arguments":{}}\n')
    elsewhere.rewind("import", trace, "--name", f"trace {SECRET}", env=VARIABLES).ok()
    names = {session.start.name for session in Library(elsewhere.home).sessions()}
    assert names == {f"copy {HIDDEN}", f"har {HIDDEN}", f"trace {HIDDEN}"}
    for store in (bench.home, elsewhere.home):
        assert find_canaries(store, {"DEPLOY_PAT": SECRET}) == []


@pytest.mark.usefixtures("plain_variables")
def test_a_session_of_this_process_is_found_again_by_its_name(
    bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_PAT", SECRET)
    one = bench(routes({"/v1/chat/completions": numbered}))

    def ask() -> str:
        body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}
        return httpx.post("https://api.openai.com/v1/chat/completions", json=body).text

    with one.session(f"night {SECRET}", tags={"by": SECRET}):
        said = ask()
    with one.without_provider(), one.session(f"night {SECRET}", mode="replay"):
        assert ask() == said
    (session,) = Library(one.home).sessions()
    assert (session.start.name, session.start.tags) == (f"night {HIDDEN}", {"by": HIDDEN})
    assert find_canaries(one.home, {"DEPLOY_PAT": SECRET}) == []


def test_the_id_of_a_test_may_hold_one(lab: MakeLab) -> None:
    project = Project.create(lab(provider))
    project.write(
        "tests/test_ids.py",
        f"""
        import pytest
        from agent import ask

        @pytest.mark.parametrize("key", ["{SECRET}"])
        @pytest.mark.rewind("one.rw")
        def test_passes(key):
            assert ask("one") == "about one"

        @pytest.mark.parametrize("key", ["{SECRET}"])
        @pytest.mark.rewind("two.rw")
        def test_fails(key):
            assert ask("two") == "no"
        """,
    )
    assert outcomes(project.pytest("--rewind=once", env=VARIABLES)) == {"passed": 1, "failed": 1}
    (cassette,) = project.cassettes()
    kept = [project.folder / cassette, *(project.folder / ".rewind").rglob("*.rw")]
    assert len(kept) == 2
    for file in kept:
        assert SECRET not in file.read_text()
        assert f"[{HIDDEN}]" in file.read_text()
