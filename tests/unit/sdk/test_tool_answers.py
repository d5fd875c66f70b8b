"""The answer of a tool's step, read back: also one that somebody else wrote, or damaged."""

import asyncio
import json
import time
from typing import Any

import pytest

from rewind.errors import ResultLost, ToolFailed
from rewind.model.tool_call import PlayedTool
from rewind.sdk.tool_calls import ReplayedCall
from rewind.sdk.values.objects import KnownClasses


def recorded(answer: Any, *, status: int = 200, ms: float = 1.0, delay: float = 0.0) -> ReplayedCall:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return ReplayedCall("lookup", KnownClasses(), PlayedTool(status=status, body=body, step=7, ms=ms, delay=delay))


def test_a_plain_result_as_any_tool_may_have_written_it() -> None:
    assert recorded({"result": {"a": [1]}}).result() == {"a": [1]}
    assert recorded({}).result() is None


def test_an_error_as_any_tool_may_have_written_it() -> None:
    with pytest.raises(ToolFailed, match="out of order"):
        recorded({"error": "out of order"}, status=500).result()


@pytest.mark.parametrize("body", [b"", b"\xff", b"[1]", b'{"result": 1', b"null"])
def test_what_is_no_answer_is_refused(body: bytes) -> None:
    with pytest.raises(ResultLost, match="step 7"):
        recorded(body).result()


@pytest.mark.parametrize("types", [{"": "spaceship"}, {"/x": "tuple"}, {"": "object: os.system"}])
def test_types_that_fit_nothing_are_refused(types: dict[str, str]) -> None:
    with pytest.raises(ResultLost):
        recorded({"result": [1], "types": types}).result()


def test_items_come_one_by_one_each_with_its_own_types() -> None:
    again = recorded({"result": [[1], 2, ["x", [3]]], "generator": True, "types": {"/0": "tuple", "/2/1": "set"}})
    assert list(again.items()) == [(1,), 2, ["x", {3}]]
    assert again.result() is None


def test_a_generator_that_failed_gives_its_items_first() -> None:
    kept = {"type": "builtins.ValueError", "message": "enough", "args": ["enough"], "types": {}}
    again = recorded({"error": "ValueError: enough", "exception": kept, "yielded": [1, 2]}, status=500)
    assert list(again.items()) == [1, 2]
    with pytest.raises(ValueError, match="enough"):
        again.result()


def test_only_a_cancelled_call_waits() -> None:
    asyncio.run(asyncio.wait_for(recorded({"result": 1}, ms=1e9).wait_async(), 5))
    cancelled = {"error": "CancelledError", "exception": {"type": "asyncio.exceptions.CancelledError"}}
    waiting = recorded(cancelled, status=500).wait_async()

    async def impatient() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waiting, 0.01)

    asyncio.run(impatient())


def test_a_call_that_takes_its_time_lets_others_go_on() -> None:
    order: list[str] = []

    async def slow() -> None:
        await recorded({"result": 1}, delay=0.05).wait_async()
        order.append("slow")
        again = recorded({"result": ["item"], "generator": True}, delay=0.05)
        order.extend([item async for item in again.items_async()])

    async def other() -> None:
        for turn in ("first", "second"):
            await asyncio.sleep(0.001)
            order.append(turn)

    async def both() -> None:
        await asyncio.gather(slow(), other())

    asyncio.run(both())
    assert order == ["first", "second", "slow", "item"]
    began = time.monotonic()
    recorded({"result": 1}, delay=0.02).wait()
    assert time.monotonic() - began >= 0.02
    with pytest.raises(StopIteration):
        recorded({"result": 1}, delay=0.001).wait_async().send(None)  # no loop at all
