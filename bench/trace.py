"""``python -m bench.trace``: what a step costs, against a recorder that people write themselves in a dozen lines.

That one is written here as its article tells: ``json.dumps`` and a line-buffered file. Both write the same steps to the
same disk, in turns, each step timed for itself; the goal is a median of less than 50 µs without long outputs.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import machine
from rewind import Trace

GOAL = 50.0
"""Microseconds."""
MESSAGE = {
    "role": "assistant",
    "content": "The order was paid three days ago, so it can still be refunded. " * 4,
    "refusal": None,
    "annotations": [],
    "audio": None,
    "function_call": None,
    "tool_calls": [
        {
            "id": "call_abcdefghijklmnop",
            "type": "function",
            "function": {"name": "lookup_order", "arguments": '{"order_id": 8821, "with_items": true}'},
        }
    ],
}
USAGE = {"prompt_tokens": 1200, "completion_tokens": 80, "total_tokens": 1280}
HISTORY = [{"role": "user", "content": "word " * 400} for _ in range(40)]
STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "llm_call, 0.7 KB": ("llm_call", {"turn": 3, "content": MESSAGE, "usage": USAGE}),
    "tool_call, 0.1 KB": ("tool_call", {"name": "lookup_order", "args": {"order_id": 8821}}),
    "tool_result, 2 KB": ("tool_result", {"id": "call_abcdefghijklmnop", "output": "row of a table\n" * 133}),
    "llm_call with its history, 80 KB": ("llm_call", {"messages": HISTORY, "content": MESSAGE}),
}
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
LONG: tuple[str, dict[str, Any]] = ("tool_result", {"id": "call_abcdefghijklmnop"})


class TwelveLines:
    """The recorder that people write themselves."""

    def __init__(self, path: Path) -> None:
        self.run = uuid.uuid4().hex[:8]
        self.file = path.open("a", buffering=1)

    def step(self, kind: str, /, **fields: Any) -> None:
        entry = {"ts": time.time(), "run": self.run, "kind": kind, **fields}
        self.file.write(json.dumps(entry) + "\n")

    def close(self) -> None:
        self.file.close()


def main() -> int:
    options = parse()
    load = machine.load()
    # An agent has keys, and no line may hold one: looking for them is a part of what a step costs.
    os.environ.update({name: f"sk-{name.lower()}-0123456789abcdefABCDEF" for name in KEYS})
    with tempfile.TemporaryDirectory(prefix="rewind-bench-") as folder:
        ours, theirs = Trace(Path(folder) / "ours.jsonl"), TwelveLines(Path(folder) / "theirs.jsonl")
        durable = Trace(Path(folder) / "durable.jsonl", durable=True)
        print(f"{machine.description()}; {options.steps:,} steps of each kind; load {load:.1f} before")
        print("\n| microseconds a step, median (95th of 100) | rewind.Trace | twelve lines |\n|---|---|---|")
        worst = 0.0
        for title, (kind, fields) in STEPS.items():
            mine, others = in_turns(ours.step, theirs.step, kind, fields, options.steps)
            print(f"| {title} | {shown(mine)} | {shown(others)} |")
            if "history" not in title:
                worst = max(worst, statistics.median(mine))
        kind, fields = STEPS["llm_call, 0.7 KB"]
        synced = [timed(durable.step, kind, fields) for _ in range(min(options.steps, 200))]
        print(f"| llm_call, 0.7 KB, durable | {shown(synced)} | - |")
        kind, fields = LONG
        whole = [
            timed(ours.step, kind, {**fields, "output": f"{number} " + "x" * 200_000})
            for number in range(min(options.steps, 200))
        ]
        print(f"| tool_result, 200 KB, in a blob | {shown(whole)} | - |")
        for trace in (ours, theirs, durable):
            trace.close()
    reached = worst < GOAL
    print(f"\n{'reached' if reached else 'MISSED'}: {worst:.1f} µs at most, the goal is {GOAL:.0f} µs")
    return 0 if reached else 1


Step = Callable[..., None]


def in_turns(
    ours: Step, theirs: Step, kind: str, fields: dict[str, Any], steps: int
) -> tuple[list[float], list[float]]:
    """So that whatever else the machine does hits both."""
    mine, others = [], []
    for _ in range(steps):
        mine.append(timed(ours, kind, fields))
        others.append(timed(theirs, kind, fields))
    return mine, others


def timed(step: Step, kind: str, fields: dict[str, Any]) -> float:
    began = time.perf_counter_ns()
    step(kind, **fields)
    return (time.perf_counter_ns() - began) / 1000


def shown(taken: list[float]) -> str:
    return f"{statistics.median(taken):.1f} ({statistics.quantiles(taken, n=20)[-1]:.1f})"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.trace", description="What a step of a trace costs.")
    parser.add_argument("--steps", type=int, default=5000, metavar="N", help="of each kind (5,000)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
