"""The figures of ``rewind stats`` → plain JSON."""

from dataclasses import asdict
from typing import Any

from rewind.pricing.report import Figures, Report, Saved


def stats(report: Report, *, prices_of: str, prices_date: str) -> dict[str, Any]:
    """All of it, with the prices it was worked out by."""
    return {
        "schema": "rewind/stats@1",
        "by": report.by.value,
        "first_day": report.first.isoformat() if report.first else None,
        "last_day": report.last.isoformat(),
        "time_zone": "UTC",
        "prices": {"source": prices_of, "date": prices_date},
        "sessions": report.sessions,
        "other_steps": report.other_steps,
        "groups": [{report.by.value: group.key, **_in_usd(group.figures)} for group in report.groups],
        "total": _in_usd(report.total),
        "days": [
            {"day": day.day.isoformat(), "calls": day.calls, "cost_usd": day.cost} for day in report.days
        ],
        "saved_by_replay": _in_usd(report.saved),
    }


def _in_usd(value: Figures | Saved) -> dict[str, Any]:
    return {"cost_usd" if name == "cost" else name: figure for name, figure in asdict(value).items()}
