"""Nothing is lost, hidden or blamed: shared cassettes, tests that fail late or skip, fixtures wider than a test."""

from collections.abc import Callable

import pytest

from support.lab import Lab
from support.plugin_project import Project, outcomes, provider, rewind_line
from support.script import Playbook

pytestmark = pytest.mark.e2e

SHARED = """
    import os

    import pytest
    from agent import ask

    pytestmark = pytest.mark.rewind("tests/cassettes/team.rw")

    def test_a():
        assert os.environ.get("QUIET") or ask("a" + os.environ.get("CHANGED", ""))

    def test_b():
        assert ask("b")

    def test_c():
        assert ask("c") and not os.environ.get("BAD")
"""
FRAGILE = """
    import os

    import pytest
    from agent import ask

    @pytest.mark.rewind
    def test_subtests(subtests):
        with subtests.test("x"):
            assert not ask("one")

    @pytest.fixture
    def fails_at_the_end():
        yield
        raise AssertionError("teardown")

    @pytest.mark.rewind
    def test_teardown(fails_at_the_end):
        assert ask("two")

    @pytest.mark.rewind
    def test_skips():
        try:
            ask("three" + os.environ.get("CHANGED", ""))
        except OSError:
            pytest.skip("no model")

    @pytest.fixture
    def model():
        try:
            return ask("four" + os.environ.get("CHANGED", ""))
        except OSError:
            pytest.skip("no model")

    @pytest.mark.rewind
    def test_fixture_skips(model):
        assert model

    @pytest.fixture(scope="class")
    def wide():
        return ask("of all tests")

    class TestWide:
        @pytest.mark.rewind
        def test_wide(self, wide):
            assert wide
"""


def test_recording_one_test_anew_keeps_the_steps_of_those_that_share_its_cassette(
    lab: Callable[[Playbook], Lab],
) -> None:
    project = Project.create(lab(provider))
    project.write("tests/test_shared.py", SHARED)
    assert project.pytest("-q").code == 0
    calls = project.lab.provider
    changed = {"CHANGED": "x"}

    one = project.pytest("-q", "tests/test_shared.py::test_a", "--rewind=rewrite", env=changed)
    assert one.code == 0, one.text
    assert (
        "tests/cassettes/team.rw: 3 older steps are kept, because other tests may need them; to drop them, delete it"
        in one.text
    )
    after = project.pytest("-q", "--rewind=none", env=changed)
    assert outcomes(after) == {"passed": 3}, after.text
    assert " · 1 unused step" in rewind_line(after), "the old question of the test that was recorded anew"

    # Of part of its tests nobody can say what is left over; of all of them one can.
    part = project.pytest("-q", "--rewind=none", "tests/test_shared.py::test_a", "--rewind-strict", env=changed)
    assert (part.code, "unused" in part.text) == (0, False), part.text
    assert project.pytest("-q", "--rewind=none", "--rewind-strict", env=changed).code == 1

    # Everything goes live, though old steps are kept; a test that fails, or asks nothing any more, takes nothing away.
    before = calls.calls
    anew = project.pytest("-q", "--rewind=all", env={"BAD": "1"})
    assert outcomes(anew) == {"passed": 2, "failed": 1}, anew.text
    assert calls.calls == before + 3
    quiet = project.pytest("-q", "tests/test_shared.py::test_a", "--rewind=rewrite", env={"QUIET": "1"})
    assert quiet.code == 0, quiet.text
    assert outcomes(project.pytest("-q", "--rewind=none")) == {"passed": 3}

    # What cannot be read cannot be kept: told before anybody is asked.
    project.write("tests/cassettes/team.rw", "<<<<<<< HEAD\n")
    before = calls.calls
    damaged = project.pytest("-q", "tests/test_shared.py::test_a", "--rewind=rewrite")
    assert outcomes(damaged) == {"error": 1}, damaged.text
    assert "delete it and record all tests that use it again" in damaged.text
    assert str(project.folder / "tests/cassettes") not in damaged.text
    assert calls.calls == before


def test_what_fails_late_is_not_written_and_what_was_missed_is_not_skipped(lab: Callable[[Playbook], Lab]) -> None:
    project = Project.create(lab(provider))
    project.write("tests/test_fragile.py", FRAGILE)
    recorded = project.pytest("-q")
    assert recorded.code == 1
    assert project.cassettes() == [
        "tests/cassettes/test_fragile/test_fixture_skips.rw",
        "tests/cassettes/test_fragile/test_skips.rw",
    ], recorded.text

    calls = project.lab.provider.calls
    missed = project.pytest("-q", "-k", "skips or wide", "--rewind=none", env={"CHANGED": "!"})
    assert outcomes(missed) == {"failed": 1, "error": 2}, missed.text
    assert "1 call of this test could not be answered from tests/cassettes/test_fragile/test_skips.rw" in missed.text
    assert "During handling" not in missed.text.partition("= FAILURES =")[2]
    assert "calls of fixtures with a wider scope than one test are never on a cassette" in missed.text
    assert project.lab.provider.calls == calls


def test_no_cassette_is_called_unused_where_tests_were_not_collected(lab: Callable[[Playbook], Lab]) -> None:
    project = Project.create(lab(provider))
    for name in ("x", "y"):
        text = f"import pytest\nfrom agent import ask\n@pytest.mark.rewind('tests/cassettes/{name}.rw')\n"
        project.write(f"tests/{name}/test_{name}.py", text + f"def test_{name}():\n    ask('{name}')\n")
    assert project.pytest("-q").code == 0
    elsewhere = project.pytest("-q", "--rewind=none", cwd=project.folder / "tests/x")
    assert outcomes(elsewhere) == {"passed": 1}, elsewhere.text
    assert "no test uses it" not in elsewhere.text
    for text in ("import pytest\npytest.importorskip('not_there')\n", "import not_there\n"):
        project.write("tests/y/test_y.py", text)
        assert "no test uses it" not in project.pytest("-q", "--rewind=none", "--continue-on-collection-errors").text
    (project.folder / "tests/y/test_y.py").unlink()
    assert "tests/cassettes/y.rw: no test uses it" in project.pytest("-q", "--rewind=none").text


WIDE = """
    import pytest
    from agent import ask, ask_and_swallow

    @pytest.fixture(scope="{scope}")
    def facts():
        return {call}("What is known?")

    @pytest.mark.rewind
    def test_it(facts):
        assert ask("hello")
"""


@pytest.mark.parametrize("scope", ["module", "session"])
@pytest.mark.parametrize("mode", ["once", "none"])
def test_a_wider_fixture_that_asks_a_model_says_why_it_fails(
    lab: Callable[[Playbook], Lab], scope: str, mode: str
) -> None:
    """Where the fixture goes live, the SDK says no more than that there is no connection."""
    project = Project.create(lab(provider))
    project.write("tests/test_wide.py", WIDE.format(scope=scope, call="ask"))
    done = project.pytest(f"--rewind={mode}")
    assert outcomes(done) == {"error": 1}, done.text
    asked = "tried to connect to https://api.openai.com" if mode == "none" else "asked api.openai.com"
    assert f"a fixture that tests/test_wide.py::test_it shares with other tests {asked}" in done.text
    assert "never on a cassette" in done.text
    assert "give the fixture function scope" in done.text


def test_a_wider_fixture_that_asks_a_model_is_named_though_its_test_passes(lab: Callable[[Playbook], Lab]) -> None:
    project = Project.create(lab(provider))
    project.write("tests/test_wide.py", WIDE.format(scope="module", call="ask_and_swallow"))
    done = project.pytest()
    assert outcomes(done) == {"passed": 1}, done.text
    assert "shares with other tests asked api.openai.com; calls of fixtures" in done.text
    again = project.pytest("--rewind=none")
    assert outcomes(again) == {"passed": 1}, again.text
    assert "shares with other tests tried to connect to https://api.openai.com" in again.text
