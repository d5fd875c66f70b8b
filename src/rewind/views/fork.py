"""Forks as plain JSON: where a session comes from, what a fork will do, and what it came to."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from rewind.model.session import Lineage
from rewind.model.step import Step


class Spent(Protocol):
    """A sum of money that says what it leaves out."""

    @property
    def usd(self) -> float | None: ...
    @property
    def unpriced(self) -> int: ...


class MissNote(Protocol):
    """A request that the recording could not answer."""

    @property
    def reason(self) -> str: ...
    @property
    def report(self) -> str: ...


class Plan(Protocol):
    """A fork before it runs."""

    @property
    def lineage(self) -> Lineage: ...
    @property
    def reused(self) -> Sequence[Step]: ...
    @property
    def live(self) -> Sequence[Step]: ...
    @property
    def dropped(self) -> Sequence[str]: ...
    def models(self) -> Iterable[tuple[Step, str | None]]: ...


class Result(Protocol):
    """A fork that ran."""

    @property
    def session_id(self) -> str: ...
    @property
    def lineage(self) -> Lineage: ...
    @property
    def reused(self) -> Sequence[Step]: ...
    @property
    def drifted(self) -> Sequence[int]: ...
    @property
    def live(self) -> Sequence[Step]: ...
    @property
    def answer(self) -> Step | None: ...
    @property
    def exit_code(self) -> int: ...
    @property
    def misses(self) -> Sequence[MissNote]: ...
    @property
    def unasked(self) -> str | None: ...
    @property
    def stopped(self) -> str | None: ...
    @property
    def spent(self) -> Spent: ...
    @property
    def tokens(self) -> int | None: ...
    @property
    def seconds(self) -> float: ...
    @property
    def remarks(self) -> Sequence[str]: ...
    @property
    def broken(self) -> str | None: ...


def lineage(one: Lineage | None) -> dict[str, Any] | None:
    """Where a fork comes from; ``None`` for a session that is none."""
    if one is None:
        return None
    return {
        "session": one.session,
        "step": one.step,
        "edits": list(one.edits),
        "by_hand": one.by_hand,
        "earlier": [list(earlier.edits) for earlier in one.earlier],
        "sample": one.sample,
        "probe": one.probe,
    }


def plan(one: Plan, estimate: Spent, samples: int, limit: float | None) -> dict[str, Any]:
    """What a fork will do."""
    asked = {step.index: model for step, model in one.models()}
    return {
        "schema": "rewind/fork_plan@1",
        "forked_from": lineage(one.lineage),
        "reused": [step.index for step in one.reused],
        "live": [
            {"step": step.index, "kind": step.request.kind.value, "model": asked.get(step.index)}
            for step in one.live
        ],
        "not_carried_over": list(one.dropped),
        "samples": samples,
        "estimate_usd": estimate.usd,
        "unpriced": estimate.unpriced,
        "max_cost_usd": limit,
    }


def forks(results: Sequence[Result], asked_for: int, unstarted: str | None) -> dict[str, Any]:
    """What one fork came to, or several samples of it."""
    return {
        "schema": "rewind/fork@1",
        "samples": asked_for,
        "runs": [_run(one) for one in results],
        "not_started": unstarted,
    }


def _run(one: Result) -> dict[str, Any]:
    reading = (
        one.answer.response.reading if one.answer is not None and one.answer.response is not None else None
    )
    return {
        "session": one.session_id,
        "forked_from": lineage(one.lineage),
        "exit_code": one.exit_code,
        "reused": [step.index for step in one.reused],
        "drifted": list(one.drifted),
        "live": sorted(step.index for step in one.live),
        "answer": None
        if one.answer is None
        else {
            "step": one.answer.index,
            "text": reading.text if reading else "",
            "said": reading.said if reading else None,
            "error": reading.error if reading else None,
        },
        "tokens": one.tokens,
        "cost_usd": one.spent.usd,
        "unpriced": one.spent.unpriced,
        "seconds": round(one.seconds, 3),
        "misses": [{"reason": miss.reason, "report": miss.report} for miss in one.misses],
        "unasked": one.unasked,
        "stopped": one.stopped,
        "remarks": list(one.remarks),
        "broken": one.broken,
    }
