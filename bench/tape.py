"""``python -m bench.tape``: how soon the tape of a long session gives its first answer, what memory its replay takes.

The sessions are of calls as in the main benchmark, each with another question. An agent is replayed that asks one of
them, the first or the last, and one that asks every tenth. ``waited`` is how long it waited for its first answer, from
opening its connection; ``ran`` is the whole run. Megabytes are the most that the process of the replay held. The
exponent is that of the last doubling of the steps: 1 is linear, and 0 what a first answer should have.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from bench import load, machine, traffic
from bench.dial import Route
from bench.setup import ROOT
from rewind.match.call import understand
from rewind.model.http import Chunk, HttpRequest, RequestHead, ResponseHead
from rewind.model.ids import SessionId
from rewind.model.session import SessionStart
from rewind.model.step import Ending, Reading, StepRequest, StepResponse
from rewind.model.usage import Usage
from rewind.store.journal.writer import SessionWriter

KINDS = ("first step", "last step", "every tenth")


def main() -> int:
    options = parse()
    if options.ask is not None:
        print(json.dumps(_ask(options.ask)))
        return 0
    print(f"{machine.description()}; load {machine.load():.1f} before; medians of {options.rounds}\n", flush=True)
    print("| steps | asked | waited, s | ran, s | MB |\n|---|---|---|---|---|", flush=True)
    waits: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for steps in options.steps:
        with tempfile.TemporaryDirectory(prefix="rewind-bench-") as folder:
            home = Path(folder) / "store"
            make(home, steps)
            asked = dict(zip(KINDS, ([0], [steps - 1], range(0, steps, 10)), strict=True))
            for kind, numbers in asked.items():
                taken = [_replayed(options.rewind, home, numbers) for _ in range(options.rounds)]
                waited, ran, held = (statistics.median(figures) for figures in zip(*taken, strict=True))
                waits[kind].append(waited)
                print(f"| {steps:,} | {kind} | {waited:.3f} | {ran:.2f} | {held:.0f} |", flush=True)
    if len(options.steps) > 1:
        doublings = math.log2(options.steps[-1] / options.steps[-2])
        for kind, seconds in waits.items():
            print(f"exponent of the wait, {kind}: {math.log2(seconds[-1] / seconds[-2]) / doublings:.2f}")
    return 0


def make(home: Path, steps: int) -> None:
    """A session of that many steps, as a recording writes it."""
    start = SessionStart(
        id=SessionId("7a9e0000"), name="tape", command=("agent",), cwd="/", started=1.7e9, rewind_version="bench"
    )
    writer = SessionWriter.create(home, start)
    for index in range(1, steps + 1):
        head, body = _request(traffic.call(index - 1))
        call = understand(HttpRequest(head=head, body=body), index=index)
        request = StepRequest(
            index=index,
            ts=1.7e9 + index,
            kind=call.provider.kind,
            provider=call.provider.name,
            match_key=call.key,
            head=head,
            model="gpt-5-mini",
            thread=index,
        )
        writer.request(request, body)
        raw_head, _, answered = traffic.answer(index - 1).partition(b"\r\n\r\n")
        response = StepResponse(
            ending=Ending.COMPLETE,
            head=ResponseHead(status=200, reason="OK", headers=_headers(raw_head)),
            chunks=(Chunk(900_000, len(answered)),),
            ms=1000.0,
            first_ms=900.0,
            reading=Reading(model="gpt-5-mini", text=answered[200:400].decode(), usage=Usage(input=1000, output=300)),
        )
        writer.response(index, response, answered)
    writer.end(ended=1.7e9 + steps, exit_code=0, redactions=0, remarks=())


def _request(raw: bytes) -> tuple[RequestHead, bytes]:
    raw_head, _, body = raw.partition(b"\r\n\r\n")
    method, target, _ = raw_head.split(b"\r\n")[0].decode().split()
    headers = tuple(pair for pair in _headers(raw_head) if pair[0].lower() != "authorization")
    return RequestHead(
        method=method, scheme="https", host=traffic.HOST, port=traffic.PORT, target=target, headers=headers
    ), body


def _headers(raw_head: bytes) -> tuple[tuple[str, str], ...]:
    lines = raw_head.decode("latin-1").split("\r\n")[1:]
    return tuple((name, value) for name, _, value in (line.partition(": ") for line in lines))


def _replayed(rewind: str, home: Path, numbers: Iterable[int]) -> tuple[float, float, float]:
    """What the agent waited, how long all of it took, and the most memory that was held."""
    asked = ",".join(map(str, numbers))
    agent = [sys.executable, "-m", "bench.tape", "--ask", asked]
    command = [rewind, "replay", "tape", "--home", str(home), "--", *agent]
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None, "it is a pipe"
    told = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    ran = time.perf_counter() - began
    process.stdout.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:6])} ended with {process.returncode}")
    return json.loads(told.splitlines()[0]), ran, used.ru_maxrss / 1024


def _ask(numbers: list[int]) -> float:
    """The agent: seconds until the first answer was there."""
    requests = [traffic.call(number) for number in numbers]
    route = Route.find(None, None)
    began = time.perf_counter()
    load.one_by_one(route, requests[:1])
    waited = time.perf_counter() - began
    if requests[1:]:
        load.one_by_one(route, requests[1:])
    return waited


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.tape", description=__doc__)
    parser.add_argument("--steps", type=int, nargs="*", default=[7500, 15_000, 30_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--rewind",
        default=str(Path(sys.executable).with_name("rewind")),
        metavar="FILE",
        help="the `rewind` to measure",
    )
    parser.add_argument("--ask", type=lambda text: list(map(int, text.split(","))), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
