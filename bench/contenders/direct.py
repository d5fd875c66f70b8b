"""No proxy: the client talks to the provider itself. What the others are compared with."""

import subprocess
import sys
import time

from bench.setup import Run, Setup


class Direct:
    name = "direct"

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    def prepare(self) -> None:
        self.record("warm-up", "calls")

    def help_command(self) -> list[str]:
        return [sys.executable, "-c", "pass"]

    def record_true(self) -> float:
        began = time.perf_counter()
        subprocess.run(["true"], check=True)
        return time.perf_counter() - began

    def record(self, name: str, *client: str, pinned: bool = True) -> Run:
        setup = self._setup.seated(pinned)
        setup.seat_upstream(beside_client=False)
        where = ("--direct", f"127.0.0.1:{setup.upstream_port}", "--ca", str(setup.upstream_ca))
        command = setup.client(*client, *where, "--watch", str(setup.upstream.pid))
        return setup.run(command, setup.environment())

    def replay(self, name: str, *client: str, pinned: bool = True) -> Run:
        """There is nothing to replay; the provider answers again."""
        return self.record(name, *client, pinned=pinned)

    def stored(self, name: str) -> int:
        return 0
