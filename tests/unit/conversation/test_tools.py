"""Tool calls from the wire: asked for in an answer, their results brought by a later request."""

from rewind.conversation.threads import ThreadPlace
from rewind.conversation.tools import ToolCall, ToolTurn, tool_calls
from rewind.model.message import Answered, Asked, Message, Role, Text, ToolResult, ToolUse
from unit.conversation.saying import asking, assistant, result, saying, use, user


def turn(
    index: int, asked: Asked, answered: Answered | None, *, thread: int = 1, parent: int | None = None
) -> ToolTurn:
    return ToolTurn(
        index=index,
        place=ThreadPlace(thread, parent),
        began=100.0 + index,
        ended=100.25 + index,
        asked=asked,
        answered=answered,
    )


QUESTION = user("Weather?")


def test_a_call_is_paired_with_its_result_and_timed() -> None:
    call = use("t1", "weather", city="Oslo")
    first = turn(1, asking(QUESTION), saying("I look.", call))
    second = turn(2, asking(QUESTION, assistant("I look.", call), result("t1", "cold")), saying("Cold."), parent=1)
    (found,) = tool_calls([first, second])
    assert (found.label, found.use, found.answered_in, found.ms) == ("1.1", call, 2, 750.0)
    assert found.result is not None and found.result.text == "cold"


def test_parallel_calls_find_their_own_results_in_any_order() -> None:
    calls = [use("a", city="Oslo"), use("b", city="Rome"), use("c", city="Bern")]
    results = [result("c", "mild"), result("a", "cold"), result("b", "warm")]
    found = tool_calls(
        [
            turn(1, asking(QUESTION), saying(*calls)),
            turn(2, asking(QUESTION, assistant(*calls), *results), None, parent=1),
        ]
    )
    assert [(call.label, call.result and call.result.text) for call in found] == [
        ("1.1", "cold"),
        ("1.2", "warm"),
        ("1.3", "mild"),
    ]


def test_without_ids_name_and_order_pair_them_and_old_results_are_not_taken_again() -> None:
    def bare(name: str) -> ToolUse:
        return ToolUse("", name, {})

    def back(name: str, text: str) -> Message:
        return Message(Role.TOOL, (ToolResult("", (Text(text),), name=name),))

    first = asking(QUESTION)
    second = asking(QUESTION, assistant(bare("look")), back("look", "one"))
    third = asking(
        QUESTION,
        assistant(bare("look")),
        back("look", "one"),
        assistant(bare("look"), bare("count"), bare("look")),
        back("look", "two"),
        back("count", "2"),
        back("look", "three"),
    )
    found = tool_calls(
        [
            turn(1, first, saying(bare("look"))),
            turn(2, second, saying(bare("look"), bare("count"), bare("look")), parent=1),
            turn(3, third, saying("Done."), parent=2),
        ]
    )
    assert [(call.label, call.result and call.result.text) for call in found] == [
        ("1.1", "one"),
        ("2.1", "two"),
        ("2.2", "2"),
        ("2.3", "three"),
    ]


def test_a_client_that_renames_the_calls_is_understood_by_its_own_history() -> None:
    asked_for = [use("call_1", city="Oslo"), use("call_2", city="Oslo")]
    renamed = [use("fc_8", city="Oslo"), use("fc_9", city="Oslo")]
    earlier = (QUESTION, assistant(use("fc_1", city="Oslo")), result("fc_1", "old"), user("And now?"))
    found = tool_calls(
        [
            turn(1, asking(*earlier), saying(*asked_for)),
            turn(
                2, asking(*earlier, assistant(*renamed), result("fc_9", "two"), result("fc_8", "one")), None, parent=1
            ),
        ]
    )
    assert [call.result and call.result.text for call in found] == ["one", "two"]


def test_ids_that_are_numbered_anew_in_every_turn_do_not_mix_results() -> None:
    oslo, rome = use("call_0", city="Oslo"), use("call_0", city="Rome")
    first = (QUESTION, assistant(oslo), result("call_0", "cold"))
    found = tool_calls(
        [
            turn(1, asking(QUESTION), saying(oslo)),
            turn(2, asking(*first), saying(rome), parent=1),
            turn(3, asking(*first, assistant(rome), result("call_0", "warm")), None, parent=2),
        ]
    )
    assert [call.result and call.result.text for call in found] == ["cold", "warm"]


def test_without_ids_a_window_that_slides_still_has_its_pairs() -> None:
    def bare(city: str) -> ToolUse:
        return ToolUse("", "look", {"city": city})

    def back(text: str) -> Message:
        return Message(Role.TOOL, (ToolResult("", (Text(text),), name="look"),))

    cities = ["Oslo", "Rome", "Bern", "Kyiv"]
    turns = [turn(1, asking(QUESTION), saying(bare(cities[0])))]
    for at, city in enumerate(cities[1:], 1):
        window = [part for one in cities[max(0, at - 2) : at] for part in (assistant(bare(one)), back(one.lower()))]
        turns.append(turn(at + 1, asking(*window), saying(bare(city)), parent=at))
    found = tool_calls(turns)
    assert [call.result and call.result.text for call in found] == ["oslo", "rome", "bern", None]


def test_a_history_that_the_provider_keeps_brings_results_by_id() -> None:
    (found,) = tool_calls(
        [
            turn(1, asking(QUESTION), saying(use("call_1"))),
            turn(2, asking(result("call_1", "cold"), continues="resp_1"), None, parent=1),
        ]
    )
    assert found.result is not None and found.result.text == "cold"


def test_a_call_whose_result_never_comes_stays_open() -> None:
    (found,) = tool_calls([turn(1, asking(QUESTION), saying(use("t1")))])
    assert found == ToolCall(asked_in=1, number=1, use=use("t1"), ends=True)
    (found,) = tool_calls([turn(1, asking(QUESTION), saying(use("t1"))), turn(2, asking(QUESTION), None, parent=1)])
    assert found == ToolCall(asked_in=1, number=1, use=use("t1"))


def test_a_result_in_another_conversation_is_another_call() -> None:
    call = use("t1")
    (found,) = tool_calls(
        [
            turn(1, asking(QUESTION), saying(call)),
            turn(2, asking(QUESTION, assistant(call), result("t1", "x")), None, thread=2),
        ]
    )
    assert found.result is None


def test_a_result_that_failed_says_so_and_hosted_tools_are_none_of_ours() -> None:
    call, hosted = use("t1"), ToolUse("s1", "web_search", {}, hosted=True)
    (found,) = tool_calls(
        [
            turn(1, asking(QUESTION), saying(hosted, call)),
            turn(2, asking(QUESTION, assistant(hosted, call), result("t1", "no", failed=True)), None, parent=1),
        ]
    )
    assert found.result is not None and found.result.failed
    assert found.label == "1.1"


def test_the_first_request_that_brings_the_result_counts_though_later_ones_repeat_it() -> None:
    call = use("t1")
    history = (QUESTION, assistant(call), result("t1", "x"))
    (found,) = tool_calls(
        [
            turn(1, asking(QUESTION), saying(call)),
            turn(2, asking(*history), saying("A."), parent=1),
            turn(3, asking(*history, assistant("A."), user("B?")), None, parent=2),
        ]
    )
    assert found.answered_in == 2
