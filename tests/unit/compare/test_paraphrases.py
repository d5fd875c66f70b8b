"""Changed facts are told from other words, on pairs that were written by hand."""

import pytest

from rewind.compare.decision import Weight, compare_decisions, decision_of
from rewind.model.message import Answered, Text
from unit.compare.paraphrases import CHANGED, LATER_CHANGED, LATER_SAME, SAME, Pair

LEAST = 0.93


def _is_decisive(pair: Pair) -> bool:
    one, other = (decision_of(Answered(parts=(Text(text),))) for text in pair)
    return compare_decisions(one, other).weight is Weight.DECISIVE


@pytest.mark.parametrize(
    ("pairs", "decisive"),
    [(SAME, False), (CHANGED, True), (LATER_SAME, False), (LATER_CHANGED, True)],
    ids=["same", "changed", "later same", "later changed"],
)
def test_changed_facts_are_told_from_other_words(pairs: tuple[Pair, ...], decisive: bool) -> None:
    wrong = [pair for pair in pairs if _is_decisive(pair) is not decisive]
    assert len(wrong) <= (1 - LEAST) * len(pairs), wrong
