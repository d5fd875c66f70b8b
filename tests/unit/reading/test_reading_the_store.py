"""What commands and pages are given: one value for each question about a store."""

import shutil
from pathlib import Path

import pytest

from rewind.errors import DamagedStore, SessionNotFound, UsageError
from rewind.model.ids import MatchKey, SessionId
from rewind.model.session import Lineage
from rewind.reading.inspect import inspect_context, inspect_session, inspect_step, inspect_tool_call, recorded_body
from rewind.reading.prices import load_prices
from rewind.reading.search import search
from rewind.reading.session import open_session, read_outline
from rewind.reading.sessions import SessionFilter, cost_of_session, list_sessions
from rewind.reading.setup import make_project_store, set_up
from rewind.reading.stats import usage_stats
from rewind.reading.verify import verify
from rewind.settings import read_settings
from unit.cli.shelf import Shelf
from unit.cli.talks import ACTIVE, begin, refund, use

NOW = 1_700_000_100.0
PRICES = load_prices({"small-model": {"input": 10, "output": 100}})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def shelf(home: Path) -> Shelf:
    return Shelf(home)


class Heard:
    """Hears of progress."""

    def __init__(self) -> None:
        self.of: set[str] = set()

    def __call__(self, what: str, done: int, total: int) -> None:
        assert 0 <= done <= total
        self.of.add(what)


# Lists


def test_the_newest_sessions_come_first_and_a_limit_says_whether_there_are_more(shelf: Shelf, home: Path):
    for at in range(3):
        shelf.add(f"{at}aaaaaaa", b"{}", started=1_700_000_000.0 + at)
    found = list_sessions(home, PRICES, limit=2)
    assert [row.session.id[0] for row in found.rows] == ["2", "1"]
    assert (found.more, found.filtered, found.limit) == (True, False, 2)
    assert not list_sessions(home, PRICES).more


def test_a_list_is_told_how_far_the_catalog_has_come(shelf: Shelf, home: Path):
    shelf.add("7f3a2b9c", b"{}")
    heard = Heard()
    assert len(list_sessions(home, PRICES, on_progress=heard).rows) == 1
    assert heard.of == {"sessions read"}


def test_a_filter_that_nothing_matches_is_told_from_an_empty_store(shelf: Shelf, home: Path):
    nobody = SessionFilter(name="nobody")
    assert not list_sessions(home, PRICES, nobody).filtered
    shelf.add("7f3a2b9c", b"{}")
    found = list_sessions(home, PRICES, nobody)
    assert (found.rows, found.filtered, found.home) == ((), True, home)


@pytest.mark.parametrize("empty", [{"name": ""}, {"model": " "}, {"tags": ("=",)}, {"texts": ("",)}])
def test_a_filter_says_something(empty: dict[str, str]):
    with pytest.raises(UsageError, match="is empty"):
        SessionFilter(**empty)  # type: ignore[arg-type]  # one wrong field each


def test_ancestors_follow_the_sessions_that_come_from_them(shelf: Shelf, home: Path):
    shelf.add("aaaaaaaa", b"{}", started=1_700_000_000.0)
    fork = Lineage(session=SessionId("aaaaaaaa"), step=1, key=MatchKey("rw1:0"), edits=("temperature=0",))
    shelf.add("bbbbbbbb", b"{}", started=1_700_000_001.0, name="cooler", forked_from=fork)
    named = SessionFilter(name="cooler")
    assert [row.session.id for row in list_sessions(home, PRICES, named).rows] == ["bbbbbbbb"]
    both = list_sessions(home, PRICES, named, ancestors=True)
    assert [row.session.id for row in both.rows] == ["bbbbbbbb", "aaaaaaaa"]


def test_what_a_session_cost_is_unknown_where_the_store_cannot_be_read(shelf: Shelf, home: Path):
    shelf.add("7f3a2b9c", b"{}")
    spent = cost_of_session(home, "7f3a2b9c", PRICES)
    assert spent is not None and (spent.usd is None) == bool(spent.unpriced)
    assert cost_of_session(home, "00000000", PRICES) is None


# One session


def test_a_session_is_an_overview_with_a_cost_for_each_step(shelf: Shelf, home: Path):
    shelf.add("7f3a2b9c", b"{}", b"{}")
    heard = Heard()
    found = inspect_session(home, "last", PRICES, on_progress=heard)
    assert found.recording.session.id == "7f3a2b9c"
    assert sorted(found.costs) == [1, 2] == [one.step.index for one in found.outline.steps]
    assert heard.of == {"steps read"}


def test_a_step_gives_the_halves_that_are_asked_for(shelf: Shelf, home: Path):
    shelf.add("7f3a2b9c", b'{"a": 1}', b'{"b": 2}')
    whole = inspect_step(home, "last", 2, PRICES)
    assert (whole.request_body, whole.response_body) == (b'{"b": 2}', b'{"ok": true}')
    asked = inspect_step(home, "last", 2, PRICES, response=False)
    assert (asked.request_body, asked.response_body, asked.with_response) == (b'{"b": 2}', None, False)
    answered = inspect_step(home, "last", 2, PRICES, request=False)
    assert (answered.request_body, answered.response_body) == (None, b'{"ok": true}')
    assert b"".join(recorded_body(home, "last", 1)) == b'{"ok": true}'
    assert b"".join(recorded_body(home, "last", 1, request=True)) == b'{"a": 1}'


def test_a_step_that_is_not_there_is_named_with_the_nearest(shelf: Shelf, home: Path):
    shelf.add("7f3a2b9c", b"{}")
    for ask in (lambda: inspect_step(home, "last", 9, PRICES), lambda: b"".join(recorded_body(home, "last", 9))):
        with pytest.raises(SessionNotFound, match="has no step 9") as caught:
            ask()
        assert caught.value.hint == "rewind inspect 7f3a2b9c:1"


def test_a_tool_call_is_found_by_the_step_that_asks_for_it(shelf: Shelf, home: Path):
    talk = begin(shelf, "7f3a2b9c").says("Look it up.").hears(use("lookup", order="8821"))
    talk.brings(ACTIVE).hears("It is active.").end()
    found = inspect_tool_call(home, "last", 1, 1)
    assert (found.session, found.call.use.name, found.call.answered_in) == ("7f3a2b9c", "lookup", 2)
    with pytest.raises(SessionNotFound, match="has no tool call 2; it asks for 1"):
        inspect_tool_call(home, "last", 1, 2)
    with pytest.raises(SessionNotFound, match="its answer asks for none"):
        inspect_tool_call(home, "last", 2, 1)


def test_what_the_model_read_is_compared_with_the_call_before(shelf: Shelf, home: Path):
    begin(shelf, "7f3a2b9c").says("One?").hears("Yes.").says("Two?").hears("No.").end()
    first, second = inspect_context(home, "last", 1), inspect_context(home, "last", 2)
    assert (first.since, first.changes) == (None, ())
    assert second.since == 1
    assert [change.fate.value for change in second.changes].count("added") == 2
    assert inspect_context(home, "last", 2, since=2).since == 2


def test_a_damaged_body_counts_as_empty_and_is_named_where_it_is_asked_for(shelf: Shelf, home: Path):
    folder = shelf.add("7f3a2b9c", b'{"long": "enough to be in the pack"}' * 50)
    pack = folder / "pack"
    pack.write_bytes(bytes(pack.stat().st_size))
    with open_session(home, "last") as reader:
        outline = read_outline(reader, reader.recording())
    assert len(outline.steps) == 1
    with pytest.raises(DamagedStore):
        b"".join(recorded_body(home, "last", 1, request=True))
    found = verify(home)
    assert (found.sessions, found.all_is_well) == (1, False)
    assert {damage.session for damage in found.damage} == {"7f3a2b9c"}


# The whole store


def test_a_search_says_how_much_was_searched_and_whether_that_was_all(shelf: Shelf, home: Path):
    refund(begin(shelf, "7f3a2b9c")).end()
    heard = Heard()
    everywhere = search(home, ["order"], on_progress=heard)
    assert everywhere.hits and everywhere.index.sessions == 1 and not everywhere.narrowed
    assert heard.of == {"sessions made searchable"}
    assert {hit.kind for hit in search(home, ["order"], kinds=["user"]).hits} == {"user"}
    assert search(home, ["order"], kinds=["thinking"]).narrowed
    with pytest.raises(UsageError, match="TEXT is empty"):
        search(home, [" "])


def test_figures_name_the_prices_they_were_worked_out_by(shelf: Shelf, home: Path):
    shelf.add("7f3a2b9c", b"{}", b"{}")
    found = usage_stats(home, PRICES, by="provider", days=0, now=NOW)
    assert (found.report.total.calls, found.report.sessions) == (2, 1)
    assert [group.key for group in found.report.groups] == ["openai_chat"]
    assert (found.price_source, found.price_date) == (PRICES.source, PRICES.date)
    assert usage_stats(home, PRICES, days=1, now=NOW + 86_400 * 9).report.total.calls == 0


def test_a_whole_store_is_verified_with_its_catalog(shelf: Shelf, home: Path):
    shelf.add("7f3a2b9c", b"{}")
    found = verify(home)
    assert found.all_is_well and found.catalog is not None and found.catalog.steps == 1
    assert verify(home, "last").catalog is None


def test_a_session_that_is_deleted_during_verify_is_no_damage(shelf: Shelf, home: Path):
    shelf.add("7f3a2b9c", b"{}")
    going = shelf.add("aaaaaaaa", b"{}", started=1_600_000_000.0)

    def delete(_what: str, done: int, _of: int) -> None:
        if done == 1:
            shutil.rmtree(going)

    assert verify(home, on_progress=delete).all_is_well


def test_a_project_store_is_kept_out_of_git(tmp_path: Path):
    home = make_project_store(tmp_path)
    assert (home / ".gitignore").read_text() == "*\n"
    (home / ".gitignore").write_text("mine\n")
    make_project_store(tmp_path)
    assert (home / ".gitignore").read_text() == "mine\n", "what somebody wrote there stays"


@pytest.mark.process  # it asks the clients on this machine for their versions
def test_a_store_is_set_up_without_a_certificate(home: Path, tmp_path: Path):
    done = set_up(read_settings({"home": str(home)}, env={"HOME": str(tmp_path)}, cwd=tmp_path))
    assert done.settings.home == home and home.is_dir()
    assert done.certificate is None
    assert any(client.found for client in done.clients)
