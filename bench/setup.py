"""Everything a contender needs around it: the upstream, a folder, the cores, and how to run the load client."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench import machine
from bench.certificates import make_certificates

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 180.0
"""Seconds after which a run is given up."""
_UNWANTED = re.compile("proxy|ssl_cert|^rewind_|^pythondontwritebytecode$")


class Failed(Exception):
    """A contender did not do what was asked of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What the load client said, and how long the whole took from the first process to the end of the last."""

    figures: Mapping[str, float]
    wall: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """One benchmark's surroundings."""

    folder: Path
    upstream: "subprocess.Popen[str]"
    upstream_port: int
    upstream_ca: Path
    upstream_certificate: Path
    """With its key: whoever shows it is trusted by those who trust the CA."""
    proxy_core: int | None
    client_core: int | None

    def client(self, *arguments: str) -> list[str]:
        """The load client's command line."""
        core = () if self.client_core is None else ("--core", str(self.client_core))
        return [sys.executable, "-m", "bench.client", *arguments, *core]

    def seat_upstream(self, *, beside_client: bool) -> None:
        """With a proxy in between, the proxy gets a core for itself; without one, the upstream does."""
        machine.pin(self.upstream.pid, self.client_core if beside_client else self.proxy_core)

    def seated(self, pinned: bool) -> "Setup":
        """This, or the same with the cores left to the system: for whole runs, where starts should overlap."""
        return self if pinned else replace(self, proxy_core=None, client_core=None)

    def environment(self, **more: str) -> dict[str, str]:
        """Ours, without what would lead the client elsewhere or keep Python from keeping what it compiled."""
        kept = {name: value for name, value in os.environ.items() if not _UNWANTED.search(name.lower())}
        return {**kept, **more}

    def run(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        allowed: tuple[int, ...] = (0,),
        on_core: int | None = None,
    ) -> Run:
        """Run a command whose output ends with the load client's line."""
        began = time.perf_counter()
        done = subprocess.run(
            command,
            env=env,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            preexec_fn=lambda: machine.pin(0, on_core),  # this process has one thread
        )
        wall = time.perf_counter() - began
        if done.returncode not in allowed:
            raise Failed(
                f"{' '.join(command)}\nended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        lines = done.stdout.strip().splitlines()
        return Run(figures=json.loads(lines[-1]) if lines else {}, wall=wall)


@contextlib.contextmanager
def surroundings(*, pinned: bool) -> Iterator[Setup]:
    """The upstream runs until this ends."""
    cores = machine.cores()
    proxy_core, client_core = (cores[0], cores[1]) if pinned and len(cores) > 1 else (None, None)
    with tempfile.TemporaryDirectory(prefix="rewind-bench-") as name:
        folder = Path(name)
        ca, certificate = make_certificates(folder)
        upstream = subprocess.Popen(
            [sys.executable, "-m", "bench.upstream", str(certificate)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert upstream.stdin is not None and upstream.stdout is not None, "both are pipes"
        try:
            yield Setup(
                folder=folder,
                upstream=upstream,
                upstream_port=int(upstream.stdout.readline()),
                upstream_ca=ca,
                upstream_certificate=certificate,
                proxy_core=proxy_core,
                client_core=client_core,
            )
        finally:
            upstream.stdin.close()
            upstream.stdout.close()
            upstream.wait()
