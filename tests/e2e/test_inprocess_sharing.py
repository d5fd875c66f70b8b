"""Several runs in one process, and code that belongs to none: each request is the run's that made it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
import uvloop

from rewind.errors import EnvironmentProblem
from rewind.inprocess.run import InProcessRun, Offline, ToolUnderWay, current_run
from support.answers import openai_chat
from support.inprocess import MakeStage, Stage, stages, through
from support.script import Answer, Request
from support.trust import Trust

pytestmark = pytest.mark.e2e

URL = "https://api.openai.com/v1/chat/completions"
Ask = Callable[[str], Awaitable[str]]


@pytest.fixture
def stage(trust: Trust, tmp_path: Path) -> Iterator[MakeStage]:
    with stages(trust, tmp_path) as make:
        yield make


def numbered(request: Request) -> Answer:
    asked = request.json()["messages"][-1]["content"]
    return openai_chat(request, f"{asked}: hit {request.hit}")


def question(text: str) -> dict[str, Any]:
    return {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}]}


def said(answer: Any) -> str:
    return str(answer["choices"][0]["message"]["content"])


def asked_in(stage: Stage, session: str | None) -> list[str]:
    """What the steps of a session asked, in order."""
    with stage.open(session) as reader:
        bodies = [reader.blob(step.request.body) for step in reader.recording().steps]
    return [httpx.Response(200, content=body).json()["messages"][0]["content"] for body in bodies]


async def with_httpx(work: Callable[[Ask], Awaitable[None]]) -> None:
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=1)) as client:

        async def ask(text: str) -> str:
            return said((await client.post(URL, json=question(text))).json())

        await work(ask)


async def with_aiohttp(work: Callable[[Ask], Awaitable[None]]) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:

        async def ask(text: str) -> str:
            async with session.post(URL, json=question(text)) as answer:
                return said(await answer.json())

        await work(ask)


LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("client", [with_httpx, with_aiohttp], ids=lambda client: client.__name__)
def test_two_runs_in_one_event_loop_share_a_connection_and_do_not_mix(
    stage: MakeStage, client: Callable[..., Awaitable[None]], loop: str
) -> None:
    there = stage(numbered)

    async def side_by_side(ask: Ask) -> None:
        async def one(name: str) -> str | None:
            run = InProcessRun(there.options(name=name))
            run.start()
            token = run.activate()
            for number in range(4):
                await ask(f"{name} {number}")
                await asyncio.sleep(0)
            run.deactivate(token)
            return run.finish().session_id

        left, right = await asyncio.gather(one("left"), one("right"))
        assert asked_in(there, left) == [f"left {number}" for number in range(4)]
        assert asked_in(there, right) == [f"right {number}" for number in range(4)]

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(client(side_by_side))  # type: ignore[arg-type]


def test_a_client_serves_one_run_after_the_other(stage: MakeStage) -> None:
    there = stage(numbered)
    with httpx.Client() as client:

        def ask(text: str) -> str:
            return said(client.post(URL, json=question(text)).json())

        sessions = [there.record(partial(ask, name))[1].session_id for name in ("first", "second")]
        assert [asked_in(there, session) for session in sessions] == [["first"], ["second"]]
        values = [
            there.replay(session, partial(ask, name))[0]
            for session, name in zip(sessions, ("first", "second"), strict=True)
        ]
    assert values == ["first: hit 1", "second: hit 2"]


def test_what_outlives_its_replay_is_never_live(stage: MakeStage) -> None:
    there = stage(numbered)
    with httpx.Client() as client:
        ask = lambda: said(client.post(URL, json=question("once")).json())  # noqa: E731
        _, recorded = there.record(ask)
        go_on, outcome = threading.Event(), list[Any]()

        def later() -> None:
            go_on.wait(10)
            with httpx.Client() as fresh:
                outcome.extend(one.post(URL, json=question("late")).status_code for one in (client, fresh))

        thread = threading.Thread(target=later)

        def work() -> str:
            thread.start()
            return ask()

        there.replay(recorded.session_id, work)
        go_on.set()
        thread.join()
    assert outcome == [424, 424]
    assert there.provider.calls == 1


def test_what_belongs_to_nobody_belongs_to_the_default(stage: MakeStage) -> None:
    there = stage(numbered)
    asks: list[str] = []
    wanted, done = threading.Event(), threading.Event()

    def worker() -> None:
        wanted.wait(10)
        with httpx.Client() as client:
            asks.append(said(client.post(URL, json=question("from a worker")).json()))
        done.set()

    thread = threading.Thread(target=worker)  # started before the run: its context names nobody
    thread.start()
    run = InProcessRun(there.options())
    run.start()
    run.make_default()
    wanted.set()
    done.wait(10)
    thread.join()
    assert current_run() is run
    session = run.finish().session_id
    assert current_run() is None
    assert asked_in(there, session) == ["from a worker"]


def test_a_plain_thread_belongs_to_the_only_run_that_adopts(stage: MakeStage) -> None:
    there = stage(numbered)
    wanted, seen = threading.Event(), []

    def worker() -> None:
        wanted.wait(10)
        seen.append(current_run())

    threads = [threading.Thread(target=worker) for _ in range(2)]
    for thread in threads:
        thread.start()
    run = InProcessRun(there.options(adopt_threads=True))
    run.start()
    wanted.set()
    for thread in threads:
        thread.join()
    assert seen == [run, run]
    other = InProcessRun(there.options())
    other.start()
    alone = threading.Thread(target=worker)
    alone.start()
    alone.join()
    assert seen[2] is None  # there are two now
    run.finish()
    other.finish()


def test_a_miss_reaches_the_client_and_the_result(stage: MakeStage) -> None:
    there = stage(numbered)
    with httpx.Client() as client:
        _, recorded = there.record(lambda: client.post(URL, json=question("asked")).json())
        answer, replayed = there.replay(recorded.session_id, lambda: client.post(URL, json=question("never asked")))
    assert answer.status_code == 424
    assert "x-rewind-miss" in answer.headers
    assert len(replayed.misses) == 1 and replayed.played == 0
    assert [step.index for step in replayed.unused] == [1]


def test_a_tool_that_is_not_on_tape_is_a_miss_that_names_the_nearest(stage: MakeStage) -> None:
    from rewind.errors import ReplayMiss

    def call(city: bytes) -> object:
        run = current_run()
        assert run is not None
        found = run.tool("weather", b'{"arguments":{"city":"' + city + b'"}}')
        if isinstance(found, ToolUnderWay):
            found.ended(200, b'{"result":"sunny"}')
        return None

    there = stage(numbered)
    _, recorded = there.record(lambda: call(b"Paris"))

    def miss() -> str:
        with pytest.raises(ReplayMiss) as caught:
            call(b"Rome")
        return caught.value.message

    message, replayed = there.replay(recorded.session_id, miss)
    assert "Paris" in replayed.misses[0].report
    assert "step 1" in message
    ran, live = there.replay(recorded.session_id, lambda: call(b"Rome"), tools="live")
    assert ran is None and not live.misses and live.live == 0


def test_live_on_a_miss_keeps_both_kinds_of_answers(stage: MakeStage) -> None:
    there = stage(numbered)
    with httpx.Client() as client:
        ask = lambda text: said(client.post(URL, json=question(text)).json())  # noqa: E731
        _, recorded = there.record(lambda: ask("known"))
        with there.open(recorded.session_id) as tape:
            run = InProcessRun(there.options(mode="replay", tape=tape, on_miss="live"))
            values, result = through(run, lambda: [ask("known"), ask("new")])
    assert values == ["known: hit 1", "new: hit 2"]
    assert (result.played, result.live, result.misses) == (1, 1, ())
    with there.open(result.session_id) as reader:
        recording = reader.recording()
    assert recording.session.start.replay_of == recorded.session_id
    assert [step.response.tape for step in recording.steps if step.response] == [1, None]


def test_a_run_is_offline_for_itself_alone(stage: MakeStage) -> None:
    there = stage(numbered)
    with httpx.Client() as client:
        _, recorded = there.record(lambda: client.post(URL, json=question("x")).json())

        def stopped() -> str:
            with pytest.raises(httpx.ConnectError) as caught:
                client.get("https://elsewhere.example.com/x")
            assert isinstance(_root(caught.value), Offline)
            return str(caught.value)

        text, replayed = there.replay(recorded.session_id, stopped, offline_error=lambda url: f"not {url}, not here")
    assert text == "not https://elsewhere.example.com, not here"
    assert replayed.blocked == ("https://elsewhere.example.com",)


def _root(error: BaseException) -> BaseException:
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return error


def test_a_store_that_cannot_be_written_changes_nothing(stage: MakeStage, tmp_path: Path) -> None:
    blocked = tmp_path / "no-folder"
    blocked.write_text("a file is in the way")
    there = stage(numbered)
    run = InProcessRun(there.options(home=blocked))
    with pytest.raises(EnvironmentProblem):
        run.start()
    assert current_run() is None
    other = InProcessRun(there.options(adopt_threads=True))
    other.start()
    assert current_run() is other  # nobody else is there
    other.finish()


def test_a_disk_that_fails_on_the_way_never_reaches_the_agent(stage: MakeStage) -> None:
    there = stage(numbered)
    with httpx.Client() as client:

        def work() -> list[str]:
            run = current_run()
            assert run is not None
            recording = run._begun.recording
            assert recording is not None
            first = said(client.post(URL, json=question("kept")).json())
            recording.writer._pack.close()  # whatever is written now fails
            return [first, said(client.post(URL, json=question("lost")).json())]

        value, result = there.record(work)
    assert value == ["kept: hit 1", "lost: hit 2"]
    assert result.broken is not None
