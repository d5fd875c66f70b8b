"""Laws of comparing decisions."""

import random
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rewind.compare.decision import ChangeKind, Weight, compare_decisions, decision_of
from rewind.model.message import Answered, Text, ToolUse
from support.effort import examples

_WORDS = st.sampled_from(
    re.findall(
        r"\S+",
        "refund order the is not eligible 28 24 days $40 40 USD policy March 3 2026-03-03 A-1042 src/a.py yes no ? . , "
        "cannot approved denied Berlin Paris twenty-eight 50% percent please which https://x.y/z get_user 14:30 n't",
    )
)
_TEXTS = st.lists(_WORDS, max_size=14).map(" ".join) | st.text(max_size=40)
_SCALARS = st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | _TEXTS
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
)
_CALLS = st.lists(
    st.tuples(st.sampled_from(["read", "write"]), st.dictionaries(st.sampled_from("xyz"), _VALUES)), max_size=4
)


def _answer(text: str, calls: list[tuple[str, Any]]) -> Answered:
    return Answered(parts=(Text(text), *(ToolUse("", tool, arguments) for tool, arguments in calls)))


_ANSWERS = st.builds(_answer, _TEXTS, _CALLS)


@given(_ANSWERS, _ANSWERS)
@settings(max_examples=examples(100), deadline=None)
def test_two_decisions_differ_as_much_either_way(one: Answered, other: Answered) -> None:
    a, b = decision_of(one), decision_of(other)
    there, back = compare_decisions(a, b), compare_decisions(b, a)
    assert there.weight is back.weight
    if a.signature == b.signature:  # no hash says whether two long texts share words, or a name stands for another
        kinds = {change.kind for change in there.changes if change.weight is Weight.DECISIVE}
        assert kinds <= {ChangeKind.WORDS, ChangeKind.NAME, ChangeKind.NEGATION}


@given(_ANSWERS, st.randoms(use_true_random=False))
@settings(max_examples=examples(50), deadline=None)
def test_the_order_of_calls_changes_nothing(answer: Answered, drawing: random.Random) -> None:
    calls = list(answer.parts[1:])
    drawing.shuffle(calls)
    one, other = decision_of(answer), decision_of(Answered(parts=(answer.parts[0], *calls)))
    assert one.signature == other.signature and one.tools == other.tools
    assert compare_decisions(one, other).weight is Weight.SAME


@given(st.dictionaries(st.sampled_from("abc"), _VALUES, max_size=2), st.integers(), st.integers())
@settings(max_examples=examples(50), deadline=None)
def test_another_number_is_another_decision(rest: dict[str, Any], one: int, other: int) -> None:
    before, after = (decision_of(_answer("", [("pay", rest | {"amount": value})])) for value in (one, other))
    expected = Weight.SAME if float(one) == float(other) else Weight.DECISIVE
    assert compare_decisions(before, after).weight is expected
    assert (before.signature == after.signature) == (expected is Weight.SAME)
