"""A tool call that the wire shows and the agent recorded itself is one call."""

from typing import Any

from rewind.conversation.tools import ToolCall, ToolRun, with_recorded_runs
from rewind.model.message import Text, ToolResult, ToolUse


def call(number: int, name: str = "lookup", *, answered_in: int | None = 9, **arguments: Any) -> ToolCall:
    use = ToolUse(f"id {number}", name, arguments)
    return ToolCall(asked_in=1, number=number, use=use, answered_in=answered_in, ms=500.0)


def run(index: int, name: str = "lookup", **arguments: Any) -> ToolRun:
    result = ToolResult("", (Text(f"of step {index}"),), name=name)
    return ToolRun(index=index, ms=float(index), use=ToolUse("", name, arguments), result=result)


def recorded_as(calls: list[ToolCall], runs: list[ToolRun]) -> list[int | None]:
    return [one.recorded_as for one in with_recorded_runs(calls, runs)]


def test_the_run_of_the_same_arguments_is_the_calls_own() -> None:
    (found,) = with_recorded_runs([call(1, order=7)], [run(2, order=8), run(3, order=7)])
    assert (found.recorded_as, found.ms) == (3, 3.0)
    assert found.result is not None
    assert found.result.text == "of step 3"


def test_equal_calls_take_equal_runs_in_order() -> None:
    assert recorded_as([call(1, order=7), call(2, order=7)], [run(2, order=7), run(3, order=7)]) == [2, 3]


def test_defaults_that_the_model_did_not_name_do_not_part_them() -> None:
    calls = [call(1, order=7), call(2, order=7, carrier="mail")]
    assert recorded_as(calls, [run(2, order=7, carrier="mail"), run(3, order=7, carrier="any")]) == [3, 2]


def test_arguments_in_another_form_are_told_by_name_and_time() -> None:
    runs = [run(2, request="an object"), run(10, request="after the answer")]
    assert recorded_as([call(1, order=7)], runs) == [2]
    assert recorded_as([call(1, answered_in=None, order=7)], runs) == [None]


def test_another_tool_or_an_earlier_run_is_not_taken() -> None:
    assert recorded_as([call(1, order=7)], [run(1, order=7), run(2, "refund", order=7)]) == [None]
