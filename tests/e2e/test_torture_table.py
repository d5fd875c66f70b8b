"""The torture table: each row is one thing agents do to recorders, done by real clients.

Every row is recorded against a provider that numbers its answers, then replayed with that provider gone and no key
in the environment. ``record_and_replay`` fails a row unless both runs end well, print the same bytes call by call,
and nobody came to the provider during the replay.
"""

import hashlib
import json
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import pytest

from support.answers import (
    anthropic_error_event,
    anthropic_events,
    anthropic_message,
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
from support.cli import agent_command
from support.lab import Lab
from support.script import Answer, Playbook, Request, routes

pytestmark = pytest.mark.e2e

CHAT = "/v1/chat/completions"
MakeLab = Callable[[Playbook], Lab]
TEN_CHUNKS = ["Once", " upon", " a", " time", " — ", "“quoted”", " 🎞", " end."]
"""With the first chunk (role) and the last (reason) the client sees ten."""


def numbered_chat(request: Request) -> Answer:
    """Answers whole or streamed, always with the number of the hit, so that a live or swapped answer shows."""
    asked = request.json()["messages"][-1]["content"]
    if request.json().get("stream"):
        return openai_stream(request, [f"{asked} ", f"hit {request.hit}", *TEN_CHUNKS[2:]])
    return openai_chat(request, f"{asked}: hit {request.hit}")


def test_openai_call_with_a_tool_call(lab: MakeLab) -> None:
    def chat(request: Request) -> Answer:
        if request.json()["messages"][-1]["role"] == "tool":
            return openai_chat(request, "It has been shipped.")
        return openai_chat(request, None, [("order_status", {"order": "4711"})])

    recorded, _ = lab(routes({CHAT: chat})).record_and_replay("openai_tools.py")
    first, second = recorded.lines
    assert first["tools"] == [["order_status", '{"order": "4711"}']]
    assert second["text"] == "It has been shipped."


def test_openai_stream_of_ten_chunks(lab: MakeLab) -> None:
    bench = lab(routes({CHAT: lambda request: openai_stream(request, TEN_CHUNKS, gap=0.005)}))
    recorded, _ = bench.record_and_replay("openai_stream.py")
    assert recorded.lines == [{"chunks": 10, "pieces": ["", *TEN_CHUNKS, None], "error": None}]
    assert bench.body(recorded.session, 1) == b"".join(openai_events(bench.provider.requests[0], TEN_CHUNKS))


def test_anthropic_stream_of_eleven_events(lab: MakeLab) -> None:
    texts = ["Once", " upon", " a", " time", " — ", "🎞"]
    bench = lab(routes({"/v1/messages": lambda request: anthropic_stream(request, texts, gap=0.005)}))
    recorded, _ = bench.record_and_replay("anthropic_stream.py")
    (answer,) = recorded.lines
    assert answer["error"] is None
    assert answer["events"] == 11
    assert answer["texts"] == texts


def test_gather_of_five_different_and_three_equal_calls(lab: MakeLab) -> None:
    recorded, _ = lab(routes({CHAT: numbered_chat})).record_and_replay("openai_gather.py")
    *different, same = recorded.lines
    assert [line["answer"].split(":")[0] for line in different] == [f"question {number}" for number in range(5)]
    assert len(set(same["answers"])) == 3


def test_six_different_calls_from_a_thread_pool(lab: MakeLab) -> None:
    recorded, _ = lab(routes({CHAT: numbered_chat})).record_and_replay("openai_threads.py")
    assert [line["answer"].split(":")[0] for line in recorded.lines] == [f"thread {number}" for number in range(6)]


def test_rate_limit_then_retry(lab: MakeLab) -> None:
    def chat(request: Request) -> Answer:
        if request.nth == 1:
            return openai_error(request, 429, "Slow down.", headers=(("retry-after-ms", "10"), ("retry-after", "0")))
        return openai_chat(request, f"Well, hit {request.hit}.")

    bench = lab(routes({CHAT: chat}))
    recorded, _ = bench.record_and_replay("openai_retry.py")
    assert recorded.lines[0] == {"text": "Well, hit 2."}
    assert recorded.lines[1]["error"] == "RateLimitError"
    assert bench.provider.calls == 3


def test_responses_and_embeddings(lab: MakeLab) -> None:
    book = routes(
        {"/v1/responses": lambda request: openai_response(request, "Hello."), "/v1/embeddings": openai_embeddings}
    )
    recorded, _ = lab(book).record_and_replay("openai_responses.py")
    text, vectors = recorded.lines
    assert text["text"] == "Hello."
    assert len(vectors["vectors"]) == 2


def test_gemini_whole_streamed_and_with_a_tool_call(lab: MakeLab) -> None:
    def gemini(request: Request) -> Answer:
        if ":streamGenerateContent" in request.target:
            return gemini_stream(request, ["Once", " upon", f" hit {request.hit}"])
        if "tools" in request.json():
            return gemini_content(request, "", [("weather", {"city": "Oslo"})])
        return gemini_content(request, f"Hello, hit {request.hit}.")

    recorded, _ = lab(routes({"/v1": gemini})).record_and_replay("gemini_calls.py")
    whole, streamed, tools = recorded.lines
    assert whole["text"] == "Hello, hit 1."
    assert streamed["chunks"] == 3
    assert tools["tools"] == [["weather", {"city": "Oslo"}]]


def test_the_same_request_answered_differently_each_time(lab: MakeLab) -> None:
    recorded, _ = lab(routes({CHAT: numbered_chat})).record_and_replay("openai_repeat.py")
    assert [line["text"].split(": ")[1] for line in recorded.lines] == ["hit 1", "hit 2", "hit 3", "hit 4"]


def test_client_closes_the_stream_at_done_while_the_provider_is_still_ending_it(lab: MakeLab) -> None:
    """The sync OpenAI SDK hangs up at ``[DONE]``: the step is whole all the same."""
    late = threading.Event()

    def chat(request: Request) -> Answer:
        # The end of the body (one more comment line) comes only once the agent is gone.
        return stream_answer(request, [*openai_events(request, TEN_CHUNKS), b": bye\n\n"], hold=late)

    bench = lab(routes({CHAT: chat}))
    releaser = threading.Timer(1.0, late.set)
    releaser.start()
    recorded, _ = bench.record_and_replay("openai_stream.py")
    releaser.join()
    assert recorded.lines[0]["chunks"] == 10
    body = bench.body(recorded.session, 1)
    assert body.startswith(b"".join(openai_events(bench.provider.requests[0], TEN_CHUNKS)))


@pytest.mark.parametrize("provider", ["goes on", "falls silent"])
def test_client_closes_the_stream_after_three_chunks(lab: MakeLab, provider: str) -> None:
    never = threading.Event()
    more = {"gap": 0.05} if provider == "goes on" else {"hold": never}

    def chat(request: Request) -> Answer:
        events = openai_events(request, TEN_CHUNKS)
        return stream_answer(request, events if provider == "goes on" else events[:5], **more)

    bench = lab(routes({CHAT: chat}))
    try:
        recorded, _ = bench.record_and_replay("openai_stream.py", "Only a little", "3")
    finally:
        never.set()
    assert recorded.lines[0]["chunks"] == 3
    (step,) = bench.steps(recorded.session)
    assert step["ending"] == "client_closed"
    assert step["reason"]
    events = openai_events(bench.provider.requests[0], TEN_CHUNKS)
    assert bench.body(recorded.session, 1).startswith(b"".join(events[:3]))


@pytest.mark.parametrize("how", ["fin", "rst"])
def test_provider_cuts_the_stream(lab: MakeLab, how: str) -> None:
    def chat(request: Request) -> Answer:
        events = openai_events(request, TEN_CHUNKS)
        return stream_answer(request, events[:4], gap=0.02, cut=how)

    bench = lab(routes({CHAT: chat}))
    recorded, _ = bench.record_and_replay("openai_stream.py")
    assert recorded.lines[0]["pieces"] == ["", *TEN_CHUNKS[:3]]
    assert recorded.lines[0]["error"] is not None
    (step,) = bench.steps(recorded.session)
    assert step["ending"] == "upstream_cut"


def test_an_error_event_inside_a_stream_that_began_with_200(lab: MakeLab) -> None:
    def messages(request: Request) -> Answer:
        return stream_answer(request, [*anthropic_events(request, ["Once"])[:4], anthropic_error_event("Too many.")])

    bench = lab(routes({"/v1/messages": messages}))
    recorded, _ = bench.record_and_replay("anthropic_stream.py")
    assert "Too many." in recorded.lines[0]["error"]
    assert "Too many." in json.dumps(bench.steps(recorded.session)[0])


@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_compressed_answer(lab: MakeLab, coding: Literal["gzip", "br"]) -> None:
    text = "all work and no play " * 500
    bench = lab(routes({CHAT: lambda request: openai_chat(request, text).compressed(coding)}))
    recorded, _ = bench.record_and_replay("download.py", CHAT)
    sent = openai_chat(bench.provider.requests[0], text)
    (line,) = recorded.lines
    assert line["coding"] == coding
    assert line["sha256"] == hashlib.sha256(sent.body).hexdigest()


def test_answer_of_twenty_megabytes(lab: MakeLab) -> None:
    noise = random.Random(4711).randbytes(20 * 1024 * 1024)
    pieces = tuple(noise[at : at + 65536] for at in range(0, len(noise), 65536))
    big = Answer(headers=(("content-type", "application/octet-stream"),), pieces=pieces, framing="chunked")
    recorded, _ = lab(routes({"/v1": lambda _request: big})).record_and_replay("download.py", "/v1/files/content")
    assert recorded.lines[0]["size"] == len(noise)
    assert recorded.lines[0]["sha256"] == hashlib.sha256(noise).hexdigest()


def test_websocket_goes_through_and_is_kept_as_frames(lab: MakeLab) -> None:
    def twice(message: str | bytes) -> list[str | bytes]:
        return [message, message[::-1]]

    bench = lab(routes({"/v1/realtime": lambda _request: Answer(frames=twice)}))
    recorded, _ = bench.record_and_replay("realtime.py")
    assert [line["kind"] for line in recorded.lines] == ["str", "str", "bytes", "bytes", "str", "str"]
    assert [line["size"] for line in recorded.lines] == [26, 26, 16, 16, 200_000, 200_000]
    frames = [json.loads(line) for line in bench.body(recorded.session, 1).splitlines()]
    # Three messages sent and six received; a closing frame from each side may follow.
    assert len(frames) >= 9


def test_two_agents_recording_at_once(lab: MakeLab) -> None:
    bench = lab(routes({CHAT: numbered_chat}))
    agents = ["openai_threads.py", "openai_gather.py", "openai_threads.py"]
    with ThreadPoolExecutor(len(agents)) as pool:
        running = [pool.submit(bench.record, agent) for agent in agents]
        while not all(run.done() for run in running):
            # Readers are welcome at any time.
            assert len(json.loads(bench.rewind("list", "--json").ok().stdout)["sessions"]) <= len(agents)
        recorded = [run.result().ok() for run in running]
    assert len({run.session for run in recorded}) == 3
    for run in recorded:
        assert bench.replay(run.session).ok().stdout == run.stdout
    listed = json.loads(bench.rewind("list", "--json").ok().stdout)
    assert {row["id"] for row in listed["sessions"]} >= {run.session for run in recorded}


@pytest.mark.usefixtures("node")
def test_agent_that_starts_children_in_other_languages(lab: MakeLab) -> None:
    bench = lab(routes({CHAT: numbered_chat}))
    recorded, _ = bench.record_and_replay("family.py")
    assert len(bench.steps(recorded.session)) == 6
    assert "Hello from curl: hit 5" in recorded.text
    assert "Hello from Node fetch: hit 6" in recorded.text


def test_requests_urllib_and_aiohttp(lab: MakeLab) -> None:
    bench = lab(routes({CHAT: numbered_chat}))
    recorded, _ = bench.record_and_replay("http_clients.py")
    assert [line["client"] for line in recorded.lines] == ["requests", "urllib", "aiohttp"]
    assert [line["text"] for line in recorded.lines] == [
        f"Hello from {client}: hit {number}" for number, client in enumerate(["requests", "urllib", "aiohttp"], start=1)
    ]


def test_curl(lab: MakeLab) -> None:
    bench = lab(routes({CHAT: numbered_chat}))
    recorded, _ = bench.record_and_replay("curl_call.sh")
    assert recorded.lines[0]["choices"][0]["message"]["content"] == "Hello from curl: hit 1"


@pytest.mark.usefixtures("node")
def test_node_fetch_openai_and_anthropic(lab: MakeLab) -> None:
    def messages(request: Request) -> Answer:
        texts = ["Once", " upon", " a", " time", " hit", f" {request.hit}"]
        return (
            anthropic_stream(request, texts)
            if request.json().get("stream")
            else anthropic_message(request, f"hit {request.hit}")
        )

    recorded, _ = lab(routes({CHAT: numbered_chat, "/v1/messages": messages})).record_and_replay("clients.mjs", "all")
    fetch, openai, openai_streamed, anthropic, anthropic_streamed = recorded.lines
    assert fetch["text"] == "Hello from Node fetch: hit 1"
    assert openai["text"] == "Hello from Node openai: hit 2"
    assert openai_streamed["chunks"] == 10
    assert anthropic["text"] == "hit 4"
    assert anthropic_streamed["events"] == 11


def test_a_tools_own_call_is_held_too_with_all_hosts(lab: MakeLab) -> None:
    """An agent's tool that asks a service of its own is answered from the recording as well."""
    book = routes({"/weather": lambda request: json_answer(request, {"hit": request.hit, "degrees": -3})})
    command = ["curl", "-sS", "https://tools.example.com/weather?city=Oslo"]
    recorded, _ = lab(book).record_and_replay(command, options=["--all-hosts"])
    assert json.loads(recorded.stdout) == {"hit": 1, "degrees": -3}


def test_a_changed_agent_is_refused_and_never_goes_live(lab: MakeLab) -> None:
    bench = lab(routes({CHAT: numbered_chat}))
    recorded = bench.record("openai_stream.py", "The recorded question").ok()
    command = [*agent_command("openai_stream.py"), "Another question"]
    missed = bench.replay(recorded.session, "--", *command)
    assert missed.code == 4
    (line,) = missed.lines
    assert line["chunks"] == 0
    assert line["error"] is not None
    assert "The recorded question" in missed.talk or "Another question" in missed.talk
