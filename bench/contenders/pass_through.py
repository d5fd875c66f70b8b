"""The physical limit: a process that only hands bytes on, and one that also stores them (``bench/limit.py``)."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench import machine
from bench.contenders import NotOffered
from bench.setup import ROOT, Run, Setup


class PassThrough:
    def __init__(self, setup: Setup, *, stores: bool) -> None:
        self.name = "limit+store" if stores else "limit"
        self._setup = setup
        self._stores = stores

    def prepare(self) -> None:
        self.record("warm-up", "calls")

    def help_command(self) -> list[str]:
        raise NotOffered

    def record_true(self) -> float:
        began = time.perf_counter()
        with self._process("true", on_core=None):
            subprocess.run(["true"], check=True)
        return time.perf_counter() - began

    def record(self, name: str, *client: str, pinned: bool = True) -> Run:
        setup = self._setup.seated(pinned)
        setup.seat_upstream(beside_client=True)
        began = time.perf_counter()
        with self._process(name, on_core=setup.proxy_core) as (process, port):
            env = setup.environment(HTTPS_PROXY=f"http://127.0.0.1:{port}", SSL_CERT_FILE=str(setup.upstream_ca))
            run = setup.run(setup.client(*client, "--watch", str(process.pid)), env)
        return Run(figures=run.figures, wall=time.perf_counter() - began)

    def replay(self, name: str, *client: str, pinned: bool = True) -> Run:
        raise NotOffered

    def stored(self, name: str) -> int:
        if not self._stores:
            raise NotOffered
        return self._store(name).stat().st_size

    def _store(self, name: str) -> Path:
        return self._setup.folder / f"{self.name}-{name}"

    @contextlib.contextmanager
    def _process(self, name: str, *, on_core: int | None) -> Iterator[tuple["subprocess.Popen[str]", int]]:
        setup = self._setup
        store = (str(self._store(name)),) if self._stores else ()
        command = [sys.executable, "-m", "bench.limit", str(setup.upstream_certificate), str(setup.upstream_port)]
        with subprocess.Popen(
            [*command, *store],
            cwd=ROOT,
            env=setup.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: machine.pin(0, on_core),  # this process has one thread
        ) as process:
            assert process.stdin is not None and process.stdout is not None, "both are pipes"
            yield process, int(process.stdout.readline())
            process.stdin.close()
            process.wait()
