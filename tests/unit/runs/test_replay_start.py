"""The agent of a replay is started before what answers it is loaded."""

import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from rewind.runs.record import RecordOptions, record
from rewind.runs.replay import replay
from rewind.runs.replay_options import ReplayOptions
from rewind.runs.rerun import session_to_run

pytestmark = pytest.mark.process


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def replayed(home: Path, *command: str) -> ReplayOptions:
    recorded = record(RecordOptions(command=("true",), home=home))
    return ReplayOptions(session=session_to_run(home, recorded.session_id), home=home, command=command)


def test_an_agent_whose_gateway_cannot_be_loaded_is_ended_and_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    started = tmp_path / "pid"
    options = replayed(tmp_path / "home", "sh", "-c", f"echo $$ > {shlex.quote(str(started))}; exec sleep 600")
    monkeypatch.setitem(sys.modules, "rewind.runs.taped_run", None)
    with pytest.raises(ImportError, match="taped_run"):
        replay(options)
    # Ended at once, perhaps before it wrote anything.
    assert not started.exists() or not started.read_text() or not is_running(int(started.read_text()))


def test_a_client_that_connects_before_the_gateway_is_loaded_waits_for_it(tmp_path: Path):
    """It is answered, and not turned away: the port is taken before the agent starts."""
    client = (
        "import os, socket, sys, time\n"
        "gateway = socket.create_connection(('127.0.0.1', int(os.environ['REWIND_GATEWAY_PORT'])))\n"
        "gateway.sendall(b'CONNECT example.com:443 HTTP/1.1\\r\\nHost: example.com:443\\r\\n\\r\\n')\n"
        "print(gateway.recv(65536).split()[1].decode())\n"
    )
    options = replayed(tmp_path / "home", sys.executable, "-S", "-c", client)
    began = time.monotonic()
    result = replay(options)
    assert result.exit_code == 0
    assert "+424" in result.output_difference or "+403" in result.output_difference, "refused by name"
    assert time.monotonic() - began < 60
