"""pytest-recording in the same project: two plugins, two kinds of cassettes, no quarrel."""

from collections.abc import Callable

import pytest

from support.lab import Lab
from support.plugin_project import Project, outcomes, provider, rewind_line
from support.provider import FakeProvider
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

TESTS = """
    import os
    import socket
    import urllib.request

    import pytest
    from agent import ask

    PLAIN = os.environ["PLAIN"]

    def get():
        with urllib.request.urlopen(PLAIN, timeout=10) as answer:
            return answer.read()

    @pytest.mark.vcr
    def test_theirs():
        assert get() == b"page 1"

    @pytest.mark.rewind
    def test_ours():
        assert ask("hello") == "about hello"

    @pytest.mark.vcr
    def test_theirs_again():
        assert get().startswith(b"page")

    @pytest.mark.rewind
    @pytest.mark.asyncio
    async def test_ours_again():
        assert ask("again") == "about again"

    def test_nobodys():
        import http.client
        assert "vcr" not in http.client.HTTPConnection.__module__
"""


def page(request: Request) -> Answer:
    return Answer(headers=(("content-type", "text/plain"),), pieces=(f"page {request.hit}".encode(),))


def test_both_plugins_live_side_by_side(lab: Callable[[Playbook], Lab]) -> None:
    project = Project.create(
        lab(provider),
        ini="asyncio_default_fixture_loop_scope = function",
        without=("hypothesispytest", "timeout", "xdist", "xdist.looponfail"),
    )
    project.write("tests/test_both.py", TESTS)
    with FakeProvider(page) as site:
        env = {"PLAIN": site.url + "/page"}
        recorded = project.pytest("-q", "--record-mode=once", "--rewind=once", env=env)
        assert outcomes(recorded) == {"passed": 5}, recorded.text
        assert site.calls == 2
        assert rewind_line(recorded).startswith("rewind: 0 replayed, 2 live (spent ")
        theirs = sorted(file.name for file in project.folder.rglob("*.yaml"))
        assert theirs == ["test_theirs.yaml", "test_theirs_again.yaml"]
        assert [name.rpartition("/")[2] for name in project.cassettes()] == ["test_ours.rw", "test_ours_again.rw"]

        replayed = project.offline("-q", "--record-mode=none", "--rewind=none", "--block-network", env=env)
        assert outcomes(replayed) == {"passed": 5}, replayed.text
        assert site.calls == 2
        assert rewind_line(replayed).startswith("rewind: 2 replayed, 0 live, saved ")
