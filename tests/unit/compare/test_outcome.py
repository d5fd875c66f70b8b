"""Whom an answer takes after."""

import pytest

from rewind.compare.outcome_test import outcome_test
from rewind.compare.proof import AnswerOutcome, OutcomeJudge
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
        (Answered(error="overloaded"), AnswerOutcome.FAILED),
        (says("Hm.", ("look", {})), AnswerOutcome.UNCLEAR),
    ],
)
def test_the_tools_decide_where_the_runs_ask_for_different_ones(answer: Answered, outcome: AnswerOutcome) -> None:
    assert OutcomeJudge(REFUND, REFUSAL).outcome(answer) is outcome


def test_words_decide_where_no_tools_are_asked_for() -> None:
    yes, no = (says("The refund of $189 is on its way to you."), says("I am sorry, this order cannot be refunded."))
    assert OutcomeJudge(yes, no).outcome(says("The refund is on its way to you.")) is AnswerOutcome.GOOD
    assert OutcomeJudge(yes, no).outcome(says("Sorry, it cannot be refunded.")) is AnswerOutcome.BAD
    assert OutcomeJudge(yes, no).outcome(says("42")) is AnswerOutcome.UNCLEAR


def test_an_answer_where_the_bad_run_had_none_takes_after_the_good_one() -> None:
    assert OutcomeJudge(says("Sure."), Answered(error="overloaded")).outcome(says("Yes.")) is AnswerOutcome.GOOD
    assert OutcomeJudge(says("Sure."), None).outcome(None) is AnswerOutcome.BAD


REFUNDS = Answered(
    parts=(Text("It was delivered 6 days ago."), ToolUse("1", "refund", {"amount": 189, "order": "8821"}))
)
REFUSES = Answered(parts=(Text("I cannot refund this without your explicit confirmation."),))


@pytest.mark.parametrize("failed", [None, Answered(error="Invalid API key")])
def test_an_error_is_like_neither_of_two_runs_that_were_answered(failed: Answered | None) -> None:
    assert OutcomeJudge(REFUNDS, REFUSES).outcome(failed) is AnswerOutcome.FAILED
    assert OutcomeJudge(REFUNDS, Answered(error="Overloaded")).outcome(failed) is AnswerOutcome.FAILED
    assert (
        OutcomeJudge(REFUNDS, Answered(error="Overloaded")).outcome(Answered(error="Overloaded")) is AnswerOutcome.BAD
    )


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (REFUNDS, AnswerOutcome.GOOD),
        (REFUSES, AnswerOutcome.BAD),
        (
            Answered(
                parts=(Text("Six days have passed, fine."), ToolUse("2", "refund", {"order": "8821", "amount": 189.0}))
            ),
            AnswerOutcome.GOOD,
        ),
        (Answered(parts=(ToolUse("2", "refund", {"order": "8821", "amount": 12}),)), AnswerOutcome.GOOD),
        (Answered(parts=(Text("Without your explicit confirmation I can't refund this."),)), AnswerOutcome.BAD),
        (Answered(parts=(ToolUse("2", "delete_account", {}),)), AnswerOutcome.UNCLEAR),
    ],
)
def test_an_answer_is_like_the_run_from_which_its_decision_differs_less(
    answer: Answered, outcome: AnswerOutcome
) -> None:
    assert OutcomeJudge(REFUNDS, REFUSES).outcome(answer) is outcome


def test_where_the_two_runs_differ_in_words_alone_so_do_the_words() -> None:
    judge = OutcomeJudge(
        Answered(parts=(Text("The order has been shipped and arrives soon."),)),
        Answered(parts=(Text("The order is on its way and arrives soon."),)),
    )
    assert judge.outcome(judge.good) is AnswerOutcome.GOOD and judge.outcome(judge.bad) is AnswerOutcome.BAD


def test_a_test_says_when_an_answer_is_bad() -> None:
    judge = OutcomeJudge(REFUNDS, REFUSES, bad_if=(outcome_test("tool:refund absent"),))
    assert judge.outcome(Answered(parts=(ToolUse("2", "delete_account", {}),))) is AnswerOutcome.BAD
    assert judge.outcome(REFUNDS) is AnswerOutcome.GOOD
    assert judge.outcome(Answered(error="Overloaded")) is AnswerOutcome.FAILED
    assert OutcomeJudge(REFUNDS, REFUSES, bad_if=(outcome_test("exit!=0"),)).outcome(REFUNDS) is AnswerOutcome.UNCLEAR
