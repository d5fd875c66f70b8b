"""Changed facts are told from other words, on pairs that were written by hand."""

import pytest

from rewind.compare.decision import Weight, compare_decisions, decision_of
from rewind.model.message import Answered, Text, ToolUse
from unit.compare import paraphrases
from unit.compare.paraphrases import Pair

LEAST = 0.93


def _is_decisive(pair: Pair) -> bool:
    parts = (Text(one) if isinstance(one, str) else ToolUse("", "tool", one) for one in pair)
    one, other = (decision_of(Answered(parts=(part,))) for part in parts)
    return compare_decisions(one, other).weight is Weight.DECISIVE


@pytest.mark.parametrize("name", [name for name in vars(paraphrases) if name.isupper()])
def test_changed_facts_are_told_from_other_words(name: str) -> None:
    pairs: tuple[Pair, ...] = getattr(paraphrases, name)
    wrong = [pair for pair in pairs if _is_decisive(pair) is not ("CHANGED" in name)]
    assert len(wrong) <= (1 - LEAST) * len(pairs), wrong
