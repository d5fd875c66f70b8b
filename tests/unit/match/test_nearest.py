"""What a miss says."""

import time
from collections.abc import Sequence
from typing import Any

from rewind.match.call import understand
from rewind.match.difference import word_diff
from rewind.match.nearest import RecordedCall, explain_miss
from support.exchanges import request_of


def chat(*texts: str, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-5", "messages": [{"role": "user", "content": text} for text in texts], **more}


def tape(bodies: Sequence[Any], *, played: Sequence[int] = ()) -> list[RecordedCall]:
    return [RecordedCall(n, understand(request_of(body)), n in played) for n, body in enumerate(bodies, 1)]


def test_a_changed_word_is_named_with_its_place() -> None:
    miss = explain_miss(
        understand(request_of(chat("be kind", "please return order 66"))),
        tape([chat("hello"), chat("be kind", "please refund order 66"), chat("be rude", "sell order 1")]),
        session="7f3a2b9c",
    )
    assert miss.servable == 2
    assert miss.reason == (
        "Rewind: this call was never recorded in session 7f3a2b9c; "
        "step 2 comes closest and differs in messages[1].content."
    )
    assert "    messages[1].content\n      please [-refund-]{+return+} order 66" in miss.report
    assert "rewind replay 7f3a2b9c --on-miss live" in miss.report
    assert "--allow-drift" in miss.report
    assert "rewind record -- " in miss.report
    assert "ignore" not in miss.report


def test_an_answer_that_was_already_played_is_told_from_one_never_recorded() -> None:
    miss = explain_miss(
        understand(request_of(chat("again"))),
        tape([chat("again"), chat("other"), chat("again")], played=[1, 3]),
        session="ab",
    )
    assert miss.reason == "Rewind: this call was recorded 2 times in session ab (steps 1, 3) and already played."
    assert miss.report.startswith("Already played")
    assert miss.servable == 3


def test_an_address_that_was_never_asked_is_told_with_those_that_were() -> None:
    call = understand(request_of({}, host="example.com", target="/search"))
    miss = explain_miss(call, tape([chat("a")]), session="ab")
    assert miss.reason == "Rewind: session ab has no recorded call to POST example.com/search."
    assert "  recorded  POST api.openai.com/v1/chat/completions" in miss.report
    assert miss.servable is None


def test_an_empty_recording_is_explained_too() -> None:
    miss = explain_miss(understand(request_of(chat("a"))), [], session="ab")
    assert "0 calls recorded" in miss.report


def test_a_call_that_went_to_another_host_says_so() -> None:
    miss = explain_miss(understand(request_of(chat("a"), host="10.0.0.1")), tape([chat("a")]), session="ab")
    assert "    host\n      [-api.openai.com-]{+local+}" in miss.report
    assert miss.servable is None, "an answer of another host must not be served as drift"


def test_a_field_that_is_only_an_id_gets_a_rule_to_paste_for_every_element() -> None:
    def body(stamp: str) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": "a", "timestamp": stamp}]}

    now = body("2026-11-15T10:00:00Z")
    miss = explain_miss(understand(request_of(now)), tape([body("2026-11-14T09:59:59Z")]), session="ab")
    assert "messages[0].timestamp   (only an ISO date differs)" in miss.report
    assert '        [tool.rewind]\n        ignore = ["messages[*].timestamp"]' in miss.report
    assert understand(request_of(now), ignore=["messages[*].timestamp"]).key == (
        understand(request_of(body("x")), ignore=["messages[*].timestamp"]).key
    )


def test_a_date_inside_a_text_is_told_and_the_rule_names_that_text_alone() -> None:
    miss = explain_miss(
        understand(request_of(chat("Today is Sunday, November 15, 2026.", "go"))),
        tape([chat("Today is Saturday, November 14, 2026.", "go")]),
        session="ab",
    )
    assert "(only a date differs)" in miss.report
    assert 'ignore = ["messages[0].content"]' in miss.report
    assert "ignores the whole text" in miss.report


def test_added_and_missing_fields_and_messages_are_shown_as_such() -> None:
    miss = explain_miss(
        understand(request_of(chat("a", "b", seed=1))), tape([chat("a", temperature=0.5)]), session="ab"
    )
    assert '    messages[1]\n      {+{"content": "b", "role": "user"}+}' in miss.report
    assert "    temperature\n      [-0.5-]" in miss.report
    assert "    seed\n      {+1+}" in miss.report


def test_true_and_one_are_not_taken_for_equal() -> None:
    miss = explain_miss(understand(request_of({"a": True})), tape([{"a": 1}]), session="ab")
    assert "[-1-]{+true+}" in miss.report


def test_an_inserted_message_is_the_only_difference() -> None:
    miss = explain_miss(understand(request_of(chat("a", "new", "b", "c"))), tape([chat("a", "b", "c")]), session="ab")
    assert "differs   in 1 field\n    messages[1]" in miss.report


def test_a_call_that_does_not_stream_is_not_offered_a_streamed_answer() -> None:
    recorded = tape([chat("a b c d", stream=True), chat("a b c x y z")])
    assert explain_miss(understand(request_of(chat("a b c d", stream=False))), recorded, session="ab").servable == 2
    alone = explain_miss(understand(request_of(chat("a b c d"))), recorded[:1], session="ab")
    assert alone.servable is None
    assert "    stream\n      [-true-]" in alone.report


def test_the_most_similar_of_many_short_calls_is_found() -> None:
    recorded = tape([chat(f"Summarise document number {n} about {'cats' if n == 150 else 'dogs'}") for n in range(300)])
    miss = explain_miss(understand(request_of(chat("Summarise text about cats"))), recorded, session="ab")
    assert miss.servable == 151


def test_two_thousand_recorded_calls_are_weighed_quickly() -> None:
    texts = [f"turn {n} " + "lorem ipsum dolor " * 40 for n in range(100)]
    calls = [understand(request_of(chat(*texts[: n + 1]))) for n in range(100)]
    recorded = [RecordedCall(n, calls[n % 100], False) for n in range(2000)]
    call = understand(request_of(chat(*texts[:60], "something else " + "lorem ipsum dolor " * 40)))
    begun = time.perf_counter()
    miss = explain_miss(call, recorded, session="ab")
    spent = time.perf_counter() - begun
    assert miss.nearest is not None
    assert miss.nearest % 100 == 60
    assert spent < 1.0, "it takes about 30 ms; a second means that every body was compared with every other"


def test_lines_stay_bounded_whatever_the_bodies_hold() -> None:
    recorded = tape([chat("x" * 2_000_000, "a " * 300_000, **{f"k{n}": n for n in range(500)})])
    call = understand(request_of(chat("x" * 1_000_000 + "y" * 1_000_000, "b\n" * 300_000, **{"z" * 5000: 1})))
    miss = explain_miss(call, recorded, session="ab")
    assert max(map(len, miss.report.split("\n"))) < 1000
    assert len(miss.report.split("\n")) < 40
    assert len(miss.reason) < 1000


def test_lone_surrogates_do_not_reach_the_report() -> None:
    miss = explain_miss(understand(request_of(b'{"a":"\\ud800"}')), tape([{"a": "b"}]), session="ab")
    assert miss.report.encode()


def test_a_word_diff_shortens_what_is_equal() -> None:
    long = "one two three four five six seven eight nine ten eleven twelve "
    assert word_diff(f"{long}red {long}", f"{long}blue {long}") == (
        "…en eight nine ten eleven twelve [-red-]{+blue+} one two three four five six sev…"
    )
    assert word_diff(f"a {long}{long} z", f"b {long}{long} y") == (
        "[-a-]{+b+} one two three four five six sev…n eight nine ten eleven twelve  [-z-]{+y+}"
    )
    assert word_diff("a b c", "a b c d") == "a b c{+ d+}"
    assert word_diff("refund", "refunded") == "[-refund-]{+refunded+}"
    assert word_diff("", "x") == "{+x+}"


def test_what_the_conversation_would_have_asked_next_comes_before_what_was_played() -> None:
    before = ["be kind", "look it up", "I look it up"]
    recorded = [chat(*before[:2]), chat(*before, "The order was shipped. " * 40), chat(*before, "Yes.", "so?", "Fine.")]
    changed = chat(*before, "The shop is closed on Sundays and nobody answers. " * 40)
    miss = explain_miss(understand(request_of(changed)), tape(recorded, played=[1]), session="ab")
    assert (miss.nearest, miss.nearest_played) == (2, False)
    assert [field.path for field in miss.differing] == ["messages[3].content"]
    assert miss.advice.splitlines()[1].endswith("rewind replay ab --allow-drift")


def test_an_expression_to_ignore_finds_what_differs_and_little_else() -> None:
    miss = explain_miss(
        understand(request_of(chat("This is build 4711 of it"))), tape([chat("This is build 4712 of it")]), session="ab"
    )
    assert r"ignore_text = ['build \S+']" in miss.report
