"""A proof asks in turns until the rates tell, whoever answers."""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from rewind.compare.cause import CauseKind
from rewind.compare.proof import AnswerOutcome
from rewind.compare.rates import EffectVerdict
from rewind.edit.edits import SetModel, SetSystem, TextValue
from rewind.runs.experiment import Experiment, ExperimentStopped, ProbeAnswer, Question
from rewind.runs.proof import Proof, ProofVerdict
from support.effort import effort

GOOD, BAD, UNCLEAR, FAILED = AnswerOutcome
TELLING = "Refund only after explicit confirmation."
"""What the scripted model listens to, and nothing else."""


def prompt(*, changed: bool, telling: int, count: int = 40) -> str:
    """Forty sentences; where they are changed, all of them are, and one of them tells."""
    sentences = []
    for number in range(count):
        if not changed:
            sentences.append(f"Rule {number} is about case {number}.")
        elif number == telling:
            sentences.append(TELLING)
        else:
            sentences.append(f"Rule {number} now covers case {number} and the next.")
    return " ".join(sentences)


class Model:
    """Comes out badly at one rate or another, by the prompt it is given; answers so many calls."""

    def __init__(self, rate: Callable[[Question], float], *, calls: int = 40, seed: int = 1) -> None:
        self._rate = rate
        self._left = calls
        self._draw = random.Random(seed)
        self.asked: list[str] = []

    def __call__(self, question: Question) -> ProbeAnswer:
        if not self._left:
            raise ExperimentStopped("enough")
        self._left -= 1
        self.asked.append(question.what)
        return ProbeAnswer(BAD if self._draw.random() < self._rate(question) else GOOD, f"s{len(self.asked)}")


def put_back(kind: CauseKind = CauseKind.SYSTEM, what: str = "the system prompt") -> Question:
    edit = SetSystem(TextValue("good")) if kind is CauseKind.SYSTEM else SetModel(TextValue("good"))
    return Question(what, (edit,), kind)


def settled(experiment: Experiment, *questions: Question) -> Proof:
    stopped = None
    try:
        experiment.settle(questions)
    except ExperimentStopped as stop:
        stopped = str(stop)
    for question in questions:
        experiment.look_at(question)
    return Proof(control=experiment.control.result, trials=tuple(one.result for one in questions), stopped=stopped)


def test_what_never_varies_is_settled_with_ten_calls_in_turns() -> None:
    model = Model(lambda question: not question.edits)
    proof = settled(Experiment(model), put_back())
    assert proof.verdict is ProofVerdict.CAUSES and [trial.what for trial in proof.proven] == ["the system prompt"]
    assert model.asked == ["as it was", "the system prompt"] * 5


def test_all_suspects_share_the_answers_as_it_was() -> None:
    model = Model(lambda question: question.what != "the model")
    experiment = Experiment(model, suspects=4)
    suspects = [put_back(), put_back(CauseKind.MODEL, "the model"), put_back(what="the tools")]
    proof = settled(experiment, *suspects)
    assert Counter(model.asked) == {"as it was": 5, "the system prompt": 5, "the model": 5, "the tools": 5}
    assert [trial.what for trial in proof.proven] == ["the model"] and proof.remedy == suspects[1].edits


def test_a_suspect_without_any_effect_is_asked_until_half_of_one_is_ruled_out() -> None:
    proof = settled(Experiment(Model(lambda _: 1)), put_back())
    assert proof.verdict is ProofVerdict.NO_EFFECT and proof.control.rate.of == 8
    assert proof.trials[0].effect is not None and proof.trials[0].effect.within < 0.5


def test_what_comes_out_well_as_it_was_is_a_coin() -> None:
    proof = settled(Experiment(Model(lambda _: 0)), put_back())
    assert proof.verdict is ProofVerdict.COIN and proof.control.rate.bad == 0


@pytest.mark.parametrize("calls", [0, 1, 2, 9])
def test_too_few_calls_prove_nothing(calls: int) -> None:
    proof = settled(Experiment(Model(lambda question: not question.edits, calls=calls)), put_back())
    assert proof.verdict is ProofVerdict.CANNOT_TELL and not proof.proven and proof.stopped == "enough"
    assert proof.more_calls is not None and proof.more_calls >= 2


def test_unclear_and_failed_answers_are_counted_and_judged_as_neither() -> None:
    script = iter([UNCLEAR, FAILED] + [BAD, GOOD] * 5)
    experiment = Experiment(lambda _question: ProbeAnswer(next(script), "s"))
    proof = settled(experiment, put_back())
    assert proof.verdict is ProofVerdict.CAUSES
    assert (proof.control.unclear, proof.control.failed, proof.control.rate.of) == (1, 1, 5)


def test_answers_that_are_like_neither_run_end_it() -> None:
    proof = settled(Experiment(lambda _question: ProbeAnswer(UNCLEAR, "s")), put_back())
    assert proof.verdict is ProofVerdict.CANNOT_TELL
    assert proof.stopped == "10 of 10 answers as it was are like neither run (--bad-if says which are bad)"


@pytest.mark.parametrize("rate", [0.5, 0.8])
def test_of_several_suspects_that_do_nothing_hardly_ever_one_is_blamed(rate: float) -> None:
    false, total = 0, effort(400, 4_000)
    for seed in range(total):
        model = Model(lambda _: rate, calls=80, seed=seed)
        suspects = [put_back(what=name) for name in ("the system prompt", "the tools", "the model")]
        false += bool(settled(Experiment(model, suspects=4), *suspects).proven)
    assert false <= 0.05 * total


def test_no_suspect_leaves_the_request_as_it_was() -> None:
    proof = settled(Experiment(Model(lambda _: 1)))
    assert proof.verdict is ProofVerdict.NOTHING_PUT_BACK and proof.control.rate.of == 5


# ── the smallest change ──────────────────────────────────────────────────────────────────────────────────────


def system_of(question: Question) -> str:
    (edit,) = question.edits
    assert isinstance(edit, SetSystem) and isinstance(edit.value, TextValue)
    return edit.value.text


def with_prompt(text: str) -> Question:
    return Question("the system prompt", (SetSystem(TextValue(text)),), CauseKind.SYSTEM)


@pytest.mark.parametrize("telling", [0, 5, 23, 39])
def test_the_sentence_that_turns_the_outcome_is_found_among_forty_within_the_default(telling: int) -> None:
    good, bad = prompt(changed=False, telling=telling), prompt(changed=True, telling=telling)
    model = Model(lambda question: not question.edits or TELLING in system_of(question))
    experiment, whole = Experiment(model), with_prompt(good)
    experiment.settle([whole])
    least, why = experiment.narrowed(good, bad, whole)
    assert why is None and least.complete and least.of == 40
    (hunk,) = least.sentences
    assert hunk.bad.strip() == TELLING and hunk.good.strip() == f"Rule {telling} is about case {telling}."
    assert least.check is not None and least.check.effect is not None
    assert least.check.effect.verdict is EffectVerdict.CAUSES
    assert len(model.asked) <= 30


def test_calls_that_run_out_leave_what_is_known() -> None:
    good, bad = prompt(changed=False, telling=5), prompt(changed=True, telling=5)
    model = Model(lambda question: not question.edits or TELLING in system_of(question), calls=13)
    experiment, whole = Experiment(model), with_prompt(good)
    experiment.settle([whole])
    least, why = experiment.narrowed(good, bad, whole)
    assert why == "enough" and not least.complete and len(least.sentences) == 20
    assert any(TELLING in hunk.bad for hunk in least.sentences)


def test_a_sentence_is_found_though_the_model_never_repeats_itself() -> None:
    """Bad in 90 of 100 with it, and in 5 of 100 without: what is found, and confirmed, is right."""
    good, bad = prompt(changed=False, telling=2, count=8), prompt(changed=True, telling=2, count=8)
    found = Counter[str]()
    for seed in range(effort(60, 600)):

        def rate(question: Question) -> float:
            return 0.9 if not question.edits or TELLING in system_of(question) else 0.05

        model = Model(rate, calls=80, seed=seed)
        experiment, whole = Experiment(model), with_prompt(good)
        try:
            experiment.settle([whole])
        except ExperimentStopped:
            found["not settled"] += 1
            continue
        least, why = experiment.narrowed(good, bad, whole)
        right = any(TELLING in hunk.bad for hunk in least.sentences)
        confirmed = least.check is not None and least.check.effect is not None and least.check.effect.established
        if why is not None:
            found["not finished"] += 1
        elif confirmed:
            found["right" if right else "wrong"] += 1
        else:
            found["not confirmed"] += 1
    total = found.total()
    assert found["wrong"] <= 0.05 * total and found["right"] >= 0.8 * total, found
