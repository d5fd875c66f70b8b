"""A call in a few digests: equal where it says the same, and linked to the call it goes on from."""

from dataclasses import astuple
from typing import Any

import pytest

from rewind.conversation.sketch import (
    NOTHING,
    Sketch,
    answer_digest,
    brings_results,
    history_after,
    read_said,
    read_sketch,
    said_of,
    sketch_of,
)
from rewind.model.message import Asked, Message, Role, Text, Thinking, ToolDefinition, ToolResult
from rewind.providers import anthropic
from unit.conversation.saying import asking, assistant, result, saying, use, user

PROVIDER = anthropic.API
QUESTION = user("Where is order 8821?")
ASKS = use("toolu_1", "look", order="8821")
TOOLS = (ToolDefinition("look", "Finds orders", {"type": "object"}), ToolDefinition("refund"))


def sketch(asked: Asked) -> Sketch:
    return sketch_of(asked, PROVIDER)


def test_a_sketch_is_read_back_from_its_text() -> None:
    one = sketch(asking(QUESTION, tools=TOOLS, parameters={"temperature": 0}))
    assert read_sketch(str(one)) == one
    assert str(one).startswith("rs1:")


def test_whether_results_of_tools_are_brought_is_told_by_its_text() -> None:
    assert not brings_results(None)
    assert not brings_results(str(sketch(asking(QUESTION, tools=TOOLS))))
    brought = asking(QUESTION, assistant(ASKS), result("toolu_1", "found"))
    assert brings_results(str(sketch(brought)))


@pytest.mark.parametrize("text", [None, "", "rs1", "rs1:a:b:c:d:e", "rs1:a:b:c:d:e:f:g", "rs2:a:b:c:d:e:f"])
def test_a_sketch_by_another_rule_is_none(text: str | None) -> None:
    assert read_sketch(text) is None


def test_what_is_not_there_has_no_digest() -> None:
    assert astuple(sketch(Asked())) == (NOTHING,) * 6


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"system": "Be harsh."}, "system"),
        ({"tools": TOOLS[:1]}, "tools"),
        ({"parameters": {"temperature": 1}}, "settings"),
    ],
)
def test_each_part_has_a_digest_of_its_own(change: dict[str, Any], part: str) -> None:
    before = sketch(asking(QUESTION, tools=TOOLS, parameters={"temperature": 0}))
    after = sketch(asking(QUESTION, **({"tools": TOOLS, "parameters": {"temperature": 0}} | change)))
    differing = {name for name in Sketch.__slots__ if getattr(before, name) != getattr(after, name)}
    assert differing == {part}


def test_how_an_answer_is_brought_is_no_setting() -> None:
    streamed = {"temperature": 0, "stream": True, "stream_options": {"include_usage": True}}
    assert sketch(asking(parameters=streamed)) == sketch(asking(parameters={"temperature": 0}))


def test_what_changes_from_run_to_run_is_no_setting() -> None:
    assert sketch(asking(parameters={"metadata": {"user_id": "a"}})).settings == NOTHING
    assert sketch_of(asking(parameters={"tag": 1}), PROVIDER, ["tag"]).settings == NOTHING


def test_the_order_of_tools_does_not_count() -> None:
    assert sketch(asking(tools=TOOLS)) == sketch(asking(tools=TOOLS[::-1]))


def test_a_call_that_goes_on_has_the_history_that_follows_from_the_one_before() -> None:
    first = asking(QUESTION)
    answer = saying("Let me look.", ASKS)
    second = asking(QUESTION, assistant("Let me look.", ASKS), result("toolu_1", "on its way"))
    said = read_said(said_of(answer))
    assert said is not None
    assert sketch(second).history == history_after(sketch(first), said)


def test_it_does_not_matter_how_a_turn_is_cut_into_messages_nor_whether_thinking_is_sent_back() -> None:
    whole = asking(QUESTION, assistant("Let me look.", ASKS), result("toolu_1", "found"))
    cut = asking(
        QUESTION, assistant(Thinking("hm")), assistant("Let me look."), assistant(ASKS), result("toolu_1", "found")
    )
    assert sketch(whole) == sketch(cut)


def test_a_history_that_was_edited_is_another() -> None:
    first, said = asking(QUESTION), answer_digest(saying("A long answer.").parts)
    edited = asking(user("Where is it?"), assistant("A long answer."), user("Thanks."))
    assert sketch(edited).history != history_after(sketch(first), said)


def test_results_of_parallel_tools_may_come_in_any_order() -> None:
    uses = assistant(use("a", order=1), use("b", order=2))
    one = asking(QUESTION, uses, result("a", "first"), result("b", "second"))
    other = asking(QUESTION, uses, result("b", "second"), result("a", "first"))
    together = asking(
        QUESTION, uses, Message(Role.TOOL, (ToolResult("b", (Text("second"),)), ToolResult("a", (Text("first"),))))
    )
    assert sketch(one) == sketch(other) == sketch(together)


def test_a_result_is_told_from_the_same_result_of_another_call() -> None:
    one = sketch(asking(QUESTION, assistant(use("a", order=1)), result("a", "ok")))
    other = sketch(asking(QUESTION, assistant(use("a", order=2)), result("a", "ok")))
    assert one.turn == other.turn and one.calls != other.calls
    assert sketch(asking(QUESTION, assistant(use("a", order=1)), user("No."))).calls == NOTHING


def test_an_answer_is_known_by_what_it_says_and_not_by_ids() -> None:
    one, other = saying("Yes.", use("toolu_1")), saying(Thinking("hm"), "Yes.", use("toolu_2"))
    assert said_of(one) == said_of(other)
    assert said_of(one) != said_of(saying("Yes."))
    assert read_said(said_of(one)) is not None
    assert read_said("ra2:abc") is None and read_said(None) is None
