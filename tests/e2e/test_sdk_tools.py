"""``@rewind.tool`` and ``rewind.note``: recorded as steps, given back without running, shown once."""

import asyncio
import json
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import httpx
import pytest

import rewind
from support.answers import openai_chat
from support.cli import run_rewind
from support.script import Answer, Request, routes
from support.sdk_bench import MakeBench, SdkBench

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("plain_variables")]

CHAT = "/v1/chat/completions"
URL = "https://api.openai.com" + CHAT


@pytest.fixture
def one(bench: MakeBench) -> SdkBench:
    return bench(routes({}))


@dataclass(frozen=True)
class Account:
    owner: str
    balance: Decimal


ran: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_ran_yet() -> None:
    ran.clear()


@rewind.tool
def lookup_account(owner: str, *, currency: str = "EUR") -> Account:
    ran.append(owner)
    return Account(owner, Decimal("12.50"))


@rewind.tool(name="search", ignore=["client"])
async def search_later(query: str, client: object = None) -> tuple[str, int]:
    ran.append(query)
    await asyncio.sleep(0)
    return query.upper(), len(ran)


@rewind.tool
def rows(count: int) -> Generator[tuple[int, str], None, None]:
    for number in range(count):
        ran.append(number)
        yield number, f"row {number}"


@rewind.tool
async def events(count: int) -> AsyncGenerator[dict[str, bytes], None]:
    for number in range(count):
        ran.append(number)
        yield {"event": b"%d" % number}


class Refused(Exception):
    """Made of nothing but its text."""


@rewind.tool
def refuse(how: str) -> None:
    ran.append(how)
    raise {"value": ValueError("no such order"), "own": Refused("not today"), "key": KeyError("order")}[how]


def caught(how: str) -> tuple[type, str]:
    try:
        refuse(how)
    except Exception as error:  # noqa: BLE001  whatever it is, it is compared
        return type(error), str(error)
    raise AssertionError("nothing was raised")


def test_outside_a_session_a_tool_simply_runs() -> None:
    assert lookup_account("Ada") == Account("Ada", Decimal("12.50"))
    assert asyncio.run(search_later("x")) == ("X", 2)
    assert list(rows(2)) == [(0, "row 0"), (1, "row 1")]
    assert rewind.note("nobody hears this", why="no session") is False


def test_a_replay_gives_the_recorded_results_and_runs_nothing(one: SdkBench) -> None:
    def agent() -> list[Any]:
        return [
            lookup_account("Ada"),
            lookup_account("Bob", currency="USD"),
            lookup_account(owner="Ada"),
            asyncio.run(search_later("x", client=object())),
            list(rows(3)),
            caught("value"),
            caught("own"),
            caught("key"),
        ]

    with one.session() as run:
        first = agent()
    assert [step.request.kind for step in run.steps] == ["tool_call"] * 8
    count = len(ran)
    with one.session(mode="replay") as again:
        second = agent()
    assert second == first
    assert type(second[0]) is Account
    assert len(ran) == count, "no body ran again"
    assert again.result is not None
    assert (again.result.played, again.result.total, again.result.unused) == (8, 8, ())


def test_async_generators_are_given_back_item_by_item(one: SdkBench) -> None:
    async def agent() -> list[dict[str, bytes]]:
        return [event async for event in events(3)]

    with one.session():
        first = asyncio.run(agent())
    with one.session(mode="replay"):
        assert asyncio.run(agent()) == first
    assert ran == [0, 1, 2]


def test_a_generator_whose_consumer_stops_early(one: SdkBench) -> None:
    async def agent() -> list[Any]:
        taken: list[Any] = []
        running = rows(100)
        taken.append(next(running))
        running.close()
        async with aclosing(events(100)) as items:
            taken += [await anext(items), await anext(items)]
        return taken

    with one.session():
        first = asyncio.run(agent())
    assert len(ran) == 3
    with one.session(mode="replay"):
        assert asyncio.run(agent()) == first
    with pytest.raises(rewind.ToolFailed, match="stopped after these items"), one.session(mode="replay"):
        list(rows(100))
    assert len(ran) == 3


def test_sending_into_and_throwing_into_a_recorded_generator(one: SdkBench) -> None:
    @rewind.tool
    def echo() -> Generator[Any, Any, Any]:
        heard = yield "ready"
        while heard != "stop":
            try:
                heard = yield heard
            except KeyError:
                heard = yield "caught"
        return "bye"

    def agent() -> list[Any]:
        running = echo()
        found = [next(running), running.send("a"), running.throw(KeyError("k"))]
        try:
            running.send("stop")
        except StopIteration as stop:
            found.append(stop.value)
        return found

    with one.session():
        assert agent() == ["ready", "a", "caught", "bye"]
    with one.session(mode="replay"):
        replayed = echo()
        assert [next(replayed), replayed.send("whatever"), next(replayed)] == ["ready", "a", "caught"]
        with pytest.raises(StopIteration) as stop:
            next(replayed)
        assert stop.value.value == "bye"


def test_tools_live_runs_the_body_in_a_replay(one: SdkBench) -> None:
    with one.session():
        lookup_account("Ada")
    with one.session(mode="replay", tools="live") as again:
        lookup_account("Ada")
        lookup_account("a call that was never recorded")
    assert ran == ["Ada", "Ada", "a call that was never recorded"]
    assert again.misses == ()
    assert again.result is not None
    assert again.result.unused == ()


def test_a_call_that_was_never_recorded_is_a_miss_that_shows_the_nearest(one: SdkBench) -> None:
    with one.session():
        lookup_account("Ada")
    with pytest.raises(rewind.ReplayMiss) as caught, one.session(mode="replay"):
        lookup_account("Bob")
    (report,) = caught.value.__notes__
    assert "Ada" in report
    assert "Bob" in report
    assert ran == ["Ada"], "a miss does not run the tool"


def test_a_result_that_cannot_be_given_back_is_refused(one: SdkBench) -> None:
    @rewind.tool
    def connect(name: str):
        return object()

    with one.session() as run:
        connect("db")
    assert run.result is not None
    assert "tool connect: a replay cannot give back what it returned" in run.result.remarks[0]
    refused = pytest.raises(rewind.ResultLost, match="'connect' cannot be replayed from step 1")
    with refused as caught, one.session(mode="replay"):
        connect("db")
    assert "return annotation" in (caught.value.hint or "")


def test_an_exception_whose_type_is_not_here_any_more(one: SdkBench) -> None:
    @rewind.tool
    def fails() -> None:
        class Passing(Exception):
            pass

        raise Passing("gone with the call")

    with one.session(), pytest.raises(Exception, match="gone with the call"):
        fails()
    with one.session(mode="replay"), pytest.raises(rewind.ToolFailed, match="Passing: gone with the call") as caught:
        fails()
    assert caught.value.tool == "fails"


def test_a_tool_that_was_cancelled_waits_for_that_again(one: SdkBench) -> None:
    @rewind.tool
    async def forever() -> str:
        ran.append("forever")
        await asyncio.Event().wait()
        return "never"

    async def agent() -> str:
        try:
            return await asyncio.wait_for(forever(), 0.02)
        except TimeoutError:
            return "timed out"

    with one.session():
        assert asyncio.run(agent()) == "timed out"
    with one.session(mode="replay"):
        assert asyncio.run(agent()) == "timed out"
    assert ran == ["forever"]


def test_parallel_calls_of_one_tool_get_their_own_results(one: SdkBench) -> None:
    async def agent() -> list[Any]:
        return await asyncio.gather(*(search_later(f"query {number}") for number in (3, 1, 2)))

    with one.session():
        first = asyncio.run(agent())
    with one.session(mode="replay"):
        assert asyncio.run(agent()) == first


def test_methods_and_class_methods_are_tools(one: SdkBench) -> None:
    class Desk:
        @rewind.tool
        def price(self, order: str) -> int:
            ran.append(order)
            return 7

        @classmethod
        @rewind.tool
        def name(cls) -> str:
            ran.append(cls)
            return "desk"

    with one.session():
        assert (Desk().price("4711"), Desk.name()) == (7, "desk")
    with one.session(mode="replay"):
        assert (Desk().price("4711"), Desk.name()) == (7, "desk")
    assert len(ran) == 2


def test_wrong_arguments_are_pythons_affair(one: SdkBench) -> None:
    with one.session() as run, pytest.raises(TypeError, match="owner"):
        lookup_account()  # type: ignore[call-arg]
    assert run.steps == ()


def test_a_secret_in_arguments_and_result_is_not_kept(one: SdkBench, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hunter2-hunter2-hunter2"
    monkeypatch.setenv("DATABASE_PASSWORD", secret)

    @rewind.tool
    def connect(dsn: str) -> dict[str, str]:
        return {"used": dsn}

    with one.session():
        connect(f"postgres://me:{secret}@db")
    kept = b"".join(path.read_bytes() for path in one.home.rglob("*") if path.is_file())
    assert secret.encode() not in kept
    assert secret not in run_rewind(["inspect", "row:1"], one.home).ok().text
    with one.session(mode="replay"):
        assert secret not in connect(f"postgres://me:{secret}@db")["used"]


def test_a_note_is_a_step_with_its_text(one: SdkBench) -> None:
    with one.session() as run:
        assert rewind.note("the customer is angry", mood=3, when=Decimal("1.5")) is True
    assert [step.request.kind for step in run.steps] == ["note"]
    assert "the customer is angry" in run_rewind(["inspect", "row"], one.home).ok().text
    with one.session(mode="replay"):
        assert rewind.note("another note than then") is True


def test_what_a_played_tool_had_done_itself_is_not_missed(one: SdkBench) -> None:
    @rewind.tool
    def lookup_both(first: str, second: str) -> list[Account]:
        rewind.note("two at once")
        return [lookup_account(first), lookup_account(second)]

    def agent() -> list[Any]:
        return [lookup_both("Ada", "Bob"), lookup_account("Carol")]

    with one.session() as run:
        first = agent()
    assert len(run.steps) == 5
    with one.session(mode="replay") as again:
        assert agent() == first
    assert again.result is not None
    assert (again.result.played, again.result.total, again.result.unused) == (2, 2, ())
    with one.session(mode="replay", on_miss="report") as other:
        lookup_account("Carol")
    assert other.result is not None
    assert (other.result.played, other.result.total) == (1, 4)


# ── beside what the model asked for ──────────────────────────────────────────────────────────────────────────


def wants_a_tool(request: Request) -> Answer:
    """Asks for two lookups, one of them twice the same, and then answers with what came back."""
    messages = request.json()["messages"]
    if messages[-1]["role"] != "tool":
        wanted = [("lookup", {"order": "4711"}), ("lookup", {"order": "4712"})]
        return openai_chat(request, None, wanted)
    told = " and ".join(message["content"] for message in messages if message["role"] == "tool")
    return openai_chat(request, f"I found {told}.")


def agent_with(lookup: Any) -> str:
    messages: list[Any] = [{"role": "user", "content": "Where are my orders?"}]
    for _turn in range(3):
        answer = httpx.post(URL, json={"model": "gpt-4o-mini", "messages": messages}).json()
        message = answer["choices"][0]["message"]
        messages.append(message)
        for call in message.get("tool_calls", ()):
            result = lookup(**json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})
        if not message.get("tool_calls"):
            said: str = message["content"]
            return said
    raise AssertionError("it asks without end")


def test_a_tool_the_model_asked_for_is_shown_once(bench: MakeBench) -> None:
    """The wire tells of it, and the tool itself: with its defaults, which the model did not name."""

    @rewind.tool
    def lookup(order: str, carrier: str = "any") -> dict[str, str]:
        return {"order": order, "status": "shipped"}

    one = bench(routes({CHAT: wants_a_tool}))
    said = one.twice(lambda: agent_with(lookup))
    assert "4712" in said
    shown = json.loads(run_rewind(["inspect", "row", "--json"], one.home).ok().stdout)
    asked_for = shown["outline"]["tool_calls"]
    assert [(tool["name"], tool["recorded_as"]) for tool in asked_for] == [("lookup", 2), ("lookup", 3)]
    screen = run_rewind(["inspect", "row"], one.home).ok().text
    rows = [line for line in screen.splitlines() if "  tool  " in line]
    assert [line.split()[0] for line in rows] == ["1.1", "1.2"], screen


def test_bisect_sees_one_call_and_blames_the_tool_that_answered_differently(bench: MakeBench) -> None:
    one = bench(routes({CHAT: wants_a_tool}))
    for name, status in (("good", "shipped"), ("bad", "lost")):

        @rewind.tool
        def lookup(order: str, carrier: str = "any") -> dict[str, str]:
            return {"order": order, "status": status if order == "4712" else "shipped"}  # noqa: B023

        with one.session(name):
            agent_with(lookup)
    found = run_rewind(["bisect", "good", "bad"], one.home)
    assert found.code == 1, found.talk
    assert 'tool output changed: lookup({"order":"4712"})' in found.text
    assert '"status":"lost"' in found.text
