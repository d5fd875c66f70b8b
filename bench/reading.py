"""``python -m bench.reading``: how long the commands that read take on long sessions, and how that grows.

The sessions are conversations of an agent with a tool, 2 kB asked and 1 kB answered a turn, all of it repeated in the
next. They are whole ones, as a recording writes them. Each command is run as a user runs it, in a process of its own;
seconds are those that pass, megabytes the most it held. The exponent is that of the last doubling of the steps, less
the time of the same command on two steps, which is its start-up: 1 is linear.
"""

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import machine
from bench.compare import MODEL, PROMPT, write_step
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
    told = f"{options.turns} turns a conversation" if options.turns else "one conversation"
    print(f"\n{told}, {ASKED} + {SAID} characters a turn; s / MB\n")
    print(f"| command | {' | '.join(f'{n:,}' for n in options.steps)} | exponent |")
    print(f"|---|{'---|' * len(options.steps)}---|")
    with tempfile.TemporaryDirectory(prefix="rewind-bench-") as folder:
        homes = {n: (options.stores or Path(folder)) / f"{options.turns}x{n}" for n in (START_UP, *options.steps)}
        for n, home in homes.items():
            if not home.exists():
                # Elsewhere: a child that is started is charged for what its parent holds in memory at that moment.
                arguments = (str(home), str(n), str(options.turns))
                subprocess.run([sys.executable, "-m", "bench.reading", "--make", *arguments], check=True)
        for command in COMMANDS:
            if options.only and not any(word in command.title for word in options.only):
                continue
            taken = {n: measured(command, n, homes[n], options.rounds) for n in homes}
            cells = [f"{taken[n][0]:.2f} / {taken[n][1]:.0f}" for n in options.steps]
            print(f"| {command.title} | {' | '.join(cells)} | {exponent(options.steps, taken)} |", flush=True)
    return 0


def exponent(steps: list[int], taken: dict[int, tuple[float, float]]) -> str:
    """How the time beyond start-up grows with the steps."""
    work = {n: taken[n][0] - taken[START_UP][0] for n in steps}
    first, last = steps[0], steps[-1]
    if len(steps) < 2 or work[first] < 0.02:
        return "—"
    return f"{math.log(work[last] / work[first]) / math.log(last / first):.2f}"


def measured(command: Command, n: int, home: Path, rounds: int) -> tuple[float, float]:
    """The least seconds of all rounds, and the most megabytes."""
    figures = [run(command, n, home) for _ in range(rounds)]
    return min(seconds for seconds, _ in figures), max(peak for _, peak in figures)


def run(command: Command, n: int, home: Path) -> tuple[float, float]:
    if command.fresh:
        for derived in home.glob("search.duckdb*"):
            derived.unlink()
    with tempfile.TemporaryDirectory(prefix="rewind-bench-out-") as out:
        told = command.arguments.format(
            n=n, base=name(n), other=name(n, "other"), late=max(1, n - 1), middle=max(1, n // 2), out=out
        )
        arguments = [sys.executable, "-m", "rewind", *told.split(), "--home", str(home)]
        began = time.perf_counter()
        child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert child.stderr is not None
        problem = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
    assert child.returncode in (0, 1), (arguments, problem.decode())
    return seconds, usage.ru_maxrss / 1024


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
    parser.add_argument("--steps", type=int, nargs="*", default=[250, 500, 1000], metavar="N", help="sizes of sessions")
    parser.add_argument("--turns", type=int, default=0, metavar="N", help="of a conversation (0: one to the end)")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="how often each is measured (1)")
    parser.add_argument("--stores", type=Path, metavar="DIR", help="keep the sessions there for the next time")
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="only commands whose title has one")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
