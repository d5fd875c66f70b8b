"""A store to be damaged: recorded for real, with streams of hundreds of chunks, a WebSocket, a fork, and a recorder
that was killed. Commands run in this process through the CLI's own entry, watched for hangs."""

import _thread
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from rewind.cli.main import run as run_command
from rewind.model.http import Chunk
from rewind.model.ids import MatchKey, SessionId
from rewind.store.journal.writer import SessionWriter
from support.answers import openai_chat, openai_stream
from support.cli import AGENTS, PATIENCE, REWIND, Result, plain_environment, run_rewind
from support.provider import FakeProvider
from support.script import Answer, Request
from unit.store.making import ANSWER_HEAD, request, response, start

HOST = "api.openai.com"
DERIVED = ("catalog.duckdb", "search.duckdb")
CPU_SECONDS = 2.0
WALL_SECONDS = 20.0
"""Wide, for a busy machine; who waits for nothing is found by it, who computes without end by the other."""
CHUNKS = 300
KILLED = threading.Event()
"""The last piece of one answer waits for it, so that its recorder is killed in the middle of a stream."""


class Hang(BaseException):
    """A command that does not end."""


def play(request: Request) -> Answer:
    dice = Random(request.body)
    if "realtime" in request.target:
        return Answer(frames=lambda message: [f'{{"size":{len(message)},"dice":{dice.random()}}}'])
    words = [f" word{dice.randrange(10**6)}" for _ in range(CHUNKS)]
    if b'"stream":true' not in request.body:
        return openai_chat(request, "".join(words))
    if b'"user":"killed"' in request.body:
        return openai_stream(request, words, gap=0.001, hold=KILLED)
    return openai_stream(request, words)


@dataclass(frozen=True, slots=True)
class Known:
    """What a session held before it was damaged."""

    id: str
    folder: str
    requests: Mapping[int, bytes]
    answers: Mapping[int, bytes]
    overview: Any
    printed: str = ""
    """By its agent."""


@dataclass(slots=True)
class DamageBench:
    """The store, what it held, and its files to be put back."""

    folder: Path
    sessions: dict[str, Known] = field(default_factory=dict)
    files: dict[Path, bytes] = field(default_factory=dict)
    slowest: tuple[float, str] = (0.0, "")

    @property
    def home(self) -> Path:
        return self.folder / "store"

    def path(self, session: str, file: str) -> Path:
        return self.home / "sessions" / self.sessions[session].folder / file

    def rewind(self, *args: str) -> Result:
        """A command, in this process. Raises Hang."""
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        began = time.monotonic()
        with redirect_stdout(out), redirect_stderr(err), watched(" ".join(args)):
            code = run_command([*args])
        self.slowest = max(self.slowest, (time.monotonic() - began, " ".join(args)))
        out.flush()
        err.flush()
        said, talk = out.buffer.getvalue(), err.buffer.getvalue()
        return Result(args, said, talk, int(code))

    def restore(self) -> None:
        for path, data in self.files.items():
            if not path.exists() or path.name in DERIVED or path.read_bytes() != data:
                path.write_bytes(data)
        for wal in self.home.glob("*.wal"):
            wal.unlink()


@contextmanager
def watched(what: str) -> Iterator[None]:
    """Raises Hang in the main thread after two seconds of work, or many of waiting."""

    def too_long(_number: int, _frame: FrameType | None) -> None:
        raise Hang(what)

    waiting = threading.Timer(WALL_SECONDS, _thread.interrupt_main)
    before = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    waiting.start()
    try:
        yield
    finally:
        waiting.cancel()
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def agent(asks: str) -> list[str]:
    return [sys.executable, "-S", "-E", str(AGENTS / "raw_caller.py"), asks]


def made(folder: Path) -> DamageBench:
    """Record everything, and remember it. ``REWIND_HOME`` is ``store`` in that folder, which is the current one."""
    bench = DamageBench(folder)
    with FakeProvider(play) as provider:
        to = f"--connect-to={HOST}:80:127.0.0.1:{provider.port}"
        printed = {}
        for name, asks in (("calm", "127"), ("talk", "1234567")):
            done = run_rewind(["record", "--name", name, to, "--", *agent(asks)], bench.home, cwd=folder).ok()
            printed[name] = done.text
        forked = ["fork", "talk:3", "--set", "temperature=0.5", to, "--", *agent("1234567")]
        printed["fork"] = run_rewind(forked, bench.home, cwd=folder).ok().text
        _kill_a_recorder(bench.home, folder, to)
    _die_before_understanding(bench.home)
    _remember(bench, printed)
    return bench


def _kill_a_recorder(home: Path, folder: Path, to: str) -> None:
    """In the middle of a long stream."""
    process = subprocess.Popen(
        [*REWIND, "record", "--name", "killed", to, "--", *agent("18")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=plain_environment(home),
        cwd=folder,
        start_new_session=True,
    )
    until = time.monotonic() + PATIENCE
    while not any(part.stat().st_size > 40_000 for part in home.glob("sessions/*/part.2")):
        assert time.monotonic() < until, "the stream did not begin"
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    KILLED.set()


def _die_before_understanding(home: Path) -> None:
    """What a recorder leaves that is killed when its answers are kept and not yet understood: short lines."""
    begun = start(id=SessionId("0a1b2c3d"), name="unread", started=time.time())
    writer = SessionWriter.create(home, begun)
    for index in (1, 2, 3):
        body = b'{"model":"claude-x","messages":[{"role":"user","content":"Question %d"}]}' % index
        writer.asked(writer.request_bytes(request(index, match_key=MatchKey("")), body))
        pieces = [b"piece %d of answer %d\n" % (at, index) for at in range(40)]
        if index == 2:
            part = writer.part(index, ANSWER_HEAD)
            for at, piece in enumerate(pieces):
                part.append(at * 1000, piece)
            writer.answered(index, response(chunks=()), None)
        else:
            chunks = tuple(Chunk(at * 1000, len(piece)) for at, piece in enumerate(pieces))
            writer.answered(index, response(chunks=chunks), b"".join(pieces))
    writer.close()


def _remember(bench: DamageBench, printed: dict[str, str]) -> None:
    exports = [["export", "talk", "-o", f"talk{ending}"] for ending in (".rw", ".rw.zst")]
    for words in (["search", "word"], ["stats"], *exports):
        bench.rewind(*words).ok()
    rows = json.loads(bench.rewind("list", "--json").stdout)["sessions"]
    for row in rows:
        name = row["name"] if row["forked_from"] is None else "fork"
        overview = json.loads(bench.rewind("inspect", row["id"], "--json").stdout)
        requests, answers = (
            {
                step["index"]: bench.rewind("inspect", f"{row['id']}:{step['index']}", "--raw", *half).stdout
                for step in overview["steps"]
            }
            for half in (["--request"], [])
        )
        (folder,) = (path.name for path in bench.home.glob(f"sessions/*-{row['id']}"))
        bench.sessions[name] = Known(row["id"], folder, requests, answers, overview, printed.get(name, ""))
    shutil.rmtree(bench.home / "run", ignore_errors=True)  # what the killed recorder left there
    bench.files = {path: path.read_bytes() for path in bench.folder.rglob("*") if path.is_file()}
