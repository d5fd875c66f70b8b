"""The example project: its committed cassettes play offline, and can be recorded anew.

``REWIND_WRITE_EXAMPLES=1`` writes the cassettes that a scripted provider gives into the example itself.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.answers import anthropic_message, openai_stream
from support.lab import Lab
from support.plugin_project import Project, outcomes, rewind_line
from support.script import Answer, Playbook, Request

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "support-agent"
WORDS = {"money": "refund", "crashes": "bug", "great": "praise"}


def support_desk(request: Request) -> Answer:
    """Plays the models of the example."""
    asked = request.json()
    if request.path != "/v1/messages":
        text = asked["messages"][-1]["content"]
        return openai_stream(request, next(list(word) for key, word in WORDS.items() if key in text))
    order = asked["messages"][0]["content"].rpartition(" ")[2]
    turns = len(asked["messages"])
    if turns == 1:
        return anthropic_message(request, "I'll look into the account.", tools=[("lookup_account", {"order": order})])
    if turns == 3 and "active" in str(asked["messages"][2]):
        return anthropic_message(request, "", tools=[("refund", {"order": order, "amount": 1240})])
    done = f"The refund of order {order} is on its way." if turns == 5 else f"I cannot find order {order}."
    return anthropic_message(request, done)


@pytest.fixture
def project(lab: Callable[[Playbook], Lab]) -> Project:
    """A copy, because runs leave things behind."""
    made = lab(support_desk)
    copy = made.folder / "project"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__", ".rewind", ".pytest_cache"))
    return Project(made, copy)


def test_the_committed_cassettes_play_offline(project: Project) -> None:
    before = {name: (project.folder / name).read_bytes() for name in project.cassettes()}
    played = project.offline("-q", "--rewind-strict", env={"CI": "true"})
    assert outcomes(played) == {"passed": 9}, played.text
    assert rewind_line(played).startswith("rewind: 18 replayed, 0 live, saved $")
    assert "unused" not in rewind_line(played)
    both = project.offline("-q", "-n", "2", "--rewind=none")
    assert outcomes(both) == {"passed": 9}, both.text
    assert rewind_line(both) == rewind_line(played)
    assert {name: (project.folder / name).read_bytes() for name in project.cassettes()} == before


def test_they_can_be_recorded_anew(project: Project) -> None:
    names = project.cassettes()
    for name in names:
        (project.folder / name).unlink()
    recorded = project.pytest("-q", "--rewind=rewrite")
    assert outcomes(recorded) == {"passed": 9}, recorded.text
    if os.environ.get("REWIND_WRITE_EXAMPLES"):
        shutil.rmtree(EXAMPLE / "tests" / "cassettes", ignore_errors=True)
        shutil.copytree(project.folder / "tests" / "cassettes", EXAMPLE / "tests" / "cassettes")
    else:
        assert project.cassettes() == names
    played = project.offline("-q")
    assert outcomes(played) == {"passed": 9}, played.text
    for name in project.cassettes():
        assert str(project.folder) not in (project.folder / name).read_text()
