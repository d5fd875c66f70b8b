"""Connections that went around the gateway are noticed by program and address."""

import ipaddress
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from rewind.runs import bypass_watch as bypass_watch
from rewind.runs.bypass_watch import BypassWatch

PATIENCE = 10.0
pytestmark = pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="connections are seen on Linux only")

DIAL = """
import socket, sys
line = socket.create_connection(("127.0.0.1", 443))
print("connected", flush=True)
sys.stdin.read()
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


@pytest.fixture
def tls_port() -> Iterator[socket.socket]:
    try:
        server = socket.create_server(("127.0.0.1", 443))
    except OSError as error:
        pytest.skip(f"port 443 cannot be taken here: {error}")
    with server:
        yield server


def seen_around(command: list[str]) -> list[tuple[str, str]]:
    """What a bypass_watch saw of this command while its connection was open."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdin is not None
        watching = BypassWatch(process.pid)
        assert process.stdout.readline() == b"connected\n"
        deadline = time.monotonic() + PATIENCE
        while not watching._seen and time.monotonic() < deadline:
            time.sleep(0.02)
        return watching.stop()
    finally:
        process.communicate(timeout=PATIENCE)


@pytest.mark.process
def test_a_process_that_connects_by_itself_is_named(tls_port: socket.socket) -> None:
    # The kernel keeps fifteen characters of the name a program was started by.
    program = os.path.basename(sys.executable)[:15]
    assert seen_around([sys.executable, "-c", DIAL]) == [(program, "127.0.0.1:443")]


@pytest.mark.process
def test_a_grandchild_is_named_too(tls_port: socket.socket) -> None:
    found = seen_around([sys.executable, "-c", PARENT, DIAL])
    assert [address for _, address in found] == ["127.0.0.1:443"]


@pytest.mark.process
def test_our_own_connections_are_not_the_agents(tls_port: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bypass_watch, "LOOK_EVERY", 0.01)
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    with socket.create_connection(("127.0.0.1", 443)):
        watching = BypassWatch(process.pid)
        watching._look()
        process.communicate(timeout=PATIENCE)
        assert watching.stop() == []


@pytest.mark.process
def test_a_process_that_has_ended_is_no_trouble() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(PATIENCE)
    watching = BypassWatch(process.pid)
    watching._look()
    assert watching.stop() == []


@pytest.mark.parametrize("address", ["127.0.0.1", "10.20.30.40", "::1", "2001:db8::1234", "::ffff:1.2.3.4"])
def test_addresses_are_read_as_the_kernel_prints_them(address: str) -> None:
    packed = ipaddress.ip_address(address).packed
    printed = "".join(packed[at : at + 4][::-1].hex() for at in range(0, len(packed), 4)).upper()
    assert bypass_watch._readable(printed) == str(ipaddress.ip_address(address))
