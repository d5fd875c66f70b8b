"""Fixtures that say what all marks mean, tests that are expected to fail, late questions, secrets, old cassettes."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from support.lab import Lab
from support.plugin_project import Project, outcomes, provider, rewind_line
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

CONFTEST = """
    import pytest

    @pytest.fixture(scope="session")
    def rewind_config():
        return {"ignore": ["metadata.run"], "hosts": ["tools.example.com"]}
"""
AGENT = """
    import json
    import os
    import urllib.request
    import uuid

    def ask(question, host="api.openai.com", **more):
        body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": question}], **more}
        url = f"https://{host}/v1/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]

    def new_id():
        return {"run": str(uuid.uuid4())}
"""
TESTS = """
    import os

    import pytest
    from agent import ask, new_id

    WORD = os.environ["WORD"]

    @pytest.mark.rewind
    def test_ignores_what_the_config_says():
        assert ask("one", metadata=new_id()) == "about one"

    @pytest.mark.rewind(allow_drift=True)
    def test_drifts(rewind_run):
        assert ask("tell me of the " + WORD) == "about tell me of the old"
        assert WORD in rewind_run.sent[0].json["messages"][0]["content"]

    @pytest.mark.rewind
    def test_another_host():
        assert ask("two", host="tools.example.com") == "about two"

    @pytest.mark.rewind
    @pytest.mark.xfail(strict=True, reason="asks something new when it is replayed", condition=WORD == "new")
    def test_expected_to_fail():
        try:
            ask("an " + WORD + " question")
        except OSError:
            pass

    @pytest.fixture
    def late():
        yield
        try:
            ask("at the end: " + WORD)
        except OSError:
            pass

    @pytest.mark.rewind
    def test_asks_late(late):
        assert ask("three") == "about three"

    @pytest.mark.rewind(mode="none")
    def test_not_yet_recorded():
        ask("nothing that was recorded")

    @pytest.mark.rewind
    def test_unpriced(rewind_run):
        ask("five", model="a-model-of-nobodys")
        with pytest.raises(Exception, match="The cost of this run is not known: 1 call has no price."):
            assert rewind_run.cost < 0.05
        assert repr(rewind_run.cost) == "—"

    @pytest.mark.rewind
    def test_with_a_secret():
        ask("my key is ghp_" + "a8Kd93kLmQp0Zx7Tq2Rb6Yw1Vn5Cs4Hj3UfG")

    @pytest.mark.rewind
    @pytest.mark.skip(reason="some day")
    def test_skipped():
        ask("never")
"""


def priced_or_not(request: Request) -> Answer:
    answer = provider(request)
    if request.json()["model"] != "a-model-of-nobodys":
        return answer
    return replace(answer, pieces=(answer.body.replace(b"gpt-4o-mini-2024-07-18", b"a-model-of-nobodys"),))


def test_corners(lab: Callable[[Playbook], Lab]) -> None:
    project = Project.create(lab(priced_or_not), agent=AGENT)
    project.write("conftest.py", CONFTEST)
    project.write("tests/test_corners.py", TESTS)
    recorded = project.pytest("-q", env={"WORD": "old"})
    assert outcomes(recorded) == {"passed": 7, "skipped": 1, "failed": 1}, recorded.text
    assert "test_not_yet_recorded.rw does not exist, and nothing is recorded because the mode is none." in recorded.text
    assert re.search(
        r"test_with_a_secret\.rw: step 1, request body .* looks like .*: check it before you commit", recorded.text
    )
    assert "a8Kd93" not in recorded.text.partition("rewind: ")[2]
    names = [name.rpartition("/")[2] for name in project.cassettes()]
    assert "test_skipped.rw" not in names
    assert len(names) == 7

    replayed = project.offline("-q", "-rx", "-o", "rewind_old_after=0", env={"WORD": "new"})
    assert outcomes(replayed) == {"passed": 6, "skipped": 1, "failed": 1, "error": 1, "xfailed": 1}, replayed.text
    assert "ERROR at teardown of test_asks_late" in replayed.text
    assert "{+new+}" in replayed.text
    assert "6 cassettes 0 to 0 days old" in rewind_line(replayed) or "7 cassettes 0 to 0 days old" in rewind_line(
        replayed
    )
    assert "1 call unpriced" in rewind_line(replayed)


def test_a_strict_run_writes_no_secret(lab: Callable[[Playbook], Lab]) -> None:
    project = Project.create(lab(provider), agent=AGENT)
    project.write("tests/test_corners.py", TESTS)
    strict = project.pytest("-q", "-k", "secret", "--rewind-strict", env={"WORD": "old"})
    assert outcomes(strict) == {"passed": 1, "error": 1}, strict.text
    assert "test_with_a_secret.rw was not written, because it seems to contain a secret" in strict.text
    assert project.cassettes() == []
