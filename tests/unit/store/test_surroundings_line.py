"""The line that says what a run stood on: read back with the recording, and passed over by all who count and search."""

import json
from pathlib import Path
from typing import Any

import pytest

from rewind.model.session import Status, Surroundings
from rewind.store.catalog.database import Catalog, SessionQuery, find_sessions
from rewind.store.journal import records as journal
from rewind.store.journal.contents import read_journal
from rewind.store.journal.lines import seal, unseal
from rewind.store.journal.writer import SessionWriter
from rewind.store.library import Library
from rewind.store.search.index import SearchIndex, SearchQuery
from rewind.store.verify import verify_session
from support.effort import in_short
from unit.store.making import PerToken, request, response, sql, start

FOUND = Surroundings(
    commit="0123456789abcdef0123456789abcdef01234567",
    branch='a "chunks":[] branch, "step":1 and ,"headers":[ words',
    dirty=True,
    changes="sc1:0123456789abcdef",
    locks={"uv.lock": "fedcba9876543210"},
)


def session(home: Path, told: Surroundings | None, *, end: bool = True) -> Path:
    """Two steps, and between them, or at last, what is told; its folder."""
    writer = SessionWriter.create(home, start())
    writer.request(request(1), b'{"messages": [{"role": "user", "content": "a question"}]}')
    if told is not None and end:
        writer.surroundings(told)
    writer.response(1, response(), b"{}")
    writer.request(request(2), b"{}")
    writer.response(2, response(), b"{}")
    if told is not None and not end:
        writer.surroundings(told)
    if end:
        writer.end(ended=1794774188.0, exit_code=0, redactions=0, remarks=())
    else:
        writer.close()
    assert writer.broken is None
    return writer.folder


def test_it_is_read_back_with_the_recording(tmp_path: Path) -> None:
    session(tmp_path, FOUND)
    library = Library(tmp_path)
    with library.open(library.find("last")) as reader:
        recording = reader.recording()
    assert recording.surroundings == FOUND
    assert recording.damage == ()
    assert [step.index for step in recording.steps] == [1, 2]


def test_without_the_line_nothing_is_known(tmp_path: Path) -> None:
    session(tmp_path, None)
    library = Library(tmp_path)
    with library.open(library.find("last")) as reader:
        assert reader.recording().surroundings is None


@pytest.mark.parametrize("end", in_short([True, False]))
def test_whoever_counts_lists_searches_or_verifies_passes_over_it(tmp_path: Path, end: bool) -> None:
    told: list[tuple[Any, ...]] = []
    for home, surroundings in ((tmp_path / "with", FOUND), (tmp_path / "without", None)):
        folder = session(home, surroundings, end=end)
        assert verify_session(folder) == ()
        library, catalog = Library(home), Catalog(home, prices=PerToken())
        state = catalog.catch_up()
        assert (state.sessions, state.steps) == (1, 2)
        found = library.find("last")
        index = SearchIndex(home)
        told.append(
            (
                found,
                library.totals(found),
                library.totals(found, PerToken()),
                find_sessions(catalog, home, SessionQuery(), 0).rows,
                sql(catalog, "SELECT * FROM steps ORDER BY step"),
                [(hit.step, hit.kind) for hit in index.search(SearchQuery(texts=("a question",))).hits],
            )
        )
        assert found.status is (Status.ENDED if end else Status.INTERRUPTED)
        assert index.search(SearchQuery(texts=("branch",))).hits == ()
    assert told[0] == told[1]


def test_a_reader_that_does_not_know_the_line_has_no_complaint(tmp_path: Path) -> None:
    """As one of yesterday meets it: a kind of line it has never heard of."""
    folder = session(tmp_path, FOUND)
    path = folder / "journal.jsonl"
    lines = [unseal(line) for line in path.read_bytes().splitlines()]
    of_tomorrow = [line | {"kind": "of tomorrow"} if line["kind"] == "surroundings" else line for line in lines]
    assert of_tomorrow != lines
    for fields in of_tomorrow:
        fields.pop("~", None)
    path.write_bytes(b"".join(map(seal, of_tomorrow)))
    assert verify_session(folder) == ()
    assert read_journal(path.read_bytes()).surroundings is None


@pytest.mark.parametrize(
    "strange",
    [
        {},
        {"commit": 7, "branch": ["main"], "dirty": "yes", "changes": {}, "locks": "uv.lock"},
        {"locks": {"uv.lock": 5}},
        {"commit": None, "branch": None, "dirty": None, "changes": None, "locks": None},
    ],
)
def test_values_of_another_kind_are_left_out(strange: dict[str, Any]) -> None:
    assert journal.surroundings_in(strange) == Surroundings()


def test_what_is_written_is_what_is_read() -> None:
    for told in (FOUND, Surroundings(), Surroundings(branch="m\udcffin", dirty=False)):
        line = seal(journal.surroundings_fields(told, 5.0))
        assert journal.surroundings_in(unseal(line[:-1])) == told
    assert list(json.loads(seal(journal.surroundings_fields(FOUND, 5.0))))[:7] == [
        "kind", "ts", "commit", "branch", "dirty", "changes", "locks",
    ]  # fmt: skip


def test_a_disk_that_is_full_breaks_the_writer_and_nobody_else(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path, start())
    writer._journal.torn = True  # as half a write leaves it that could not be taken back
    writer.surroundings(FOUND)
    assert writer.broken is not None and "what the run stands on" in writer.broken
    writer.surroundings(FOUND)
    writer.close()
