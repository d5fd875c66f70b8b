"""What a fork came to."""

from collections.abc import Sequence
from dataclasses import dataclass

from rewind.model.session import Lineage
from rewind.model.step import Step, StepKind
from rewind.playback.fork_policy import ForkAt
from rewind.pricing.spending import Pricing, Spending, cost_of, spending
from rewind.runs.tally import MissNote

_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkResult:
    """How a fork went."""

    session_id: str
    """The new session."""
    lineage: Lineage
    reused: tuple[Step, ...]
    """The recorded steps that answered."""
    drifted: tuple[int, ...]
    """The recorded steps for which a changed request was taken, the forked one included."""
    live: tuple[Step, ...]
    """The steps of the new session that asked the world, in the order in which they ended."""
    answer: Step | None
    """The step of the new session that asks what the forked step asked; of several the first with a good answer."""
    exit_code: int
    misses: tuple[MissNote, ...]
    unasked: str | None
    """Why the step was never asked, as far as that can be told."""
    stopped: str | None
    """Why the run was not let go on to its end."""
    spent: Spending
    tokens: int | None
    seconds: float
    remarks: tuple[str, ...]
    broken: str | None
    """Why the new session is not complete."""


def best_answer(askings: Sequence[Step]) -> Step | None:
    """The first that is good, else the last."""
    good = (step for step in askings if not step.outcome.failed)
    return next(good, askings[-1] if askings else None)


def spent_on(live: Sequence[Step], pricing: Pricing | None) -> Spending:
    """What the LLM calls among these steps cost."""
    if pricing is None:
        return Spending()
    return spending(
        (step, step.response.reading, cost_of(pricing, step))
        for step in live
        if step.request.kind is StepKind.LLM_CALL and step.response is not None
    )


def why_unasked(policy: ForkAt, step: Step) -> str | None:
    """What can be told of a step that the run never came to; ``None`` where it did."""
    if policy.was_asked:
        return None
    sentences = [f"Step {step.index} was never asked: the run ended before it."]
    if left := policy.unasked():
        shown = ", ".join(map(str, left[:_SHOWN])) + (", …" if len(left) > _SHOWN else "")
        were = "was" if len(left) == 1 else "were"
        sentences.append(f"Of the steps before it, {shown} {were} not asked either.")
    if (nearest := policy.nearest_miss(step)) is not None:
        sentences.append(f"What came nearest: {nearest.sentence}")
        if not policy.allow_drift:
            sentences.append("With --allow-drift it would have been accepted, if it comes at the same place.")
    return " ".join(sentences)
