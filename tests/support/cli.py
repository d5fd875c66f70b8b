"""Run ``rewind`` as a user does, in an environment that holds nothing of the machine's own proxies and keys."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AGENTS = Path(__file__).parent / "agents"
NODE = Path(__file__).parent / "node"
PATIENCE = 60.0
"""Seconds a command may take before the test fails."""

REWIND = (sys.executable, "-m", "rewind")
KEYS = {
    "OPENAI_API_KEY": "sk-test-0123456789abcdef0123456789",
    "ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef0123",
    "GEMINI_API_KEY": "AIzaTest0123456789abcdef0123456789",
}


def plain_environment(home: Path, **more: str) -> dict[str, str]:
    """A user's environment without proxies, certificates, keys or Rewind's own settings."""
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR", "LD_LIBRARY_PATH") if name in os.environ}
    here = str(Path(sys.executable).parent)
    return {
        **kept,
        "PATH": here + os.pathsep + os.environ.get("PATH", os.defpath),
        "HOME": str(home.parent),
        "REWIND_HOME": str(home),
        "NO_COLOR": "1",
        **more,
    }


@dataclass(frozen=True, slots=True)
class Result:
    """What a command left behind."""

    args: tuple[str, ...]
    stdout: bytes
    stderr: bytes
    code: int

    @property
    def text(self) -> str:
        return self.stdout.decode()

    @property
    def talk(self) -> str:
        return self.stderr.decode(errors="replace")

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The answers an agent printed, one JSON object a line."""
        return [json.loads(line) for line in self.text.splitlines()]

    @property
    def session(self) -> str:
        """The id that ``record`` announces in its last line."""
        found = re.search(r"Session recorded: ([0-9a-f]{8})\b", self.talk)
        assert found, f"no session was announced:\n{self.talk}"
        return found[1]

    def sound(self) -> "Result":
        """Whatever its exit code: Rewind itself did not stumble."""
        assert "bug in Rewind" not in self.talk, self.talk
        assert "Exception in thread" not in self.talk, self.talk
        assert "never retrieved" not in self.talk, self.talk
        return self

    def ok(self) -> "Result":
        assert self.code == 0, f"{' '.join(self.args)} ended with {self.code}\n{self.talk}\n{self.text[-2000:]}"
        return self


def run(
    command: Sequence[str | Path],
    env: Mapping[str, str],
    *,
    cwd: Path | None = None,
    stdin: bytes = b"",
    timeout: float = PATIENCE,
) -> Result:
    """Run any command to its end; past the time limit its whole process group is ended and the test fails."""
    words = tuple(str(word) for word in command)
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env),
        cwd=cwd,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        stdout, stderr = process.communicate(timeout=PATIENCE)
        raise AssertionError(
            f"{' '.join(words)} took longer than {timeout} s\n{stderr.decode(errors='replace')}\n"
            f"{stdout[-2000:].decode(errors='replace')}"
        ) from None
    return Result(words, stdout, stderr, process.returncode)


def run_rewind(
    args: Sequence[str | Path],
    home: Path,
    env: Mapping[str, str] | None = None,
    *,
    cwd: Path | None = None,
    stdin: bytes = b"",
    timeout: float = PATIENCE,
    prefix: Sequence[str] = (),
) -> Result:
    """``rewind ARGS…`` with that store; ``prefix`` is a command that starts it in some special way."""
    settings = plain_environment(home) | dict(env or {})
    return run([*prefix, *REWIND, *args], settings, cwd=cwd, stdin=stdin, timeout=timeout).sound()


def agent_command(name: str) -> list[str]:
    """The command line of one of the agents beside this file."""
    if name.endswith(".mjs"):
        return ["node", str(NODE / name)]
    script = AGENTS / name
    return ["sh", str(script)] if name.endswith(".sh") else [sys.executable, str(script)]


def missing_node() -> str | None:
    """Why the Node agents cannot run here; None when they can."""
    if shutil.which("node") is None:
        return "Node is not installed"
    if not (NODE / "node_modules").is_dir():
        return "the Node clients are not installed: run `npm ci` in tests/support/node"
    return None
