"""A connection that is made in C, past Python's sockets, is seen in the system's table."""

import ctypes
import socket
import struct
import sys

import pytest

from rewind.inprocess.redirect import open_connections as inprocess_unseen
from rewind.inprocess.redirect.open_connections import UnseenConnections
from rewind.runs import bypass_watch as bystander

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows its connections")


def test_what_c_connects_to_is_told_and_what_python_connects_to_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from rewind.inprocess.redirect import install as redirect

    redirect.install()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 443))  # no packet is sent
        address = probe.getsockname()[0]
    with socket.create_server((address, 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(bystander, "TLS_PORT", port)
        monkeypatch.setattr(inprocess_unseen, "NATIVE_CLIENTS", ("ctypes",))
        unseen = UnseenConnections()
        with socket.create_connection((address, port)):
            assert unseen.since() == ()
            libc = ctypes.CDLL(None)
            fd = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
            where = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + socket.inet_aton(address) + bytes(8)
            assert libc.connect(fd, where, len(where)) == 0
            assert unseen.since() == (f"{address}:{port}",)
            assert UnseenConnections().since() == ()  # it was there when that one began to look
            libc.close(fd)


def test_nobody_looks_where_no_such_client_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inprocess_unseen, "NATIVE_CLIENTS", ("no_such_module",))
    monkeypatch.setattr(inprocess_unseen, "connections_of_this_process", lambda: pytest.fail("somebody looked"))
    assert UnseenConnections().since() == ()
