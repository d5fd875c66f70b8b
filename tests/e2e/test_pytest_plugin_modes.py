"""What may be recorded when, and what happens to cassettes that fit nothing any more."""

from collections.abc import Callable

import pytest

from support.answers import openai_chat
from support.lab import Lab
from support.plugin_project import Project, outcomes, provider, rewind_line
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

TESTS = """
    import pytest
    from agent import ask

    @pytest.mark.rewind
    def test_asks():
        assert ask("one") == "about one"
        if TWICE:
            assert ask("two") == "about two"

    @pytest.mark.rewind
    def test_fails_today():
        assert ask("three") and not FAILS

    @pytest.mark.rewind("shared.rw")
    def test_shares():
        assert ask("four")

    @pytest.mark.rewind("shared.rw")
    def test_shares_too():
        assert ask("four") and ask("five")
"""


def write(project: Project, *, twice: bool = True, fails: bool = False, asks: bool = True) -> None:
    text = TESTS.replace("TWICE", str(twice)).replace("FAILS", str(fails))
    project.write("tests/test_modes.py", text if asks else text.replace('ask("three") and', ""))


def test_the_life_of_cassettes(lab: Callable[[Playbook], Lab]) -> None:
    project = Project.create(lab(provider))
    write(project)
    calls = project.lab.provider

    # A CI server records nothing by itself, whatever the ini file says, and says how it is done.
    missing = project.pytest("-q", "-o", "rewind_mode=all", env={"CI": "true"})
    assert outcomes(missing) == {"failed": 4}, missing.text
    assert (
        "tests/cassettes/test_modes/test_asks.rw does not exist, and nothing is recorded because CI is set."
        in missing.text
    )
    assert "Record it:  pytest tests/test_modes.py::test_asks --rewind=once" in missing.text
    assert calls.calls == 0
    assert "Traceback" not in missing.text

    # But it does when the command says so, and says that in the header. Nothing of a failing test is written.
    write(project, fails=True)
    once = project.pytest("--rewind=once", env={"CI": "true"})
    assert "rewind: mode once, from --rewind, although CI is set" in once.text
    assert outcomes(once) == {"failed": 1, "passed": 3}, once.text
    assert "this run is kept: rewind inspect .rewind/last-failed/tests/test_modes/test_fails_today.rw" in once.text
    assert calls.calls == 2 + 1 + 2, "tests that share a cassette ask nothing twice"
    assert project.cassettes() == ["shared.rw", "tests/cassettes/test_modes/test_asks.rw"]
    asks = project.folder / "tests/cassettes/test_modes/test_asks.rw"
    before = asks.read_bytes()

    # A step that is not asked any more: told, and with --rewind-strict a failure. A cassette of nobody's: told.
    write(project, twice=False)
    project.write("tests/cassettes/test_gone/test_gone.rw", "left over")
    loose = project.pytest("-v")
    assert outcomes(loose) == {"passed": 4}, loose.text
    assert calls.calls == 6
    assert " · 1 unused step · 1 cassette written" in rewind_line(loose)
    assert "  tests/cassettes/test_modes/test_asks.rw: step 2 was not played (1 of 2)" in loose.text
    assert "  tests/cassettes/test_gone/test_gone.rw: no test uses it" in loose.text
    assert "no test uses it" not in project.offline("-q", "-k", "asks").text, "nobody knows when tests are left out"
    strict = project.offline("-q", "--rewind-strict")
    assert outcomes(strict) == {"failed": 1, "passed": 3}, strict.text
    assert "rewind: 1 step of tests/cassettes/test_modes/test_asks.rw was not played: 2" in strict.text
    assert "pytest tests/test_modes.py::test_asks --rewind=rewrite" in strict.text
    assert asks.read_bytes() == before


def test_recording_anew_keeps_what_a_failing_test_had(lab: Callable[[Playbook], Lab]) -> None:
    def varying(request: Request) -> Answer:
        question = request.json()["messages"][-1]["content"]
        return openai_chat(request, f"about {question}")

    project = Project.create(lab(varying))
    write(project)
    assert project.pytest("-q").code == 0
    before = {name: (project.folder / name).read_bytes() for name in project.cassettes()}
    write(project, fails=True)
    anew = project.pytest("-q", "--rewind=all")
    assert outcomes(anew) == {"failed": 1, "passed": 3}, anew.text
    after = {name: (project.folder / name).read_bytes() for name in project.cassettes()}
    changed = sorted(name for name in after if after[name] != before[name])
    assert changed == ["shared.rw"]
    assert "1 cassette recorded again, unchanged" in anew.text, "the one of test_asks: its model said the same"
    kept = project.folder / "tests/cassettes/test_modes/test_fails_today.rw"
    assert kept.exists()

    # A passing test that asks nothing any more has no use for its cassette; a typo in a mark is told, not run.
    write(project, asks=False)
    project.write(
        "tests/test_typo.py",
        """
        import pytest

        @pytest.mark.rewind(alow_drift=True)
        def test_typo():
            raise AssertionError("never run")

        @pytest.mark.rewind("tests/broken.rw")
        def test_damaged():
            raise AssertionError("never run")

        def test_not_marked(rewind_run):
            raise AssertionError("never run")
        """,
    )
    project.write("tests/broken.rw", "this is no cassette\\n")
    rewritten = project.pytest("-q", "--rewind=rewrite", "tests/test_modes.py")
    assert rewritten.code == 0, rewritten.text
    assert not kept.exists()
    wrong = project.pytest("-q", "tests/test_typo.py")
    assert outcomes(wrong) == {"error": 3}, wrong.text
    assert "@pytest.mark.rewind has no argument 'alow_drift'.\nDid you mean 'allow_drift'?" in wrong.text
    assert "rewind_run needs a test with @pytest.mark.rewind" in wrong.text
    assert "never run" not in wrong.text.partition("short test summary")[2]
    assert "tests/broken.rw" in wrong.text
    assert "Traceback" not in wrong.text
