"""The torture table again, in one process: each row is recorded by ``rewind.session`` and replayed with nobody there.

``twice`` fails a row unless both runs give the same, the recorded bytes are those that the provider sent, the whole
recording was played, and nobody came to the provider during the replay.
"""

import asyncio
import hashlib
import json
import random
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import botocore.session
import httpx
import httpx2
import openai
import pytest
import requests
import urllib3
import uvloop
import websockets.asyncio.client
import websockets.sync.client
from google import genai

from support.answers import (
    anthropic_error_event,
    anthropic_events,
    anthropic_stream,
    gemini_content,
    gemini_stream,
    json_answer,
    openai_chat,
    openai_embeddings,
    openai_error,
    openai_events,
    openai_response,
    openai_stream,
    stream_answer,
)
from support.provider import FakeProvider
from support.script import Answer, Request, routes
from support.sdk_bench import KEYS, MakeBench, SdkBench, Sent
from support.trust import Trust

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("plain_variables")]

CHAT = "/v1/chat/completions"
URL = "https://api.openai.com" + CHAT
TEN_CHUNKS = ["Once", " upon", " a", " time", " — ", "“quoted”", " 🎞", " end."]
HEADERS = {"authorization": f"Bearer {KEYS['OPENAI_API_KEY']}", "content-type": "application/json"}


def numbered_chat(request: Request) -> Answer:
    """Answers whole or streamed, always with the number of the hit, so that a live or swapped answer shows."""
    asked = request.json()["messages"][-1]["content"]
    if request.json().get("stream"):
        return openai_stream(request, [f"{asked} ", f"hit {request.hit}", *TEN_CHUNKS[2:]])
    return openai_chat(request, f"{asked}: hit {request.hit}")


def question(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}], **more}


def text_of(body: bytes) -> str:
    said: str = json.loads(body)["choices"][0]["message"]["content"]
    return said


# ── each client, plain and streamed ──────────────────────────────────────────────────────────────────────────


def with_openai() -> Any:
    with openai.OpenAI() as client:
        whole = client.chat.completions.create(**question("openai"))
        stream = client.chat.completions.create(**question("openai streams"), stream=True)
        return whole.to_dict(), [chunk.to_dict() for chunk in stream]


async def with_async_openai() -> Any:
    async with openai.AsyncOpenAI() as client:
        whole = await client.chat.completions.create(**question("openai"))
        stream = await client.chat.completions.create(**question("openai streams"), stream=True)
        return whole.to_dict(), [chunk.to_dict() async for chunk in stream]


def with_httpx(library: Any = httpx) -> Any:
    with library.Client() as client:
        whole = client.post(URL, json=question("httpx"), headers=HEADERS)
        with client.stream("POST", URL, json=question("streams", stream=True), headers=HEADERS) as stream:
            return text_of(whole.content), list(stream.iter_lines())


async def with_async_httpx(library: Any = httpx) -> Any:
    async with library.AsyncClient() as client:
        whole = await client.post(URL, json=question("httpx"), headers=HEADERS)
        body = question("streams", stream=True)
        async with client.stream("POST", URL, json=body, headers=HEADERS) as stream:
            return text_of(whole.content), [line async for line in stream.aiter_lines()]


def with_requests() -> Any:
    with requests.Session() as client:
        whole = client.post(URL, json=question("requests"), headers=HEADERS, timeout=30)
        body = question("streams", stream=True)
        with client.post(URL, json=body, headers=HEADERS, timeout=30, stream=True) as stream:
            return text_of(whole.content), list(stream.iter_lines())


def with_urllib3() -> Any:
    with urllib3.PoolManager() as client:
        whole = client.request("POST", URL, json=question("urllib3"), headers=HEADERS)
        body = question("streams", stream=True)
        stream = client.request("POST", URL, json=body, headers=HEADERS, preload_content=False)
        return text_of(whole.data), b"".join(stream.stream())


def with_urllib() -> Any:
    found = []
    for body in (question("urllib"), question("streams", stream=True)):
        asked = urllib.request.Request(URL, json.dumps(body).encode(), HEADERS)
        with urllib.request.urlopen(asked, timeout=30) as reply:
            found.append(reply.read())
    return text_of(found[0]), found[1]


async def with_aiohttp() -> Any:
    async with aiohttp.ClientSession() as client:
        async with client.post(URL, json=question("aiohttp"), headers=HEADERS) as reply:
            whole = await reply.read()
        async with client.post(URL, json=question("streams", stream=True), headers=HEADERS) as reply:
            return text_of(whole), b"".join([piece async for piece in reply.content.iter_any()])


SYNC = {
    "openai": with_openai,
    "httpx": with_httpx,
    "httpx2": lambda: with_httpx(httpx2),
    "requests": with_requests,
    "urllib3": with_urllib3,
    "urllib": with_urllib,
}
ASYNC = {
    "openai": with_async_openai,
    "httpx": with_async_httpx,
    "httpx2": lambda: with_async_httpx(httpx2),
    "aiohttp": with_aiohttp,
}


@pytest.mark.parametrize("client", SYNC)
def test_a_client(bench: MakeBench, client: str) -> None:
    said, _stream = bench(routes({CHAT: numbered_chat})).twice(SYNC[client])
    assert "hit 1" in json.dumps(said)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("client", ASYNC)
def test_an_async_client(bench: MakeBench, client: str, loop: str) -> None:
    one = bench(routes({CHAT: numbered_chat}))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop if loop == "uvloop" else None) as runner:
        said, _stream = runner.run(one.twice_async(ASYNC[client]))
    assert "hit 1" in json.dumps(said)


def gemini(request: Request) -> Answer:
    if ":streamGenerateContent" in request.target:
        return gemini_stream(request, ["Once", " upon", f" hit {request.hit}"])
    return gemini_content(request, f"Hello, hit {request.hit}.")


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
def test_google_genai_sync_and_async(bench: MakeBench) -> None:
    def ask() -> list[str | None]:
        with genai.Client() as client:
            models = client.models
            whole = models.generate_content(model="gemini-2.5-flash", contents="Say hello")
            pieces = models.generate_content_stream(model="gemini-2.5-flash", contents="Tell a story")
            return [whole.text, *(piece.text for piece in pieces)]

    async def ask_later() -> list[str | None]:
        with genai.Client() as client:
            async with client.aio as later:
                models = later.models
                whole = await models.generate_content(model="gemini-2.5-flash", contents="Say hello")
                pieces = await models.generate_content_stream(model="gemini-2.5-flash", contents="A story")
                return [whole.text, *[piece.text async for piece in pieces]]

    assert bench(routes({"/v1": gemini})).twice(ask) == ["Hello, hit 1.", "Once", " upon", " hit 2"]
    assert bench(routes({"/v1": gemini})).run_twice(ask_later)[0] == "Hello, hit 1."


def test_botocore(bench: MakeBench) -> None:
    def converse(request: Request) -> Answer:
        return json_answer(
            request,
            {
                "output": {"message": {"role": "assistant", "content": [{"text": f"hit {request.hit}"}]}},
                "stopReason": "end_turn",
                "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5},
                "metrics": {"latencyMs": 7},
            },
        )

    def ask() -> Any:
        client = botocore.session.get_session().create_client("bedrock-runtime", region_name="us-east-1")
        asked = [{"role": "user", "content": [{"text": "Say hello"}]}]
        answer = client.converse(modelId="anthropic.claude-3-haiku-20240307-v1:0", messages=asked)
        client.close()
        return answer["output"], answer["usage"]

    said, _ = bench(routes({"/model": converse})).twice(ask)
    assert said["message"]["content"] == [{"text": "hit 1"}]


def mirrored(message: str | bytes) -> list[str | bytes]:
    return [message, message[::-1]]


REALTIME = "wss://api.openai.com/v1/realtime?model=gpt-realtime"
MESSAGES: tuple[str | bytes, ...] = ('{"type":"response.create"}', b"\x00\xff" * 8, "x" * 200_000)


def test_websockets_sync(bench: MakeBench) -> None:
    def talk() -> list[str | bytes]:
        heard: list[str | bytes] = []
        with websockets.sync.client.connect(REALTIME, additional_headers=HEADERS, max_size=None) as line:
            for message in MESSAGES:
                line.send(message)
                heard += [line.recv(timeout=30), line.recv(timeout=30)]
        return heard

    heard = bench(routes({"/v1/realtime": lambda _request: Answer(frames=mirrored)})).twice(talk)
    assert heard == [answer for message in MESSAGES for answer in mirrored(message)]


def test_websockets_async(bench: MakeBench) -> None:
    async def talk() -> list[str | bytes]:
        heard: list[str | bytes] = []
        connect = websockets.asyncio.client.connect
        async with connect(REALTIME, additional_headers=HEADERS, max_size=None) as line:
            for message in MESSAGES:
                await line.send(message)
                heard += [await line.recv(), await line.recv()]
        return heard

    heard = bench(routes({"/v1/realtime": lambda _request: Answer(frames=mirrored)})).run_twice(talk)
    assert heard == [answer for message in MESSAGES for answer in mirrored(message)]


# ── what agents do ───────────────────────────────────────────────────────────────────────────────────────────


def ask_openai(client: openai.OpenAI, text: str, **more: Any) -> str | None:
    return client.chat.completions.create(**question(text), **more).choices[0].message.content


def test_a_call_with_a_tool_call(bench: MakeBench) -> None:
    def chat(request: Request) -> Answer:
        if request.json()["messages"][-1]["role"] == "tool":
            return openai_chat(request, "It has been shipped.")
        return openai_chat(request, None, [("order_status", {"order": "4711"})])

    def agent() -> str | None:
        messages: Any = [{"role": "user", "content": "Where is order 4711?"}]
        with openai.OpenAI() as client:
            create = client.chat.completions.create
            asked = create(model="gpt-4o-mini", messages=messages).choices[0].message
            messages += [asked.model_dump(exclude_none=True)]
            assert asked.tool_calls
            messages += [{"role": "tool", "tool_call_id": asked.tool_calls[0].id, "content": "shipped"}]
            return create(model="gpt-4o-mini", messages=messages).choices[0].message.content

    assert bench(routes({CHAT: chat})).twice(agent) == "It has been shipped."


def test_gather_of_five_different_and_three_equal_calls(bench: MakeBench) -> None:
    async def agent() -> tuple[list[str], list[str]]:
        async with openai.AsyncOpenAI() as client:

            async def ask(text: str) -> str:
                answer = await client.chat.completions.create(**question(text))
                return answer.choices[0].message.content or ""

            texts = [f"question {number}" for number in range(5)] + ["the same question"] * 3
            answers = await asyncio.gather(*map(ask, texts))
        # Which of three equal questions gets which answer is nobody's promise; that all three come is.
        return answers[:5], sorted(answers[5:])

    different, same = bench(routes({CHAT: numbered_chat})).run_twice(agent)
    assert [answer.split(":")[0] for answer in different] == [f"question {number}" for number in range(5)]
    assert len(set(same)) == 3


def test_six_calls_from_a_thread_pool_and_six_from_threads(bench: MakeBench) -> None:
    def agent() -> list[str | None]:
        texts = [f"thread {number}" for number in range(6)]
        more: dict[str, str | None] = {}
        with openai.OpenAI() as client:

            def ask_aside(text: str) -> None:
                more[text] = ask_openai(client, "own " + text)

            with ThreadPoolExecutor(6) as pool:
                found = list(pool.map(lambda text: ask_openai(client, text), texts))
            threads = [threading.Thread(target=ask_aside, args=(text,)) for text in texts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return [*found, *(more[text] for text in texts)]

    found = bench(routes({CHAT: numbered_chat})).twice(agent)
    assert [(said or "").split(":")[0] for said in found[6:]] == [f"own thread {n}" for n in range(6)]


def test_calls_made_in_threads_of_an_event_loop(bench: MakeBench) -> None:
    async def agent() -> list[str | None]:
        with openai.OpenAI() as client:
            asked = (asyncio.to_thread(ask_openai, client, f"thread {number}") for number in range(3))
            return list(await asyncio.gather(*asked))

    assert len(set(bench(routes({CHAT: numbered_chat})).run_twice(agent))) == 3


def test_rate_limit_then_retry(bench: MakeBench) -> None:
    def chat(request: Request) -> Answer:
        if request.nth == 1:
            hints = (("retry-after-ms", "10"), ("retry-after", "0"))
            return openai_error(request, 429, "Slow down.", headers=hints)
        return openai_chat(request, f"Well, hit {request.hit}.")

    def agent() -> tuple[str | None, str]:
        with openai.OpenAI(max_retries=2) as client:
            patient = ask_openai(client, "Am I too fast?")
        with openai.OpenAI(max_retries=0) as client:
            try:
                return patient, str(ask_openai(client, "And now?"))
            except openai.RateLimitError as error:
                return patient, error.message

    said, error = bench(routes({CHAT: chat})).twice(agent)
    assert said == "Well, hit 2."
    assert "Slow down." in error


def test_responses_and_embeddings(bench: MakeBench) -> None:
    def agent() -> tuple[str, list[list[float]]]:
        with openai.OpenAI() as client:
            said = client.responses.create(model="gpt-4o-mini", input="Say hello").output_text
            vectors = client.embeddings.create(model="text-embedding-3-small", input=["red", "yellow"])
        return said, [row.embedding for row in vectors.data]

    book = {"/v1/responses": lambda request: openai_response(request, "Hello."), "/v1/embeddings": openai_embeddings}
    assert bench(routes(book)).twice(agent)[0] == "Hello."


def test_the_same_request_answered_differently_each_time(bench: MakeBench) -> None:
    def agent() -> list[str | None]:
        with openai.OpenAI() as client:
            return [ask_openai(client, "Is it done yet?") for _turn in range(4)]

    found = bench(routes({CHAT: numbered_chat})).twice(agent)
    assert [(said or "").split(": ")[1] for said in found] == ["hit 1", "hit 2", "hit 3", "hit 4"]


STORY: Any = {"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": question("A story")["messages"]}


def anthropic_texts() -> Any:
    texts: list[str] = []
    try:
        with anthropic.Anthropic(max_retries=0) as client, client.messages.stream(**STORY) as stream:
            texts += stream.text_stream
            return texts, stream.get_final_message().to_dict()
    except anthropic.APIError as error:
        return texts, f"{type(error).__name__}: {error.message}"


async def anthropic_texts_async() -> Any:
    async with anthropic.AsyncAnthropic() as client, client.messages.stream(**STORY) as stream:
        texts = [text async for text in stream.text_stream]
        return texts, (await stream.get_final_message()).to_dict()


def test_anthropic_streams(bench: MakeBench) -> None:
    texts = ["Once", " upon", " a", " time", " — ", "🎞"]
    book = routes({"/v1/messages": lambda request: anthropic_stream(request, texts, gap=0.002)})
    assert bench(book).twice(anthropic_texts)[0] == texts
    assert bench(book).run_twice(anthropic_texts_async)[0] == texts


def test_an_error_event_inside_a_stream_that_began_with_200(bench: MakeBench) -> None:
    def messages(request: Request) -> Answer:
        return stream_answer(request, [*anthropic_events(request, ["Once"])[:4], anthropic_error_event("Too many.")])

    one = bench(routes({"/v1/messages": messages}))
    assert "Too many." in str(one.twice(anthropic_texts)[1])


def read_stream(close_after: int | None = None) -> tuple[list[str | None], str | None]:
    pieces: list[str | None] = []
    try:
        with openai.OpenAI(max_retries=0) as client:
            stream = client.chat.completions.create(**question("A story"), stream=True)
            for chunk in stream:
                pieces.append(chunk.choices[0].delta.content)
                if len(pieces) == close_after:
                    stream.close()
                    break
    except (httpx2.HTTPError, openai.APIError) as error:
        return pieces, type(error).__name__
    return pieces, None


@pytest.mark.parametrize("provider", ["goes on", "falls silent"])
def test_client_closes_the_stream_after_three_chunks(bench: MakeBench, provider: str) -> None:
    never = threading.Event()

    def chat(request: Request) -> Answer:
        events = openai_events(request, TEN_CHUNKS)
        if provider == "goes on":
            return stream_answer(request, events, gap=0.02, hold=None)
        return stream_answer(request, events[:5], hold=never)

    one = bench(routes({CHAT: chat}))
    try:
        with one.session() as run:
            first = read_stream(3)
    finally:
        never.set()
    with one.without_provider(), one.session(mode="replay") as again:
        assert read_stream(3) == first
    assert first[0] == ["", "Once", " upon"]
    assert (run.result is not None, again.misses) == (True, ())
    events = openai_events(one.provider.requests[0], TEN_CHUNKS)
    (body,) = one.bodies()
    assert body.startswith(b"".join(events[:3]))
    assert b"".join(events).startswith(body)


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_provider_cuts_the_stream(bench: MakeBench, how: str) -> None:
    def chat(request: Request) -> Answer:
        return stream_answer(request, openai_events(request, TEN_CHUNKS)[:4], gap=0.02, cut=how)

    pieces, error = bench(routes({CHAT: chat})).twice(read_stream)
    assert pieces == ["", *TEN_CHUNKS[:3]]
    assert error is not None


@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_compressed_answer(bench: MakeBench, coding: Any) -> None:
    text = "all work and no play " * 500
    one = bench(routes({CHAT: lambda request: openai_chat(request, text).compressed(coding)}))

    def agent() -> Any:
        headers = {**HEADERS, "accept-encoding": coding}
        reply = requests.post(URL, json=question("Tell"), headers=headers, timeout=30)
        return reply.headers["content-encoding"], hashlib.sha256(reply.content).hexdigest()

    found = one.twice(agent)
    sent = openai_chat(one.provider.requests[0], text)
    assert found == (coding, hashlib.sha256(sent.body).hexdigest())


def test_answer_of_eight_megabytes(bench: MakeBench) -> None:
    noise = random.Random(4711).randbytes(8 * 1024 * 1024)
    pieces = tuple(noise[at : at + 65536] for at in range(0, len(noise), 65536))
    big = Answer(headers=(("content-type", "application/octet-stream"),), pieces=pieces, framing="chunked")

    def agent() -> str:
        return hashlib.sha256(httpx.get("https://api.openai.com/v1/files/content").content).hexdigest()

    assert bench(routes({"/v1": lambda _request: big})).twice(agent) == hashlib.sha256(noise).hexdigest()


def test_a_tools_own_call_is_held_too_with_all_hosts(bench: MakeBench) -> None:
    book = routes({"/weather": lambda request: json_answer(request, {"hit": request.hit, "degrees": -3})})
    url = "https://tools.example.com/weather?city=Oslo"
    found = bench(book, all_hosts=True).twice(lambda: httpx.get(url).json())
    assert found == {"hit": 1, "degrees": -3}


# ── clients that were there before ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_clients_that_were_used_before_the_session_and_are_used_after_it(
    trust: Trust, tmp_path: Path, library: Any
) -> None:
    """Their connections are open already, and lead straight to the provider."""
    sent = Sent(routes({CHAT: numbered_chat}))
    with FakeProvider(sent) as provider, library.Client() as client, requests.Session() as other:
        url = provider.url + CHAT
        one = SdkBench(tmp_path, trust, provider, sent, {"hosts": [f"127.0.0.1:{provider.port}"]})

        def ask() -> list[str]:
            first = client.post(url, json=question("one")).content
            return [text_of(first), text_of(other.post(url, json=question("two"), timeout=30).content)]

        assert ask() == ["one: hit 1", "two: hit 2"]
        sent.answers.clear()
        with one.session() as run:
            recorded = ask()
        assert recorded == ["one: hit 3", "two: hit 4"]
        assert len(run.steps) == 2
        assert sorted(one.bodies()) == sent.bodies
        assert ask() == ["one: hit 5", "two: hit 6"], "after the session they are live again"
        with one.without_provider(), one.session(mode="replay"):
            assert ask() == recorded


def test_async_clients_that_were_used_before_the_session(trust: Trust, tmp_path: Path) -> None:
    sent = Sent(routes({CHAT: numbered_chat}))

    async def main(provider: FakeProvider) -> None:
        url = provider.url + CHAT
        one = SdkBench(tmp_path, trust, provider, sent, {"hosts": [f"127.0.0.1:{provider.port}"]})
        async with (
            openai.AsyncOpenAI(base_url=f"{provider.url}/v1", max_retries=0) as client,
            aiohttp.ClientSession() as other,
        ):

            async def ask() -> list[str | None]:
                said = await client.chat.completions.create(**question("one"))
                async with other.post(url, json=question("two")) as reply:
                    return [said.choices[0].message.content, text_of(await reply.read())]

            assert await ask() == ["one: hit 1", "two: hit 2"]
            async with one.session() as run:
                recorded = await ask()
            assert len(run.steps) == 2
            with one.without_provider():
                async with one.session(mode="replay"):
                    assert await ask() == recorded

    with FakeProvider(sent) as provider:
        asyncio.run(main(provider))
