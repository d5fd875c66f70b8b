"""An answer of any size is recorded, replayed, checked and looked at in little memory."""

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rewind.errors import ExitCode
from support.cli import KEYS, REWIND, plain_environment
from support.effort import effort, sample
from support.lab import Lab
from support.script import Answer, Playbook, Request

pytestmark = pytest.mark.e2e

SIZE = effort(72, 1024)
"""MB of the answer."""
MOST = 150
"""MB that Rewind may take, all in all."""
PIECE = bytes(range(256)) * 4096
MakeLab = Callable[[Playbook], Lab]
AGENT = """
import hashlib, os, ssl, urllib.request
request = urllib.request.Request("https://api.openai.com/v1/chat/completions", data=b'{"model":"m","messages":[]}')
digest, size = hashlib.sha256(), 0
with urllib.request.urlopen(request) as answer:
    while block := answer.read(1 << 20):
        digest.update(block)
        size += len(block)
print(size, digest.hexdigest())
"""


def pieces() -> tuple[bytes, ...]:
    """Every MB differs from the others, and does not pack well."""
    return tuple(number.to_bytes(8, "big") + PIECE[8:] for number in range(SIZE))


def long_answer(framing: str) -> Playbook:
    def play(request: Request) -> Answer:
        headers = (("content-type", "application/octet-stream"),)
        return Answer(headers=headers, pieces=pieces(), framing="chunked" if framing == "chunked" else "length")

    return play


def watched(lab: Lab, words: list[str], env: Mapping[str, str], exit_code: int = 0) -> tuple[str, int]:
    """What the command printed, and the most MB that its process had."""
    out = lab.folder / "out"
    with out.open("wb") as stdout:
        process = subprocess.Popen(
            [*REWIND, *words],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.STDOUT,
            env=plain_environment(lab.home, **env),
            cwd=lab.folder,
        )
        most = 0
        while process.poll() is None:
            most = max(most, _peak(process.pid))
            time.sleep(0.01)
    text = out.read_text(errors="replace")
    assert process.returncode == exit_code, text[-2000:]
    return text, most


def _peak(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells a process's memory")
@pytest.mark.parametrize("framing", sample(["chunked", "length"], 2))
@pytest.mark.timeout(300)
def test_a_long_answer_takes_little_memory_wherever_it_goes(lab: MakeLab, framing: str) -> None:
    bench = lab(long_answer(framing))
    script = bench.folder / "agent.py"
    script.write_text(AGENT)
    whole = hashlib.sha256(b"".join(pieces()))
    told = f"{SIZE << 20} {whole.hexdigest()}"
    peaks: dict[str, int] = {}
    shown, peaks["record"] = watched(
        bench, ["record", "--name", "long", *bench.upstream, "--", sys.executable, str(script)], KEYS
    )
    assert told in shown
    shown, peaks["replay"] = watched(bench, ["replay", "long"], {})
    assert told in shown, shown
    shown, peaks["inspect"] = watched(bench, ["inspect", "long"], {})
    shown, peaks["inspect step"] = watched(bench, ["inspect", "long:1"], {})
    assert "more bytes are not shown" in shown
    shown, peaks["json"] = watched(bench, ["inspect", "long:1", "--json"], {})
    body = json.loads(shown)["response"]["body"]
    assert body["not_shown"] == (SIZE << 20) - (4 << 20)
    _, peaks["verify"] = watched(bench, ["verify", "long"], {})
    shown, peaks["export"] = watched(bench, ["export", "long", "-o", "long.rw"], {}, ExitCode.ENVIRONMENT)
    assert "The answer of step 1 has" in shown, shown
    assert not (bench.folder / "long.rw").exists()
    assert max(peaks.values()) <= MOST, peaks
