"""An agent that does not start without a key is replayed without one, whatever the key was when it was recorded."""

import json
import sys
from collections.abc import Callable

import pytest

from support.answers import openai_chat
from support.lab import Lab
from support.plugin_project import AGENT as PLAIN_AGENT
from support.plugin_project import Project, outcomes, provider
from support.script import Playbook

pytestmark = pytest.mark.e2e

NEEDS_KEYS = """
import os
assert os.environ["OPENAI_API_KEY"], "Missing credentials"
"""
AGENT = (
    NEEDS_KEYS
    + """
import json, urllib.request
assert os.environ["HF_TOKEN"], "Missing credentials"
body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Is the key EMPTY?"}]}
request = urllib.request.Request(
    "https://api.openai.com/v1/chat/completions", json.dumps(body).encode(),
    {"content-type": "text/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
)
with urllib.request.urlopen(request, timeout=30) as answer:
    print(json.load(answer)["choices"][0]["message"]["content"])
"""
)


def test_keys_without_worth_are_remembered_by_name_and_their_values_stay_in_prompts(
    lab: Callable[[Playbook], Lab],
) -> None:
    bench = lab(lambda request: openai_chat(request, "EMPTY, that is: the key is EMPTY"))
    (bench.folder / "agent.py").write_text(AGENT)
    dummies = {"OPENAI_API_KEY": "EMPTY", "HF_TOKEN": "x"}
    recorded = bench.record([sys.executable, "agent.py"], env=dummies).ok()
    first = next((bench.home / "sessions").glob(f"*{recorded.session}/journal.jsonl")).read_text().splitlines()[0]
    assert {"OPENAI_API_KEY", "HF_TOKEN"} <= set(json.loads(first)["key_variables"])
    replayed = bench.replay(recorded.session).ok()
    assert replayed.stdout == recorded.stdout
    assert b"the key is EMPTY" in recorded.stdout
    assert b"the key is EMPTY" in bench.body(recorded.session, 1)


def test_a_marked_test_needs_no_key_either(lab: Callable[[Playbook], Lab]) -> None:
    project = Project.create(lab(provider), agent=NEEDS_KEYS + PLAIN_AGENT)
    project.write(
        "tests/test_keys.py",
        """
        import pytest

        @pytest.mark.rewind
        def test_asks():
            from agent import ask

            assert ask("one") == "about one"
        """,
    )
    dummies = {"OPENAI_API_KEY": "sk-test-1"}
    assert outcomes(project.pytest("-q", "--rewind=once", env=dummies)) == {"passed": 1}
    assert '"OPENAI_API_KEY"' in next(project.folder.rglob("*.rw")).read_text()
    again = project.offline("-q")
    assert outcomes(again) == {"passed": 1}, again.text
