"""Deleting sessions: no byte stays, whoever is killed on the way, and whoever else reads or deletes meanwhile."""

import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from rewind.errors import SessionNotFound
from rewind.store.catalog.database import Catalog
from rewind.store.deletion import ASIDE, delete_sessions, finish_deletions, set_pinned, size_on_disk
from rewind.store.library import Library
from rewind.store.search.index import SearchIndex, SearchQuery
from support.canaries import find_canaries, self_check
from support.effort import ALL
from unit.store.making import record, sql

CANARY = "the heron walks at 0123456789 o'clock"
OTHER = "nothing to see but reeds"


def talk(text: str, turns: int = 3) -> list[tuple[bytes, bytes]]:
    """Turns long enough that they are packed, in the session and in the search index."""
    filler = " ".join(f"word{random.Random(text).random()}" for _ in range(40))
    exchanges = []
    for turn in range(turns):
        said = f"{turn} {filler} {text}"
        asked = {"model": "claude-sonnet-4-6", "messages": [{"role": "user", "content": said}]}
        answered = {"type": "message", "content": [{"type": "text", "text": f"{text} {turn}, indeed"}]}
        exchanges.append((json.dumps(asked).encode(), json.dumps(answered).encode()))
    return exchanges


def store(home: Path, *, derived: bool = True, others: int = 2) -> str:
    """A store with some sessions, one of which holds the canary everywhere; the folder of that one."""
    for number in range(others):
        record(home, talk(OTHER), id=f"{number:08x}", started=1794774100.0 + number)
    folder = record(home, talk(CANARY), id="7f3a2b9c", name=CANARY, tags={"t": CANARY}).folder
    if derived:
        assert SearchIndex(home).catch_up().sessions == others + 1
        assert Catalog(home).catch_up().sessions == others + 1
    return folder


def canaries(home: Path) -> list[str]:
    return find_canaries(home, {"canary": CANARY})


def test_the_search_for_canaries_would_find_them(tmp_path: Path) -> None:
    (tmp_path / "check").mkdir()
    self_check(tmp_path / "check")
    store(tmp_path / "store")
    places = " ".join(canaries(tmp_path / "store"))
    for file in ("journal.jsonl", "pack", "search.duckdb", "catalog.duckdb"):
        assert file in places


def test_no_byte_of_a_deleted_session_is_left(tmp_path: Path) -> None:
    folder = store(tmp_path)
    delete_sessions(tmp_path, [folder])
    assert canaries(tmp_path) == []
    assert not (tmp_path / ASIDE).exists()
    assert [session.id for session in Library(tmp_path).sessions()] == ["00000001", "00000000"]


def test_the_others_keep_their_place_in_the_derived_files(tmp_path: Path) -> None:
    folder = store(tmp_path)
    everything = SearchQuery(texts=(OTHER,))
    before = SearchIndex(tmp_path).search(everything).hits
    steps = sql(Catalog(tmp_path), "SELECT * FROM steps JOIN sessions USING (nr) WHERE folder <> ?", [folder])
    made = (tmp_path / "search.duckdb").stat().st_ino
    delete_sessions(tmp_path, [folder])
    assert (tmp_path / "search.duckdb").stat().st_ino != made
    # Both files are written anew, not left for the next question to fill.
    for name, tables in (("search", ("texts", "sessions")), ("catalog", ("steps", "sessions"))):
        with duckdb.connect(str(tmp_path / f"{name}.duckdb"), read_only=True) as db:
            assert all(db.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in tables)
    assert SearchIndex(tmp_path).search(everything).hits == before
    assert SearchIndex(tmp_path).search(SearchQuery(texts=("heron",))).hits == ()
    assert sql(Catalog(tmp_path), "SELECT * FROM steps JOIN sessions USING (nr)") == steps


def test_rows_that_a_search_has_forgotten_already_are_gone_from_the_file_too(tmp_path: Path) -> None:
    """A search between the two halves of a deletion deletes the rows, which leaves their bytes in the file."""
    folder = store(tmp_path)
    (tmp_path / ASIDE).mkdir()
    (tmp_path / "sessions" / folder).rename(tmp_path / ASIDE / folder)
    assert SearchIndex(tmp_path).catch_up().sessions == 2
    finish_deletions(tmp_path)
    assert canaries(tmp_path) == []


def test_what_killed_processes_left_of_the_derived_files_goes_too(tmp_path: Path) -> None:
    folder = store(tmp_path)
    (tmp_path / ".search-0011.ndjson").write_text(CANARY)
    (tmp_path / ".catalog-0011").mkdir()
    (tmp_path / ".catalog-0011" / "lines-1").write_text(CANARY)
    (tmp_path / "search.duckdb.tmp").mkdir()
    (tmp_path / "search.duckdb.tmp" / "spilled").write_text(CANARY)
    alive, dead = tmp_path / f".import-{os.getpid()}-00", tmp_path / ".import-4194305-00"
    for importing in (alive, dead):
        importing.mkdir()
    (dead / "journal.jsonl").write_text(CANARY)
    delete_sessions(tmp_path, [folder])
    assert canaries(tmp_path) == []
    assert alive.exists(), "its process is still at it"


@pytest.mark.parametrize("damage", [b"", b"not a database", CANARY.encode() * 10_000])
def test_a_derived_file_that_is_damaged_is_deleted(tmp_path: Path, damage: bytes) -> None:
    folder = store(tmp_path)
    for name in ("search", "catalog"):
        (tmp_path / f"{name}.duckdb").write_bytes(damage)
        (tmp_path / f"{name}.duckdb.wal").write_bytes(damage)
    delete_sessions(tmp_path, [folder])
    assert canaries(tmp_path) == []
    assert SearchIndex(tmp_path).catch_up().sessions == 2


def test_without_derived_files_none_are_made(tmp_path: Path) -> None:
    folder = store(tmp_path, derived=False)
    delete_sessions(tmp_path, [folder])
    assert canaries(tmp_path) == []
    assert not list(tmp_path.glob("*.duckdb*"))


def test_large_derived_files_wait_for_a_command_that_has_the_time(tmp_path: Path) -> None:
    folder = store(tmp_path)
    delete_sessions(tmp_path, [folder], at_most=1)
    assert all(".duckdb" in place for place in canaries(tmp_path)), "the session itself is gone"
    assert (tmp_path / ASIDE).is_dir()
    finish_deletions(tmp_path, at_most=1)
    assert (tmp_path / ASIDE).is_dir()
    finish_deletions(tmp_path)
    assert canaries(tmp_path) == []
    assert not (tmp_path / ASIDE).exists()


KILLED = """
import os, sys
from pathlib import Path
left = int(sys.argv[1])

def die(event, arguments):
    global left
    moves = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree")
    if armed and (event in moves or (event == "open" and arguments[2] & os.O_WRONLY)):
        left -= 1
        if left < 0:
            os._exit(9)

armed = False
sys.addaudithook(die)
import duckdb
from rewind.store.catalog import database
from rewind.store.search import index
from rewind.store.deletion import delete_sessions
armed = True
delete_sessions(Path(sys.argv[2]), sys.argv[3:])
"""


@pytest.mark.process
def test_killed_at_any_point_the_session_is_whole_or_the_next_command_finishes(tmp_path: Path) -> None:
    """The process dies before its n-th change of a folder, from the first to the one after the last."""
    for at in itertools.count() if ALL else (1, 2, 7, 99):
        home = tmp_path / str(at)
        folder = store(home, others=1)
        run = subprocess.run([sys.executable, "-c", KILLED, str(at), str(home), folder], capture_output=True)
        assert run.returncode in (0, 9), (at, run.stderr.decode())
        if (home / "sessions" / folder).exists():
            assert at < 3
            assert not Library(home).verify(Library(home).find("7f3a2b9c")), f"killed at {at}: it is there, not whole"
        else:
            finish_deletions(home)
            assert canaries(home) == [], f"killed at {at}"
            assert not (home / ASIDE).exists()
            assert [session.id for session in Library(home).sessions()] == ["00000000"]
            assert SearchIndex(home).catch_up().sessions == 1
        if run.returncode == 0:
            assert at > 10, "it was killed at several points before"
            break
    else:
        pytest.fail("no process came to its end")


@pytest.mark.process
def test_two_processes_delete_at_once(tmp_path: Path) -> None:
    """The same sessions and others: each is deleted once, and nobody stumbles over the other."""
    folder = store(tmp_path, others=6)
    folders = [entry.name for entry in (tmp_path / "sessions").iterdir()]
    mine = [[folder, *sorted(folders)[:4]], [*sorted(folders)[2:6], folder]]
    deleting = [
        subprocess.Popen([sys.executable, "-c", KILLED, "1000", str(tmp_path), *chosen], stderr=subprocess.PIPE)
        for chosen in mine
    ]
    for process in deleting:
        _, talk = process.communicate(timeout=60)
        assert process.returncode == 0, talk.decode()
    assert Library(tmp_path).sessions() == []
    assert find_canaries(tmp_path, {"canary": CANARY, "other": OTHER}) == []
    assert not (tmp_path / ASIDE).exists()


def test_a_reader_that_has_the_session_open_reads_on(tmp_path: Path) -> None:
    folder = store(tmp_path)
    library = Library(tmp_path)
    session = library.find("7f3a2b9c")
    with library.open(session) as reader, library.open(session) as late:
        recording = reader.recording()
        reader.make_ready()
        late.recording()
        delete_sessions(tmp_path, [folder])
        assert CANARY.encode() in reader.blob(recording.steps[-1].request.body)
        with pytest.raises(SessionNotFound, match="deleted meanwhile"):
            late.blob(recording.steps[0].request.body)
        with pytest.raises(SessionNotFound, match="not there any more"):
            reader.recording()


def test_a_link_is_deleted_and_not_what_it_leads_to(tmp_path: Path) -> None:
    folder = store(tmp_path / "store", derived=False)
    real = tmp_path / "elsewhere"
    (tmp_path / "store" / "sessions" / folder).rename(real)
    (tmp_path / "store" / "sessions" / folder).symlink_to(real)
    delete_sessions(tmp_path / "store", [folder])
    assert (real / "journal.jsonl").exists()
    assert not os.path.lexists(tmp_path / "store" / "sessions" / folder)


def test_a_pin_is_set_once_and_taken_away(tmp_path: Path) -> None:
    folder = store(tmp_path, derived=False)
    place = tmp_path / "sessions" / folder
    for pinned in (True, True, False, False):
        set_pinned(place, pinned=pinned)
        assert Library(tmp_path).find("7f3a2b9c").pinned is pinned
        assert Library(tmp_path).open(Library(tmp_path).find("7f3a2b9c")).recording().session.pinned is pinned


@pytest.mark.process
def test_the_size_of_a_session_is_what_it_takes_of_the_disk(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / store(tmp_path, derived=False)
    used = subprocess.run(["du", "-s", "-B1", str(folder)], capture_output=True, check=True)
    assert size_on_disk(folder) == int(used.stdout.split()[0])
    assert size_on_disk(tmp_path / "nowhere") == 0


def test_what_is_pinned_in_the_last_moment_stays_unless_it_was_named(tmp_path: Path) -> None:
    folder = store(tmp_path, derived=False)
    set_pinned(tmp_path / "sessions" / folder, pinned=True)
    assert delete_sessions(tmp_path, [folder]) == {folder}
    assert Library(tmp_path).find("7f3a2b9c").pinned
    assert delete_sessions(tmp_path, [folder], even_pinned=True) == set()
    assert canaries(tmp_path) == []


def test_ctrl_c_leaves_the_rest_to_the_next_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = store(tmp_path)

    def interrupted(*_arguments: object) -> None:
        raise RuntimeError("Query interrupted")  # what DuckDB makes of it

    with monkeypatch.context() as patched:
        patched.setattr("rewind.store.derived._copy", interrupted)
        with pytest.raises(KeyboardInterrupt):
            delete_sessions(tmp_path, [folder])
    assert not Library(tmp_path).ids().count("7f3a2b9c")
    finish_deletions(tmp_path)
    assert canaries(tmp_path) == []
