"""``python -m bench.reading``: how long the commands that read take on long sessions, and how that grows.

The sessions are conversations of an agent with a tool, 2 kB asked and 1 kB answered a turn, all of it repeated in the
next. They are whole ones, as a recording writes them. Each command is run as a user runs it, in a process of its own;
seconds are those that pass, megabytes the most it held. The exponent is that of the last doubling of the steps, less
the time of the same command on two steps, which is its start-up: 1 is linear.

``--growth`` prints how work grows, in CPU seconds at n, 2n and 4n: recording, replay and HAR against the bytes that
were moved, which grow with the square of the turns, and everything else against steps.
"""

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import machine, traffic
from bench.compare import MODEL, PROMPT, write_step
from bench.contenders.rewind import Rewind
from bench.setup import Run, Setup, surroundings
from rewind.conversation.threads import Threads
from rewind.model.ids import SessionId
from rewind.model.session import SessionStart
from rewind.store.journal.writer import SessionWriter

ASKED, SAID = 2000, 1000
"""Characters a turn."""
PATIENCE = 900.0
START_UP = 2
"""Steps of the session whose time is taken off."""


@dataclass(frozen=True, slots=True)
class Command:
    """What is measured."""

    title: str
    arguments: str
    """With the names of the two sessions, a late step, one in the middle, and a folder to write to."""
    fresh: bool = False
    """Whether what is derived from the sessions is thrown away before."""
    before: str = ""
    """Another command that must have been run."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a command took."""

    seconds: float
    cpu: float
    megabytes: float
    written: int
    """Bytes of the files that it wrote."""


GROWTH = ("inspect", "messages", "verify", "first search", "diff", "bisect", "export", "import", "inspect a file")
TURNS = (100, 200, 400)
"""Of the conversations that are recorded and replayed to see how that grows."""
KINDS = ("base", "other", "noted", "noted-other")
"""No message and no answer of the others is that of ``base``; in the last two the agent changes what it sends back of
an answer, so that no call simply goes on from another."""

COMMANDS = (
    Command("inspect", "inspect {base}"),
    Command("inspect, one step", "inspect {base}:{late}"),
    Command("inspect --context", "inspect {base}:{late} --context"),
    Command("inspect, a tool call", "inspect {base}:{middle}.1"),
    Command("messages", "messages {base}"),
    Command("export", "export {base} -o {out}/x.rw"),
    Command("export --har", "export {base} --har -o {out}/x.har"),
    Command("export --markdown", "export {base} --markdown -o {out}/x.md"),
    Command("import", "import {out}/x.rw --home {out}/store", before="export {base} -o {out}/x.rw"),
    Command("inspect a file", "inspect {out}/x.rw", before="export {base} -o {out}/x.rw"),
    Command("verify", "verify {base}"),
    Command("first search", "search quokkaberry", fresh=True),
    Command("diff", "diff {base} {other}"),
    Command("bisect", "bisect {base} {other}"),
    Command("diff, histories edited", "diff noted-{n} noted-other-{n}"),
    Command("bisect, histories edited", "bisect noted-{n} noted-other-{n}"),
)


def main() -> int:
    options = parse()
    if options.make:
        home, steps, each = options.make
        for kind in KINDS:
            make(Path(home), int(steps), int(each) or sys.maxsize, kind)
        return 0
    print(f"{machine.description()}; load {machine.load():.1f} before", flush=True)
    with tempfile.TemporaryDirectory(prefix="rewind-bench-") as folder:
        homes = {n: (options.stores or Path(folder)) / f"{options.turns}x{n}" for n in (START_UP, *options.steps)}
        for n, home in homes.items():
            if not home.exists():
                # Elsewhere: a child that is started is charged for what its parent holds in memory at that moment.
                arguments = (str(home), str(n), str(options.turns))
                subprocess.run([sys.executable, "-m", "bench.reading", "--make", *arguments], check=True)
        told = f"{options.turns} turns a conversation" if options.turns else "one conversation"
        (print_growth if options.growth else print_commands)(options, homes, told)
    return 0


def print_commands(options: argparse.Namespace, homes: dict[int, Path], told: str) -> None:
    print(f"\n{told}, {ASKED} + {SAID} characters a turn; s / MB\n")
    print(f"| command | {' | '.join(f'{n:,}' for n in options.steps)} | exponent |")
    print(f"|---|{'---|' * len(options.steps)}---|")
    for command in COMMANDS:
        if options.only and not any(word in command.title for word in options.only):
            continue
        taken = {n: measured(command, n, homes[n], options.rounds) for n in homes}
        work = {n: taken[n].seconds - taken[START_UP].seconds for n in options.steps}
        cells = [f"{taken[n].seconds:.2f} / {taken[n].megabytes:.0f}" for n in options.steps]
        print(f"| {command.title} | {' | '.join(cells)} | {exponent(work)} |", flush=True)


def exponent(work: dict[int, float]) -> str:
    """How work grows with what it is done on, from the least to the most."""
    first, last = min(work), max(work)
    if len(work) < 2 or work[first] < 0.02:
        return "—"
    return f"{math.log(work[last] / work[first]) / math.log(last / first):.2f}"


def measured(command: Command, n: int, home: Path, rounds: int) -> Taken:
    """The least time of all rounds, and the most megabytes."""
    taken = [run(command, n, home) for _ in range(rounds)]
    return Taken(
        min(one.seconds for one in taken),
        min(one.cpu for one in taken),
        max(one.megabytes for one in taken),
        taken[0].written,
    )


def run(command: Command, n: int, home: Path) -> Taken:
    if command.fresh:
        for derived in home.glob("search.duckdb*"):
            derived.unlink()
    with tempfile.TemporaryDirectory(prefix="rewind-bench-out-") as out:

        def words_of(told: str) -> list[str]:
            late, middle = max(1, n - 1), max(1, n // 2)
            filled = told.format(n=n, base=name(n), other=name(n, "other"), late=late, middle=middle, out=out)
            words = [sys.executable, "-m", "rewind", *filled.split()]
            return words if "--home" in words else [*words, "--home", str(home)]

        if command.before:
            subprocess.run(words_of(command.before), check=True, capture_output=True)
        arguments = words_of(command.arguments)
        began = time.perf_counter()
        child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert child.stderr is not None
        problem = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        written = sum(path.stat().st_size for path in Path(out).iterdir() if path.is_file())
    assert child.returncode in (0, 1), (arguments, problem.decode())
    return Taken(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, written)


# ── growth ───────────────────────────────────────────────────────────────────────────────────────────────────


def print_growth(options: argparse.Namespace, homes: dict[int, Path], told: str) -> None:
    print(f"\n{told}; CPU seconds beyond start-up, least of {options.rounds}; the last column is the exponent\n")
    print("| work | grows with | n | 2n | 4n | exponent |\n|---|---|---|---|---|---|")
    with surroundings(pinned=False) as setup:
        for title, work, moved in traffic_growth(setup, options.rounds):
            row(title, "bytes moved", [f"{turns} turns" for turns in TURNS], work, moved)
    commands = {command.title: command for command in COMMANDS}
    for title in ("export --har", *GROWTH):
        taken = {n: measured(commands[title], n, homes[n], options.rounds) for n in homes}
        work = [taken[n].cpu - taken[START_UP].cpu for n in options.steps]
        sizes = [taken[n].written if title == "export --har" else n for n in options.steps]
        what = "bytes moved" if title == "export --har" else "steps"
        row(title, what, [f"{n:,} steps" for n in options.steps], work, sizes)


def row(title: str, what: str, names: list[str], work: list[float], sizes: list[int]) -> None:
    cells = " | ".join(f"{seconds:.2f} ({named})" for seconds, named in zip(work, names, strict=True))
    print(f"| {title} | {what} | {cells} | {exponent(dict(zip(sizes, work, strict=True)))} |", flush=True)


def traffic_growth(setup: Setup, rounds: int) -> Iterator[tuple[str, list[float], list[int]]]:
    """Recording and replay of growing conversations: what is done, the CPU of ours at each length, and bytes moved."""
    contender = Rewind(setup, uvloop=False)
    contender.prepare()

    def used(act: Callable[..., Run], turns: int) -> float:
        """Without the agent's own, and without a run of two calls."""
        taken = []
        for count in (START_UP, turns):
            before = machine.children_cpu_seconds()
            ran = act(f"growth-{count}", "turns", "--calls", str(count), pinned=False)
            taken.append(machine.children_cpu_seconds() - before - ran.figures["client_cpu"])
        return taken[1] - taken[0]

    moved = [sum(map(len, traffic.conversation(turns))) + turns * len(traffic.answer(1)) for turns in TURNS]
    for title, act in (("record", contender.record), ("replay", contender.replay)):
        yield title, [min(used(act, turns) for _ in range(rounds)) for turns in TURNS], moved


# ── the sessions ─────────────────────────────────────────────────────────────────────────────────────────────


def name(steps: int, kind: str = "base") -> str:
    return f"{kind}-{steps}"


def make(home: Path, steps: int, turns: int, kind: str) -> None:
    """A session of that many steps."""
    prefix = "abcd"[KINDS.index(kind)]
    start = SessionStart(
        id=SessionId(f"{prefix}{steps:07d}"),
        name=name(steps, kind),
        command=("agent",),
        cwd="/",
        started=1.7e9,
        rewind_version="bench",
    )
    writer = SessionWriter.create(home, start)
    threads = Threads(with_starters=False)
    source = random.Random(kind)
    index = 0
    while index < steps:
        count = min(turns, steps - index)
        for request, answer in conversation(source, count, f"{prefix}{index}", noted="noted" in kind):
            index += 1
            write_step(writer, threads, index, request, answer)
    writer.end(ended=1.7e9 + steps * 10, exit_code=0, redactions=0, remarks=())


def conversation(
    source: random.Random, turns: int, mark: str, *, noted: bool
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Its requests and answers; with ``noted`` the agent marks what it sends back."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": words(source, ASKED)}]
    for turn in range(turns):
        tool = f"toolu_{mark}_{turn}"
        use = {"type": "tool_use", "id": tool, "name": "look", "input": {"for": words(source, 100)}}
        said = words(source, SAID)
        content = [{"type": "text", "text": said}, use]
        usage = {"input_tokens": 500 * (turn + 1), "output_tokens": 60}
        yield (
            {"model": MODEL, "max_tokens": 1000, "system": PROMPT, "messages": messages},
            {
                "id": f"msg_{mark}_{turn}",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": content,
                "usage": usage,
            },
        )
        result = {"type": "tool_result", "tool_use_id": tool, "content": words(source, ASKED)}
        quoted = [{"type": "text", "text": f"{said} (noted)"}, use] if noted else content
        messages = [*messages, {"role": "assistant", "content": quoted}, {"role": "user", "content": [result]}]


def words(source: random.Random, size: int) -> str:
    return " ".join(f"{source.getrandbits(20):x}" for _ in range(size // 5))[:size]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.reading", description="Commands that read long sessions.")
    sizes = "sizes of sessions (250 500 1000; with --growth 125 250 500)"
    parser.add_argument("--steps", type=int, nargs="*", default=None, metavar="N", help=sizes)
    parser.add_argument("--turns", type=int, default=0, metavar="N", help="of a conversation (0: one to the end)")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="how often each is measured (1)")
    parser.add_argument("--stores", type=Path, metavar="DIR", help="keep the sessions there for the next time")
    parser.add_argument("--growth", action="store_true", help="print how work grows in place of what it takes")
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="only commands whose title has one")
    options = parser.parse_args()
    options.steps = options.steps or ([125, 250, 500] if options.growth else [250, 500, 1000])
    return options


if __name__ == "__main__":
    sys.exit(main())
