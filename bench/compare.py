"""``python -m bench.compare``: how long ``diff`` and ``bisect`` take on long sessions, and how that grows.

The sessions are whole ones, bodies and all: conversations of an agent with a tool, twenty turns each, or one that goes
on to the end. Each command is run as a user runs it. What is counted is the time it keeps a processor busy, which on an
idle machine is the time one waits, less that of the same command on two steps, which is its start-up.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import machine
from rewind.conversation.sketch import said_of, sketch_of
from rewind.conversation.threads import Threads
from rewind.match.call import understand
from rewind.model.http import Chunk, HttpRequest, HttpResponse, RequestHead, ResponseHead
from rewind.model.ids import SessionId
from rewind.model.session import SessionStart
from rewind.model.step import Ending, Reading, StepRequest, StepResponse
from rewind.model.usage import Usage
from rewind.store.journal.writer import SessionWriter

MODEL = "claude-sonnet-4-6"
TURNS = 20
"""Of a conversation."""
PROMPT = "You are a support agent. Look the account up before you say anything about it. " * 6
HEAD = RequestHead(
    method="POST",
    scheme="https",
    host="api.anthropic.com",
    port=443,
    target="/v1/messages",
    headers=(("content-type", "application/json"), ("user-agent", "Example/Python 1.50.0")),
)
ANSWER_HEAD = ResponseHead(status=200, reason="OK", headers=(("content-type", "application/json"),))
_SYLLABLES = ("ba", "den", "fil", "gor", "ka", "lum", "mer", "no", "pas", "ret", "si", "tol", "ur", "ven", "wa", "zi")
_WORDS = ["".join(random.Random(n).choices(_SYLLABLES, k=3)) for n in range(2000)]
"""Made up, and of letters alone, as most words are."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is measured."""

    title: str
    command: str
    other: str
    """The run that the first one is compared with."""


KINDS = (
    Kind("bisect, only ids differ", "bisect", "same"),
    Kind("diff, only ids differ", "diff", "same"),
    Kind("bisect, parted in the middle", "bisect", "parted"),
    Kind("diff --stat, half of the answers differ", "diff --stat", "parted"),
    Kind("diff, half of the answers differ", "diff", "parted"),
    Kind("bisect, all in other words", "bisect", "noisy"),
    Kind("diff, all in other words", "diff", "noisy"),
)


def main() -> int:
    options = parse()
    load = machine.load()
    print(f"{machine.description()}; load {load:.1f} before; medians of {options.rounds}, seconds of work", flush=True)
    shapes = [(f"{TURNS} turns a conversation", TURNS, options.steps)]
    shapes.append(("one conversation", sys.maxsize, options.long))
    for title, turns, sizes in shapes:
        print(f"\n{title}\n\n| steps | {' | '.join(kind.title for kind in KINDS)} |\n|---|{'---|' * len(KINDS)}")
        for steps in sizes:
            print(f"| {steps:,} | {' | '.join(_row(steps, turns, options.rounds))} |", flush=True)
    return 0


def _row(steps: int, turns: int, rounds: int) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="rewind-bench-") as folder:
        home = Path(folder) / "store"
        for name, prefix in (("base", "a"), ("same", "b"), ("parted", "c"), ("noisy", "d")):
            make(home, f"{prefix}{'0' * 7}", name, steps, turns)
            make(home, f"{prefix}{'1' * 7}", f"short-{name}", 2, turns)
        cells = []
        for kind in KINDS:
            whole = [_taken(home, kind, "") - _taken(home, kind, "short-") for _ in range(rounds)]
            cells.append(f"{statistics.median(whole):.2f}")
        return cells


def _taken(home: Path, kind: Kind, prefix: str) -> float:
    command = [sys.executable, "-m", "rewind", *kind.command.split(), f"{prefix}base", f"{prefix}{kind.other}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*command, "--home", str(home)], capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode in (0, 1), done.stderr.decode()
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


# ── the sessions ─────────────────────────────────────────────────────────────────────────────────────────────


def make(home: Path, session: str, name: str, steps: int, turns: int) -> None:
    """A session of that many steps; ``parted`` has another prompt and from the middle on other tool calls, ``noisy``
    the same answers, queries and results with their words in another order."""
    start = SessionStart(
        id=SessionId(session), name=name, command=("agent",), cwd="/", started=1.7e9, rewind_version="bench"
    )
    writer = SessionWriter.create(home, start)
    threads = Threads(with_starters=False)
    words, ids = random.Random(1), random.Random(session)
    parted, noisy = name.endswith("parted"), name.endswith("noisy")
    index = 0
    while index < steps:
        messages: list[dict[str, Any]] = [{"role": "user", "content": _text(words, 40)}]
        for _ in range(min(turns, steps - index)):
            index += 1
            call = _text(words, 3) + (" instead" if parted and index > steps // 2 else "")
            said, found = _text(words, 40), _text(words, 30)
            if noisy:
                call, said, found = (_shuffled(ids, text) for text in (call, said, found))
            tool = f"toolu_{ids.getrandbits(80):020x}"
            content = [
                {"type": "text", "text": said},
                {"type": "tool_use", "id": tool, "name": "look", "input": {"for": call}},
            ]
            request = {
                "model": MODEL,
                "max_tokens": 1000,
                "system": PROMPT + ("Never refund." if parted else ""),
                "messages": messages,
            }
            answer = {
                "id": f"msg_{ids.getrandbits(80):020x}",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": content,
                "usage": {"input_tokens": 500, "output_tokens": 60},
            }
            write_step(writer, threads, index, request, answer)
            result = {"type": "tool_result", "tool_use_id": tool, "content": found}
            messages = [*messages, {"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    writer.end(ended=1.7e9 + steps * 10, exit_code=0, redactions=0, remarks=())


def write_step(
    writer: SessionWriter, threads: Threads, index: int, request: dict[str, Any], answer: dict[str, Any]
) -> None:
    """As the junction writes it."""
    body, answered_body = json.dumps(request).encode(), json.dumps(answer).encode()
    call = understand(HttpRequest(head=HEAD, body=body), index=index)
    asked = call.provider.reader.asked(call.request)
    response = HttpResponse(head=ANSWER_HEAD, body=answered_body, chunks=())
    answered = call.provider.reader.answered(call.request, response)
    place = threads.call(index, call.key, asked)
    threads.answer(index, answered)
    writer.request(
        StepRequest(
            index=index,
            ts=1.7e9 + index * 10,
            kind=call.provider.kind,
            provider=call.provider.name,
            match_key=call.key,
            head=HEAD,
            model=MODEL,
            thread=place.thread,
            sketch=str(sketch_of(asked, call.provider)),
        ),
        body,
    )
    reading = Reading(model=MODEL, text="look", usage=Usage(input=500, output=60), said=said_of(answered))
    writer.response(
        index,
        StepResponse(
            ending=Ending.COMPLETE,
            head=ANSWER_HEAD,
            chunks=(Chunk(900_000, len(answered_body)),),
            ms=1000.0,
            first_ms=900.0,
            reading=reading,
        ),
        answered_body,
    )


def _shuffled(draw: random.Random, text: str) -> str:
    words = text.split()
    draw.shuffle(words)
    return " ".join(words)


def _text(words: random.Random, count: int) -> str:
    return " ".join(words.choices(_WORDS, k=count))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="*", default=[1000, 4000, 16000], help="short conversations")
    parser.add_argument("--long", type=int, nargs="*", default=[250, 1000], help="one conversation")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
