"""Real clients in one process, built before the run began: recorded, then replayed with the provider gone."""

import asyncio
import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import httpx
import httpx2
import openai
import pytest
import requests
import urllib3
import uvloop
import websockets.asyncio.client
import websockets.sync.client

from rewind.model.step import StepKind
from support.answers import anthropic_message, openai_chat, openai_stream
from support.inprocess import MakeStage, stages
from support.script import Answer, Request, echo
from support.trust import Trust

pytestmark = pytest.mark.e2e

URL = "https://api.openai.com/v1/chat/completions"
KEY = "sk-test-0123456789abcdef0123456789"


@pytest.fixture
def stage(trust: Trust, tmp_path: Path) -> Iterator[MakeStage]:
    with stages(trust, tmp_path) as make:
        yield make


def numbered(request: Request) -> Answer:
    """Always with the number of the hit, so that a live or swapped answer shows."""
    if request.path == "/v1/realtime":
        return Answer(frames=echo)
    if request.path.startswith("/v1/messages"):
        return anthropic_message(request, f"hit {request.hit}")
    asked = request.json()["messages"][-1]["content"]
    if request.json().get("stream"):
        return openai_stream(request, [f"{asked} ", f"hit {request.hit}"])
    return openai_chat(request, f"{asked}: hit {request.hit}")


def question(text: str) -> dict[str, Any]:
    return {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}]}


def said(body: str | bytes) -> str:
    text: str = json.loads(body)["choices"][0]["message"]["content"]
    return text


def with_httpx(client: httpx.Client) -> list[str]:
    return [said(client.post(URL, json=question(text)).content) for text in ("one", "two")]


def test_httpx(stage: MakeStage) -> None:
    with httpx.Client() as client:
        recorded, _ = stage(numbered).record_and_replay(lambda: with_httpx(client))
    assert (recorded.live, recorded.llm_calls, recorded.other_calls) == (2, 2, 0)


def test_httpx2(stage: MakeStage) -> None:
    with httpx2.Client() as client:
        stage(numbered).record_and_replay(
            lambda: [said(client.post(URL, json=question(text)).content) for text in ("one", "two")]
        )


def test_requests(stage: MakeStage) -> None:
    with requests.Session() as session:
        stage(numbered).record_and_replay(
            lambda: [said(session.post(URL, json=question(text)).content) for text in ("one", "two")]
        )


def test_urllib3(stage: MakeStage) -> None:
    with urllib3.PoolManager() as pool:
        stage(numbered).record_and_replay(
            lambda: [said(pool.request("POST", URL, json=question(text)).data) for text in ("one", "two")]
        )


def test_urllib(stage: MakeStage) -> None:
    def ask(text: str) -> str:
        request = urllib.request.Request(URL, json.dumps(question(text)).encode(), method="POST")
        with urllib.request.urlopen(request) as answer:
            return said(answer.read())

    stage(numbered).record_and_replay(lambda: [ask("one"), ask("two")])


def test_the_openai_sdk_whole_and_streamed(stage: MakeStage) -> None:
    with openai.OpenAI(api_key=KEY) as client:

        def work() -> list[str]:
            whole = client.chat.completions.create(**question("whole"))
            stream = client.chat.completions.create(**question("streamed"), stream=True)
            return [str(whole.choices[0].message.content), *(chunk.choices[0].delta.content or "" for chunk in stream)]

        stage(numbered).record_and_replay(work)


def test_the_anthropic_sdk(stage: MakeStage) -> None:
    with anthropic.Anthropic(api_key=KEY) as client:
        stage(numbered).record_and_replay(
            lambda: (
                client.messages.create(
                    model="claude-sonnet-5-5", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
                )
                .content[0]
                .to_json()
            )
        )


async def openai_gathered() -> list[str]:
    async with openai.AsyncOpenAI(api_key=KEY) as client:

        async def ask(number: int) -> str:
            answer = await client.chat.completions.create(**question(f"question {number}"))
            return str(answer.choices[0].message.content)

        async def stream() -> str:
            chunks = await client.chat.completions.create(**question("streamed"), stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])

        return await asyncio.gather(*(ask(number) for number in range(8)), stream())


async def anthropic_gathered() -> list[str]:
    async with anthropic.AsyncAnthropic(api_key=KEY) as client:
        found = await asyncio.gather(
            *(
                client.messages.create(
                    model="claude-sonnet-5-5", max_tokens=9, messages=[{"role": "user", "content": f"{number}"}]
                )
                for number in range(3)
            )
        )
        return [one.content[0].to_json() for one in found]


async def aiohttp_gathered() -> list[str]:
    async with aiohttp.ClientSession() as session:

        async def ask(number: int) -> str:
            async with session.post(URL, json=question(f"question {number}")) as answer:
                return said(await answer.read())

        first = await asyncio.gather(*(ask(number) for number in range(4)))
        return [*first, await ask(9)]


async def httpx_gathered() -> list[str]:
    async with httpx.AsyncClient() as client:
        found = await asyncio.gather(*(client.post(URL, json=question(f"q {number}")) for number in range(4)))
        return [said(one.content) for one in found]


async def websockets_talk() -> list[str]:
    async with websockets.asyncio.client.connect("wss://api.openai.com/v1/realtime?model=x") as line:
        answers = []
        for text in ("one", "two"):
            await line.send(text)
            answers.append(str(await line.recv()))
        return answers


ASYNC = (openai_gathered, anthropic_gathered, aiohttp_gathered, httpx_gathered, websockets_talk)


@pytest.mark.parametrize("work", ASYNC, ids=lambda work: work.__name__)
def test_on_asyncio(stage: MakeStage, work: Callable[[], Any]) -> None:
    stage(numbered).record_and_replay(lambda: asyncio.run(work()))


@pytest.mark.parametrize("work", ASYNC, ids=lambda work: work.__name__)
def test_on_uvloop(stage: MakeStage, work: Callable[[], Any]) -> None:
    def run() -> Any:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(work())

    stage(numbered).record_and_replay(run)


def test_websockets_in_a_thread_of_its_own(stage: MakeStage) -> None:
    def work() -> list[str]:
        with websockets.sync.client.connect("wss://api.openai.com/v1/realtime?model=x") as line:
            line.send("one")
            return [str(line.recv())]

    recorded, _ = stage(numbered).record_and_replay(work)
    assert recorded.other_calls == 1


def test_threads_and_executors_belong_to_the_run_that_started_them(stage: MakeStage) -> None:
    with httpx.Client() as client, ThreadPoolExecutor(2) as pool:
        assert pool.submit(lambda: 1).result() == 1  # a worker is there before the run

        def work() -> list[str]:
            found: list[str] = []
            thread = threading.Thread(target=lambda: found.extend(with_httpx(client)))
            thread.start()
            thread.join()
            submitted = pool.submit(lambda: said(client.post(URL, json=question("submitted")).content))
            return [*found, submitted.result()]

        recorded, _ = stage(numbered).record_and_replay(work)
    assert recorded.llm_calls == 3


def test_tools_and_notes_travel_the_same_road(stage: MakeStage) -> None:
    from rewind.inprocess.run import PlayedTool, ToolUnderWay, current_run

    ran: list[str] = []

    def work() -> list[bytes]:
        run = current_run()
        assert run is not None
        answers = []
        for body in (b'{"arguments":{"order":4711}}', b'{"arguments":{"order":4712}}'):
            call = run.tool("lookup order", body)
            if isinstance(call, ToolUnderWay):
                ran.append("once")
                call.ended(200, b'{"result":"shipped ' + body[-6:-2] + b'"}')
                answers.append(b'{"result":"shipped ' + body[-6:-2] + b'"}')
            else:
                assert isinstance(call, PlayedTool)
                answers.append(call.body)
        run.note("both were looked up", {"orders": [4711, 4712]})
        kinds = [step.request.kind for step in run.steps_so_far()]
        assert kinds == [StepKind.TOOL_CALL, StepKind.TOOL_CALL, StepKind.NOTE]
        return answers

    recorded, replayed = stage(numbered).record_and_replay(work)
    assert len(ran) == 2
    assert recorded.live == 0
    assert replayed.total == 2
