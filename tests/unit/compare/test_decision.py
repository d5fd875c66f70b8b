"""What an answer decides: tools, arguments that count, facts; not the words around them."""

from time import process_time
from typing import Any

import pytest

from rewind.compare.decision import CallDecision, Decision, Weight, compare_decisions, decision_classes, decision_of
from rewind.model.message import Answered, Refusal, Text, Thinking, ToolUse


def said(text: str, **more: Any) -> Answered:
    return Answered(parts=(Text(text),), **more)


def calls(*uses: tuple[str, Any], text: str = "") -> Answered:
    parts = tuple(ToolUse(f"call_{at}", name, arguments) for at, (name, arguments) in enumerate(uses))
    return Answered(parts=(Text(text), *parts) if text else parts)


def weight(before: Answered | None, after: Answered | None) -> Weight:
    return compare_decisions(decision_of(before), decision_of(after)).weight


def shown(before: Answered, after: Answered) -> list[str]:
    return [str(one) for one in compare_decisions(decision_of(before), decision_of(after)).changes]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"q": "refund policy"}, {"q": "policy for refunds"}, Weight.PROSE),
        ({"q": "refunds"}, {"q": "refund policy"}, Weight.PROSE),
        ({"q": "Berlin"}, {"q": "Paris"}, Weight.DECISIVE),
        ({"city": "New York"}, {"city": "Los Angeles"}, Weight.DECISIVE),
        ({"q": "policy on refunding headphones"}, {"q": "how long can used electronics be sent back"}, Weight.PROSE),
        ({"city": "San Diego"}, {"city": "San Jose"}, Weight.DECISIVE),
        ({"amount": 40}, {"amount": 40.0}, Weight.SAME),
        ({"amount": 40}, {"amount": "40"}, Weight.SAME),
        ({"amount": 40}, {"amount": 400}, Weight.DECISIVE),
        ({"dry_run": True}, {"dry_run": False}, Weight.DECISIVE),
        ({"a": 1, "b": None}, {"a": 1}, Weight.SAME),
        ({"a": 1, "b": 2}, {"a": 1}, Weight.DECISIVE),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, Weight.PROSE),
        ({"at": [1, 2]}, {"at": [2, 1]}, Weight.DECISIVE),
        ({"cmd": "pytest -q tests/a.py"}, {"cmd": "pytest tests/a.py -q"}, Weight.PROSE),
        ({"cmd": "rm -rf build"}, {"cmd": "ls build"}, Weight.DECISIVE),
        ({"cmd": "mv a.txt b.txt"}, {"cmd": "mv b.txt a.txt"}, Weight.DECISIVE),
        ({"body": '{"limit": 5}'}, {"body": '{"limit":  5}'}, Weight.SAME),
        ({"body": '{"limit": 5}'}, {"body": '{"limit": 6}'}, Weight.DECISIVE),
        ({"code": "x = 1  # one\nreturn f(x)"}, {"code": "x = 1  # the first\nreturn f(x)"}, Weight.PROSE),
        ({"code": "x = 1  # one\nreturn f(x)"}, {"code": "x = 2  # one\nreturn f(x)"}, Weight.DECISIVE),
        ({"run": "3f2b8c1e-7d4a-4b5c-9e6f-1a2b3c4d5e6f"}, {"run": "9a8b7c6d-5e4f-4a3b-8c2d-1e0f9a8b7c6d"}, Weight.SAME),
    ],
)
def test_arguments_count_by_what_they_are(before: object, after: object, expected: Weight) -> None:
    assert weight(calls(("tool", before)), calls(("tool", after))) is expected


def test_the_order_of_parallel_calls_does_not_count() -> None:
    x, y = ("read", {"path": "x"}), ("read", {"path": "y"})
    assert weight(calls(x, y), calls(y, x)) is Weight.SAME
    assert decision_of(calls(x, y)).signature == decision_of(calls(y, x)).signature
    assert weight(calls(x, y), calls(x, x)) is Weight.DECISIVE


def test_words_beside_a_call_are_prose() -> None:
    call = ("refund", {"id": 7})
    assert weight(calls(call, text="I refund it now."), calls(call, text="It cannot wait: 3 days!")) is Weight.PROSE


def test_thinking_does_not_count() -> None:
    one, other = (Answered(parts=(Thinking(text), Text("Done."))) for text in ("It is 28.", "It is 24."))
    assert weight(one, other) is Weight.SAME


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("It is 28 days, says the handbook.", "According to the handbook, you get 28 days.", Weight.PROSE),
        ("It is 28 days, says the handbook.", "According to the handbook, you get 24 days.", Weight.DECISIVE),
        ("The fee is $40.", "A fee of 40.00 dollars applies.", Weight.PROSE),
        ("The order is eligible.", "The order is not eligible.", Weight.DECISIVE),
        ("The order isn't eligible.", "That order is not eligible.", Weight.PROSE),
        ("Your claim was approved.", "Your claim was denied.", Weight.DECISIVE),
        ("Done: your money is on its way.", "Sorry, no.", Weight.DECISIVE),
        ("All is well.", "I give up.", Weight.DECISIVE),
        ("Refunded.", "Escalated to a supervisor.", Weight.DECISIVE),
        ("Done.", "All set!", Weight.PROSE),
        ("Number 3 is blue.", "Number 3 is green.", Weight.DECISIVE),
        ("I could not open the page: 403.", "The price is $9 a month.", Weight.DECISIVE),
        ("It has 30 days' notice.", "There are thirty days' notice.", Weight.PROSE),
        ("It fits.", "It fits. The others do not fit.", Weight.PROSE),
        ("Which order do you mean?", "Your order arrives tomorrow.", Weight.DECISIVE),
        ('{"score": 3, "why": "a bit slow"}', '{"score": 3, "why": "somewhat slow"}', Weight.PROSE),
        ('{"score": 3}', '{"score": 4}', Weight.DECISIVE),
        ("You can return it within 30 days.", "Sie können es innerhalb von 30 Tagen zurückgeben.", Weight.DECISIVE),
    ],
)
def test_final_texts_part_by_what_they_say(before: str, after: str, expected: Weight) -> None:
    assert weight(said(before), said(after)) is expected
    assert weight(said(after), said(before)) is expected


def test_changes_are_shown_as_people_say_them() -> None:
    assert shown(said("You get 28 days."), said("You get 24 days.")) == ["28 → 24 days"]
    assert shown(calls(("refund", {"amount": 40})), calls(("refund", {"amount": 400}))) == ["refund.amount 40 → 400"]
    assert shown(calls(("refund", {})), calls(("escalate", {}))) == ["tool: refund → escalate"]
    assert shown(said("Fine."), said("Fine.", stop="length")) == ["finish: stop → length"]


def test_an_answer_that_failed_or_is_missing_is_another_decision() -> None:
    assert weight(said("Fine."), None) is Weight.DECISIVE
    assert weight(said("Fine."), Answered(error="overloaded")) is Weight.DECISIVE
    assert weight(None, None) is Weight.SAME
    assert weight(said("No."), Answered(parts=(Refusal("No."),))) is Weight.DECISIVE


def test_decisions_fall_into_classes() -> None:
    texts = "It is 28 days.", "You have 28 days.", "It is 24 days.", "It is 28 days."
    assert decision_classes([decision_of(said(text)) for text in texts]) == [0, 0, 1, 0]


def test_values_nested_without_end_are_compared_without_harm() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert weight(calls(("t", {"a": deep})), calls(("t", {"a": [1]}))) is Weight.DECISIVE
    assert decision_of(calls(("t", {"a": deep}))).signature
    text = "[" * 100_000 + "]" * 100_000
    assert weight(said(text), said("It is 28 days.")) is not Weight.SAME


def test_a_drawn_id_that_both_models_knew_was_chosen() -> None:
    ids = "3f2b8c1e-7d4a-4b5c-9e6f-1a2b3c4d5e6f", "9a8b7c6d-5e4f-4a3b-8c2d-1e0f9a8b7c6d"
    one, other = (decision_of(calls(("open", {"document": name}))) for name in ids)
    assert compare_decisions(one, other).weight is Weight.SAME
    assert compare_decisions(one, other, lambda gone, come: gone == come).weight is Weight.SAME
    found = compare_decisions(one, other, lambda gone, come: gone == {ids[0]} and come == {ids[1]})
    assert found.weight is Weight.DECISIVE and str(found.changes[0]) == f"open {ids[0]} → {ids[1]}"


@pytest.mark.parametrize("piece", ["a ", "(", "0,", "a1-", "/a", "1.1 ", "not ", "f(", "x = 1;\n", "order 7 of 9 "])
def test_long_texts_take_time_in_proportion(piece: str) -> None:
    began = process_time()
    text = piece * (40_000 // len(piece))
    weight(said(text), said(text + "28 days"))
    weight(calls(("write", {"text": text})), calls(("write", {"text": text + "28 days"})))
    assert process_time() - began < 10


# ── what a stranger may write ────────────────────────────────────────────────────────────────────────────────────


def test_underlined_headings_take_no_time() -> None:
    """A pattern that tries every way to part a line of dashes would never end here."""
    old, new = (Decision(text=f"{head}\n{'-' * 4000}\n{'# ' * 4000}\n{said}") for head, said in HEADINGS)
    assert compare_decisions(old, new).weight is Weight.PROSE


HEADINGS = (("Result", "All fine."), ("Results", "All is fine."))


def test_long_numbers_are_compared_digit_by_digit() -> None:
    for one, other in ((1745678901234567890, 1745678901234567891), ("1745678901234567890", "1745678901234567891")):
        old, new = (Decision(calls=(CallDecision("delete_user", {"id": value}),)) for value in (one, other))
        assert compare_decisions(old, new).weight is Weight.DECISIVE
        assert old.signature != new.signature


def test_a_number_that_no_float_can_hold_is_a_number() -> None:
    old, new = (Decision(calls=(CallDecision("set", {"n": 10**400 + more}),)) for more in (0, 1))
    assert compare_decisions(old, new).weight is Weight.DECISIVE


def test_arguments_nested_without_end_are_no_crash() -> None:
    value: object = 1
    for _ in range(5000):
        value = [value]
    old, new = (Decision(calls=(CallDecision("set", {"v": value, "n": n}),)) for n in (1, 2))
    assert compare_decisions(old, new).weight is Weight.DECISIVE


def test_an_argument_that_says_nothing_is_none() -> None:
    nothing: tuple[dict[str, Any], ...] = ({}, {"q": None, "tags": []})
    old, new = (Decision(calls=(CallDecision("list", arguments),)) for arguments in nothing)
    assert compare_decisions(old, new).weight is Weight.SAME and old.signature == new.signature


def test_many_parallel_calls_of_one_tool_are_compared_quickly() -> None:
    old, new = (
        Decision(calls=tuple(CallDecision("read", {"path": f"{side}/{n}.py", "why": f"for {n}"}) for n in range(200)))
        for side in ("a", "b")
    )
    assert compare_decisions(old, new).weight is Weight.DECISIVE


def test_german_nouns_are_no_names() -> None:
    old = Decision(text="Der Antrag wurde genehmigt. Das Geld kommt am Freitag.")
    new = Decision(text="Ihr Antrag ist bewilligt, die Auszahlung folgt am Freitag.")
    assert compare_decisions(old, new).weight is Weight.PROSE
