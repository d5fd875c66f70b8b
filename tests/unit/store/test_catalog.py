"""The catalog: derived from the journals, and rebuilt from them at any doubt."""

import shutil
import stat
import subprocess
import sys
from datetime import date
from pathlib import Path

import duckdb
import pytest

from rewind.errors import EnvironmentProblem
from rewind.model.http import ResponseHead
from rewind.model.ids import MatchKey
from rewind.model.step import Ending, Reading, StepKind
from rewind.model.usage import Usage
from rewind.pricing.report import By
from rewind.store.catalog import fill as catalog_filling
from rewind.store.catalog.database import Catalog, report
from rewind.store.journal.writer import SessionWriter
from support.effort import in_short
from unit.store.making import PerToken, record, request, response, sql, start

EXCHANGES = [(b"asked", b"answered"), (b"asked more", b"answered more")]
AT_ONCE = """
import sys
from pathlib import Path
from rewind.store.catalog.database import Catalog
for _ in range(3):
    state = Catalog(Path(sys.argv[1])).catch_up()
print(state.sessions, state.steps)
"""


def test_an_absent_store_has_an_empty_catalog(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "nowhere")
    assert catalog.catch_up().sessions == 0
    assert catalog.ask(lambda db: "something", nothing="nothing") == "nothing"
    assert not (tmp_path / "nowhere").exists()


def test_the_catalog_knows_what_the_journals_say(tmp_path: Path) -> None:
    home = tmp_path / "it's [a] *home"
    record(home, EXCHANGES, tags={"env": "prod"}, command=("/usr/bin/python", "agent.py", "--fast"))
    catalog = Catalog(home)
    state = catalog.catch_up()
    assert (state.sessions, state.steps, state.rebuilt) == (1, 2, True)
    assert sql(catalog, "SELECT id, name, program, exit_code, tags, replay_of FROM sessions") == [
        ("7f3a2b9c", "support", "python agent.py", 0, {"env": "prod"}, None)
    ]
    rows = sql(
        catalog,
        "SELECT step, type, model, host, status, tokens_in, ms, first_ms, ending, CAST(day AS VARCHAR) "
        "FROM steps ORDER BY step",
    )
    assert rows[1] == (
        2,
        "llm_call",
        "claude-sonnet-4-6",
        "api.anthropic.com",
        200,
        1200,
        812.5,
        400.25,
        "complete",
        "2026-11-15",
    )
    assert sql(catalog, "SELECT count(*) FROM steps WHERE model = ?", ["claude-sonnet-4-6"]) == [(2,)]
    assert stat.S_IMODE((home / "catalog.duckdb").stat().st_mode) == 0o600
    assert sorted(path.name for path in home.iterdir()) == ["catalog.duckdb", "catalog.lock", "format", "sessions"]


def test_every_kind_of_token_has_a_column(tmp_path: Path) -> None:
    usage = Usage(input=10, output=5, cache_read=4, cache_write=3, reasoning=2, more={"web_searches": 1}, tier="batch")
    writer = SessionWriter.create(tmp_path, start())
    writer.request(request(1, thread=2), b"")
    writer.response(1, response(reading=Reading(usage=usage)), b"")
    writer.close()
    columns = 'tokens_in, tokens_out, cache_read, cache_write, reasoning, "usage", tier, thread'
    assert sql(Catalog(tmp_path), f"SELECT {columns} FROM steps") == [
        (10, 5, 4, 3, 2, '{"web_searches":1}', "batch", 2)
    ]


def test_catching_up_brings_in_what_is_new_and_forgets_what_is_gone(tmp_path: Path) -> None:
    gone = record(tmp_path, EXCHANGES, id="00000001")
    catalog = Catalog(tmp_path)
    writer = SessionWriter.create(tmp_path, start())
    writer.request(request(1), b"asked")
    catalog.catch_up()
    assert sql(catalog, "SELECT ending, model FROM steps JOIN sessions USING (nr) WHERE sessions.id = '7f3a2b9c'") == [
        (None, "claude-sonnet-4-6")
    ]
    cut = response(ending=Ending.UPSTREAM_CUT, reading=Reading(usage=Usage(output=3)))
    writer.response(1, cut, b"half")
    writer.request(request(2), b"asked")
    (tmp_path / "sessions" / gone.folder).rename(tmp_path / "away")
    state = catalog.catch_up()
    assert (state.sessions, state.steps, state.rebuilt) == (1, 2, False)
    assert sql(catalog, "SELECT step, ending, tokens_out, model FROM steps ORDER BY step") == [
        (1, "upstream_cut", 3, "claude-sonnet-4-6"),
        (2, None, None, "claude-sonnet-4-6"),
    ]
    writer.end(ended=5.0, exit_code=7, redactions=0, remarks=())
    before = catalog.catch_up()
    assert sql(catalog, "SELECT exit_code, ended FROM sessions") == [(7, 5.0)]
    assert catalog.catch_up() == before


def test_a_session_that_has_ended_is_not_looked_at_again(tmp_path: Path) -> None:
    session = record(tmp_path, EXCHANGES)
    catalog = Catalog(tmp_path)
    catalog.catch_up()
    (tmp_path / "sessions" / session.folder / "journal.jsonl").unlink()
    assert catalog.catch_up().steps == 2


def test_what_a_killed_catch_up_left_is_cleared_away(tmp_path: Path) -> None:
    record(tmp_path, EXCHANGES)
    (tmp_path / ".catalog-0123456789abcdef").mkdir()
    (tmp_path / ".catalog-0123456789abcdef" / "lines-1").write_text("half a file")
    Catalog(tmp_path).catch_up()
    assert not list(tmp_path.glob(".catalog-*"))


@pytest.mark.process
def test_many_sessions_come_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_filling, "_BATCH", 4000)
    for nth in range(7):
        record(tmp_path, EXCHANGES[: nth % 3], id=f"{nth:08x}")
    told: list[tuple[int, int]] = []
    catalog = Catalog(tmp_path, prices=PerToken(), on_progress=lambda done, total: told.append((done, total)))
    assert (state := catalog.catch_up()).steps == 6
    assert state.sessions == 7
    assert told == [(done, 7) for done in range(8)]
    counted = "SELECT id, count(step), count(cost) FROM sessions LEFT JOIN steps USING (nr) GROUP BY id ORDER BY id"
    assert sql(catalog, counted) == [(f"{nth:08x}", nth % 3, nth % 3) for nth in range(7)]


def test_two_sessions_of_one_id_keep_their_steps_apart(tmp_path: Path) -> None:
    session = record(tmp_path, EXCHANGES)
    folder = tmp_path / "sessions" / session.folder
    shutil.copytree(folder, folder.with_name("20261116T000000.000Z-7f3a2b9c"))
    shutil.copytree(folder, folder.with_name("20261116T000000.000Z-00000000"))  # its lines say another id
    catalog = Catalog(tmp_path)
    assert catalog.catch_up().steps == 6
    assert sql(catalog, "SELECT count(*), sum(tokens_in) FROM steps GROUP BY nr") == [(2, 2400)] * 3


@pytest.mark.parametrize("harm", ["garbage", "emptied", "flipped", "older", "foreign"])
def test_at_any_doubt_it_is_built_again(tmp_path: Path, harm: str) -> None:
    record(tmp_path, EXCHANGES)
    catalog, path = Catalog(tmp_path), tmp_path / "catalog.duckdb"
    catalog.catch_up()
    match harm:
        case "garbage":
            path.write_bytes(b"not a database" * 1000)
        case "emptied":
            path.write_bytes(b"")
        case "flipped":
            data = bytearray(path.read_bytes())
            for place in range(4096, len(data), 997):
                data[place] ^= 0xFF
            path.write_bytes(data)
        case "older":
            with duckdb.connect(str(path)) as db:
                db.execute("UPDATE made_as SET version = 0")
        case "foreign":
            path.unlink()
            with duckdb.connect(str(path)) as db:
                db.execute("CREATE TABLE sessions (x INTEGER)")
    assert sql(catalog, "SELECT count(*) FROM steps") == [(2,)]
    state = catalog.catch_up()
    assert (state.sessions, state.steps) == (1, 2)


def test_what_duckdb_cannot_do_is_said_in_a_sentence(tmp_path: Path) -> None:
    home = tmp_path / "why?"  # DuckDB takes what follows a question mark for options
    record(home, EXCHANGES)
    with pytest.raises(EnvironmentProblem, match=r"DuckDB cannot write catalog.duckdb in"):
        Catalog(home).catch_up()


@pytest.mark.process
def test_two_processes_at_once_both_succeed(tmp_path: Path) -> None:
    for nth in range(5):
        record(tmp_path, EXCHANGES, id=f"{nth:08x}")
    command = [sys.executable, "-c", AT_ONCE, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    assert [process.communicate(timeout=60)[0] for process in both] == [b"5 10\n"] * 2


@pytest.mark.parametrize("half", ["", "\udcff"])
def test_no_recorded_text_makes_it_fail(tmp_path: Path, half: str) -> None:
    """With half a surrogate pair in it, which DuckDB would not take, and without."""
    reading = Reading(text=f"\0{half}\x1b'\"", usage=Usage(input=10**400, output=-5), error="x'); DROP TABLE steps; --")
    tags = {f"'{half}": f"\0{half}"}
    writer = SessionWriter.create(tmp_path, start(name=f"'; DROP\0{half}", tags=tags))
    writer.request(request(1, model=f"é{half}"), b"")
    writer.response(1, response(reading=reading, ms=float("inf")), b"")
    writer.request(request(2, ts=float("nan")), b"")
    writer.end(ended=1e300, exit_code=0, redactions=0, remarks=())
    catalog = Catalog(tmp_path, prices=PerToken())
    assert catalog.catch_up().steps == 2
    assert sql(catalog, "SELECT tokens_in, tokens_out, ms, outcome FROM steps ORDER BY step") == [
        (None, -5, None, "error"),
        (None, None, None, "unanswered"),
    ]
    # A moment that no calendar has is no end that was written.
    assert sql(catalog, "SELECT exit_code, ended FROM sessions") == [(None, None)]


def test_a_damaged_line_is_left_out(tmp_path: Path) -> None:
    session = record(tmp_path, EXCHANGES)
    path = tmp_path / "sessions" / session.folder / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        b"".join([lines[0].replace(b"support", b"supporT"), lines[1].replace(b"POST", b"GET"), *lines[2:]])
    )
    state = Catalog(tmp_path).catch_up()
    assert (state.sessions, state.steps) == (1, 1)
    assert sql(Catalog(tmp_path), "SELECT name, exit_code, started FROM sessions") == [
        (None, 0, session.start.started)
    ], "the folder's name tells when it began"
    assert report(Catalog(tmp_path), by=By.MODEL, first=None, last=date(2026, 11, 16)).damaged_lines == 2


def test_a_line_too_long_for_duckdb_is_still_counted(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path, start())
    writer.request(request(1, note="x" * 40_000_000), b"")
    writer.response(1, response(), b"")
    writer.close()
    assert sql(Catalog(tmp_path), "SELECT step, tokens_in FROM steps") == [(1, 1200)]


def test_a_step_that_asks_again_after_a_failure_is_a_retry(tmp_path: Path) -> None:
    limited = response(head=ResponseHead(status=429, reason="Too Many", headers=()), reading=Reading())
    inside = response(reading=Reading(error="overloaded"))
    cut = response(ending=Ending.UPSTREAM_CUT)
    good = response()
    answers = [limited, inside, cut, good, good, None, good]
    writer = SessionWriter.create(tmp_path, start())
    for index, answer in enumerate(answers, 1):
        writer.request(request(index, match_key=MatchKey("rw1:same")), b"")
        if answer is not None:
            writer.response(index, answer, b"")
    for index, ts in ((8, 2e9), (9, 2e9 + 0.5)):  # under way together: neither asks again
        writer.request(request(index, match_key=MatchKey("rw1:at once"), ts=ts), b"")
        writer.response(index, limited, b"")
    writer.request(request(10), b"")
    writer.close()
    retries = sql(Catalog(tmp_path), "SELECT step FROM steps WHERE retry ORDER BY step")
    assert retries == [(2,), (3,), (4,)], "of an answer that never came nobody knows whether it was given up"


def test_costs_are_those_of_the_prices_at_hand(tmp_path: Path) -> None:
    record(tmp_path, EXCHANGES)
    costs = "SELECT cost FROM steps ORDER BY step"
    Catalog(tmp_path).catch_up()
    assert sql(Catalog(tmp_path), costs) == [(None,), (None,)]
    Catalog(tmp_path, prices=PerToken(0.5)).catch_up()
    assert sql(Catalog(tmp_path), costs) == [(640.0,), (640.0,)]
    Catalog(tmp_path).catch_up()
    assert sql(Catalog(tmp_path), costs) == [(640.0,), (640.0,)], "without prices, what is known stays"
    record(tmp_path, EXCHANGES[:1], id="00000002", started=1794774999.0)
    Catalog(tmp_path, prices=PerToken(0.25)).catch_up()
    assert sql(Catalog(tmp_path), costs) == [(320.0,), (320.0,), (320.0,)]
    Catalog(tmp_path, prices=PerToken(0.25, models=())).catch_up()
    assert sql(Catalog(tmp_path), costs) == [(320.0,)] * 3, "the same prices are not asked again"
    Catalog(tmp_path, prices=PerToken(0.1, models=())).catch_up()
    assert sql(Catalog(tmp_path), costs) == [(None,)] * 3, "a price that is gone is unknown"


def test_only_calls_that_were_made_cost_something(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path, start(replay_of="00000001"))
    writer.request(request(1), b"")
    writer.response(1, response(tape=4), b"")
    writer.request(request(2, kind=StepKind.HTTP_CALL), b"")
    writer.response(2, response(), b"")
    writer.request(request(3, model="the one with a price"), b"")
    writer.response(3, response(reading=Reading(model="a dated name of it", usage=Usage(output=1))), b"")
    writer.request(request(4), b"")
    writer.close()
    catalog = Catalog(tmp_path, prices=PerToken(1.0, models=("the one with a price",)))
    catalog.catch_up()
    assert sql(catalog, "SELECT step, replayed, cost FROM steps ORDER BY step") == [
        (1, True, 0.0),
        (2, False, None),
        (3, False, 1.0),
        (4, False, None),
    ]


@pytest.mark.parametrize(
    "query",
    in_short(
        [
            "SELECT * FROM read_text('/etc/passwd')",
            "COPY steps TO '/tmp/never'",
            "INSTALL httpfs",
            "SET lock_configuration = false",
        ]
    ),
)
def test_a_question_reaches_nothing_but_the_catalog(tmp_path: Path, query: str) -> None:
    record(tmp_path, EXCHANGES)
    catalog = Catalog(tmp_path)
    catalog.catch_up()
    with pytest.raises(EnvironmentProblem):
        sql(catalog, query)
    assert sql(catalog, "SELECT count(*) FROM steps") == [(2,)]
