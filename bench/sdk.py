"""``python -m bench.sdk``: what ``import rewind``, a session, a recorded call and a tool cost inside one program.

The calls are those of one ``httpx`` client to a provider on this machine, in turns: directly, recorded, replayed. Read
the ratios; the milliseconds depend on the machine and on what else it does.
"""

import argparse
import contextlib
import json
import os
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx

import rewind
from bench import machine, traffic
from bench.setup import Setup, surroundings

IMPORTS = 15
SESSIONS = 30
BODY = 200
"""Characters of a tool's result."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.sdk")
    parser.add_argument("--calls", type=int, default=300, metavar="N", help="calls of each kind in a round")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    options = parser.parse_args()
    for name in [name for name in os.environ if "proxy" in name.lower() or name.startswith("REWIND_")]:
        del os.environ[name]
    load = machine.load()
    with surroundings(pinned=False) as setup:
        figures = measure(setup, options.calls, options.rounds)
    print(f"{machine.description()}; load {load:.1f} before, {machine.load():.1f} after")
    print()
    for line in told(figures):
        print(line)
    return 0


def measure(setup: Setup, calls: int, rounds: int) -> dict[str, float]:
    """Medians, in milliseconds."""
    found: dict[str, list[float]] = {
        "import rewind": [imported("import rewind") for _ in range(IMPORTS)],
        "import rewind and use the decorators": [
            imported("import rewind; rewind.session; rewind.tool; rewind.note") for _ in range(IMPORTS)
        ],
    }

    def note(kind: str, values: list[float]) -> None:
        found.setdefault(kind, []).append(statistics.median(values))

    options: dict[str, Any] = {
        "home": setup.folder / "store",
        "connect_to": [f"{traffic.HOST}:443:127.0.0.1:{setup.upstream_port}"],
        "upstream_ca": setup.upstream_ca,
    }
    with direct(setup) as ask_directly, httpx.Client() as client:

        def ask(number: int) -> None:
            client.post(f"https://{traffic.HOST}/v1/chat/completions", content=body(number)).raise_for_status()

        @rewind.session("warm-up", **options)
        def warm_up() -> None:
            ask(1)

        warm_up()
        for _ in range(rounds):
            note("call, direct", timed(ask_directly, calls))
            with rewind.session("bench", mode="record", **options):
                note("call, recorded", timed(ask, calls))
            with rewind.session("bench", mode="replay", **options):
                note("call, replayed", timed(ask, calls))
            note("tool, plain function", timed(plain_tool, calls))
            note("tool, outside a session", timed(tool, calls))
            with rewind.session("tools", mode="record", **options):
                note("tool, recorded", timed(tool, calls))
            with rewind.session("tools", mode="replay", **options):
                note("tool, replayed", timed(tool, calls))

        def session(mode: Any) -> Callable[[int], None]:
            def once(_number: int) -> None:
                with rewind.session("empty", mode=mode, **options):
                    pass

            return once

        for mode in ("record", "replay", "off"):
            note(f"session, {mode}", timed(session(mode), SESSIONS))
    return {kind: statistics.median(values) for kind, values in found.items()}


def imported(code: str) -> float:
    """What it adds to a program that does nothing."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", code], check=True)
    whole = time.perf_counter() - began
    began = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
    return (whole - (time.perf_counter() - began)) * 1000


@contextlib.contextmanager
def direct(setup: Setup) -> Iterator[Callable[[int], None]]:
    """The same call without Rewind."""
    context = ssl.create_default_context(cafile=str(setup.upstream_ca))
    with httpx.Client(verify=context) as client:

        def ask(number: int) -> None:
            client.post(
                f"https://127.0.0.1:{setup.upstream_port}/v1/chat/completions",
                content=body(number),
                headers={"host": traffic.HOST},
                extensions={"sni_hostname": traffic.HOST},
            ).raise_for_status()

        yield ask


def body(number: int) -> bytes:
    asked = [
        {"role": "system", "content": traffic.SYSTEM_PROMPT},
        {"role": "user", "content": f"{traffic.MARK.decode()}{number:08d}"},
    ]
    return json.dumps({"model": "gpt-4o-mini", "messages": asked}).encode()


def plain_tool(number: int) -> dict[str, object]:
    return {"number": number, "text": "x" * BODY}


tool = rewind.tool(name="lookup")(plain_tool)


def timed(work: Callable[[int], object], count: int) -> list[float]:
    taken = []
    for number in range(count):
        began = time.perf_counter()
        work(number)
        taken.append((time.perf_counter() - began) * 1000)
    return taken


def told(figures: dict[str, float]) -> Iterator[str]:
    for kind, value in figures.items():
        against = next(
            (first for first in ("call, direct", "tool, plain function") if first.split(",")[0] == kind.split(",")[0]),
            None,
        )
        ratio = ""
        if against is not None and against != kind:
            more = value - figures[against]
            ratio = f"   {value / figures[against]:6.2f} × {against}, +{more:.3f} ms"
        yield f"{kind:38} {value:8.3f} ms{ratio}"


if __name__ == "__main__":
    sys.exit(main())
