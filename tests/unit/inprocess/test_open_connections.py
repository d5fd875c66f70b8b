"""Connections from before the first run are found, and nobody goes through the process where there can be none."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

LOOK = """
import gc, socket, ssl
from rewind.inprocess.redirect import open_connections

looked = []
objects = gc.get_objects
gc.get_objects = lambda: looked.append(1) or objects()
{before}
open_connections.find_open_connections()
print(len(looked), len(open_connections.known_inodes()))
"""
CONNECTED = """
listener = socket.create_server(("127.0.0.1", 0))
connection = socket.create_connection(listener.getsockname())
"""
WITH_TLS = CONNECTED + (
    "connection = ssl.create_default_context().wrap_socket("
    "connection, server_hostname='api.openai.com', do_handshake_on_connect=False)\n"
)


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("", "0 0"),
        (CONNECTED, "1 2"),  # the listener, too: nobody asks what it is for
        (WITH_TLS, "1 2"),
        ("import os; os.listdir = lambda folder: open('/nowhere')", "1 0"),
        ("import os; os.listdir = lambda folder: []", "1 0"),
    ],
    ids=["none", "connected", "tls", "the system does not tell", "the system tells nothing"],
)
def test_the_process_is_looked_through_only_where_a_socket_is_open(before: str, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK.format(before=before)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == told, done.stderr
