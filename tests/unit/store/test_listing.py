"""Lists out of the catalog: the same rows as from the journals, and only those that are wanted."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewind.model.http import ResponseHead
from rewind.model.ids import MatchKey
from rewind.model.outcome import Outcome
from rewind.model.step import Ending, Reading, StepKind, StepRequest
from rewind.model.usage import Usage
from rewind.providers.telemetry import use_rows
from rewind.store.catalog.database import Catalog, SessionPage, SessionQuery, find_sessions
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library
from unit.store.making import PerToken, record, request, response, start
from unit.store.test_totals import a_varied_session

PRICES = PerToken(0.5)


def ids(home: Path, limit: int = 0, **wanted: object) -> list[str]:
    found = find_sessions(Catalog(home, prices=PRICES), home, SessionQuery(**wanted), limit)  # type: ignore[arg-type]
    return [session.id for session, _ in found.rows]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Five sessions, each a minute younger than the one before."""
    exchanges = [(b"asked", b"answered")]
    record(tmp_path, exchanges, id="00000001", name="Refund-1", started=1000.0, tags={"env": "prod", "x": ""})
    record(tmp_path, exchanges, id="00000002", name="refund-2", started=1060.0, tags={"env": "test"})
    record(tmp_path, [], id="00000003", name=None, started=1120.0, end=False)
    failed = SessionWriter.create(tmp_path, start(id="00000004", name="100%", started=1180.0))
    failed.request(request(1, model="gpt-5"), b"")
    failed.response(1, response(reading=Reading(model="gpt-5-2026-01-01")), b"")
    failed.end(ended=1200.0, exit_code=3, redactions=0, remarks=())
    broken = SessionWriter.create(tmp_path, start(id="00000005", name="full", started=1240.0))
    broken.broken = "the disk is full"
    broken.end(ended=1250.0, exit_code=0, redactions=0, remarks=())
    return tmp_path


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, "54321"),
        ({"name": "refund"}, "21"),
        ({"name": "REFUND-*"}, "21"),
        ({"name": "refund-?"}, "21"),
        ({"name": "*-[2]"}, "2"),
        ({"name": "refund*x"}, ""),
        ({"name": "%"}, "4"),
        ({"name": "_"}, ""),
        ({"name": "'; DROP TABLE sessions; --"}, ""),
        ({"name": "\udcff"}, ""),
        ({"model": "sonnet"}, "21"),
        ({"model": "gpt-5"}, "4"),
        ({"model": "gpt-5-*"}, "4"),
        ({"model": "GPT-5"}, "4"),
        ({"since": 1120.0}, "543"),
        ({"since": 9e9}, ""),
        ({"outcomes": frozenset({Outcome.OK})}, "21"),
        ({"outcomes": frozenset({Outcome.FAILED})}, "4"),
        ({"outcomes": frozenset({Outcome.INTERRUPTED})}, "3"),
        ({"outcomes": frozenset({Outcome.RUNNING})}, ""),
        ({"outcomes": frozenset({Outcome.BROKEN, Outcome.FAILED})}, "54"),
        ({"tags": (("env", None),)}, "21"),
        ({"tags": (("env", "prod"),)}, "1"),
        ({"tags": (("env", "prod"), ("x", ""))}, "1"),
        ({"tags": (("env", "test"), ("x", None))}, ""),
        ({"folders": frozenset()}, ""),
        ({"name": "refund", "since": 1060.0, "outcomes": frozenset({Outcome.OK})}, "2"),
    ],
)
def test_only_what_is_wanted_is_listed(home: Path, wanted: dict[str, Any], expected: str) -> None:
    assert "".join(one[-1] for one in ids(home, **wanted)) == expected


def test_folders_that_something_else_has_chosen(home: Path) -> None:
    chosen = {session.folder for session in Library(home).sessions() if session.id in ("00000001", "00000004")}
    assert ids(home, folders=frozenset(chosen)) == ["00000004", "00000001"]


def test_a_limit_says_whether_there_are_more(home: Path) -> None:
    catalog = Catalog(home)
    assert [session.id[-1] for session, _ in find_sessions(catalog, home, SessionQuery(), 2).rows] == ["5", "4"]
    assert find_sessions(catalog, home, SessionQuery(), 2).more
    assert not find_sessions(catalog, home, SessionQuery(), 5).more


def test_a_session_that_runs_is_known_to_run(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path, start())
    writer.request(request(1), b"")
    running = frozenset({Outcome.RUNNING})
    assert ids(tmp_path, outcomes=running) == ["7f3a2b9c"]
    (row,) = find_sessions(Catalog(tmp_path), tmp_path, SessionQuery(), 0).rows
    assert row[1].cut == 0
    writer.close()
    assert ids(tmp_path, outcomes=running) == []
    assert ids(tmp_path, outcomes=frozenset({Outcome.INTERRUPTED})) == ["7f3a2b9c"]


def test_a_list_from_the_catalog_is_the_list_from_the_journals(home: Path) -> None:
    a_varied_session(home)
    library = Library(home)
    expected = [(session, library.totals(session, PRICES)) for session in library.sessions()]
    assert len(expected) == 6
    assert find_sessions(Catalog(home, prices=PRICES), home, SessionQuery(), 0).rows == expected


def test_no_store_is_an_empty_list(tmp_path: Path) -> None:
    assert find_sessions(Catalog(tmp_path / "nowhere"), tmp_path / "nowhere", SessionQuery(), 0) == SessionPage([])


def test_what_nobody_answered_counts_as_in_the_journals(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path, start())
    for index in (1, 2, 3):
        writer.request(request(index), b"")
    writer.response(1, response(tape=1), b"")
    writer.response(2, response(ending=Ending.CLIENT_CLOSED, head=None, reading=Reading()), b"")
    writer.close()
    ((session, totals),) = find_sessions(Catalog(tmp_path, prices=PRICES), tmp_path, SessionQuery(), 0).rows
    assert totals == Library(tmp_path).totals(session, PRICES)
    assert (totals.cost, totals.unpriced) == (None, 2)


def test_every_kind_of_step_counts_as_in_the_journals(tmp_path: Path) -> None:
    """The catalog's SQL and the counter of journals, held together over all that they look at."""
    writer = SessionWriter.create(tmp_path, start())
    kinds = itertools.product(
        (None, *Ending), (None, 200, 400, 503), (None, "refused"), (None, 0, 7), (None, 3), StepKind, (None, 5)
    )
    for index, (ending, status, error, tokens_in, tokens_out, kind, tape) in enumerate(kinds, 1):
        writer.request(request(index, kind=kind, match_key=MatchKey(f"rw1:{index}")), b"")
        if ending is not None:
            reading = Reading(usage=Usage(input=tokens_in, output=tokens_out), error=error)
            head = None if status is None else ResponseHead(status=status, reason="", headers=())
            writer.response(index, response(ending=ending, head=head, reading=reading, tape=tape), b"")
    writer.close()
    prices, library = PerToken(models=("none",)), Library(tmp_path)
    ((session, totals),) = find_sessions(Catalog(tmp_path, prices=prices), tmp_path, SessionQuery(), 0).rows
    assert totals == library.totals(session, prices)
    assert totals.unpriced and totals.cut and totals.errors and totals.replayed


def plain(index: int, method: str, host: str, target: str) -> StepRequest:
    """A request that no codec claims."""
    asked = request(index, kind=StepKind.HTTP_CALL, match_key=MatchKey(f"rw1:{index}"))
    return replace(asked, provider="http", head=replace(asked.head, method=method, host=host, target=target))


def test_telemetry_is_counted_apart_as_in_the_journals(tmp_path: Path) -> None:
    for number, others in enumerate((3, 0)):
        writer = SessionWriter.create(tmp_path, start(id=f"0000000{number}", started=1000.0 + number))
        for index in range(1, others + 1):
            writer.request(request(index, match_key=MatchKey("rw1:own")), b"")
            writer.response(index, response(), b"")
        for index in range(others + 1, others + 6):
            writer.request(plain(index, "POST", "api.openai.com", "/v1/traces/ingest?x=1"), b"")
            if index % 2:
                failed = ResponseHead(status=500, reason="", headers=())
                writer.response(index, response(head=failed, ending=Ending.UPSTREAM_CUT, tape=index % 3 or None), b"")
        writer.request(plain(others + 7, "POST", "tools.example.com", "/search"), b"")
        writer.close()
    library = Library(tmp_path)
    catalog = Catalog(tmp_path, prices=PRICES)
    rows = find_sessions(catalog, tmp_path, SessionQuery(), 0).rows
    assert rows == [(session, library.totals(session, PRICES)) for session in library.sessions()]
    assert [(totals.steps, totals.telemetry, totals.errors) for _, totals in rows] == [(1, 5, 0), (4, 5, 0)]


def test_rows_of_the_settings_hold_for_what_the_catalog_knows_already(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path, start())
    writer.request(request(1), b"")
    writer.request(plain(2, "POST", "tools.example.com", "/events/1"), b"")
    writer.end(ended=2000.0, exit_code=0, redactions=0, remarks=())

    def counts() -> tuple[int, int]:
        ((session, totals),) = find_sessions(Catalog(tmp_path, prices=PRICES), tmp_path, SessionQuery(), 0).rows
        assert totals == Library(tmp_path).totals(session, PRICES)
        return totals.steps, totals.telemetry

    assert counts() == (2, 0)
    use_rows(["POST tools.example.com/events*"])
    try:
        assert counts() == (1, 1)
    finally:
        use_rows(())
    assert counts() == (2, 0)
