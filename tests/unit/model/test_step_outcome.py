"""How a step came out is decided once: retries, comparing, forks, totals and the catalog agree."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewind.compare.run import ComparedRun
from rewind.conversation.retries import retries
from rewind.model.http import ResponseHead
from rewind.model.ids import MatchKey
from rewind.model.session import Recording, Session, Status
from rewind.model.step import Ending, Reading, Step, StepKind, StepOutcome, StepResponse, step_outcome
from rewind.runs.fork.run import best_answer
from rewind.store.catalog.database import Catalog
from rewind.store.catalog.fill import outcome_sql
from rewind.store.journal.totals import totals_of
from rewind.store.journal.writer import SessionWriter
from support.effort import examples
from unit.store.making import request, response, sql, start

ENDINGS = (None, *Ending)
STATUSES = (None, 101, 200, 204, 302, 399, 400, 404, 429, 500, 529)
KEY = MatchKey("rw1:same")
KINDS = (StepKind.LLM_CALL, StepKind.HTTP_CALL, StepKind.TOOL_CALL)


def head(status: int) -> ResponseHead:
    return ResponseHead(status=status, reason="", headers=())


def answer(ending: Ending | None, status: int | None, error: bool) -> StepResponse | None:
    if ending is None:
        return None
    reading = Reading(error="overloaded" if error else None)
    return response(ending=ending, head=None if status is None else head(status), reading=reading, ms=100.0, chunks=())


def step(index: int, answered: StepResponse | None, kind: StepKind = StepKind.LLM_CALL) -> Step:
    return Step(request=request(index, match_key=KEY, kind=kind), response=answered)


def every_step() -> Iterator[tuple[str, Step]]:
    for ending, status, error, kind in product(ENDINGS, STATUSES, (False, True), KINDS):
        if ending is not None or (status is None and not error):
            yield f"{ending} {status} {error} {kind}", step(1, answer(ending, status, error), kind)


def recording(*steps: Step) -> Recording:
    session = Session(start=start(), end=None, status=Status.ENDED, folder="")
    return Recording(session=session, steps=steps)


def no_bodies(_step: Step) -> tuple[bytes, bytes]:
    return b"", b""


@pytest.mark.parametrize(
    ("ending", "status", "error", "expected"),
    [
        (Ending.COMPLETE, 200, False, StepOutcome.ANSWERED),
        (Ending.COMPLETE, None, False, StepOutcome.ANSWERED),
        (Ending.COMPLETE, 529, False, StepOutcome.ERROR),
        (Ending.COMPLETE, 200, True, StepOutcome.ERROR),
        (Ending.CLIENT_CLOSED, 200, False, StepOutcome.CUT_BY_CLIENT),
        (Ending.CLIENT_CLOSED, 200, True, StepOutcome.ERROR),
        (Ending.CLIENT_CLOSED, 429, False, StepOutcome.ERROR),
        (Ending.CLIENT_CLOSED, None, False, StepOutcome.UNANSWERED),
        (Ending.UPSTREAM_CUT, 200, False, StepOutcome.BROKEN_OFF),
        (Ending.INTERRUPTED, 200, False, StepOutcome.BROKEN_OFF),
        (Ending.NO_ANSWER, None, False, StepOutcome.UNANSWERED),
        (None, None, False, StepOutcome.UNANSWERED),
        ("an ending of a newer Rewind", 200, False, StepOutcome.BROKEN_OFF),
    ],
)
def test_the_table(ending: str | None, status: int | None, error: bool, expected: StepOutcome) -> None:
    assert step_outcome(ending, status, error=error) is expected


def test_an_agent_that_hung_up_on_a_good_answer_did_not_fail_and_asks_anew() -> None:
    cut = step(1, answer(Ending.CLIENT_CLOSED, 200, error=False))
    again = step(2, answer(Ending.COMPLETE, 200, error=False))
    assert retries([cut, again]) == {}
    run = ComparedRun(recording(cut, again), no_bodies)
    assert [(move.index, move.failed, move.failures) for move in run.moves] == [(1, False, ()), (2, False, ())]


def test_a_client_that_gave_up_before_an_answer_began_makes_a_retry() -> None:
    gave_up = step(1, answer(Ending.CLIENT_CLOSED, None, error=False))
    assert retries([gave_up, step(2, response())]) == {2: 1}


def test_retries_comparing_forks_and_totals_agree_on_every_step() -> None:
    good = answer(Ending.COMPLETE, 200, error=False)
    for name, first in every_step():
        failed = first.outcome.failed
        again = step(2, good, first.request.kind)
        is_retry = failed and first.response is not None
        assert (retries([first, again]) == {2: 1}) is is_retry, name
        (move,) = ComparedRun(recording(first), no_bodies).moves
        assert move.failed is failed, name
        assert [move.index for move in ComparedRun(recording(first, again), no_bodies).moves] == [1, 2][is_retry:], name
        assert best_answer([first, again]) is (again if failed else first), name
        totals = totals_of(recording(first, again))
        assert totals.retries == is_retry, name
        assert totals.errors == (first.outcome is StepOutcome.ERROR), name


def test_the_catalog_has_the_same_table() -> None:
    db = duckdb.connect(":memory:")
    db.execute("CREATE TABLE steps (ending VARCHAR, status BIGINT, error VARCHAR)")
    rows = list(product((*ENDINGS, "newer"), STATUSES, (None, "", "overloaded")))
    db.executemany("INSERT INTO steps VALUES (?, ?, ?)", rows)
    found = db.execute(f"SELECT ending, status, error, {outcome_sql()} FROM steps").fetchall()
    assert len(found) == len(rows)
    for ending, status, error, outcome in found:
        assert outcome == step_outcome(ending, status, error=error is not None), (ending, status, error)


def test_the_catalog_agrees_on_every_step(tmp_path: Path) -> None:
    """All of them in one session, each asked again once."""
    expected = {}
    writer = SessionWriter.create(tmp_path, start())
    good = response(ms=100.0)
    for number, (_, one) in enumerate(every_step()):
        index, key = 2 * number + 1, MatchKey(f"rw1:{number}")
        writer.request(replace(one.request, index=index, match_key=key, ts=2.0 * index), b"")
        if one.response is not None:
            writer.response(index, one.response, b"")
        writer.request(request(index + 1, match_key=key, ts=2.0 * index + 1), b"")
        writer.response(index + 1, good, b"")
        expected[index] = (one.outcome, False)
        expected[index + 1] = (StepOutcome.ANSWERED, one.outcome.failed and one.response is not None)
    writer.close()
    assert writer.broken is None
    found = sql(Catalog(tmp_path), "SELECT step, outcome, retry FROM steps")
    assert {index: (StepOutcome(outcome), retry) for index, outcome, retry in found} == expected


attempts = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.integers(0, 4),
        st.sampled_from((None, *Ending)),
        st.sampled_from((None, 200, 429)),
        st.sampled_from("ab"),
    ),
    max_size=12,
)


@settings(max_examples=examples(60), deadline=None)
@given(attempts)
def test_the_catalog_and_the_outline_find_the_same_retries(
    tmp_path_factory: pytest.TempPathFactory, tries: list[tuple[int, int, Ending | None, int | None, str]]
) -> None:
    home = tmp_path_factory.mktemp("home")
    writer = SessionWriter.create(home, start())
    steps = []
    for index, (began, seconds, ending, status, key) in enumerate(tries, 1):
        answered = answer(ending, status, error=False)
        answered = answered and replace(answered, ms=seconds * 1000.0)
        asked = request(index, match_key=MatchKey(f"rw1:{key}"), ts=float(began))
        writer.request(asked, b"")
        if answered is not None:
            writer.response(index, answered, b"")
        steps.append(Step(request=asked, response=answered))
    writer.close()
    found = sql(Catalog(home), "SELECT step FROM steps WHERE retry ORDER BY step")
    assert [index for (index,) in found] == sorted(retries(steps))
    assert totals_of(recording(*steps)).retries == len(found)
