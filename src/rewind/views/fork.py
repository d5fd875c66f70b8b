"""Runs as plain JSON: what a replay came to, what a fork will do, and what it came to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rewind.pricing.spending import Spending
from rewind.views.session import lineage

if TYPE_CHECKING:
    from rewind.runs.fork.plan import ForkPlan
    from rewind.runs.fork.result import ForkResult
    from rewind.runs.replay import ReplayResult


def replay(result: "ReplayResult") -> dict[str, Any]:
    """What a replay came to."""
    return {
        "schema": "rewind/replay@1",
        "session": result.session_id,
        "played": result.played,
        "total": result.total,
        "drifted": result.drifted,
        "live": result.live,
        "network_calls": result.network_calls,
        "misses": [{"reason": miss.reason, "report": miss.report} for miss in result.misses],
        "output": result.output,
        "output_difference": result.output_difference,
        "exit_code": result.exit_code,
        "recorded_exit_code": result.recorded_exit_code,
        "kept_as": result.kept_as,
        "remarks": list(result.remarks),
    }


def plan(one: "ForkPlan", estimate: Spending, samples: int, limit: float | None) -> dict[str, Any]:
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


def forks(results: Sequence["ForkResult"], asked_for: int, unstarted: str | None) -> dict[str, Any]:
    """What one fork came to, or several samples of it."""
    return {
        "schema": "rewind/fork@1",
        "samples": asked_for,
        "runs": [_run(one) for one in results],
        "not_started": unstarted,
    }


def _run(one: "ForkResult") -> dict[str, Any]:
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
