"""The decorators keep what a type checker knows of a function, and tell it what a session is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
from collections.abc import AsyncIterator, Iterator

import rewind


@rewind.session(name="support", mode="record")
async def agent(query: str, *, limit: int = 3) -> str:
    return query * limit


@rewind.session
def bare(query: str) -> Iterator[int]:
    yield len(query)


@rewind.tool
def lookup(order: str, deep: bool = False) -> dict[str, int]:
    return {order: 1}


@rewind.tool(name="events")
async def events(count: int) -> AsyncIterator[bytes]:
    yield bytes(count)


class Desk:
    @rewind.tool
    def price(self, order: str) -> float:
        return 1.0

    @classmethod
    @rewind.session("desk")
    def open(cls, name: str) -> "Desk":
        return cls()


reveal_type(agent)
reveal_type(bare)
reveal_type(lookup)
reveal_type(events)
reveal_type(Desk().price)
reveal_type(Desk.open)
with rewind.session("x") as run:
    reveal_type(run)
    reveal_type(run.id)
    reveal_type(run.steps[0].index)
reveal_type(rewind.note("text", mood=3))
lookup(4711)
rewind.session("x", mode="replya")
rewind.sesion("x")
"""

TOLD = [
    "def (query: str, *, limit: int =) -> typing.Coroutine[Any, Any, str]",
    "def (query: str) -> typing.Iterator[int]",
    "def (order: str, deep: bool =) -> dict[str, int]",
    "def (count: int) -> typing.AsyncIterator[bytes]",
    "def (order: str) -> float",
    "def (name: str) -> Desk",
    "rewind.sdk.session_run.Run",
    "str | None",
    "int",
    "bool",
]


@pytest.mark.process
def test_a_type_checker_follows_the_decorators(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--follow-imports=silent"]
    env = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    done = subprocess.run([*command, str(program)], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    told = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert [one.replace("builtins.", "").replace("program.", "") for one in told] == TOLD, done.stdout
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert len(errors) == 3, done.stdout + done.stderr
    assert 'Argument 1 to "lookup" has incompatible type "int"' in errors[0]
    assert 'No overload variant of "session"' in errors[1]
    assert 'no attribute "sesion"' in errors[2]
