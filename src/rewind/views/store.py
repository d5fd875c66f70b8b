"""Answers about the whole store as plain JSON: stats, search, verify, init."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewind.text import moment

if TYPE_CHECKING:
    from rewind.gateway.clients import ClientCheck
    from rewind.pricing.report import Figures, Report, Saved
    from rewind.store.catalog.catalog import CatalogState
    from rewind.store.search.index import Found
    from rewind.store.verify import Damage


def stats(report: "Report", *, prices_of: str, prices_date: str) -> dict[str, Any]:
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


def _in_usd(value: "Figures | Saved") -> dict[str, Any]:
    return {"cost_usd" if name == "cost" else name: figure for name, figure in asdict(value).items()}


def search(found: "Found") -> dict[str, Any]:
    """The hits of a search. ``marks`` are start and end of each place, counted in characters of the snippet."""
    index = found.index
    return {
        "schema": "rewind/search@1",
        "hits": [
            {
                "session": hit.session,
                "step": hit.step,
                "kind": hit.kind,
                "started": moment(hit.ts),
                "snippet": hit.snippet,
                "marks": [list(mark) for mark in hit.marks],
                "folder": hit.folder,
            }
            for hit in found.hits
        ],
        "more": found.more,
        "searched": {
            "sessions": index.sessions,
            "texts": index.texts,
            "cut": index.cut,
            "unreadable": index.unreadable,
        },
    }


def verification(
    checked: int, found: Sequence["Damage"], catalog: "CatalogState | None", catalog_problem: str | None
) -> dict[str, Any]:
    """What hashing everything again came to."""
    view: dict[str, Any] = {
        "schema": "rewind/verify@1",
        "sessions": checked,
        "damage": [{"session": one.session, "what": one.what, "where": one.where} for one in found],
        "catalog": None,
    }
    if catalog is not None:
        view["catalog"] = {"sessions": catalog.sessions, "steps": catalog.steps, "rebuilt": catalog.rebuilt}
    if catalog_problem is not None:
        view["catalog"] = {"problem": catalog_problem}
    return view


def setup(home: Path, clients: Iterable["ClientCheck"], certificate: Path | None) -> dict[str, Any]:
    """A prepared store, and the clients of this machine."""
    return {
        "schema": "rewind/setup@1",
        "home": str(home),
        "certificate": None if certificate is None else str(certificate),
        "clients": [
            {
                "name": client.name,
                "found": client.found,
                "version": client.version,
                "works": client.works,
                "note": client.note,
            }
            for client in clients
        ],
    }
