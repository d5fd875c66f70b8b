"""Marked tests whose prompts hold a folder, a clock and ids: what may differ from the cassette, and what may not."""

import shutil
from collections.abc import Callable
from dataclasses import replace

import pytest

from support.lab import Lab
from support.plugin_project import Project, outcomes, provider
from support.script import Playbook

pytestmark = pytest.mark.e2e

TESTS = """
    import datetime, os, uuid
    import pytest
    from agent import ask

    @pytest.mark.rewind
    def test_facts_and_times():
        assert ask("one", system=f"You are in {os.getcwd()}. It is {datetime.datetime.now(datetime.UTC).isoformat()}.")

    @pytest.mark.rewind
    def test_an_id_in_a_text():
        assert ask("two", system=f"Session {uuid.uuid4()}.")

    @pytest.mark.rewind(match="renamed")
    def test_an_id_that_may_differ():
        assert ask("three", system=f"Session {uuid.uuid4()}.")

    @pytest.mark.rewind(match="renamed", cassette="tests/cassettes/given.rw")
    @pytest.mark.parametrize("customer", [os.environ.get("CUSTOMER", "3b241101-e2bb-4255-8caf-4136c566a962")])
    def test_a_parameter(customer):
        assert ask("four", system=f"Customer {customer}.")

    @pytest.mark.rewind(match="exact")
    def test_nothing_may_differ():
        assert ask("five", system=f"You are in {os.getcwd()}.")
"""


def test_names_differ_as_far_as_the_mark_allows(lab: Callable[[Playbook], Lab]) -> None:
    project = Project.create(lab(provider))
    project.write("tests/test_names.py", TESTS)
    assert outcomes(project.pytest("-q")) == {"passed": 5}
    kept = "".join((project.folder / name).read_text() for name in project.cassettes())
    assert '"host"' not in kept, "a cassette tells no more of its machine than the requests do"

    moved = replace(project, folder=project.folder.with_name("moved"))
    shutil.copytree(project.folder, moved.folder)
    again = moved.offline("-v", "--rewind=none")
    assert outcomes(again) == {"passed": 3, "failed": 2}, again.text
    for line in ("test_an_id_in_a_text FAILED", "test_nothing_may_differ FAILED"):
        assert line in again.text
    assert "2 same but for names" in again.text
    assert "test_facts_and_times: same but for folder " in again.text
    assert '@pytest.mark.rewind(match="renamed")' in again.text

    other = moved.offline(
        "-q", "--rewind=none", "-k", "parameter", env={"CUSTOMER": "f47ac10b-58cc-4372-a567-0e02b2c3d479"}
    )
    assert outcomes(other) == {"failed": 1}, "a parameter is input"
