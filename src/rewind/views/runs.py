"""Runs as plain JSON: what a replay or a fork came to, what a fork will do, what an agent is about to send."""

from typing import TYPE_CHECKING, Any

from rewind.pricing.spending import Spending
from rewind.views.session import lineage, renamed_name, renamed_steps

if TYPE_CHECKING:
    from rewind.runs.fork.run import ForkResult
    from rewind.runs.fork.samples import ForkForecast, ForkSamples
    from rewind.runs.replay_options import ReplayResult


def replay(result: "ReplayResult", saved: Spending) -> dict[str, Any]:
    """What a replay came to, and what its answers had cost."""
    where = result.stopped
    return {
        "schema": "rewind/replay@1",
        "session": result.session_id,
        "played": result.played,
        "total": result.total,
        "exact": result.exact,
        "renamed": renamed_steps(result.renamed),
        "drifted": result.drifted,
        "telemetry": result.telemetry,
        "live": result.live,
        "tools_run": result.tools_run,
        "network_calls": result.network_calls,
        "misses": [{"reason": miss.reason, "report": miss.report} for miss in result.misses],
        "output": result.output,
        "output_renamed": [renamed_name(pair) for pair in result.output_renamed],
        "output_difference": result.output_difference,
        "exit_code": result.exit_code,
        "recorded_exit_code": result.recorded_exit_code,
        "kept_as": result.kept_as,
        "remarks": list(result.remarks),
        "saved_usd": saved.usd,
        "unpriced": saved.unpriced,
        "stopped": None if where is None else {"step": where.step, "when": "before" if where.before else "after"},
        "unasked": result.unasked,
    }


def forecast(found: "ForkForecast") -> dict[str, Any]:
    """What a fork will do."""
    plan = found.plan
    asked = {step.index: model for step, model in plan.models()}
    return {
        "schema": "rewind/fork_plan@1",
        "forked_from": lineage(plan.lineage),
        "reused": [step.index for step in plan.reused],
        "live": [
            {"step": step.index, "kind": step.request.kind.value, "model": asked.get(step.index)} for step in plan.live
        ],
        "not_carried_over": list(plan.dropped),
        "remarks": list(plan.remarks),
        "samples": found.samples,
        "estimate_usd": found.estimate.usd,
        "unpriced": found.estimate.unpriced,
        "max_cost_usd": found.max_cost,
    }


def forks(samples: "ForkSamples") -> dict[str, Any]:
    """What one fork came to, or several samples of it."""
    return {
        "schema": "rewind/fork@1",
        "samples": samples.asked_for,
        "runs": [_run(result) for result in samples.results],
        "not_started": samples.unstarted,
        "decisions": [
            {"samples": list(group.samples), "texts": list(group.wordings), "differs_in": list(group.differs_in)}
            for group in samples.groups
        ],
    }


def _run(result: "ForkResult") -> dict[str, Any]:
    reading = (
        result.answer.response.reading if result.answer is not None and result.answer.response is not None else None
    )
    return {
        "session": result.session_id,
        "forked_from": lineage(result.lineage),
        "exit_code": result.exit_code,
        "reused": [step.index for step in result.reused],
        "renamed": renamed_steps(result.renamed),
        "drifted": list(result.drifted),
        "live": sorted(step.index for step in result.live),
        "answer": None
        if result.answer is None
        else {
            "step": result.answer.index,
            "text": reading.text if reading else "",
            "said": reading.said if reading else None,
            "error": reading.error if reading else None,
        },
        "tokens": result.tokens,
        "cost_usd": result.spent.usd,
        "unpriced": result.spent.unpriced,
        "seconds": round(result.seconds, 3),
        "misses": [{"reason": miss.reason, "report": miss.report} for miss in result.misses],
        "unasked": result.unasked,
        "stopped": result.stopped,
        "remarks": list(result.remarks),
        "broken": result.broken,
        "telemetry": result.telemetry,
    }
