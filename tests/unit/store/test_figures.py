"""The figures over all sessions."""

from datetime import date
from pathlib import Path

import pytest

from rewind.model.http import ResponseHead
from rewind.model.ids import MatchKey
from rewind.model.step import Ending, Reading, StepKind
from rewind.model.usage import Usage
from rewind.pricing.report import By, Day, Group, Report, Saved
from rewind.store.catalog.database import Catalog, report
from rewind.store.journal.writer import SessionWriter
from rewind.store.replays import ServedAgain
from unit.store.making import PerToken, request, response, start

MIDNIGHT = 1_700_006_400.0  # 2023-11-15, UTC
YESTERDAY, TODAY = date(2023, 11, 14), date(2023, 11, 15)


def made(home: Path, by: By = By.MODEL, first: date | None = None, served: tuple[ServedAgain, ...] = ()) -> Report:
    catalog = Catalog(home, prices=PerToken(0.5, models=("a", "b")))
    return report(catalog, by=by, first=first, last=TODAY, served_again=served)


def keys(found: Report) -> list[tuple[str | None, int]]:
    return [(group.key, group.figures.calls) for group in found.groups]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Three calls of model a yesterday, two of b and one of an unknown model today; and what is no call."""
    usage = Usage(input=100, output=20, cache_read=40, cache_write=8, reasoning=5)
    one = SessionWriter.create(
        tmp_path, start(id="00000001", name="refund", started=MIDNIGHT - 60, command=("python3", "a.py", "1"))
    )
    for index, ms in ((1, 100.0), (2, 200.0), (3, 300.0)):
        one.request(request(index, ts=MIDNIGHT - 50, model="a"), b"")
        one.response(index, response(reading=Reading(usage=usage), ms=ms, first_ms=ms / 10), b"")
    one.end(ended=MIDNIGHT - 10, exit_code=0, redactions=0, remarks=())
    two = SessionWriter.create(
        tmp_path, start(id="00000002", name=None, started=MIDNIGHT, command=("python3", "a.py", "2"))
    )
    same = MatchKey("rw1:same")
    limited = ResponseHead(status=529, reason="", headers=())
    two.request(request(1, ts=MIDNIGHT, model="b", match_key=same), b"")
    two.response(1, response(head=limited, reading=Reading(), ms=1.0), b"")
    two.request(request(2, ts=MIDNIGHT + 1, model="b", match_key=same), b"")
    two.response(2, response(reading=Reading(model="b", usage=usage), ms=50.0, first_ms=None), b"")
    two.request(request(3, ts=MIDNIGHT + 2, model=None, provider="openai_chat"), b"")
    two.response(3, response(ending=Ending.UPSTREAM_CUT, reading=Reading(usage=Usage(output=7))), b"")
    two.request(request(4, ts=MIDNIGHT + 3, model="b"), b"")
    two.response(4, response(reading=Reading(model="b", usage=usage), tape=1), b"")
    two.request(request(5, ts=MIDNIGHT + 4, kind=StepKind.HTTP_CALL, model=None), b"")
    two.response(5, response(), b"")
    two.end(ended=MIDNIGHT + 10, exit_code=0, redactions=0, remarks=())
    return tmp_path


def test_calls_are_counted_by_model_the_dearest_first(home: Path) -> None:
    found = made(home)
    assert keys(found) == [("a", 3), ("b", 2), (None, 1)]
    first, second, third = (group.figures for group in found.groups)
    assert (first.tokens_in, first.cache_read, first.cache_write, first.tokens_out, first.reasoning) == (
        300,
        120,
        24,
        60,
        15,
    )
    assert (first.cost, first.unpriced) == (180.0, 0)
    assert (first.ms_p50, first.first_ms_p50) == (200.0, 20.0)
    assert first.ms_p95 == pytest.approx(290.0)
    assert (second.errors, second.retries, second.cost, second.unpriced) == (1, 1, 60.0, 0)
    assert (second.ms_p50, second.first_ms_p50) == (50.0, None), "an error is no latency"
    assert (third.cost, third.unpriced, third.cut, third.ms_p50) == (None, 1, 1, None)


def test_the_total_is_over_all_and_other_steps_are_told_apart(home: Path) -> None:
    found = made(home)
    total = found.total
    assert (total.calls, total.tokens_out, total.cost, total.unpriced) == (6, 87, 240.0, 1)
    assert (total.errors, total.retries, total.cut) == (1, 1, 1)
    assert (found.sessions, found.other_steps) == (2, 1)
    assert total.ms_p50 == 150.0


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (By.PROVIDER, [("anthropic", 5), ("openai_chat", 1)]),
        (By.DAY, [("2023-11-14", 3), ("2023-11-15", 3)]),
        (By.NAME, [("refund", 3), (None, 3)]),
        (By.COMMAND, [("python3 a.py", 6)]),
    ],
)
def test_calls_can_be_put_together_otherwise(home: Path, by: By, expected: list[tuple[str | None, int]]) -> None:
    assert keys(made(home, by)) == expected


def test_only_the_days_that_are_asked_for_count(home: Path) -> None:
    assert made(home, first=YESTERDAY).total.calls == 6
    today = made(home, first=TODAY)
    assert (today.total.calls, today.sessions, today.other_steps) == (3, 1, 1)
    assert today.days == (Day(TODAY, 3, 60.0),)


def test_each_day_has_its_calls_and_cost(home: Path) -> None:
    assert made(home).days == (Day(YESTERDAY, 3, 180.0), Day(TODAY, 3, 60.0))


def test_what_replays_served_is_saved_at_the_price_of_the_recording(home: Path) -> None:
    served = (
        *(ServedAgain(MIDNIGHT + n, "00000001", 1) for n in range(3)),
        ServedAgain(MIDNIGHT + 9, "00000002", 3),
        ServedAgain(MIDNIGHT + 9, "00000002", 5),
        ServedAgain(MIDNIGHT + 9, "ffffffff", 1),
        ServedAgain(MIDNIGHT - 1, "00000001", 2),
    )
    assert made(home, first=TODAY, served=served).saved == Saved(
        calls=4, tokens_in=300, tokens_out=67, cost=180.0, unpriced=1
    )
    assert made(home, served=served).saved.calls == 5
    assert made(home).saved == Saved()


def test_no_store_has_no_figures(tmp_path: Path) -> None:
    found = made(tmp_path / "nowhere")
    assert (found.groups, found.days, found.total.calls, found.saved) == ((), (), 0, Saved())


def test_a_store_without_calls_has_no_groups(tmp_path: Path) -> None:
    SessionWriter.create(tmp_path, start()).close()
    found = made(tmp_path)
    assert found.groups == tuple[Group, ...]()
    assert (found.total.calls, found.total.cost, found.total.tokens_in) == (0, None, 0)
