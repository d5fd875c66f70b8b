"""What goes on beside a run: other runs, code of none, threads from before, connections from before and after."""

import asyncio
import json
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
import uvloop

from rewind.inprocess.redirect import callers as redirect_callers
from rewind.inprocess.redirect import install as redirect
from rewind.inprocess.redirect import open_connections as redirect_open
from rewind.inprocess.run import InProcessOptions, InProcessResult, InProcessRun
from rewind.inprocess.shared_gateway import shared_gateway
from rewind.model.step import Ending
from rewind.store.journal.reader import FolderReader
from support.answers import openai_chat
from support.cli import plain_environment
from support.inprocess import MakeStage, stages, through
from support.provider import FakeProvider
from support.script import Answer, Request
from support.trust import Trust

pytestmark = pytest.mark.e2e

TLS_URL = "https://api.openai.com/v1/chat/completions"
PATIENCE = 20
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
Ask = Callable[[str], Awaitable[Any]]


class Script:
    """Answers with the number of the hit; what is asked ``slowly`` has its last piece wait for ``go``."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def __call__(self, request: Request) -> Answer:
        asked = request.json()["messages"][-1]["content"]
        if not asked.startswith("slowly"):
            return openai_chat(request, f"hit {request.hit}")
        pieces = (b"data: one\n\n", b"data: two\n\n", b"data: [DONE]\n\n")
        head = (("content-type", "text/event-stream"),)
        return Answer(headers=head, pieces=pieces, framing="chunked", hold=self.go)


@pytest.fixture
def script() -> Iterator[Script]:
    found = Script()
    yield found
    found.go.set()


@pytest.fixture
def stage(trust: Trust, tmp_path: Path) -> Iterator[MakeStage]:
    with stages(trust, tmp_path) as make:
        yield make


@pytest.fixture
def server(script: Script) -> Iterator[FakeProvider]:
    """Speaks plain HTTP on this machine, as Ollama and vLLM do."""
    with FakeProvider(script) as found:
        yield found


def url(server: FakeProvider) -> str:
    return f"http://localhost:{server.port}/v1/chat/completions"


def question(text: str) -> dict[str, Any]:
    return {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}]}


def recording(home: Path, server: FakeProvider, **more: Any) -> InProcessRun:
    return InProcessRun(InProcessOptions(home=home, hosts=(f"localhost:{server.port}",), **more))


def replaying(home: Path, session: str | None, **more: Any) -> InProcessRun:
    tape = FolderReader(next((home / "sessions").glob(f"*-{session}")))
    return InProcessRun(InProcessOptions(home=home, mode="replay", tape=tape, keep=False, **more))


def recorded_once(home: Path, server: FakeProvider, text: str = "known") -> InProcessResult:
    return through(recording(home, server), lambda: httpx.post(url(server), json=question(text)))[1]


class Streaming:
    """An answer under way in a thread of its own: its first piece is there when this is made."""

    def __init__(self, where: str, run: InProcessRun | None = None) -> None:
        self.pieces: list[bytes] = []
        self.error: Exception | None = None
        self._first = threading.Event()
        self._thread = threading.Thread(target=self._read, args=(where, run))
        self._thread.start()
        assert self._first.wait(PATIENCE)

    def _read(self, where: str, run: InProcessRun | None) -> None:
        token = None if run is None else run.activate()
        try:
            with httpx.Client() as client, client.stream("POST", where, json=question("slowly")) as answer:
                for piece in answer.iter_raw():
                    self.pieces.append(piece)
                    self._first.set()
        except httpx.HTTPError as error:
            self.error = error
        finally:
            self._first.set()
            if run is not None and token is not None:
                run.deactivate(token)

    def whole(self) -> bytes:
        self._thread.join(PATIENCE)
        assert self.error is None, self.error
        return b"".join(self.pieces)


# ── a run begins ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_that_begins_cuts_no_answer_of_another_run(stage: MakeStage, script: Script) -> None:
    there = stage(script)
    one = InProcessRun(there.options())
    one.start()
    stream = Streaming(TLS_URL, one)
    through(InProcessRun(there.options()), lambda: None)
    script.go.set()
    assert stream.whole().endswith(b"[DONE]\n\n")
    assert one.finish().remarks == ()


def test_a_run_that_begins_cuts_no_answer_outside_of_any(server: FakeProvider, script: Script, tmp_path: Path) -> None:
    stream = Streaming(url(server))
    through(recording(tmp_path, server), lambda: None)
    script.go.set()
    assert stream.whole().endswith(b"[DONE]\n\n")


def test_what_the_gateway_connects_to_is_no_connection_from_before() -> None:
    redirect.install()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with redirect_callers.ourselves(), socket.create_connection(listener.getsockname()) as the_gateways:
            assert the_gateways not in redirect_open._plain
        with socket.create_connection(listener.getsockname()) as others:
            assert others in redirect_open._plain


async def with_httpx(where: str, work: Callable[[Ask], Awaitable[None]]) -> None:
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=1)) as client:

        async def ask(text: str) -> Any:
            return (await client.post(where, json=question(text))).status_code

        await work(ask)


async def with_aiohttp(where: str, work: Callable[[Ask], Awaitable[None]]) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:

        async def ask(text: str) -> Any:
            async with session.post(where, json=question(text)) as answer:
                await answer.read()
                return answer.status

        await work(ask)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("client", [with_httpx, with_aiohttp], ids=lambda client: client.__name__)
def test_one_connection_in_the_clear_serves_nobody_a_recording_and_a_replay_and_each_has_its_own(
    server: FakeProvider, tmp_path: Path, client: Callable[..., Any], loop: str
) -> None:
    known = recorded_once(tmp_path, server).session_id

    async def work(ask: Ask) -> None:
        assert await ask("outside, before") == 200
        calls = server.calls
        replay, record = replaying(tmp_path, known), recording(tmp_path, server)
        await asyncio.to_thread(replay.start)  # in another thread than the loop's
        token = replay.activate()
        assert [await ask("known"), await ask("unknown")] == [200, 424]
        replay.deactivate(token)
        record.start()
        token = record.activate()
        assert await ask("in the recording") == 200
        record.deactivate(token)
        token = replay.activate()
        assert await ask("unknown") == 424
        replay.deactivate(token)
        assert await ask("outside, between") == 200
        assert (replay.finish().played, len(replay.finish().misses)) == (1, 2)
        assert record.finish().llm_calls == 1
        assert server.calls == calls + 2

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(client(url(server), work))


# ── a run ends ───────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_run_began_goes_on_after_its_end_and_is_kept_as_far_as_it_came(stage: MakeStage, script: Script) -> None:
    there = stage(script)
    run = InProcessRun(there.options())
    run.start()
    stream = Streaming(TLS_URL, run)
    session = run.finish().session_id
    script.go.set()
    assert stream.whole().endswith(b"[DONE]\n\n")
    with there.open(session) as reader:
        (step,) = reader.recording().steps
        assert step.response is not None and step.response.ending is Ending.CLIENT_CLOSED
        assert step.response.reason == "the run ended before the answer did"
        assert reader.blob(step.response.body) == b"data: one\n\ndata: two\n\n"


def test_what_comes_after_a_run_on_its_connection_goes_by_the_runs_own_ways(stage: MakeStage, script: Script) -> None:
    """``upstream`` leads to the provider here, and vouches for it; without that nobody would answer."""
    there = stage(script)
    with httpx.Client() as client:
        there.record(lambda: client.post(TLS_URL, json=question("within")).raise_for_status())
        assert client.post(TLS_URL, json=question("afterwards")).status_code == 200


def test_a_run_that_ends_on_the_gateways_own_thread_waits_for_nobody(tmp_path: Path) -> None:
    """As where the collector of garbage finds an abandoned generator there."""
    run = InProcessRun(InProcessOptions(home=tmp_path))
    run.start()

    async def collect() -> InProcessResult:
        run.note("the last word")
        assert run.tool("t", b"{}") is not None
        return run.finish()

    assert shared_gateway().later(collect).result(PATIENCE).session_id == run.session_id
    result = run.finish()  # which waits for the other to be done
    assert result.broken is None and result.tool_calls == 1
    with FolderReader(next((tmp_path / "sessions").iterdir())) as reader:
        assert reader.recording().session.end is not None


LEFT_OPEN = """
import sys, threading, time
from pathlib import Path
from rewind.inprocess.run import InProcessOptions, InProcessRun

def begin():
    run = InProcessRun(InProcessOptions(home=Path(sys.argv[1])))
    run.start()
    run.note("kept")
    return run

class Box:
    def __del__(self):
        print("collected", self.run.finish().session_id, flush=True)

if sys.argv[2] == "collected at the end":
    box = Box()
    box.run, box.me = begin(), box
else:
    def late():
        threading.main_thread().join()
        begin()
    threading.Thread(target=late).start()
"""


@pytest.mark.parametrize("how", ["collected at the end", "begun after the main thread"])
def test_a_process_ends_with_runs_that_nobody_has_ended_and_they_are_whole(tmp_path: Path, how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEFT_OPEN, str(tmp_path), how],
        env=plain_environment(tmp_path),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    with FolderReader(next((tmp_path / "sessions").iterdir())) as reader:
        recorded = reader.recording()
    assert recorded.session.end is not None
    assert len(recorded.steps) == 1


# ── code of no run ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_replay_adopts_a_worker_from_before_it_and_a_recording_does_not(server: FakeProvider, tmp_path: Path) -> None:
    wanted: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    found: queue.SimpleQueue[int] = queue.SimpleQueue()

    def serve() -> None:
        while (text := wanted.get()) is not None:
            found.put(httpx.post(url(server), json=question(text)).status_code)

    def ask(text: str) -> int:
        wanted.put(text)
        return found.get(timeout=PATIENCE)

    worker = threading.Thread(target=serve)
    worker.start()
    known = recorded_once(tmp_path, server).session_id
    calls = server.calls
    values, played = through(replaying(tmp_path, known), lambda: [ask("known"), ask("unknown")])
    assert (values, played.played, len(played.misses)) == ([200, 424], 1, 1)
    assert server.calls == calls
    assert through(recording(tmp_path, server), lambda: ask("known"))[1].llm_calls == 0
    wanted.put(None)
    worker.join(PATIENCE)


def test_a_thread_that_has_left_a_replay_is_not_adopted_and_the_replay_says_what_was_live(
    server: FakeProvider, tmp_path: Path
) -> None:
    known = recorded_once(tmp_path, server).session_id
    run = replaying(tmp_path, known)
    run.start()
    run.deactivate(run.activate())
    assert httpx.post(url(server), json=question("by nobody")).status_code == 200
    assert run.finish().remarks == (
        f"127.0.0.1:{server.port}: was reached live, by code outside any session, during this replay",
    )


IN_ANOTHER_PROCESS = """
import http.client, sys
url, port, body = sys.argv[1:]
line = http.client.HTTPConnection("127.0.0.1", int(port))
line.request("POST", url, body, {"Content-Type": "application/json"})
print(line.getresponse().status, end="")
"""


def test_another_process_is_refused_beside_two_replays(server: FakeProvider, tmp_path: Path) -> None:
    known = recorded_once(tmp_path, server).session_id
    calls, runs = server.calls, [replaying(tmp_path, known), replaying(tmp_path, known)]

    def status_in_another_process() -> bytes:
        asked = [url(server), str(shared_gateway().port), json.dumps(question("known"))]
        command = [sys.executable, "-c", IN_ANOTHER_PROCESS, *asked]
        return subprocess.run(command, stdout=subprocess.PIPE, timeout=PATIENCE, check=True).stdout

    runs[0].start()
    assert status_in_another_process() == b"200"  # it is the only one's
    runs[1].start()
    assert status_in_another_process() == b"424"
    results = [run.finish() for run in runs]
    assert [result.played for result in results] == [1, 0]
    assert all("it cannot be told whose it is" in result.remarks[0] for result in results)
    assert server.calls == calls


# ── what stays ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_connection_that_came_to_nothing_is_forgotten(stage: MakeStage, script: Script) -> None:
    there = stage(script)
    before = set(redirect_callers._owners)

    def nothing() -> None:
        with socket.create_connection(("api.openai.com", 443)) as unused:
            unused.getsockname()
        with socket.create_connection(("api.openai.com", 443)) as refusing:
            refusing.sendall(b"\x16\x03\x01\x00\x05hello")
            refusing.recv(100)
        with socket.create_connection(("api.openai.com", 443)) as tunnel:
            where = f"127.0.0.1:{there.provider.port}"
            tunnel.sendall(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
            assert b" 200 " in tunnel.recv(100)
            tunnel.sendall(b"\x16")

    async def turn() -> None:
        await asyncio.sleep(0)

    there.record(nothing)
    for _ in range(20_000):  # turns of the gateway's loop
        if set(redirect_callers._owners) <= before:
            return
        shared_gateway().later(turn).result(PATIENCE)
    pytest.fail(f"still known: {set(redirect_callers._owners) - before}")


def test_what_is_known_is_listed_while_other_threads_add_to_it() -> None:
    class Growing:
        tries = 0

        def __iter__(self) -> Iterator[int]:
            Growing.tries += 1
            if Growing.tries == 1:
                raise RuntimeError("Set changed size during iteration")
            return iter((1, 2))

    assert redirect_open._all(Growing()) == [1, 2]  # type: ignore[arg-type]
