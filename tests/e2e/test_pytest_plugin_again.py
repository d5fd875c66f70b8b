"""A cassette that is recorded again changes where something changed, and nowhere else."""

import difflib
import time
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate

import pytest

from support.answers import anthropic_message, openai_chat, openai_stream
from support.lab import Lab
from support.plugin_project import SDK_AGENT, Project, outcomes
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

TESTS = """
    import pytest
    from agent import ask, ask_streamed, work

    @pytest.mark.rewind
    def test_three():
        assert ask("one")
        assert ask_streamed("two")
        assert ask("three")

    @pytest.mark.rewind
    def test_tools():
        assert "refund" in work("8821")
"""


class Moody:
    """A model that repeats itself but for ids, dates and waits; ``words`` is what it says about "one"."""

    def __init__(self) -> None:
        self.words = "first"

    def __call__(self, request: Request) -> Answer:
        answer = self._said(request)
        date = formatdate(time.time(), usegmt=True)
        volatile = (("Date", date), ("cf-ray", f"ray_{request.hit}"), ("openai-processing-ms", str(request.hit)))
        return replace(answer, headers=(*answer.headers, *volatile), gap=0.001 * request.hit)

    def _said(self, request: Request) -> Answer:
        asked = request.json()
        if request.path == "/v1/messages":
            turns = len(asked["messages"])
            tools = [("lookup_account", {"order": "8821"})] if turns < 3 else []
            return anthropic_message(request, "" if tools else "The refund is on its way.", tools=tools)
        question = asked["messages"][-1]["content"]
        if asked.get("stream"):
            return openai_stream(request, ["about ", question])
        return openai_chat(request, self.words if question == "one" else f"about {question}")


def changed_lines(before: str, after: str) -> list[str]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return [line for line in lines if line[:1] in "+-" and not line.startswith(("+++", "---"))]


def test_what_says_the_same_stays_to_the_byte(lab: Callable[[Playbook], Lab]) -> None:
    model = Moody()
    project = Project.create(lab(model), agent=SDK_AGENT)
    project.write("tests/test_again.py", TESTS)
    assert outcomes(project.pytest("-q")) == {"passed": 2}
    three, tools = (project.folder / "tests/cassettes/test_again" / f"test_{name}.rw" for name in ("three", "tools"))
    before, with_tools = three.read_text(), tools.read_bytes()

    again = project.pytest("-q", "--rewind=rewrite")
    assert "2 cassettes recorded again, unchanged" in again.text, again.text
    assert (three.read_text(), tools.read_bytes()) == (before, with_tools)

    model.words = "something else"
    changed = project.pytest("-q", "--rewind=rewrite")
    assert "1 cassette written · 1 cassette recorded again, unchanged" in changed.text, changed.text
    assert tools.read_bytes() == with_tools
    after = three.read_text()
    assert "something else" in after and "something else" not in before
    lines = changed_lines(before, after)
    untouched = [line for line in lines if "about three" in line or "about \\" in line or "ray_2" in line]
    assert untouched == [], lines
    # The manifest, the id, the one answer with its headers, and times: nothing of the other two answers.
    assert after.count("cf-ray") == before.count("cf-ray") == 3
    assert sum("ray_" in line for line in lines) == 2, lines
    assert outcomes(project.offline("-q", "--rewind=none")) == {"passed": 2}


def test_a_cassette_that_is_called_old_gets_its_new_date(lab: Callable[[Playbook], Lab]) -> None:
    project = Project.create(lab(Moody()), agent=SDK_AGENT, ini="rewind_old_after = 0")
    project.write("tests/test_again.py", TESTS)
    assert outcomes(project.pytest("-q", "-k", "three")) == {"passed": 1}
    file = project.folder / "tests/cassettes/test_again/test_three.rw"
    before = file.read_text()
    again = project.pytest("-q", "-k", "three", "--rewind=rewrite")
    assert "1 cassette written" in again.text, again.text
    lines = changed_lines(before, file.read_text())
    assert not any("ray_" in line for line in lines), lines
