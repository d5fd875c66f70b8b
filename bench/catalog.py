"""``python -m bench.catalog``: how fast new sessions reach the catalog, and what is asked of it then.

The sessions are real journals on the disk, without bodies (nothing measured here reads one). Every figure is that of a
process of its own, from its start to its end; only the catch-up is timed inside, with the loading of DuckDB and of
the prices.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import goals, machine
from bench.journals import make_sessions
from bench.setup import ROOT

STEPS = 100
"""In each session."""
PATIENCE = 900.0
CATCH_UP = """
import sys, time
from pathlib import Path
from rewind.reading.prices import load_prices
from rewind.store.catalog.database import Catalog
began = time.perf_counter()
Catalog(Path(sys.argv[1]), prices=load_prices()).catch_up()
print(time.perf_counter() - began)
"""

Figures = dict[str, list[float]]


def main() -> int:
    options = parse()
    load = machine.load()
    with tempfile.TemporaryDirectory(prefix="rewind-bench-") as folder:
        figures = measure(Path(folder), options.sessions, options.new, options.rounds, options.before)
    if options.json:
        print(json.dumps({"sessions": options.sessions, "load_before": load, "figures": figures}, indent=2))
        return 0
    print(
        f"{machine.description()}; {options.sessions:,} sessions of {STEPS} steps; "
        f"load {load:.1f} before, {machine.load():.1f} after"
    )
    print("\n| | median | slowest |\n|---|---|---|")
    for name, values in figures.items():
        print(f"| {TITLES[name].format(new=options.new)} | {statistics.median(values):,.2f} | {max(values):,.2f} |")
    print()
    print("\n".join(goals.catalog_standing({name: statistics.median(values) for name, values in figures.items()})))
    return 0


TITLES = {
    "first_fill": "building the whole catalog, s",
    "catalog_size": "catalog.duckdb, MB",
    "catch_up": "catch-up of {new:,} new sessions, s",
    "catch_up_alone": "the same in a store that has no others, s",
    "stats": "rewind stats, s",
    "stats_by_name": "rewind stats --by name, s",
    "list": "rewind list, s",
    "list_status": "rewind list --status failed, s",
    "list_model": "rewind list --model sonnet, s",
    "list_json": "rewind list --json (all sessions), s",
    "list_all": "rewind list --limit 0, s",
}


def measure(folder: Path, sessions: int, new: int, rounds: int, before: str | None = None) -> Figures:
    home, figures = folder / "store", Figures()
    now = time.time()
    _say(f"making {sessions:,} sessions")
    make_sessions(home, sessions, STEPS, last=now, seed=1)
    _say("reading them for the first time")
    figures["first_fill"] = [catch_up(home)]
    figures["catalog_size"] = [(home / "catalog.duckdb").stat().st_size / 1e6]
    for name, arguments in {
        "stats": ("stats",),
        "stats_by_name": ("stats", "--by", "name"),
        "list": ("list",),
        "list_status": ("list", "--status", "failed"),
        "list_model": ("list", "--model", "sonnet"),
        "list_json": ("list", "--json"),
        "list_all": ("list", "--limit", "0"),
    }.items():
        _say(" ".join(("rewind", *arguments)))
        figures[name], earlier = [], []
        for _ in range(rounds):
            figures[name].append(command(home, *arguments))
            if before:
                earlier.append(command(home, *arguments, python=before))
        if before:
            now, then = statistics.median(figures[name]), statistics.median(earlier)
            _say(f"  now {now:.3f} s, before {then:.3f} s: {now / then:.3f}")
    _say(f"{new:,} new sessions")
    figures["catch_up"] = [catch_up_with(home, new, now, seed) for seed in range(2, 2 + rounds)]
    figures["catch_up_alone"] = [
        catch_up_with(folder / f"alone-{seed}", new, now, seed) for seed in range(2, 2 + rounds)
    ]
    return {name: figures[name] for name in TITLES}


def catch_up_with(home: Path, new: int, now: float, seed: int) -> float:
    """Seconds to bring in sessions that were not there before. They are gone again afterwards."""
    made = make_sessions(home, new, STEPS, last=now, seed=seed)
    taken = catch_up(home)
    for folder in made:
        shutil.rmtree(folder)
    catch_up(home)
    return taken


def catch_up(home: Path) -> float:
    return float(_run([sys.executable, "-c", CATCH_UP, str(home)]))


def command(home: Path, *arguments: str, python: str = sys.executable) -> float:
    """Seconds from start to end."""
    began = time.perf_counter()
    _run([python, "-m", "rewind", "--home", str(home), *arguments])
    return time.perf_counter() - began


def _run(arguments: list[str]) -> str:
    done = subprocess.run(
        arguments, check=True, capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, stdin=subprocess.DEVNULL
    )
    return done.stdout


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.catalog", description="rewind stats, list and the catalog behind them."
    )
    parser.add_argument("--sessions", type=int, default=10_000, metavar="N", help="in the store (10,000)")
    parser.add_argument("--new", type=int, default=1_000, metavar="N", help="that come anew (1,000)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="how often each is measured (5)")
    parser.add_argument("--before", metavar="PYTHON", help="of another checkout: its commands are run in turns")
    parser.add_argument("--json", action="store_true", help="every round's figures, for programs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
