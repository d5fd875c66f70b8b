"""In a replay nothing leaves this machine, and whoever tries is told who, where to, and what to do."""

import shutil
from collections.abc import Callable

import pytest

from support.lab import Lab
from support.plugin_project import Project, outcomes, provider, rewind_line
from support.script import Playbook

pytestmark = pytest.mark.e2e

TESTS = """
    import socket
    import subprocess
    import sys
    import threading

    import pytest
    from agent import ask

    FAR_AWAY = ("192.0.2.1", 9)  # reserved for documentation: nobody is there, and no packet may leave for it

    def connect(address):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.settimeout(0.2)
            sock.connect(address)

    @pytest.mark.rewind
    def test_marked():
        assert ask("hello")
        with pytest.raises(ConnectionError) as blocked:
            connect(FAR_AWAY)
        text = str(blocked.value)
        assert "tests/test_net.py::test_marked tried to connect to 192.0.2.1:9" in text
        assert 'allowed_hosts=["192.0.2.1"]' in text
        with pytest.raises(ConnectionError, match="https://example.com"):
            socket.create_connection(("example.com", 443), timeout=0.2)

    @pytest.mark.rewind
    def test_loopback_is_nobodys_business():
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=lambda: server.accept()[0].sendall(b"hi")).start()
            with socket.create_connection(server.getsockname()) as client:
                assert client.recv(2) == b"hi"
        here, there = socket.socketpair()
        here.close(), there.close()
        assert ask("hello")

    @pytest.mark.rewind
    def test_children_too():
        subprocess.run([sys.executable, "child.py"], check=True, timeout=30)

    def test_unmarked():
        with pytest.raises(OSError) as problem:
            connect(FAR_AWAY)
        print("UNMARKED", type(problem.value).__name__, problem.value)
"""


CHILD = """
    import os
    import urllib.error
    import urllib.request

    import agent

    assert agent.ask("from a child") == "about from a child"
    if os.environ["REPLAYING"] == "yes":
        try:
            urllib.request.urlopen("http://192.0.2.1/", timeout=5)
        except urllib.error.HTTPError as refused:
            assert refused.code == 424 and "offline" in refused.headers["x-rewind-miss"]
        else:
            raise AssertionError("a child went to the network")
"""


def test_nothing_leaves_this_machine_in_a_replay(lab: Callable[[Playbook], Lab]) -> None:
    project = Project.create(lab(provider))
    project.write("tests/test_net.py", TESTS)
    project.write("child.py", CHILD)
    # While recording nothing is blocked: the test that expects it is given the cassette of another one.
    recorded = project.pytest("-q", "-k", "loopback or children", env={"REPLAYING": "no"})
    assert recorded.code == 0, recorded.text
    folder = project.folder / "tests/cassettes/test_net"
    shutil.copy(folder / "test_loopback_is_nobodys_business.rw", folder / "test_marked.rw")

    replayed = project.offline("-v", "-k", "not unmarked", env={"REPLAYING": "yes"})
    assert outcomes(replayed) == {"passed": 3}, replayed.text
    assert "tests/test_net.py::test_marked: a connection to https://example.com was blocked" in replayed.text
    assert rewind_line(replayed).startswith("rewind: 3 replayed, 0 live, saved ")

    blocked = project.offline("-rA", "--rewind-block-network", "-k", "unmarked")
    assert outcomes(blocked) == {"passed": 1}, blocked.text
    assert "UNMARKED Offline rewind: tests/test_net.py::test_unmarked tried to connect to 192.0.2.1:9" in blocked.text
