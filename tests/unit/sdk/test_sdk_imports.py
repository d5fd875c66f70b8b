"""Programs carry the decorators everywhere: what they load when nobody records is next to nothing."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
before = set(sys.modules)
import rewind

@rewind.session(name="agent", mode="record")
async def agent(): ...

@rewind.session
def stream(): yield

@rewind.tool
def lookup(order): return order

assert lookup(4711) == 4711
assert rewind.note("nobody listens") is False
print(*sorted(set(sys.modules) - before))
"""
HEAVY = {"asyncio", "dataclasses", "enum", "inspect", "json", "logging", "pathlib", "re", "threading", "typing"}


@pytest.mark.process
def test_decorating_and_calling_outside_a_session_loads_next_to_nothing() -> None:
    done = subprocess.run([sys.executable, "-I", "-c", PROGRAM], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "rewind.sdk.tool" in loaded
    assert not loaded & HEAVY
    ours = {name for name in loaded if name.startswith("rewind.")} - {"rewind.version"}
    assert {name.rpartition(".")[0] for name in ours} <= {"rewind", "rewind.sdk"}
