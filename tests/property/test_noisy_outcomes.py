"""Answers of runs that never repeat a word are told good from bad by what they decide, as ``bisect --prove`` has to."""

from collections import Counter

from rewind.compare.proof import AnswerOutcome, OutcomeJudge
from rewind.model.message import Answered
from support.effort import sample
from support.incidents.group import group_case
from support.planted_recording import Played


def answers(runs: tuple[Played, ...], steps: tuple[frozenset[int], ...]) -> list[Answered]:
    """Of each run the answer where good and bad ones go another way."""
    found = [run.run.answered(min(at)) for run, at in zip(runs, steps, strict=True) if at]
    return [answer for answer in found if answer is not None]


def test_no_answer_is_taken_for_the_other_outcome() -> None:
    judged: Counter[tuple[AnswerOutcome, AnswerOutcome]] = Counter()
    for seed in sample(list(range(18)), every=6):
        case = group_case(seed, 2, goods=5, bads=5)
        assert case.truth is not None
        good = answers(case.goods, case.truth.good_steps)
        bad = answers(case.bads, case.truth.bad_steps)
        if not good or not bad:
            continue
        judge = OutcomeJudge(good[0], bad[0])
        for truth, others in ((AnswerOutcome.GOOD, good[1:]), (AnswerOutcome.BAD, bad[1:])):
            judged.update((truth, judge.outcome(answer)) for answer in others)
    assert judged.total() >= 20
    wrong = judged[AnswerOutcome.GOOD, AnswerOutcome.BAD] + judged[AnswerOutcome.BAD, AnswerOutcome.GOOD]
    clear = wrong + sum(judged[one, one] for one in (AnswerOutcome.GOOD, AnswerOutcome.BAD))
    assert wrong == 0 and clear >= 0.9 * judged.total(), judged
