"""Rewind as users start it, with or without the optional uvloop."""

import os
import subprocess
import sys
import time
from pathlib import Path

from bench.setup import Run, Setup
from bench.traffic import HOST, PORT


class Rewind:
    def __init__(self, setup: Setup, *, uvloop: bool, before: Path | None = None) -> None:
        """``before`` is the ``rewind`` of another checkout, for a comparison with an earlier commit."""
        self.name = "before" if before else "rewind+uvloop" if uvloop else "rewind"
        self._setup = setup
        self._home = setup.folder / f"home-{self.name}"
        self._command = str(before or Path(sys.executable).with_name("rewind"))
        self._variables = {"REWIND_HOME": str(self._home)}
        if not uvloop:
            self._variables["PYTHONPATH"] = self._hide_uvloop()

    def prepare(self) -> None:
        self._home.mkdir(mode=0o700)
        self.record("warm-up", "calls")
        self.replay("warm-up", "calls")

    def help_command(self) -> list[str]:
        return [self._command, "--help"]

    def record_true(self) -> float:
        began = time.perf_counter()
        env = self._setup.environment(**self._variables)
        subprocess.run(
            [self._command, "record", "true"], env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True
        )
        return time.perf_counter() - began

    def record(self, name: str, *client: str, pinned: bool = True) -> Run:
        setup = self._setup.seated(pinned)
        setup.seat_upstream(beside_client=True)
        to_upstream = f"{HOST}:{PORT}:127.0.0.1:{setup.upstream_port}"
        options = ("--name", name, "--connect-to", to_upstream, "--upstream-ca", str(setup.upstream_ca))
        command = [self._command, "record", *options, "--", *setup.client(*client, "--watch", "parent")]
        return setup.run(command, setup.environment(**self._variables), on_core=setup.proxy_core)

    def replay(self, name: str, *client: str, pinned: bool = True) -> Run:
        setup = self._setup.seated(pinned)
        command = [self._command, "replay", name, "--", *setup.client(*client, "--watch", "parent")]
        # 1: the client printed other figures than when it was recorded. A miss would be 4.
        return setup.run(command, setup.environment(**self._variables), allowed=(0, 1), on_core=setup.proxy_core)

    def stored(self, name: str) -> int:
        """All files of the newest session; a benchmark asks right after recording it."""
        newest = max((self._home / "sessions").iterdir(), key=lambda folder: folder.name)
        return sum(file.stat().st_size for file in newest.rglob("*") if file.is_file())

    def _hide_uvloop(self) -> str:
        """A folder whose ``uvloop`` cannot be imported, as where the ``speed`` extra is not installed."""
        folder = self._setup.folder / "no-uvloop"
        folder.mkdir(exist_ok=True)
        (folder / "uvloop.py").write_text("raise ImportError('hidden by the benchmark')\n")
        return os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
