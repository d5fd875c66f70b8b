"""Every kind of test finds its cassette: plain, async, parametrised, in classes, in unittest, in two processes."""

from collections.abc import Callable

import pytest

from support.lab import Lab
from support.plugin_project import SDK_AGENT, Project, outcomes, provider, rewind_line
from support.script import Playbook

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

ASYNCIO = "asyncio_default_fixture_loop_scope = function"
TESTS = """
import asyncio
import threading
import unittest

import pytest

import rewind
from agent import ask, ask_async, ask_streamed, work

pytestmark = pytest.mark.rewind

@pytest.fixture
def greeting():
    return ask("in a fixture")

def test_plain():
    assert ask("plain") == "about plain"

def test_streamed(greeting):
    assert greeting == "about in a fixture"
    assert ask_streamed("streamed") == "about streamed"

def test_in_threads():
    found = []
    threads = [threading.Thread(target=lambda n=n: found.append(ask(f"thread {n}"))) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ["about thread 0", "about thread 1", "about thread 2"]

@pytest.mark.asyncio
async def test_async():
    assert await asyncio.gather(ask_async("one"), ask_async("two")) == ["about one", "about two"]

@pytest.mark.anyio
async def test_anyio():
    assert await ask_async("anyio") == "about anyio"

@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("a", ["x", "y z"])
def test_parametrised(a, b):
    assert ask(f"{a} {b}") == f"about {a} {b}"

class TestClass:
    def test_method(self):
        assert ask("method") == "about method"

    @pytest.mark.rewind("elsewhere/named.rw")
    def test_named(self):
        assert ask("named") == "about named"

class Old(unittest.TestCase):
    def setUp(self):
        self.greeting = ask("set up")

    def test_case(self):
        self.assertEqual((self.greeting, ask("case")), ("about set up", "about case"))

class OldAsync(unittest.IsolatedAsyncioTestCase):
    async def test_case(self):
        self.assertEqual(await ask_async("old async"), "about old async")

def test_what_the_run_tells(rewind_run):
    assert work("8821") == "Refunded."
    assert rewind_run.tools == ["lookup_account", "refund"]
    assert [call.arguments for call in rewind_run.tool_calls] == [{"turn": 1}, {"turn": 3}]
    assert rewind_run.tool_calls[0].result == '{"ran": "lookup_account"}'
    assert 0 < rewind_run.cost < 0.05
    assert rewind_run.tokens == 3 * 23
    assert rewind_run.final_text == rewind_run.answer == "Refunded."
    assert [step.kind for step in rewind_run.steps] == ["llm_call"] * 3
    assert [step.status for step in rewind_run.llm_calls] == [200] * 3
    assert rewind_run.sent[2].json["messages"][0]["content"] == "refund 8821"
    assert rewind_run.sent[0].url == "https://api.anthropic.com/v1/messages"
    assert "sk-ant" not in str(rewind_run.sent)
    assert rewind_run.steps[0].response["content"][0]["name"] == "lookup_account"
    assert rewind_run.misses == []
    assert rewind_run.replayed + rewind_run.live == 3

ran = []

@rewind.tool
def search(words):
    ran.append(words)
    return {"found": words}

def test_own_tools(rewind_run):
    assert search("shoes") == {"found": "shoes"}
    assert rewind_run.tools == ["search"]
    assert rewind_run.steps[0].kind == "tool_call"
    assert ran == [] or rewind_run.live

def test_no_calls_at_all(rewind_run):
    assert rewind_run.steps == [] and rewind_run.tools == [] and rewind_run.cost == 0
"""


def test_all_kinds_of_tests_record_and_replay_offline(lab: Callable[[Playbook], Lab]) -> None:
    project = Project.create(lab(provider), agent=SDK_AGENT, ini=ASYNCIO, without=("hypothesispytest", "timeout"))
    project.write("conftest.py", "import pytest\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n")
    project.write("tests/test_kinds.py", TESTS)
    recorded = project.pytest("-n", "2", "-q")
    assert recorded.code == 0, recorded.text
    assert outcomes(recorded) == {"passed": 16}
    assert rewind_line(recorded).startswith("rewind: 0 replayed, 21 live (spent ")
    folder = "tests/cassettes/test_kinds/"
    assert project.cassettes() == [
        "elsewhere/named.rw",
        folder + "Old.test_case.rw",
        folder + "OldAsync.test_case.rw",
        folder + "TestClass.test_method.rw",
        folder + "test_anyio.rw",
        folder + "test_async.rw",
        folder + "test_in_threads.rw",
        folder + "test_own_tools.rw",
        folder + "test_parametrised--a=x--b=1.rw",
        folder + "test_parametrised--a=x--b=2.rw",
        folder + "test_parametrised--a=y_z-b86b3b95--b=1.rw",
        folder + "test_parametrised--a=y_z-b86b3b95--b=2.rw",
        folder + "test_plain.rw",
        folder + "test_streamed.rw",
        folder + "test_what_the_run_tells.rw",
    ]
    written = {name: (project.folder / name).read_bytes() for name in project.cassettes()}
    assert not any(str(project.folder).encode() in data for data in written.values()), "a path of this machine"
    assert not any(b"sk-ant" in data or b"sk-test" in data for data in written.values())

    # The decorators swapped: pytest passes the parameters in another order.
    swapped = TESTS.replace('"b", [1, 2]', '"A"').replace('"a", ["x", "y z"]', '"b", [1, 2]')
    project.write("tests/test_kinds.py", swapped.replace('"A"', '"a", ["x", "y z"]'))
    replayed = project.offline("-q", env={"CI": "true"})
    assert replayed.code == 0, replayed.text
    assert outcomes(replayed) == {"passed": 16}
    assert rewind_line(replayed).startswith("rewind: 22 replayed, 0 live, saved ")
    assert {name: (project.folder / name).read_bytes() for name in project.cassettes()} == written
