"""``python -m bench.inprocess``: Rewind beside recorders that work inside the agent's process.

The agent (``inprocess_agent.py``) makes the same calls with the OpenAI SDK under each of them, recorded and replayed,
in turns. Each has an environment of its own under ``bench/.contenders``, made on first use, with the same SDK. vcrpy
and cassetter match on the body, too, which is not their default: without it they answer with whatever comes next.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench import machine
from bench.setup import ROOT, Failed, Setup, surroundings

AGENT = Path(__file__).with_name("inprocess_agent.py")
ENVIRONMENTS = Path(__file__).parent / ".contenders"
OURS = ("direct", "rewind", "rewind on the wire")
OTHERS = ("vcrpy", "cassetter", "agent-rewind", "reeltime")
ROWS = {
    "record_call": "a call of 4 KB, recorded, ms",
    "replay_call": "a call of 4 KB, replayed, ms",
    "record_turn": "a growing conversation, recorded, mean ms",
    "replay_turn": "the same, replayed, mean ms",
    "record_run": "the whole run, recorded, ms",
    "replay_run": "the whole run, replayed, ms",
    "disk": "disk per call, bytes",
}
Figures = dict[str, dict[str, list[float]]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.inprocess", description="Beside recorders in the process.")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--calls", type=int, default=60, metavar="N")
    parser.add_argument("--turns", type=int, default=40, metavar="N", help="of the growing conversation")
    parser.add_argument("--without", action="append", default=[], choices=(*OURS, *OTHERS), metavar="NAME")
    options = parser.parse_args()
    names = [name for name in (*OURS, *OTHERS) if name not in options.without]
    load = machine.load()
    try:
        for name in names:
            install(name)
        with surroundings(pinned=False) as setup:
            figures = measure(setup, names, options.rounds, options.calls, options.turns)
    except Failed as problem:
        print(f"bench: {problem}", file=sys.stderr)
        return 1
    print(
        f"{machine.description()}; {'; '.join(version(name) for name in names if name in OTHERS)}; "
        f"load {load:.1f} before, {machine.load():.1f} after; medians of {options.rounds} rounds\n"
    )
    print("\n".join(table(figures, names)))
    return 0


def measure(setup: Setup, names: list[str], rounds: int, calls: int, turns: int) -> Figures:
    figures: Figures = {row: {name: [] for name in names} for row in ROWS}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        turn = number % len(names)
        for name in [*names[turn:], *names[:turn]]:
            folder = setup.folder / "inprocess" / name.replace(" ", "-")
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for mode in ("record",) if name == "direct" else ("record", "replay"):
                began = time.perf_counter()
                told = run(setup, name, mode, folder, calls, turns)
                figures[f"{mode}_run"][name].append(1000 * (time.perf_counter() - began))
                figures[f"{mode}_call"][name].append(told["call"])
                figures[f"{mode}_turn"][name].append(told["turn"])
                if mode == "record" and name != "direct":
                    figures["disk"][name].append(stored(folder) / (calls + turns))
    return figures


def run(setup: Setup, name: str, mode: str, folder: Path, calls: int, turns: int) -> dict[str, float]:
    environment = setup.environment(
        BENCH_PORT=str(setup.upstream_port), BENCH_CA=str(setup.upstream_ca), SSL_CERT_FILE=str(setup.upstream_ca)
    )
    agent = [str(AGENT), name, mode, str(folder / "tape"), str(calls), str(turns)]
    command = COMMANDS.get(name, lambda *_given: [str(python(name)), *agent])(setup, mode, folder, agent)
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"call"')]
    # 1: the agent printed other times than when it was recorded. A miss of Rewind's would be 4.
    if done.returncode not in (0, 1) or not lines:
        raise Failed(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return {key: float(value) for key, value in json.loads(lines[-1]).items()}


def _rewind_on_the_wire(setup: Setup, mode: str, folder: Path, agent: list[str]) -> list[str]:
    command = [str(Path(sys.executable).with_name("rewind")), "--home", str(folder / "home")]
    if mode == "replay":
        return [*command, "replay", "bench"]
    where = ("--connect-to", f"api.openai.com:443:127.0.0.1:{setup.upstream_port}")
    return [
        *command,
        "record",
        "--name",
        "bench",
        *where,
        "--upstream-ca",
        str(setup.upstream_ca),
        "--",
        sys.executable,
        *agent,
    ]


def _reeltime(_setup: Setup, mode: str, folder: Path, agent: list[str]) -> list[str]:
    tape = [str(python("reeltime").with_name("tape")), "--tape-dir", str(folder / "tape")]
    return [*tape, "run", str(python("reeltime")), *agent] if mode == "record" else [*tape, "replay", "last"]


COMMANDS: dict[str, Callable[[Setup, str, Path, list[str]], list[str]]] = {
    "rewind on the wire": _rewind_on_the_wire,
    "reeltime": _reeltime,
}


def python(name: str) -> Path:
    return Path(sys.executable) if name in OURS else ENVIRONMENTS / name / "bin" / "python"


def install(name: str) -> None:
    if name in OURS or python(name).exists():
        return
    print(f"Installing {name} into an environment of its own …", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENTS / name)], check=True)
    pip = [str(python(name)), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    constraints = ("-c", str(ROOT / "requirements" / "constraints.txt"))
    subprocess.run([*pip, *constraints, name, "openai"], check=True, stdout=sys.stderr)


def version(name: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    done = subprocess.run([str(python(name)), "-c", code], capture_output=True, text=True, check=True)
    return f"{name} {done.stdout.strip()}"


def stored(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def table(figures: Figures, names: list[str]) -> list[str]:
    """Medians, and in brackets the lowest and the highest round; the rank is that of Rewind in process."""
    lines = [f"| | {' | '.join(names)} | rank |", f"|{'---|' * (len(names) + 2)}"]
    for row, title in ROWS.items():
        middle = {name: statistics.median(values) for name, values in figures[row].items() if values}
        cells = [
            f"{middle[name]:,.2f} ({min(figures[row][name]):,.2f}–{max(figures[row][name]):,.2f})"
            if name in middle
            else "—"
            for name in names
        ]
        recorders = sorted(
            (name for name in middle if name not in ("direct", "rewind on the wire")), key=middle.__getitem__
        )
        place = f"{recorders.index('rewind') + 1} of {len(recorders)}" if "rewind" in recorders else "—"
        lines.append(f"| {title} | {' | '.join(cells)} | {place} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
