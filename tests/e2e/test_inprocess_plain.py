"""Plain HTTP on this machine: model servers that are named are recorded, others are seen."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
import uvloop

from rewind.inprocess.run import InProcessOptions, InProcessResult, InProcessRun, Offline
from rewind.store.journal.reader import FolderReader
from support.answers import json_answer, openai_chat
from support.inprocess import through
from support.provider import FakeProvider
from support.script import Answer, Request

pytestmark = pytest.mark.e2e


def numbered(request: Request) -> Answer:
    if request.path == "/health":
        return json_answer(request, {"hit": request.hit})
    return openai_chat(request, f"hit {request.hit}")


@pytest.fixture
def server() -> Iterator[FakeProvider]:
    with FakeProvider(numbered) as found:
        yield found


def ask(url: str) -> list[Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    with httpx.Client(base_url=url) as client:
        return [
            client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"],
            client.get("/health").json(),
        ]


def recorded(home: Path, work: Callable[[], Any], **more: Any) -> tuple[Any, InProcessResult]:
    return through(InProcessRun(InProcessOptions(home=home, **more)), work)


def replayed(home: Path, session: str | None, work: Callable[[], Any], **more: Any) -> tuple[Any, InProcessResult]:
    with FolderReader(next((home / "sessions").glob(f"*-{session}"))) as tape:
        options = InProcessOptions(home=home, mode="replay", tape=tape, keep=False, **more)
        return through(InProcessRun(options), work)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_server_that_is_named_with_its_port_is_recorded_and_replayed_by_any_name(
    server: FakeProvider, tmp_path: Path, name: str
) -> None:
    url = f"http://{name}:{server.port}"
    value, result = recorded(tmp_path, lambda: ask(url), hosts=(f"localhost:{server.port}",))
    assert (result.llm_calls, result.other_calls, result.remarks) == (1, 1, ())
    server.go_away()
    # What is on tape needs no naming.
    again, played = replayed(tmp_path, result.session_id, lambda: ask(url))
    assert again == value == ["hit 1", {"hit": 2}]
    assert played.played == played.total == 2


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_it_is_recorded_on_every_event_loop(
    server: FakeProvider, tmp_path: Path, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def work() -> list[Any]:
        url = f"http://localhost:{server.port}/health"
        async with httpx.AsyncClient() as client, aiohttp.ClientSession() as session:
            first = (await client.get(url)).json()
            found = []
            for _ in range(2):
                async with session.get(url) as answer:
                    found.append(await answer.json())
            return [first, *found]

    def run() -> list[Any]:
        with asyncio.Runner(loop_factory=loop) as runner:
            return runner.run(work())

    value, result = recorded(tmp_path, run, hosts=(f"localhost:{server.port}",))
    server.go_away()
    assert replayed(tmp_path, result.session_id, run)[0] == value == [{"hit": 1}, {"hit": 2}, {"hit": 3}]


def test_a_model_server_that_nobody_named_is_remarked_on_and_stopped_in_a_replay(
    server: FakeProvider, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{server.port}"
    _, result = recorded(tmp_path, lambda: ask(url))
    assert result.llm_calls == 0
    assert result.remarks == (f"127.0.0.1:{server.port}: was not recorded: add it to hosts, with its port",)
    calls = server.calls

    def stopped() -> None:
        with pytest.raises(httpx.HTTPError):
            ask(url)
        assert httpx.get(f"{url}/health").json() == {"hit": calls + 1}  # all else on this machine is free

    _, played = replayed(tmp_path, result.session_id, stopped)
    assert played.blocked == (f"127.0.0.1:{server.port}",)
    assert issubclass(Offline, OSError)
