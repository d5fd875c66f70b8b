"""Probe: run a bad run again up to where it parts, put one thing back as it was in the good run, and see what comes.

Each probe is a fork that asks one step live and is then ended. The bad run's own request, as it was, and with each
suspect put back, is asked in turns, and the rates at which that comes out badly are compared after each round
(:mod:`rewind.compare.rates`) until they tell or the calls are used up. All suspects share the answers as it was. Where
none does it alone, all are put back together. A changed prompt that makes the difference is narrowed down to the
smallest change; that change is then put back alone, in fresh probes.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

from rewind.compare.cause import CauseKind
from rewind.compare.divergence import Finding
from rewind.compare.proof import AnswerOutcome, OutcomeJudge
from rewind.compare.rates import FIRST_LOOK
from rewind.compare.remedy import Remedy, remedies
from rewind.conversation.context import parts_text
from rewind.conversation.outline import read_step
from rewind.edit.edits import Edit
from rewind.errors import CannotEdit, EnvironmentProblem, ExitCode, RewindError, UsageError
from rewind.model.message import Answered, ToolUse
from rewind.model.session import Session
from rewind.model.step import Step, StepKind
from rewind.pricing.spending import Spending
from rewind.runs.experiment import Experiment, ExperimentStopped, ProbeAnswer, Question
from rewind.runs.fork.budget import Budget
from rewind.runs.fork.plan import ForkOptions, plan_fork
from rewind.runs.fork.run import ForkResult, fork
from rewind.runs.proof import ProbeProgress, Proof, ProofForecast, ProveOptions, Smallest
from rewind.runs.rerun import command_to_run, trusted_start
from rewind.store.library import Library

MOST_SUSPECTS = 9
"""With all of them together ten share the error rate; for more the first look could say nothing any more."""
_FAILURES = 3
"""So many failures in a row, and the provider counts as gone."""
_REJECTED = (401, 403)


class NothingToProve(UsageError):
    """There is nothing that could be put back."""


class ProbeFailed(RewindError):
    """The agent does not come to the step again, so nothing can be asked there."""

    exit_code = ExitCode.MISS


class ProviderNotAsked(EnvironmentProblem):
    """No probe was answered, so nothing is known."""


def prove(finding: Finding, bad: Session, options: ProveOptions) -> Proof:
    """Probe by probe. Raises NothingToProve, ProviderNotAsked, and whatever a fork may raise."""
    good = finding.comparison.a.recording.session
    command_to_run(bad, options.command, f"bisect {good.ref} {bad.ref} --prove")
    return _Prover(finding, bad, options).proof()


class _Prover:
    """Asks, and keeps count."""

    def __init__(self, finding: Finding, bad: Session, options: ProveOptions) -> None:
        self._finding = finding
        self._options = options
        self._bad_run = ForkOptions(
            session=bad,
            step=finding.step[1] or 0,
            home=options.home,
            command=options.command,
            tools=options.tools,
            allow_drift=options.allow_drift,
            upstream=options.upstream,
            ignore=options.ignore,
            match=options.match,
            ignore_text=options.ignore_text,
            pricing=options.prices,
            budget=_budget(options),
            announce=_once(options.announce),
            stop_after=True,
            quiet=True,
            probe=True,
        )
        self._judge = self._judged_by()
        self._looks_from = max(FIRST_LOOK, options.samples)
        self._calls = 0
        self._spent: list[Spending] = []
        self._answered = 0
        self._failures = 0
        self._drifted = 0

    def _judged_by(self) -> OutcomeJudge:
        finding, row = self._finding, self._finding.at
        if row is None or row.a is None or row.b is None or row.a.sketch is None:
            raise NothingToProve(
                "The runs do not part at a step that both made, so nothing can be put back.",
                hint="rewind diff shows all that differs",
            )
        if not finding.answers_part:
            raise NothingToProve(
                "Both runs do the same, so there is no outcome to turn.", hint="rewind diff shows all that differs"
            )
        good, bad = finding.comparison.a.answered(row.a.index), finding.comparison.b.answered(row.b.index)
        return OutcomeJudge(good, bad, self._options.bad_if)

    def proof(self) -> Proof:
        suspects, left_out = self._suspects()
        tried = [one for one in suspects if one.refused is None]
        shared_by = max(1, len(tried) + (len(tried) > 1))
        self._options.approve(self._forecast(tried, left_out))
        experiment = Experiment(self._ask, samples=self._options.samples, suspects=shared_by)
        least: Smallest | None = None
        stopped = f"{self._options.most_calls} calls do not suffice to try {', '.join(left_out)}" if left_out else None
        try:
            experiment.settle(tried)
            if len(tried) > 1 and not any(one.established for one in tried):
                suspects.append(Question("all of them together", tuple(chain(*(one.edits for one in tried)))))
                experiment.settle(suspects[-1:])
            prompt = next((one for one in tried if one.kind is CauseKind.SYSTEM and one.established), None)
            if prompt is not None:
                least, why = experiment.narrowed(*self._prompts(), prompt)
                stopped = why or stopped
        except ExperimentStopped as stop:
            stopped = str(stop)
        for one in suspects:
            if one.refused is None:
                experiment.look_at(one)
        return Proof(
            control=experiment.control.result,
            trials=tuple(one.result for one in suspects),
            judged=shared_by,
            smallest=least,
            live_calls=self._calls,
            spent=_sum(self._spent),
            drifted=self._drifted,
            stopped=stopped,
        )

    def _prompts(self) -> tuple[str, str]:
        comparison, row = self._finding.comparison, self._finding.at
        assert row is not None and row.a is not None and row.b is not None, "there is something to prove"
        good, bad = comparison.a.asked(row.a.index), comparison.b.asked(row.b.index)
        return parts_text(good.system), parts_text(bad.system)

    # ── before the first probe ───────────────────────────────────────────────────────────────────────────────

    def _suspects(self) -> tuple[list[Question], list[str]]:
        """In the order of the causes, as many as there are calls for; and the others by name."""
        found = remedies(self._finding)
        fit = min(MOST_SUSPECTS, max(1, self._options.most_calls // self._looks_from - 1))
        return [self._question(remedy) for remedy in found[:fit]], [remedy.what for remedy in found[fit:]]

    def _question(self, remedy: Remedy) -> Question:
        question = Question(remedy.what, remedy.edits, remedy.kind)
        try:
            plan_fork(replace(self._bad_run, edits=remedy.edits))
        except CannotEdit as refusal:
            question.refused = refusal.message.rstrip(".")
        return question

    def _forecast(self, tried: Sequence[Question], left_out: Sequence[str]) -> ProofForecast:
        options, plan = self._options, plan_fork(self._bad_run)
        asked = replace(plan, live=(plan.step,))
        if self._bad_run.budget is not None:
            self._bad_run.budget.check_models(asked.models())
        return ProofForecast(
            suspects=tuple(one.what for one in tried),
            left_out=tuple(left_out),
            least_calls=min(self._looks_from * (1 + len(tried)), options.most_calls),
            most_calls=options.most_calls if tried else min(self._looks_from, options.most_calls),
            cost=Spending() if options.prices is None else asked.estimate(options.prices),
            max_cost=options.max_cost,
            tools=self._tools_for_real(),
            drift=options.allow_drift,
        )

    def _tools_for_real(self) -> Counter[str]:
        """The tools that the bad run used before the step, less those whose results are in the recording."""
        run = self._finding.comparison.b
        asked, recorded = Counter[str](), Counter[str]()
        for step in run.recording.steps:
            if step.index >= self._bad_run.step:
                continue
            if step.request.kind is StepKind.TOOL_CALL and self._options.tools == "replay":
                parts = chain(*(message.parts for message in run.asked(step.index).messages))
                recorded.update(part.name for part in parts if isinstance(part, ToolUse))
            elif step.request.kind is StepKind.LLM_CALL and (answered := run.answered(step.index)) is not None:
                asked.update(use.name for use in answered.tool_uses if not use.hosted)
        return asked - recorded

    # ── one probe ────────────────────────────────────────────────────────────────────────────────────────────

    def _ask(self, question: Question) -> ProbeAnswer:
        if self._calls >= self._options.most_calls:
            raise ExperimentStopped(f"the limit of {self._calls} live calls is reached")
        result = self._fork(question.edits, len(question.outcomes) + 1)
        outcome = self._outcome(result)
        self._drifted += bool(result.drifted)
        self._options.on_probe(
            ProbeProgress(
                what=question.what,
                outcome=outcome,
                calls=self._calls,
                most_calls=self._options.most_calls,
                spent=_sum(self._spent),
            )
        )
        return ProbeAnswer(outcome, result.session_id)

    def _fork(self, edits: tuple[Edit, ...], sample: int) -> ForkResult:
        result = fork(replace(self._bad_run, edits=edits, sample=sample))
        self._calls += sum(step.request.kind is StepKind.LLM_CALL for step in result.live)
        self._spent.append(result.spent)
        if result.answer is None and result.exit_code == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        if result.answer is None and result.stopped is not None:
            raise ExperimentStopped(result.stopped)
        if result.answer is None:
            raise self._unreached(result)
        return result

    def _unreached(self, result: ForkResult) -> RewindError:
        """Why no probe came to the step: without its key many an agent does not even start."""
        missing = [name for name in trusted_start(self._bad_run.session).key_variables if name not in os.environ]
        if missing and not self._answered:
            return ProviderNotAsked(
                f"The provider could not be asked: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set "
                "here, and the agent ended before the step.",
                hint=f"export {missing[0]}=…, then the same command",
            )
        return ProbeFailed(
            f"A probe never reached the step. {result.unasked or ''}".rstrip(),
            hint=f"rewind inspect {result.session_id}",
        )

    def _outcome(self, result: ForkResult) -> AnswerOutcome:
        assert result.answer is not None, "an unanswered probe has raised"
        response = result.answer.response
        status = None if response is None or response.head is None else response.head.status
        outcome = AnswerOutcome.FAILED
        if status is not None:
            outcome = self._judge.outcome(self._answer(result.session_id, result.answer))
        if outcome is not AnswerOutcome.FAILED:
            self._answered += 1
            self._failures = 0
            return outcome
        self._failures += 1
        why = (response.reason if response is not None else None) or "nothing came"
        why = f"it answered {status}" if status is not None else why
        if not self._answered and (status is None or status in _REJECTED or self._failures >= _FAILURES):
            raise ProviderNotAsked(
                f"The provider could not be asked: {why}. Nothing is known of the cause.",
                hint=f"rewind inspect {result.session_id}",
            )
        if self._failures >= _FAILURES:
            raise ExperimentStopped(f"the provider does not answer any more ({why})")
        return outcome

    def _answer(self, session: str, step: Step) -> Answered | None:
        library = Library(self._options.home)
        with library.open(library.find(session)) as reader:
            found = next((known for known in reader.recording().steps if known.index == step.index), None)
            return None if found is None else read_step(found, lambda step: step.bodies(reader.blob)).answered


def _sum(parts: Sequence[Spending]) -> Spending:
    known = [part.usd for part in parts if part.usd is not None]
    return Spending(usd=sum(known) if known else None, unpriced=sum(part.unpriced for part in parts))


def _budget(options: ProveOptions) -> Budget | None:
    if options.max_cost is None:
        return None
    assert options.prices is not None, "a limit in dollars needs prices"
    return Budget(options.max_cost, options.prices)


def _once(announce: Callable[[str], None]) -> Callable[[str], None]:
    """Every probe would say the same."""
    said: set[str] = set()

    def say(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            announce(sentence)

    return say
