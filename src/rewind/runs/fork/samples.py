"""A fork as people ask for it: what it would come to, several samples of it, within one budget."""

import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rewind.compare.decision import Decision, Weight, compare_decisions, decision_classes, decision_of
from rewind.dataclass import dataclass
from rewind.edit.edits import Edit, parse_edit
from rewind.errors import UsageError
from rewind.model.message import Answered, Text
from rewind.model.session import step_in
from rewind.pricing.spending import Spending
from rewind.providers.catalogue import identify
from rewind.runs.fork.manual_edits import ManualEdit
from rewind.runs.fork.plan import ForkOptions, ForkPlan, body_to_edit, plan_fork
from rewind.runs.fork.run import ForkResult, fork
from rewind.runs.recorded_steps import RecordedSteps
from rewind.store.library import Library
from rewind.text import amount

_CALLED_OFF = tuple(128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
"""How an agent ends that we were told to end; there are no further samples then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkForecast:
    """What a fork would do and cost, before anything is run."""

    plan: ForkPlan
    estimate: Spending
    """For one run."""
    samples: int
    max_cost: float | None
    limit_holds: bool
    """Whether every model that will be asked has a price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerGroup:
    """The samples that decide the same at the step, in whatever words."""

    samples: tuple[int, ...]
    """Their numbers, from 1."""
    wordings: tuple[str, ...]
    """What they say, the most frequent first."""
    differs_in: tuple[str, ...] = ()
    """In what the decision differs from that of the largest group: ``28 → 24 days``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkSamples:
    """What one fork came to, or several samples of it."""

    results: tuple[ForkResult, ...]
    asked_for: int
    unstarted: str | None
    """Why not all of them were run."""
    groups: tuple[AnswerGroup, ...]
    """Where several were asked for: those that were answered at the step, the largest group first."""


def read_edits(texts: Iterable[str]) -> tuple[Edit, ...]:
    """Edits as ``rewind fork --set`` names them. Raises UsageError."""
    return tuple(map(parse_edit, texts))


def edited_by_hand(options: ForkOptions, edit: Callable[[Any], Any]) -> ForkOptions:
    """With what a person makes of the step's request, a JSON value that ``edit`` is given. Raises CannotEdit."""
    shown = body_to_edit(options)
    return replace(options, by_hand=ManualEdit(shown, edit(shown)))


def forecast_fork(options: ForkOptions, samples: int | None = None) -> ForkForecast:
    """Look at it, and run nothing. Raises RewindError where it cannot be done."""
    plan, budget = plan_fork(options), options.budget
    return ForkForecast(
        plan=plan,
        estimate=_estimate(options, plan),
        samples=samples or 1,
        max_cost=None if budget is None else budget.limit,
        limit_holds=budget is None or budget.unknown_model(plan.models()) is None,
    )


def fork_samples(
    options: ForkOptions, samples: int | None = None, *, on_result: Callable[[ForkResult], None] = lambda _result: None
) -> ForkSamples:
    """Run the fork, K times where ``samples`` are asked for, as long as the budget reaches.

    Raises UsageError where it does not reach for one run, and whatever a fork may raise.
    """
    plan, budget = plan_fork(options), options.budget
    # What `last` names is another session after the first sample.
    options = replace(options, edits=plan.own)
    # Where the cost cannot be told, the limit is still held while the run goes on.
    cost = 0.0 if budget is None else _estimate(options, plan).usd or 0.0
    results: list[ForkResult] = []
    unstarted: str | None = None
    for number in range(1, (samples or 1) + 1):
        if budget is not None and cost > budget.left:
            left = f"{amount(max(0.0, budget.left))} of {amount(budget.limit)} is left"
            unstarted = f"a run may cost {amount(cost)}, and {left}"
            break
        result = fork(replace(options, sample=number if samples else None))
        results.append(result)
        on_result(result)
        if result.exit_code in _CALLED_OFF:
            break
    if not results:
        raise UsageError(
            f"--max-cost is too low for one run: {unstarted}. Nothing was run.",
            hint="rewind fork … --dry-run shows what goes live",
        )
    groups = tuple(_groups(options.home, results)) if samples else ()
    return ForkSamples(results=tuple(results), asked_for=samples or 1, unstarted=unstarted, groups=groups)


def _groups(home: Path, results: Sequence[ForkResult]) -> Iterator[AnswerGroup]:
    answers = {at: found for at, result in enumerate(results, 1) if (found := _answer(home, result)) is not None}
    classes = decision_classes([decision for decision, _ in answers.values()])
    members: dict[int, list[int]] = {}
    for at, number in zip(answers, classes, strict=True):
        members.setdefault(number, []).append(at)
    ordered = sorted(members.values(), key=len, reverse=True)
    for group in ordered:
        changes = compare_decisions(answers[ordered[0][0]][0], answers[group[0]][0]).changes
        yield AnswerGroup(
            samples=tuple(group),
            wordings=tuple(text for text, _ in Counter(answers[at][1] for at in group).most_common()),
            differs_in=tuple(str(change) for change in changes if change.weight is Weight.DECISIVE)
            if group is not ordered[0]
            else (),
        )


def _answer(home: Path, result: ForkResult) -> tuple[Decision, str] | None:
    """What a run's answer at the step decides, and its words."""
    if result.answer is None or result.answer.response is None:
        return None
    reading = result.answer.response.reading
    words = reading.text or f"error: {reading.error or 'no answer'}"
    if result.broken is not None:  # what it holds is not known
        return decision_of(Answered(parts=(Text(words),)), reading.error or ""), words
    with (library := Library(home)).open(library.find(result.session_id)) as reader:
        steps = RecordedSteps(reader)
        step = step_in(steps.recording, result.answer.index)
        request, response = steps.request(step), steps.answer(step)
    answered = None if response is None else identify(request.head).reader.answered(request, response)
    return decision_of(answered, reading.error or ""), words


def _estimate(options: ForkOptions, plan: ForkPlan) -> Spending:
    return Spending() if options.pricing is None else plan.estimate(options.pricing)
