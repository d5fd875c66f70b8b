"""``rewind.session`` in every form that it is written in, and what becomes of misses, failures and modes."""

import asyncio
import contextvars
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

import rewind
from rewind.errors import RewindError, SessionNotFound, UsageError
from rewind.inprocess.run import current_run
from rewind.model.session import Recording
from rewind.store.library import Library
from support.answers import openai_chat
from support.cli import run_rewind
from support.script import Answer, Request, routes
from support.sdk_bench import KEYS, MakeBench, SdkBench

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("plain_variables")]

CHAT = "/v1/chat/completions"
URL = "https://api.openai.com" + CHAT


def numbered(request: Request) -> Answer:
    return openai_chat(request, f"{request.json()['messages'][-1]['content']}: hit {request.hit}")


def question(text: str) -> dict[str, Any]:
    return {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": text}]}


def ask(text: str) -> str:
    answer = httpx.post(URL, json=question(text), headers={"authorization": f"Bearer {KEYS['OPENAI_API_KEY']}"})
    if answer.status_code != 200:
        return f"{answer.status_code} {answer.headers.get('x-rewind-miss', '')}"
    said: str = answer.json()["choices"][0]["message"]["content"]
    return said


async def ask_later(text: str, client: httpx.AsyncClient | None = None) -> str:
    async with httpx.AsyncClient() as own:
        answer = await (client or own).post(URL, json=question(text))
    said: str = answer.json()["choices"][0]["message"]["content"]
    return said


@pytest.fixture
def one(bench: MakeBench) -> SdkBench:
    return bench(routes({CHAT: numbered}))


def asked(one: SdkBench, ref: str) -> list[str]:
    """What was asked in a session, in order."""
    library = Library(one.home)
    with library.open(library.find(ref)) as reader:
        steps = reader.recording().steps
        bodies = [json.loads(reader.blob(step.request.body)) for step in steps if step.request.provider != "notes"]
    return [body["messages"][-1]["content"] for body in bodies]


def recordings(one: SdkBench) -> list[Recording]:
    library = Library(one.home)
    return [library.open(session).recording() for session in library.sessions()]


# ── in every form ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_function_recorded_and_replayed(one: SdkBench) -> None:
    def agent(text: str) -> str:
        return ask(text)

    recorded = rewind.session(name="support", mode="record", **one.arguments)(agent)
    assert recorded("one") == "one: hit 1"
    assert recorded("two") == "two: hit 2"
    assert len(recordings(one)) == 2, "each call is a session"
    replayed = rewind.session(name="support", mode="replay", **one.arguments)(agent)
    with one.without_provider():
        assert replayed("two") == "two: hit 2", "the newest of that name answers"


def test_a_bare_decorator_names_the_session_after_the_function(one: SdkBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWIND_HOME", str(one.home))

    @rewind.session
    def nightly_report() -> str:
        return "nothing was asked"

    class Desk:
        @rewind.session
        def answer(self) -> str:
            return "nothing was asked here either"

    assert nightly_report() == "nothing was asked"
    assert Desk().answer() == "nothing was asked here either"
    assert [recording.session.start.name for recording in recordings(one)] == ["Desk.answer", "nightly_report"]


def test_an_async_function(one: SdkBench) -> None:
    async def agent(text: str) -> list[str]:
        return await asyncio.gather(*(ask_later(f"{text} {number}") for number in range(3)))

    first = asyncio.run(one.session(mode="record")(agent)("question"))
    with one.without_provider():
        assert asyncio.run(one.session(mode="replay")(agent)("question")) == first


def test_a_generators_consumer_is_not_recorded(one: SdkBench) -> None:
    def agent() -> Iterator[str]:
        yield ask("first")
        yield ask("second")

    def consume(mode: str) -> list[tuple[str, str]]:
        with one.session("consumer", mode=mode):
            items = one.session("agent", mode=mode)(agent)()
            return [(item, ask("the consumer's own")) for item in items]

    consumed = consume("record")
    assert asked(one, "agent") == ["first", "second"]
    assert asked(one, "consumer") == ["the consumer's own"] * 2
    with one.without_provider():
        assert consume("replay") == consumed


def test_an_async_generators_consumer_is_not_recorded(one: SdkBench) -> None:
    async def agent() -> AsyncIterator[str]:
        yield await ask_later("first")
        yield await ask_later("second")
        yield await ask_later("never wanted")

    async def consume(mode: str) -> list[tuple[str, str]]:
        found = []
        async with one.session("consumer", mode=mode), aclosing(one.session("agent", mode=mode)(agent)()) as items:
            async for item in items:
                found.append((item, await ask_later("the consumer's own")))
                if len(found) == 2:
                    break
        return found

    consumed = asyncio.run(consume("record"))
    assert asked(one, "agent") == ["first", "second"]
    assert asked(one, "consumer") == ["the consumer's own"] * 2
    with one.without_provider():
        assert asyncio.run(consume("replay")) == consumed


def test_a_with_block_tells_what_happens_in_it(one: SdkBench) -> None:
    with one.session("block", tags={"customer": "acme"}) as run:
        ask("one")
        (step,) = run.steps
        assert step.request.kind == "llm_call"
        ask("two")
    assert run.id is not None
    assert len(run.steps) == 2
    assert run.misses == ()
    assert run.result is not None
    assert (run.result.live, run.result.llm_calls) == (2, 2)
    start = one.recording(run.id).session.start
    assert (start.name, start.tags) == ("block", {"customer": "acme"})
    with one.without_provider(), one.session("block", mode="replay") as again:
        ask("one")
        ask("two")
    assert again.id == run.id
    assert again.result is not None
    assert (again.result.played, again.result.total) == (2, 2)
    assert len(recordings(one)) == 1, "a replay leaves no session behind"


def test_a_session_object_is_for_one_with_at_a_time(one: SdkBench) -> None:
    session = one.session()
    with session, pytest.raises(UsageError, match="already open"), session:
        pass
    with session:
        ask("again")
    assert len(recordings(one)) == 2


def test_a_session_may_be_left_in_another_context_than_it_was_entered_in(one: SdkBench) -> None:
    """As fixtures are."""
    session, context = one.session(), contextvars.copy_context()
    run = context.run(session.__enter__)
    assert context.run(ask, "inside") == "inside: hit 1"
    session.__exit__(None, None, None)
    assert len(run.steps) == 1
    assert asked(one, "row") == ["inside"]


def test_the_inner_of_two_sessions_has_its_calls_to_itself(one: SdkBench) -> None:
    with one.session("outer"):
        ask("before")
        with one.session("inner"):
            ask("inside")
        ask("after")
    assert asked(one, "outer") == ["before", "after"]
    assert asked(one, "inner") == ["inside"]


def test_two_sessions_in_one_event_loop_share_a_client_and_do_not_mix(one: SdkBench) -> None:
    async def agent(name: str, mode: str, client: httpx.AsyncClient) -> list[str]:
        async with one.session(name, mode=mode):
            found = []
            for number in range(4):
                found.append(await ask_later(f"{name} {number}", client))
                await asyncio.sleep(0)
            return found

    async def both(mode: str) -> list[list[str]]:
        async with httpx.AsyncClient() as client:
            return list(await asyncio.gather(agent("left", mode, client), agent("right", mode, client)))

    first = asyncio.run(both("record"))
    for name in ("left", "right"):
        assert asked(one, name) == [f"{name} {number}" for number in range(4)]
    with one.without_provider():
        assert asyncio.run(both("replay")) == first


def test_outside_any_session_nothing_is_recorded_and_nothing_redirected(one: SdkBench) -> None:
    with one.session():
        ask("inside")
    calls = one.provider.calls
    with pytest.raises(httpx.ConnectError):
        httpx.get("https://api.openai.invalid/v1/models")
    assert one.provider.calls == calls
    assert asked(one, "row") == ["inside"]


# ── clients that were there before ───────────────────────────────────────────────────────────────────────────


def test_clients_built_before_the_session(one: SdkBench) -> None:
    client = openai.OpenAI()
    other = httpx.Client()

    def agent() -> list[str | None]:
        said = client.chat.completions.create(**question("built before")).choices[0].message.content
        answer = other.post(URL, json=question("also built before")).json()
        return [said, answer["choices"][0]["message"]["content"]]

    with client, other:
        assert one.twice(agent) == ["built before: hit 1", "also built before: hit 2"]


# ── failures and misses ──────────────────────────────────────────────────────────────────────────────────────


def test_a_failing_body_is_recorded_as_it_ended_and_raises_untouched(one: SdkBench) -> None:
    failure = KeyError("order")

    def agent() -> None:
        ask("before it failed")
        raise failure

    with pytest.raises(KeyError) as caught:
        one.session()(agent)()
    assert caught.value is failure
    recording = one.recording()
    assert recording.session.end is not None
    assert recording.session.end.exit_code == 1
    last = recording.steps[-1]
    assert (last.request.kind, last.response is not None) == ("error", True)
    shown = run_rewind(["inspect", "row"], one.home).ok().text
    assert "KeyError: 'order'" in shown


@pytest.mark.parametrize(("error", "code"), [(SystemExit(3), 3), (SystemExit(), 0), (KeyboardInterrupt(), 130)])
def test_leaving_a_program_from_inside_is_its_exit_code(one: SdkBench, error: BaseException, code: int) -> None:
    with pytest.raises(type(error)), one.session():
        raise error
    recording = one.recording()
    assert recording.session.end is not None
    assert (recording.session.end.exit_code, recording.steps) == (code, ())


def test_a_miss_raises_at_the_end_and_shows_what_differs(one: SdkBench) -> None:
    with one.session():
        ask("Where is order 4711?")
    with one.without_provider(), pytest.raises(rewind.ReplayMiss) as caught, one.session(mode="replay") as run:
        assert ask("Where is order 4712?").startswith("424")
    assert "4711" in caught.value.message
    assert "4712" in caught.value.message
    assert isinstance(caught.value, RewindError)
    assert len(run.misses) == 1
    assert "mode='record'" in "".join(caught.value.__notes__)


def test_a_miss_can_be_left_to_the_caller(one: SdkBench) -> None:
    with one.session():
        ask("one")
    with one.without_provider(), one.session(mode="replay", on_miss="report") as run:
        ask("two")
    assert len(run.misses) == 1


def test_a_body_that_failed_because_of_a_miss_keeps_its_own_exception(one: SdkBench) -> None:
    with one.session():
        ask("one")
    with (
        openai.OpenAI() as client,
        one.without_provider(),
        pytest.raises(openai.APIStatusError) as caught,
        one.session(mode="replay"),
    ):
        client.chat.completions.create(**question("two"))
    assert any("cannot answer a request" in note for note in caught.value.__notes__)


def test_a_replay_of_nothing_is_an_error_before_the_body_runs(one: SdkBench) -> None:
    ran = []
    agent = one.session("never-recorded", mode="replay")(lambda: ran.append(1))
    with pytest.raises(SessionNotFound, match="never-recorded"):
        agent()
    with pytest.raises(UsageError, match="needs a recording"), rewind.session(mode="replay", home=one.home):
        ran.append(2)
    with pytest.raises(RewindError), one.session(mode="replay", of="nowhere.rw"):
        ran.append(3)
    assert not ran


def test_a_name_that_begins_another_sessions_id_is_not_mistaken_for_it(one: SdkBench) -> None:
    with one.session("something") as run:
        pass
    assert run.id is not None
    with pytest.raises(SessionNotFound), one.session(run.id[:4], mode="replay"):
        pass


def test_drift_is_accepted_where_it_is_allowed(one: SdkBench) -> None:
    with one.session():
        ask("Where is order 4711?")
    with one.without_provider(), one.session(mode="replay", allow_drift=True) as run:
        assert ask("Where is order 4712?") == "Where is order 4711?: hit 1"
    assert run.result is not None
    assert (run.result.drifted, run.misses) == (1, ())


def test_a_caller_who_is_cancelled_leaves_no_session_open(one: SdkBench) -> None:
    """Whenever that happens: while it begins, while it runs, while it ends."""

    async def agent() -> None:
        await asyncio.sleep(10)

    async def main() -> None:
        for pause in (0, 0, 0, 0.001, 0.003, 0.01, 0.05):
            task = asyncio.ensure_future(one.session()(agent)())
            await asyncio.sleep(pause)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert current_run() is None
    assert {recording.session.status for recording in recordings(one)} <= {"ended"}


# ── modes ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_extend_answers_what_it_knows_and_keeps_the_whole(one: SdkBench) -> None:
    with one.session("growing", mode="extend") as first:
        assert ask("one") == "one: hit 1"
    with one.session("growing", mode="extend") as second:
        assert ask("one") == "one: hit 1"
        assert ask("two") == "two: hit 2"
    assert second.id != first.id
    assert asked(one, "growing") == ["one", "two"]
    with one.without_provider(), one.session("growing", mode="replay"):
        assert [ask("one"), ask("two")] == ["one: hit 1", "two: hit 2"]


def test_a_replay_that_asks_for_nothing_shows_nothing(one: SdkBench) -> None:
    with one.session():
        ask("one")
    with (
        pytest.raises(rewind.ReplayMiss, match=r"1 step\) was asked for: this replay tested nothing"),
        one.session(mode="replay"),
    ):
        pass
    with one.session(mode="replay", on_miss="report") as run:
        pass
    assert run.result is not None and run.result.played == 0
    with one.session("silent"):
        pass
    with one.session("silent", mode="replay"):
        pass


def test_off_does_nothing_at_all(one: SdkBench) -> None:
    with one.session(mode="off") as run:
        assert rewind.note("nobody hears this") is False
    assert (run.id, run.steps, run.misses, run.result) == (None, (), (), None)
    assert not one.home.exists()


def test_the_variable_decides_where_the_code_does_not(one: SdkBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWIND_MODE", "off")
    with one.session() as run:
        pass
    assert run.mode == "off"
    with one.session(mode="record") as run:
        ask("recorded all the same")
    assert (run.mode, len(run.steps)) == ("record", 1)
    monkeypatch.setenv("REWIND_MODE", "replay")
    with one.without_provider(), one.session() as run:
        assert ask("recorded all the same") == "recorded all the same: hit 1"
    monkeypatch.setenv("REWIND_MODE", "recrod")
    with pytest.raises(UsageError, match="REWIND_MODE is 'recrod'"), one.session():
        pass


def test_what_cannot_be_meant_is_refused_when_the_program_is_loaded() -> None:
    with pytest.raises(UsageError, match="must be a string"):
        rewind.session(4711)  # type: ignore[call-overload]
    for wrong in ({"mode": "replya"}, {"on_miss": "ignore"}, {"tools": "no"}, {"hosts": "api.example.com"}):
        with pytest.raises(UsageError):
            rewind.session("x", **wrong)  # type: ignore[call-overload]


def test_a_store_that_cannot_be_written_leaves_the_program_alone(
    one: SdkBench, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = one.folder / "a file"
    blocked.write_text("in the way")
    with caplog.at_level(logging.WARNING, "rewind"), one.session(home=blocked / "store") as run:
        done = True
    assert done
    assert run.unrecorded
    assert "Not recording" in caplog.text


def test_a_cassette_is_written_and_replayed_elsewhere(one: SdkBench, tmp_path: Path) -> None:
    cassette = tmp_path / "new folder" / "incident.rw"
    with one.session(cassette=cassette):
        assert ask("one") == "one: hit 1"
    assert cassette.is_file()
    elsewhere = tmp_path / "another store"
    with one.without_provider():
        with one.session(mode="replay", cassette=cassette, home=elsewhere):
            assert ask("one") == "one: hit 1"
        with one.session(mode="replay", of=str(cassette), home=elsewhere):
            assert ask("one") == "one: hit 1"
    assert not elsewhere.exists()


def test_a_cassette_that_cannot_be_written_is_said_and_the_session_is_kept(one: SdkBench) -> None:
    in_the_way = one.folder / "a file"
    in_the_way.write_text("no folder")
    with pytest.raises(RewindError, match="cannot be written"), one.session(cassette=in_the_way / "x.rw"):
        ask("one")
    with pytest.raises(KeyError) as caught, one.session(cassette=in_the_way / "x.rw"):
        raise KeyError("mine")
    assert "cannot be written" in caught.value.__notes__[0]
    assert len(recordings(one)) == 2


# ── nothing is live in a replay ──────────────────────────────────────────────────────────────────────────────


def test_a_raw_socket_to_another_machine_is_stopped_in_a_replay(one: SdkBench) -> None:
    with one.session():
        ask("one")

    def agent() -> None:
        with pytest.raises(ConnectionError, match="stays offline"):
            socket.create_connection(("192.0.2.7", 7777), timeout=5)
        ask("one")

    with one.without_provider(), pytest.raises(rewind.ReplayMiss, match=r"192\.0\.2\.7"):
        one.session(mode="replay")(agent)()


def test_a_host_that_was_not_recorded_is_stopped_in_a_replay(one: SdkBench) -> None:
    with one.session():
        ask("one")
    with (
        one.without_provider(),
        pytest.raises(rewind.ReplayMiss, match=r"tools\.example\.com"),
        one.session(mode="replay"),
        pytest.raises(httpx.ConnectError),
    ):
        httpx.get("https://tools.example.com/weather")


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_a_clients_own_proxy_is_no_way_out_of_a_replay(
    one: SdkBench, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with one.session():
        ask("one")
    proxy = "http://192.0.2.8:3128"
    if how == "variable":
        monkeypatch.setenv("HTTPS_PROXY", proxy)
    with one.without_provider(), one.session(mode="replay", on_miss="report") as run:
        try:
            with httpx.Client(proxy=proxy if how == "argument" else None) as client:
                answer = client.post(URL, json=question("one"))
        except httpx.HTTPError:
            assert run.result is None
        else:
            assert answer.json()["choices"][0]["message"]["content"] == "one: hit 1"
    assert run.result is not None
    assert run.result.live == 0


# ── the import ───────────────────────────────────────────────────────────────────────────────────────────────


def test_importing_rewind_loads_next_to_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import rewind; "
        "print([name for name in sys.modules if name not in before])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("asyncio", "ssl", "socket", "inspect", "typing", "json", "cryptography", "rewind.runs", "click"):
        assert f"'{heavy}'" not in loaded


def test_a_program_that_carries_everything_switched_off_never_loads_the_engine() -> None:
    code = """
import sys, rewind

@rewind.tool
def lookup(order):
    return order

@rewind.session
def agent():
    rewind.note("nobody hears this")
    return lookup("4711")

assert agent() == "4711"
print([name for name in sys.modules if name.startswith("rewind.") or name == "asyncio"])
"""
    env = {**os.environ, "REWIND_MODE": "off"}
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
    for engine in ("rewind.runs", "rewind.gateway", "rewind.store", "asyncio"):
        assert f"'{engine}" not in loaded


def test_a_name_that_is_not_there_is_said_as_python_says_it() -> None:
    with pytest.raises(AttributeError, match="module 'rewind' has no attribute 'sesion'"):
        _ = rewind.sesion  # type: ignore[attr-defined]
    assert {"session", "tool", "note", "ReplayMiss"} <= set(dir(rewind))
