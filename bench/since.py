"""``python -m bench.since``: how long it takes to say since when a value has been there.

The sessions are real journals on the disk, without bodies. Only the last one has the new system prompt, so every
journal has to be looked through. What was there before is in all the others, or in none of them.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench import machine
from bench.journals import make_sessions
from rewind.store.journal.first_seen import CallField, FieldValue, first_seen

STEPS = 100
"""In each session."""
OLD, NEW, ABSENT = "0a" * 6, "0b" * 6, "0c" * 6


def main() -> int:
    options = parse()
    load = machine.load()
    with tempfile.TemporaryDirectory(prefix="rewind-bench-") as folder:
        home = Path(folder) / "store"
        print(f"making {options.sessions:,} sessions", file=sys.stderr)
        last = options.sessions - 1
        make_sessions(
            home, options.sessions, STEPS, last=time.time(), seed=1, system=lambda nth: NEW if nth == last else OLD
        )
        size = sum(file.stat().st_size for file in home.rglob("journal.jsonl"))
        print(
            f"{machine.description()}; {options.sessions:,} sessions of {STEPS} steps, "
            f"{size / 1e9:.2f} GB; load {load:.1f} before"
        )
        print("\n| | median, s | slowest, s |\n|---|---|---|")
        for title, old, before in (
            ("the old prompt is in all others", OLD, last),
            ("the old prompt is in none", ABSENT, 0),
        ):
            taken = [measure(home, old, before) for _ in range(options.rounds)]
            print(f"| {title} | {statistics.median(taken):.2f} | {max(taken):.2f} |")
    return 0


def measure(home: Path, old: str, before: int) -> float:
    began = time.perf_counter()
    seen = first_seen(home, FieldValue(field=CallField.SYSTEM, value=NEW), old=old)
    taken = time.perf_counter() - began
    assert seen is not None and seen.before == before and seen.unread == 0, seen
    return taken


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.since", description="Since when a value has been there, over a whole store."
    )
    parser.add_argument("--sessions", type=int, default=10_000, metavar="N", help="in the store (10,000)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="how often each is measured (5)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
