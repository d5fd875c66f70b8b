"""Scenes that need a process of their own, because they begin before Rewind has touched anything.

    inprocess_scenes.py SCENE HOME PORT

``api.openai.com`` is this machine here, as a resolver would say it, so that a live call has somewhere to go; the
provider listens on PORT, and ``SSL_CERT_FILE`` vouches for it. Each scene prints one JSON object.
"""

import asyncio
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import uvloop

SCENE, HOME, PORT = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
URL = f"https://api.openai.com:{PORT}/v1/chat/completions"
_resolve = socket.getaddrinfo
asked: list[str] = []


def resolve(host: Any, *args: Any, **kwargs: Any) -> Any:
    name = host.decode() if isinstance(host, bytes) else str(host)  # anyio gives bytes
    asked.append(name)
    return _resolve("127.0.0.1" if name == "api.openai.com" else host, *args, **kwargs)


async def resolve_in_loop(self: Any, host: Any, port: Any, **kwargs: Any) -> Any:
    return resolve(host, port, **kwargs)


async def connect_in_loop(self: Any, factory: Any, host: Any = None, port: Any = None, **kwargs: Any) -> Any:
    """uvloop asks the system's resolver from C."""
    return await _connect(self, factory, "127.0.0.1" if host == "api.openai.com" else host, port, **kwargs)


_connect = uvloop.Loop.create_connection
socket.getaddrinfo = resolve  # type: ignore[assignment]
uvloop.Loop.getaddrinfo = resolve_in_loop
uvloop.Loop.create_connection = connect_in_loop

import aiohttp  # noqa: E402
import httpx  # noqa: E402
import requests  # noqa: E402
import urllib3  # noqa: E402

from rewind.gateway.options import UpstreamOptions  # noqa: E402
from rewind.inprocess.run import InProcessOptions, InProcessResult, InProcessRun, ToolUnderWay, current_run  # noqa: E402
from rewind.inprocess.shared_gateway import ChildVariables, hook_variables, shared_gateway  # noqa: E402
from rewind.reading.verify import verify  # noqa: E402
from rewind.store.journal.reader import FolderReader  # noqa: E402

UPSTREAM = UpstreamOptions(
    connect_to=(f"api.openai.com:{PORT}:127.0.0.1:{PORT}",), ca=Path(os.environ["SSL_CERT_FILE"])
)


def question(text: str) -> dict[str, Any]:
    return {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}]}


def said(answer: Any) -> str:
    return str(answer["choices"][0]["message"]["content"])


def recording(**more: Any) -> InProcessRun:
    return InProcessRun(InProcessOptions(home=HOME, upstream=UPSTREAM, **more))


def replaying(session: str | None, **more: Any) -> InProcessRun:
    tape = FolderReader(next((HOME / "sessions").glob(f"*-{session}")))
    return InProcessRun(InProcessOptions(home=HOME, mode="replay", tape=tape, keep=False, **more))


def through(run: InProcessRun, work: Callable[[], Any]) -> tuple[Any, InProcessResult]:
    run.start()
    token = run.activate()
    value = work()
    run.deactivate(token)
    return value, run.finish()


def told(value: Any, result: InProcessResult) -> dict[str, Any]:
    return {
        "value": value,
        "played": result.played,
        "total": result.total,
        "live": result.live,
        "blocked": result.blocked,
        "remarks": result.remarks,
        "misses": len(result.misses),
    }


def live_before_sync() -> dict[str, Any]:
    """Clients that have kept a live connection are recorded, then replayed, then live again."""
    with ExitStack() as clients:
        one = clients.enter_context(httpx.Client())
        two = clients.enter_context(requests.Session())
        three = clients.enter_context(urllib3.PoolManager())

        def ask(text: str) -> list[str]:
            return [
                said(one.post(URL, json=question(f"httpx {text}")).json()),
                said(two.post(URL, json=question(f"requests {text}")).json()),
                said(three.request("POST", URL, json=question(f"urllib3 {text}")).json()),
            ]

        before = ask("live")
        value, recorded = through(recording(), lambda: ask("in the run"))
        between = ask("live")
        again, replayed = through(replaying(recorded.session_id), lambda: ask("in the run"))
        after = ask("live")
    return {
        "before": before,
        "recorded": told(value, recorded),
        "between": between,
        "replayed": told(again, replayed),
        "after": after,
    }


def live_before_async() -> dict[str, Any]:
    async def scene() -> dict[str, Any]:
        async with httpx.AsyncClient() as one, aiohttp.ClientSession() as two:

            async def ask(text: str) -> list[str]:
                first = said((await one.post(URL, json=question(f"httpx {text}"))).json())
                async with two.post(URL, json=question(f"aiohttp {text}")) as answer:
                    return [first, said(await answer.json())]

            async def within(run: InProcessRun) -> tuple[list[str], InProcessResult]:
                run.start()
                token = run.activate()
                value = await ask("in the run")
                run.deactivate(token)
                return value, run.finish()

            before = await ask("live")
            value, recorded = await within(recording())
            between = await ask("live")
            again, replayed = await within(replaying(recorded.session_id))
            after = await ask("live")
        return {
            "before": before,
            "recorded": told(value, recorded),
            "between": between,
            "replayed": told(again, replayed),
            "after": after,
        }

    if SCENE.endswith("uvloop"):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(scene())
    return asyncio.run(scene())


def stream_under_way() -> dict[str, Any]:
    """An answer that is still coming when a replay begins is none of its business, and never becomes it."""
    body = question("a long story") | {"stream": True}
    with httpx.Client() as client:
        _, recorded = through(recording(), lambda: said(client.post(URL, json=question("x")).json()))
        with httpx.Client() as streamer, streamer.stream("POST", URL, json=body) as stream:
            pieces = stream.iter_raw()
            first = next(pieces)
            run = replaying(recorded.session_id)
            run.start()
            token = run.activate()
            rest = b"".join(pieces)
            try:
                # The connection is free again, and live.
                streamer.post(URL, json=question("on the old connection"))
                outcome = "answered"
            except httpx.HTTPError as error:
                outcome = f"{type(error).__name__}: {error}"
            run.deactivate(token)
            result = run.finish()
    return {"first": bool(first), "whole": rest.endswith(b"data: [DONE]\n\n"), **told(outcome, result)}


def forked() -> dict[str, Any]:
    """Workers that are forked in a run reach its gateway, which is in their parent."""
    context = multiprocessing.get_context("fork")

    def work() -> list[str]:
        with context.Pool(2) as pool:
            return pool.map(ask_alone, ["one", "two"])

    value, recorded = through(recording(), work)
    again, replayed = through(replaying(recorded.session_id), work)
    return {"recorded": told(value, recorded), "replayed": told(again, replayed)}


def ask_alone(text: str) -> str:
    run = current_run()
    assert run is not None
    tool = run.tool("t", b"{}") if text == "one" else None
    return said(httpx.post(URL, json=question(text)).json()) + (" and a tool" if tool is not None else "")


def forked_with_a_run_of_its_own() -> dict[str, Any]:
    """A child that is forked within a run, and then begins one itself, has a gateway of its own."""
    client = httpx.Client()
    run = recording(name="parent")
    run.start()
    token = run.activate()
    first = said(client.post(URL, json=question("the parent")).json())
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        value, result = through(
            recording(name="child"), lambda: said(httpx.post(URL, json=question("the child")).json())
        )
        run.finish()  # as a with block would do on the child's way out
        os.write(writing, json.dumps(told(value, result)).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    second = said(client.post(URL, json=question("the parent again")).json())
    run.deactivate(token)
    return {"child": json.loads(os.read(reading, 10000)), "parent": told([first, second], run.finish())}


def forked_tools() -> dict[str, Any]:
    """A forked child runs its tools, and leaves the session of its parent alone, however it ends."""
    run = recording(name="parent")
    run.start()
    token = run.activate()
    use_tool(run, 0)
    run.flush()
    folder = run.progress().folder
    assert folder is not None
    while b'"kind":"surroundings"' not in (folder / "journal.jsonl").read_bytes():
        time.sleep(0.01)
    before = contents(folder)
    ends = {how: ended_child(run, how) for how in ("_exit", "exit", "multiprocessing")}
    untouched = contents(folder) == before
    busy = threading.Event()

    def keep_busy() -> None:
        for number in count():
            if busy.is_set():
                break
            use_tool(run, number)

    worker = threading.Thread(target=keep_busy)
    worker.start()
    crowd = [ended_child(run, "_exit") for _ in range(15)]  # each is forked while the parent writes
    busy.set()
    worker.join()
    own = run.progress().tool_calls
    run.deactivate(token)
    result = run.finish()
    with FolderReader(folder) as reader:
        steps = reader.recording().steps
        return {
            "ends": ends,
            "untouched": untouched,
            "crowd": crowd,
            "own": own,
            "steps": len(steps),
            "damage": list(map(str, verify(HOME, result.session_id).damage)),
            **told(None, result),
        }


def use_tool(run: InProcessRun, number: int) -> str:
    """Long arguments are kept by another thread than short ones."""
    text = "x" * (200_000 if number % 3 == 1 else 20)
    call = run.tool("reckon", json.dumps({"arguments": {"number": number, "text": text}}).encode())
    assert isinstance(call, ToolUnderWay)
    call.ended(200, json.dumps({"result": number}).encode())
    return "ran"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def ended_child(run: InProcessRun, how: str) -> str:
    """What a child that uses tools says before it ends in that way; "hangs" for one that does not end."""
    reading, writing = os.pipe()

    def work() -> None:
        said = [use_tool(run, number) for number in range(100, 104)]
        run.note("in a child")
        run.flush()
        said.append(f"{len(run.steps_so_far())} steps")
        os.write(writing, " ".join(said[:4]).encode())

    if how == "multiprocessing":
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start()
        child.join(20)
        ended = child.exitcode is not None
        if not ended:
            child.kill()
    else:
        if (pid := os.fork()) == 0:
            work()
            if how == "_exit":
                os._exit(0)
            sys.exit(0)
        ended = False
        for _ in range(2000):
            if ended := os.waitpid(pid, os.WNOHANG)[0] == pid:
                break
            time.sleep(0.01)
        else:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    os.close(writing)
    text = os.read(reading, 1000).decode()
    os.close(reading)
    return text if ended else f"hangs {text}"


def nested() -> dict[str, Any]:
    """A run in a process that is itself recorded or replayed."""
    value, result = through(
        InProcessRun(InProcessOptions(home=HOME, name="inner")),
        lambda: said(httpx.post("https://api.openai.com/v1/chat/completions", json=question("x")).json()),
    )
    return told(value, result)


def dead_gateway() -> dict[str, Any]:
    """A gateway that died takes nothing along: what is recorded goes on without it, what is replayed is stopped."""

    ask = lambda: said(httpx.post(URL, json=question("x")).json())  # noqa: E731
    value, recorded = through(recording(), ask)
    run = recording()
    run.start()
    again = replaying(recorded.session_id)
    again.start()
    shared_gateway()._gateway.stop()
    token = run.activate()
    unrecorded = ask()
    run.note("nobody hears this")
    run.deactivate(token)
    token = again.activate()
    try:
        stopped = ask()
    except httpx.ConnectError as error:
        stopped = str(error)
    again.deactivate(token)
    return {
        "first": told(value, recorded),
        "recorded": told(unrecorded, run.finish()),
        "replayed": told(stopped, again.finish()),
    }


def children() -> dict[str, Any]:
    """Children that are given the run's variables are recorded and replayed by it."""
    code = (
        "import sys, json, urllib3; print(json.loads(urllib3.request('POST', sys.argv[1],"
        "json={'model': 'm', 'messages': [{'role': 'user', 'content': 'a child'}]}).data)"
        "['choices'][0]['message']['content'])"
    )

    def work() -> str:
        run = current_run()
        assert run is not None
        environment = ChildVariables(shared_gateway(), run.rules)
        env = {**os.environ, **hook_variables(environment.variables(os.environ))}
        # On the port of the web: the hook leads there by name.
        done = subprocess.run(
            [sys.executable, "-c", code, URL.replace(f":{PORT}", "")], env=env, stdout=subprocess.PIPE, check=True
        )
        return done.stdout.decode().strip()

    value, recorded = through(
        InProcessRun(
            InProcessOptions(
                home=HOME,
                upstream=UpstreamOptions(connect_to=(f"api.openai.com:443:127.0.0.1:{PORT}",), ca=UPSTREAM.ca),
            )
        ),
        work,
    )
    again, replayed = through(replaying(recorded.session_id), work)
    return {"recorded": told(value, recorded), "replayed": told(again, replayed)}


def proxied() -> dict[str, Any]:
    """The gateway stands in the place of the user's proxy, and goes on through it."""
    ask = lambda: said(httpx.post(URL, json=question("x")).json())  # noqa: E731
    run = InProcessRun(InProcessOptions(home=HOME, upstream=UpstreamOptions(ca=UPSTREAM.ca)))
    value, recorded = through(run, ask)
    again, replayed = through(replaying(recorded.session_id), ask)
    return {"recorded": told(value, recorded), "replayed": told(again, replayed)}


def unknown_proxy() -> dict[str, Any]:
    """A proxy that no variable names: what is asked through it is remarked on, and stopped in a replay."""
    proxy = os.environ.pop("A_PROXY")

    def ask() -> str:
        with httpx.Client(proxy=proxy) as client:
            try:
                return said(client.post(URL, json=question("x")).json())
            except httpx.HTTPError as error:
                return str(error)

    first, recorded = through(recording(), lambda: said(httpx.post(URL, json=question("x")).json()))
    value, remarked = through(recording(), ask)
    again, replayed = through(replaying(recorded.session_id), ask)
    return {"first": told(first, recorded), "recorded": told(value, remarked), "replayed": told(again, replayed)}


SCENES: dict[str, Callable[[], dict[str, Any]]] = {
    "live_before_sync": live_before_sync,
    "live_before_async": live_before_async,
    "live_before_async_uvloop": live_before_async,
    "stream_under_way": stream_under_way,
    "forked": forked,
    "forked_with_a_run_of_its_own": forked_with_a_run_of_its_own,
    "forked_tools": forked_tools,
    "nested": nested,
    "dead_gateway": dead_gateway,
    "children": children,
    "proxied": proxied,
    "unknown_proxy": unknown_proxy,
}

if __name__ == "__main__":
    found = SCENES[SCENE]()
    found["names"] = sorted({name for name in asked if not name[:1].isdigit()})
    found["threads"] = sorted(thread.name for thread in threading.enumerate() if "rewind" in thread.name)
    print(json.dumps(found))
