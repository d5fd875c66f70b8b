"""Answers about the whole store as plain JSON: stats, search, verify, init, config."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewind.settings import without_password
from rewind.text import moment
from rewind.views import members

if TYPE_CHECKING:
    from rewind.model.session import Session
    from rewind.pricing.report import Figures, Saved
    from rewind.reading.retention import Deletion, SessionSize
    from rewind.reading.search import SearchReport
    from rewind.reading.setup import Setup
    from rewind.reading.stats import UsageStats
    from rewind.reading.verify import Verification
    from rewind.settings import Settings


def stats(value: "UsageStats") -> dict[str, Any]:
    """All of it, with the prices it was worked out by."""
    report = value.report
    return {
        "schema": "rewind/stats@1",
        "by": report.by.value,
        "first_day": report.first.isoformat() if report.first else None,
        "last_day": report.last.isoformat(),
        "time_zone": "UTC",
        "prices": {"source": value.price_source, "date": value.price_date},
        "sessions": report.sessions,
        "other_steps": report.other_steps,
        "telemetry": report.telemetry,
        "damaged_lines": report.damaged_lines,
        "groups": [{report.by.value: group.key, **_in_usd(group.figures)} for group in report.groups],
        "total": _in_usd(report.total),
        "days": [{"day": day.day.isoformat(), "calls": day.calls, "cost_usd": day.cost} for day in report.days],
        "saved_by_replay": _in_usd(report.saved),
    }


def _in_usd(value: "Figures | Saved") -> dict[str, Any]:
    return {"cost_usd" if name == "cost" else name: figure for name, figure in asdict(value).items()}


def search(found: "SearchReport") -> dict[str, Any]:
    """The hits of a search. ``marks`` are start and end of each place, counted in characters of the snippet."""
    return {
        "schema": "rewind/search@1",
        "hits": [
            {
                **members(hit, "session", "step", "kind"),
                "started": moment(hit.ts),
                "snippet": hit.snippet,
                "marks": [list(mark) for mark in hit.marks],
                "folder": hit.folder,
            }
            for hit in found.hits
        ],
        "more": found.more,
        "searched": members(found.index, "sessions", "texts", "cut", "unreadable"),
    }


def verification(found: "Verification") -> dict[str, Any]:
    """What checking every byte came to."""
    view: dict[str, Any] = {
        "schema": "rewind/verify@1",
        "sessions": found.sessions,
        "damage": [members(damage, "session", "what", "where") for damage in found.damage],
        **({} if found.remarks is None else {"remarks": list(found.remarks)}),
        "catalog": None,
    }
    if found.catalog is not None:
        view["catalog"] = members(found.catalog, "sessions", "steps", "rebuilt")
    if found.catalog_problem is not None:
        view["catalog"] = {"problem": found.catalog_problem}
    return view


def removal(value: "Deletion") -> dict[str, Any]:
    """What ``rewind rm`` deleted."""
    return {"schema": "rewind/rm@1", "deleted": _deleted(value), "bytes": value.bytes}


def pruning(value: "Deletion") -> dict[str, Any]:
    """What ``rewind prune`` deleted, or would, and what stays. ``kept``: what a rule kept, though it was old."""
    return {
        "schema": "rewind/prune@1",
        "dry_run": value.is_forecast,
        "deleted": _deleted(value),
        "bytes": value.bytes,
        "kept": [_sized(one) | {"why": one.why} for one in value.kept],
        "left": {"sessions": value.left, "bytes": value.left_bytes},
        "over_bytes": value.over,
    }


def _deleted(value: "Deletion") -> list[dict[str, Any]]:
    return [
        _sized(one) | {"why": one.why or None, "forks": list(value.forks.get(one.session.id, ()))} for one in value.gone
    ]


def _sized(one: "SessionSize") -> dict[str, Any]:
    return _pinned(one.session) | {"started": moment(one.session.start.started), "bytes": one.bytes}


def pins(sessions: "Iterable[Session]") -> dict[str, Any]:
    """Which sessions are to stay, or need not any more."""
    return {"schema": "rewind/pin@1", "sessions": [_pinned(session) for session in sessions]}


def _pinned(session: "Session") -> dict[str, Any]:
    return {"id": session.id, "name": session.start.name, "pinned": session.pinned}


def setup(value: "Setup") -> dict[str, Any]:
    """A prepared store, and the clients of this machine."""
    return {
        "schema": "rewind/setup@1",
        "home": str(value.settings.home),
        "certificate": None if value.certificate is None else str(value.certificate),
        "clients": [members(client, "name", "found", "version", "works", "note") for client in value.clients],
    }


def config(settings: "Settings", file: Path) -> dict[str, Any]:
    """Each setting, its value and where it comes from; ``file`` is where the user's own settings stand."""
    return {
        "schema": "rewind/config@1",
        "user_file": str(file),
        "settings": [
            {
                "name": name,
                "value": setting_value(value),
                "origins": [members(origin, "kind", "where") for origin in settings.origin(name)],
            }
            for name, value in settings.values().items()
        ],
    }


def setting_value(value: Any) -> Any:
    """As JSON has it, without a proxy's password."""
    match value:
        case Path():
            return str(value)
        case tuple():
            return list(value)
        case str():
            return without_password(value)
    return value
