"""The catalog: derived from the journals, and rebuilt from them at any doubt."""

import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from rewind.errors import EnvironmentProblem
from rewind.model.step import Ending, Reading
from rewind.store.catalog import Catalog
from rewind.store.writer import SessionWriter
from unit.store.making import record, request, response, start

EXCHANGES = [(b"asked", b"answered"), (b"asked more", b"answered more")]
AT_ONCE = """
import sys
from pathlib import Path
from rewind.store.catalog import Catalog
for _ in range(3):
    state = Catalog(Path(sys.argv[1])).catch_up()
print(state.sessions, state.steps)
"""


def test_an_absent_store_has_an_empty_catalog(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "nowhere")
    assert catalog.catch_up().sessions == 0
    assert catalog.sql("SELECT count(*) FROM steps") == [(0,)]
    assert not (tmp_path / "nowhere").exists()


def test_the_catalog_knows_what_the_journals_say(tmp_path: Path) -> None:
    home = tmp_path / "it's [a] *home"
    record(home, EXCHANGES)
    catalog = Catalog(home)
    state = catalog.catch_up()
    assert (state.sessions, state.steps, state.rebuilt) == (1, 2, True)
    assert catalog.sql("SELECT id, name, command, exit_code FROM sessions") == [
        ("7f3a2b9c", "support", "python agent.py", 0)
    ]
    rows = catalog.sql(
        "SELECT session, step, type, model, host, status, tokens_in, ms, ending FROM steps ORDER BY step"
    )
    assert rows[1] == (
        "7f3a2b9c",
        2,
        "llm_call",
        "claude-sonnet-4-6",
        "api.anthropic.com",
        200,
        1200,
        812.5,
        "complete",
    )
    assert catalog.sql("SELECT count(*) FROM steps WHERE model = ?", ["claude-sonnet-4-6"]) == [(2,)]
    assert stat.S_IMODE((home / "catalog.duckdb").stat().st_mode) == 0o600
    assert sorted(path.name for path in home.iterdir()) == [
        "catalog.duckdb",
        "catalog.lock",
        "format",
        "sessions",
    ]


def test_catching_up_brings_in_what_is_new_and_forgets_what_is_gone(tmp_path: Path) -> None:
    gone = record(tmp_path, EXCHANGES, id="00000001")
    catalog = Catalog(tmp_path)
    writer = SessionWriter.create(tmp_path, start())
    writer.request(request(1), b"asked")
    catalog.catch_up()
    assert catalog.sql("SELECT ending, model FROM steps WHERE session = '7f3a2b9c'") == [
        (None, "claude-sonnet-4-6")
    ]
    cut = response(ending=Ending.UPSTREAM_CUT, reading=Reading(tokens_out=3))
    writer.response(1, cut, b"half")
    writer.request(request(2), b"asked")
    (tmp_path / "sessions" / gone.folder).rename(tmp_path / "away")
    state = catalog.catch_up()
    assert (state.sessions, state.steps, state.rebuilt) == (1, 2, False)
    assert catalog.sql("SELECT step, ending, tokens_out, model FROM steps ORDER BY step") == [
        (1, "upstream_cut", 3, "claude-sonnet-4-6"),
        (2, None, None, "claude-sonnet-4-6"),
    ]
    writer.end(ended=5.0, exit_code=7, redactions=0, remarks=())
    before = catalog.catch_up()
    assert catalog.sql("SELECT exit_code, ended FROM sessions") == [(7, 5.0)]
    assert catalog.catch_up() == before


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
                db.execute("UPDATE catalog SET version = 0")
        case "foreign":
            path.unlink()
            with duckdb.connect(str(path)) as db:
                db.execute("CREATE TABLE sessions (x INTEGER)")
    assert catalog.sql("SELECT count(*) FROM steps") == [(2,)]
    state = catalog.catch_up()
    assert (state.sessions, state.steps) == (1, 2)


def test_what_duckdb_cannot_do_is_said_in_a_sentence(tmp_path: Path) -> None:
    home = tmp_path / "why?"  # DuckDB takes what follows a question mark for options
    record(home, EXCHANGES)
    with pytest.raises(EnvironmentProblem, match="DuckDB cannot keep a catalog in"):
        Catalog(home).catch_up()


def test_two_processes_at_once_both_succeed(tmp_path: Path) -> None:
    for nth in range(5):
        record(tmp_path, EXCHANGES, id=f"{nth:08x}")
    command = [sys.executable, "-c", AT_ONCE, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    assert [process.communicate(timeout=60)[0] for process in both] == [b"5 10\n"] * 2


def test_no_recorded_text_makes_it_fail(tmp_path: Path) -> None:
    reading = Reading(
        text="\0\udcff\x1b'\"", tokens_in=10**400, tokens_out=-5, error="x'); DROP TABLE steps; --"
    )
    writer = SessionWriter.create(tmp_path, start(name="'; DROP\0\ud800"))
    writer.request(request(1, model="\udcff"), b"")
    writer.response(1, response(reading=reading, ms=float("inf")), b"")
    writer.end(ended=float("nan"), exit_code=0, redactions=0, remarks=())
    catalog = Catalog(tmp_path)
    assert catalog.catch_up().steps == 1
    assert catalog.sql("SELECT tokens_in, tokens_out, ms FROM steps") == [(None, -5, None)]


def test_a_damaged_line_is_left_out(tmp_path: Path) -> None:
    session = record(tmp_path, EXCHANGES)
    path = tmp_path / "sessions" / session.folder / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        b"".join([lines[0].replace(b"support", b"supporT"), lines[1].replace(b"POST", b"GET"), *lines[2:]])
    )
    state = Catalog(tmp_path).catch_up()
    assert (state.sessions, state.steps) == (1, 1)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY steps TO '/tmp/never'",
        "INSTALL httpfs",
        "SET lock_configuration = false",
    ],
)
def test_a_question_reaches_nothing_but_the_catalog(tmp_path: Path, query: str) -> None:
    record(tmp_path, EXCHANGES)
    catalog = Catalog(tmp_path)
    catalog.catch_up()
    with pytest.raises(duckdb.Error):
        catalog.sql(query)
    assert catalog.sql("SELECT count(*) FROM steps") == [(2,)]
