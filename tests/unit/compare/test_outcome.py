"""Whom an answer takes after."""

import pytest

from rewind.compare.proof import AnswerOutcome, answer_outcome
from rewind.model.message import Answered, Text, ToolUse


def says(text: str, *calls: tuple[str, dict[str, object]]) -> Answered:
    uses = [ToolUse(f"id{n}", name, arguments) for n, (name, arguments) in enumerate(calls)]
    return Answered(parts=(Text(text), *uses))


REFUND = says("I'll proceed.", ("refund", {"amount": 189}))
REFUSAL = says("I cannot complete this action without explicit confirmation.")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (REFUND, AnswerOutcome.GOOD),
        (REFUSAL, AnswerOutcome.BAD),
        (says("Right away!", ("refund", {"amount": 189})), AnswerOutcome.GOOD),
        (says("Right away!", ("refund", {"amount": 12})), AnswerOutcome.GOOD),
        (says("No."), AnswerOutcome.BAD),
        (Answered(error="overloaded"), AnswerOutcome.UNCLEAR),
        (says("Hm.", ("look", {})), AnswerOutcome.UNCLEAR),
    ],
)
def test_the_tools_decide_where_the_runs_ask_for_different_ones(answer: Answered, outcome: AnswerOutcome) -> None:
    assert answer_outcome(answer, REFUND, REFUSAL) is outcome


def test_words_decide_where_no_tools_are_asked_for() -> None:
    yes, no = (says("The refund of $189 is on its way to you."), says("I am sorry, this order cannot be refunded."))
    assert answer_outcome(says("The refund is on its way to you."), yes, no) is AnswerOutcome.GOOD
    assert answer_outcome(says("Sorry, it cannot be refunded."), yes, no) is AnswerOutcome.BAD
    assert answer_outcome(says("42"), yes, no) is AnswerOutcome.UNCLEAR


def test_an_answer_where_the_bad_run_had_none_takes_after_the_good_one() -> None:
    assert answer_outcome(says("Yes."), says("Sure."), Answered(error="overloaded")) is AnswerOutcome.GOOD
    assert answer_outcome(None, says("Sure."), None) is AnswerOutcome.BAD
