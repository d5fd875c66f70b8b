"""A changed agent turns its tests red: with the words that changed, the command that helps, and the run for bisect."""

import shlex
import sys
from collections.abc import Callable

import pytest

from support.cli import run_rewind
from support.lab import Lab
from support.plugin_project import AGENT, Project, outcomes, provider, rewind_line
from support.script import Playbook
from support.terminal import Seat

pytestmark = pytest.mark.e2e

TESTS = """
    import pytest
    from agent import ask, ask_and_swallow

    @pytest.mark.rewind
    @pytest.mark.parametrize("question", ["one", "two"])
    def test_swallows(question):
        assert ask_and_swallow(question)

    @pytest.mark.rewind
    def test_fails_itself():
        assert ask_and_swallow("three") == "about three"

    @pytest.mark.rewind
    def test_asks_twice():
        assert ask("four", system="I never change.") == "about four"
"""


@pytest.fixture
def project(lab: Callable[[Playbook], Lab]) -> Project:
    project = Project.create(lab(provider))
    project.write("tests/test_it.py", TESTS)
    recorded = project.pytest("-q")
    assert recorded.code == 0, recorded.text
    assert rewind_line(recorded).endswith(" · 4 cassettes written")
    return project


def test_a_changed_prompt_fails_with_the_word_diff_and_is_reviewed(project: Project) -> None:
    project.write("agent.py", AGENT.replace("You are terse.", "You are kind."))
    before = {name: (project.folder / name).read_bytes() for name in project.cassettes()}
    calls = project.lab.provider.calls

    red = project.pytest("-q", env={"CI": "1"})
    assert red.code == 1
    assert outcomes(red) == {"failed": 3, "passed": 1}
    assert project.lab.provider.calls == calls, "a test went live"
    text = red.text
    assert (
        "rewind: 1 call of this test could not be answered from tests/cassettes/test_it/test_swallows--question=one.rw"
        in text
    )
    assert "messages[0].content" in text
    assert "terse" in text and "kind" in text
    assert 'record it again:  pytest "tests/test_it.py::test_swallows[one]" --rewind=rewrite' in text
    # The test that failed by itself keeps its own error, and ours stands below it.
    assert "assert 'I do not know.' == 'about three'" in text
    assert "record it again:  pytest tests/test_it.py::test_fails_itself --rewind=rewrite" in text
    assert rewind_line(red) == "rewind: 1 replayed, 0 live, saved <$0.0001 · 3 tests with a stale cassette"

    # The failing run can be compared with the cassette, by the very words that were printed.
    assert "first divergence: step 1\ncause: system prompt changed" in text
    bisect = next(line for line in text.splitlines() if line.startswith("rewind bisect") and "fails_itself" in line)
    compared = run_rewind(shlex.split(bisect)[1:], project.lab.home, cwd=project.folder)
    assert compared.code == 1, compared.talk
    assert "system prompt changed" in compared.text

    # Not a terminal: nobody is asked, nothing hangs, nothing is changed.
    listed = project.pytest("-q", "--rewind=review")
    assert listed.code == 1
    assert listed.text.splitlines()[-4:] == [
        "rewind: 3 stale cassettes; to record again:",
        "  pytest tests/test_it.py::test_fails_itself --rewind=rewrite",
        '  pytest "tests/test_it.py::test_swallows[one]" --rewind=rewrite',
        '  pytest "tests/test_it.py::test_swallows[two]" --rewind=rewrite',
    ]
    assert {name: (project.folder / name).read_bytes() for name in project.cassettes()} == before
    assert project.lab.provider.calls == calls

    # A terminal: the first stays as it is, all others are recorded anew.
    words = ["-q", "--rewind=review", *project.words]
    python = (sys.executable, "-m", "pytest")
    with Seat(words, project.lab.home, project.environment(), cwd=project.folder, program=python) as seat:
        shown = seat.sees("re-record? [y/N/a/q]")
        assert "terse" in shown and "kind" in shown
        seat.type("n\n")
        seat.sees("re-record? [y/N/a/q]")
        seat.type("a\n")
        seat.sees("recording 2 tests again")
        code, _ = seat.ends()
        assert code == 1, "one that failed was not recorded anew"
    assert project.lab.provider.calls == calls + 2
    after = {name: (project.folder / name).read_bytes() for name in project.cassettes()}
    changed = [name for name in before if after[name] != before[name]]
    assert [name.rpartition("/")[2] for name in changed] == [
        "test_swallows--question=one.rw",
        "test_swallows--question=two.rw",
    ]

    kept = sorted(file.name for file in (project.folder / ".rewind").rglob("*.rw"))
    assert kept == ["test_fails_itself.rw"], "those that pass again are forgotten"
    assert (project.folder / ".rewind/last-failed/.gitignore").read_text() == "*\n"


def test_new_adds_what_is_missing_and_asks_nothing_twice(project: Project) -> None:
    before = project.folder / "tests/cassettes/test_it/test_asks_twice.rw"
    old = before.read_text()
    project.write(
        "tests/test_it.py",
        TESTS + '        assert ask("five") == "about five"\n        assert ask("five") == "about five"\n',
    )
    calls = project.lab.provider.calls
    missed = project.pytest("-q", "-k", "asks_twice")
    assert missed.code == 1
    assert project.lab.provider.calls == calls

    added = project.pytest("-q", "-k", "asks_twice", "--rewind=new")
    assert added.code == 0, added.text
    assert project.lab.provider.calls == calls + 2
    assert rewind_line(added).startswith("rewind: 1 replayed, 2 live (spent ")
    again = project.offline("-q", "--rewind=new")
    assert again.code == 0, again.text
    assert rewind_line(again).startswith("rewind: 6 replayed, 0 live, saved ")
    # What was there is still there, line for line, but for the lines that count.
    new = before.read_text().splitlines()
    gone = [line for line in old.splitlines() if line not in new]
    assert len(gone) <= 3, gone


def test_a_test_that_asks_nothing_of_its_cassette_is_not_green(project: Project) -> None:
    project.write(
        "agent.py",
        AGENT.replace("def ask_and_swallow(", "def _swallow(")
        + "\n\ndef ask_and_swallow(q):\n    return f'about {q}'\n",
    )
    red = project.pytest("-q", env={"CI": "1"})
    assert outcomes(red) == {"failed": 3, "passed": 1}, red.text
    assert (
        "1 step of tests/cassettes/test_it/test_fails_itself.rw was not played: 1; the test asked nothing" in red.text
    )
    # Without a cassette, nothing can be wrong with it.
    for name in project.cassettes():
        (project.folder / name).unlink()
    assert outcomes(project.pytest("-q", "-k", "not twice", env={"CI": "1"})) == {"passed": 3}
