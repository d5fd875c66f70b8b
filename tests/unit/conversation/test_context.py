"""What the model read, and what became of it since an earlier call."""

from rewind.conversation.context import ContextChange, Fate, compare_contexts, context_of
from rewind.model.message import Answered, Asked, Media, Message, Role, Text, Thinking, ToolDefinition, ToolResult
from unit.conversation.saying import asking, assistant, result, saying, use, user

LONG = "The report says: " + "figures and facts, " * 40


def changes(before: Asked, now: Asked, answer: Answered | None = None) -> tuple[ContextChange, ...]:
    return compare_contexts(context_of(before), context_of(now), answer)


def fates(before: Asked, now: Asked) -> list[tuple[str, str]]:
    return [(change.fate.value, change.entry.what) for change in changes(before, now)]


def test_the_context_is_system_tools_and_messages_with_sizes() -> None:
    look = ToolDefinition("look", "Looks.", {"type": "object"})
    entries = context_of(asking(user("Hi"), assistant(use("t", city="Oslo")), system="Be kind.", tools=(look,)))
    assert [(entry.what, entry.place) for entry in entries] == [
        ("system", "system"),
        ("tools", "tools"),
        ("user", "messages[0]"),
        ("assistant", "messages[1]"),
    ]
    assert [entry.size for entry in entries[::2]] == [8, 2]
    assert entries[3].text == '→ look({"city":"Oslo"})'
    assert "Looks." in entries[1].text


def test_a_history_that_grows_at_its_end_is_same_and_added() -> None:
    before = asking(user("a"))
    now = asking(user("a"), assistant("b"), user("c"))
    found = changes(before, now, saying("b"))
    assert [change.fate for change in found] == [Fate.SAME, Fate.SAME, Fate.ADDED, Fate.ADDED]
    assert [change.own_answer for change in found] == [False, False, True, False]


def test_what_fell_out_is_dropped() -> None:
    before = asking(user("a"), assistant("b"), user("c"), assistant("d"), user("e"))
    now = asking(user("c"), assistant("d"), user("e"), assistant("f"), user("g"))
    assert fates(before, now) == [
        ("same", "system"),
        ("dropped", "user"),
        ("dropped", "assistant"),
        ("same", "user"),
        ("same", "assistant"),
        ("same", "user"),
        ("added", "assistant"),
        ("added", "user"),
    ]


def test_a_text_that_lost_its_tail_is_truncated_and_says_how_much() -> None:
    before = asking(user("a"), assistant(use("t")), result("t", LONG))
    now = asking(user("a"), assistant(use("t")), result("t", LONG[:100] + "… [truncated]"), assistant("ok"))
    change = next(change for change in changes(before, now) if change.fate is Fate.TRUNCATED)
    assert change.entry.what == "tool"
    assert change.kept == 100
    assert change.lost == len(LONG) - 100
    assert change.before is not None and change.before.text.endswith("facts, ")


def test_another_word_is_a_change_and_not_a_truncation() -> None:
    before, now = asking(user("Send 5 euros.")), asking(user("Send 500 euros."))
    assert fates(before, now) == [("same", "system"), ("changed", "user")]
    shorter = asking(user("Send no money at all, please."))
    assert fates(before, shorter)[1] == ("changed", "user")
    assert fates(asking(user("Send 5 euros.")), asking(user("Send 5")))[1] == ("changed", "user"), "an edit"


def test_what_comes_in_between_is_injected() -> None:
    before = asking(user("a"), assistant("b"), user("c"))
    now = asking(user("a"), assistant("b"), user("Remember: be brief."), user("c"), assistant("d"))
    assert fates(before, now) == [
        ("same", "system"),
        ("same", "user"),
        ("same", "assistant"),
        ("injected", "user"),
        ("same", "user"),
        ("added", "assistant"),
    ]


def test_system_and_tools_are_compared_like_messages() -> None:
    look, count = ToolDefinition("look"), ToolDefinition("count")
    before = asking(user("a"), system="Be kind.", tools=(look,))
    now = asking(user("a"), system="Be strict.", tools=(look, count))
    assert fates(before, now) == [("changed", "system"), ("changed", "tools"), ("same", "user")]
    assert fates(asking(user("a"), system=""), asking(user("a"), system="New."))[0] == ("injected", "system")


def test_the_same_context_twice_has_no_change_and_spaces_do_not_count() -> None:
    one = asking(user("a"), assistant(" b \n"), result("t", "c"))
    assert {fate for fate, _ in fates(one, one)} == {"same"}
    assert {fate for fate, _ in fates(one, asking(user("a"), assistant("b"), result("t", "c")))} == {"same"}


def test_thinking_that_is_left_out_and_a_result_that_became_an_error_are_changes() -> None:
    thought = asking(user("a"), Message(Role.ASSISTANT, (Thinking("hm"), Text("b"))), result("t", "c"))
    now = asking(user("a"), assistant("b"), result("t", "c", failed=True))
    assert fates(thought, now) == [("same", "system"), ("same", "user"), ("changed", "assistant"), ("changed", "tool")]


def test_results_are_entries_of_their_own_however_an_api_packs_them() -> None:
    results = tuple(ToolResult(f"t{n}", (Text(f"{n} {LONG}"),)) for n in range(3))
    packed = asking(user("a"), Message(Role.TOOL, results))
    apart = asking(user("a"), *(Message(Role.TOOL, (one,)) for one in results))
    assert {fate for fate, _ in fates(packed, apart)} == {"same"}
    with_reminder = asking(user("a"), Message(Role.USER, (*results, Text("Remember: be brief."))), assistant("b"))
    assert fates(packed, with_reminder)[-2:] == [("added", "user"), ("added", "assistant")]
    places = [entry.place for entry in context_of(with_reminder)]
    assert places[2:6] == [f"messages[1].parts[{n}]" for n in range(4)]
    shorter = (results[0], ToolResult("t1", (Text(f"1 {LONG}"[:80] + "…"),)), results[2])
    found = changes(packed, asking(user("a"), Message(Role.TOOL, shorter)))
    assert [change.fate.value for change in found] == ["same", "same", "same", "truncated", "same"]


def test_messages_that_have_nothing_in_common_are_dropped_and_added_not_changed() -> None:
    before = asking(user("one two three"), assistant("four five six"))
    now = asking(user("entirely different words"))
    assert fates(before, now)[1:] == [("added", "user"), ("dropped", "user"), ("dropped", "assistant")]
    closed = fates(asking(result("t", '{"status":"active"}')), asking(result("t", '{"status":"closed"}')))
    assert closed[1] == ("changed", "tool")


def test_what_the_provider_keeps_was_read_and_not_dropped() -> None:
    before = asking(user("Weather in Oslo?"))
    now = asking(user("And in Rome?"), continues="resp_1")
    held = (*before.messages, assistant("Cold."))
    found = compare_contexts(context_of(before), context_of(now, held), saying("Cold."))
    assert [(change.fate.value, change.entry.held) for change in found] == [
        ("same", False),
        ("same", True),
        ("added", True),
        ("added", False),
    ]


def test_media_and_failed_results_are_shown_in_words() -> None:
    picture = Message(Role.USER, (Media("image", "image/png", digest="ab", size=2048),))
    broken = Message(Role.TOOL, (ToolResult("t", (Text("no such file"),), name="read", failed=True),))
    entries = context_of(asking(picture, broken, system=""))
    assert [(entry.text, entry.label) for entry in entries] == [
        ("[image/png 2,048 bytes ab]", ""),
        ("no such file", "read error"),
    ]


def test_two_pictures_are_told_apart() -> None:
    def seen(digest: str) -> Asked:
        return asking(Message(Role.USER, (Media("image", "image/png", digest=digest, size=1),)))

    assert fates(seen("a"), seen("b"))[1] == ("changed", "user")
    assert fates(seen("a"), seen("a"))[1] == ("same", "user")
