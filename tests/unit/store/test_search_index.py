"""The search index: what was said, where it was said first, and how it follows the sessions."""

import json
import shutil
import stat
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rewind.model.http import RequestHead, ResponseHead
from rewind.model.ids import BlobId
from rewind.model.step import Ending, StepResponse
from rewind.store.journal.reader import FolderReader
from rewind.store.journal.writer import SessionWriter
from rewind.store.search import fill as search_filling
from rewind.store.search import index as search_index
from rewind.store.search.fill import LONGEST
from rewind.store.search.index import IndexState, SearchHit, SearchIndex, SearchQuery
from unit.store.making import request, start

JSON = ResponseHead(status=200, reason="OK", headers=(("content-type", "application/json"),))


def turns(*said: str) -> bytes:
    """A request: user and assistant in turns."""
    roles = ["user", "assistant"] * len(said)
    messages = [{"role": role, "content": text} for role, text in zip(roles, said, strict=False)]
    return json.dumps({"model": "claude-sonnet-4-6", "system": "Be kind.", "messages": messages}).encode()


def saying(text: str) -> bytes:
    return json.dumps({"type": "message", "content": [{"type": "text", "text": text}]}).encode()


def answer(**changes: Any) -> StepResponse:
    fields: dict[str, Any] = {"ending": Ending.COMPLETE, "head": JSON, "ms": 5.0}
    return StepResponse(**(fields | changes))


def session(home: Path, *exchanges: tuple[bytes, bytes], end: bool = True, **changes: Any) -> SessionWriter:
    writer = SessionWriter.create(home, start(**changes))
    for index, (asked, answered) in enumerate(exchanges, 1):
        writer.request(request(index), asked)
        writer.response(index, answer(), answered)
    if end:
        writer.end(ended=start().started + 9, exit_code=0, redactions=0, remarks=())
    return writer


def found(home: Path, *texts: str, **more: Any) -> list[tuple[str, int, str]]:
    hits = SearchIndex(home).search(SearchQuery(texts=texts, **more)).hits
    return [(hit.session, hit.step, hit.kind) for hit in hits]


def snippet(home: Path, *texts: str, **more: Any) -> SearchHit:
    (hit,) = SearchIndex(home).search(SearchQuery(texts=texts, **more)).hits
    return hit


def marked(hit: SearchHit) -> list[str]:
    return [hit.snippet[begin:end] for begin, end in hit.marks]


def test_an_absent_store_has_nothing_to_find(tmp_path: Path):
    index = SearchIndex(tmp_path / "nowhere")
    assert index.search(SearchQuery(texts=("x",))).hits == ()
    assert index.sessions_with("x") == set()
    assert index.catch_up() == IndexState()
    assert not (tmp_path / "nowhere").exists()


def test_a_text_is_found_once_at_the_step_where_it_first_appears(tmp_path: Path):
    session(
        tmp_path,
        (turns("Where is my parcel?"), saying("On its way.")),
        (turns("Where is my parcel?", "On its way.", "And the invoice?"), saying("Here is the invoice.")),
    )
    assert found(tmp_path, "parcel") == [("7f3a2b9c", 1, "user")]
    assert found(tmp_path, "on its way") == [("7f3a2b9c", 1, "assistant")]
    assert found(tmp_path, "invoice") == [("7f3a2b9c", 2, "user"), ("7f3a2b9c", 2, "assistant")]
    assert found(tmp_path, "be kind") == [("7f3a2b9c", 1, "system")]
    assert SearchIndex(tmp_path).catch_up().texts == 5


def test_the_files_are_private_and_nothing_is_left_over(tmp_path: Path):
    home = tmp_path / "it's [a] *home"
    session(home, (turns("hello"), saying("hi")))
    assert found(home, "hello")
    assert stat.S_IMODE((home / "search.duckdb").stat().st_mode) == 0o600
    assert sorted(path.name for path in home.iterdir()) == ["format", "search.duckdb", "search.lock", "sessions"]


@pytest.mark.parametrize(
    ("texts", "more", "is_found"),
    [
        (("GRÜSSE",), {}, True),
        (("grüsse",), {"case": True}, False),
        (("Grüsse",), {"case": True}, True),
        (("50%",), {}, True),
        (("50_",), {}, False),
        (("aus köln",), {}, True),
        (("köln", "grüsse"), {}, True),
        (("köln", "absent"), {}, False),
        (("İstanbul",), {}, True),
        (("istanbul",), {}, True),
        (("'; DROP TABLE texts; --",), {}, False),
        (("\udcff",), {}, False),
    ],
)
def test_what_counts_as_found(tmp_path: Path, texts: tuple[str, ...], more: dict[str, Any], is_found: bool):
    session(tmp_path, (turns("Viele Grüsse aus Köln, 50% auf alles, İSTANBUL"), saying("ok")))
    assert bool(found(tmp_path, *texts, **more)) is is_found
    assert found(tmp_path, "viele"), "whatever was asked, the index is as it was"


def test_all_texts_must_be_in_one_and_the_same(tmp_path: Path):
    session(tmp_path, (turns("apples"), saying("pears")))
    assert found(tmp_path, "apples", "pears") == []


def test_the_newest_session_comes_first_and_its_last_step(tmp_path: Path):
    for nth in (2, 1, 3):
        asked = [(turns(f"word {nth} {at}"), saying("ok")) for at in (1, 2)]
        session(tmp_path, *asked, id=f"0000000{nth}", started=start().started + nth)
    places = [(name, step) for name, step, _ in found(tmp_path, "word")]
    assert places == [(f"0000000{nth}", step) for nth in (3, 2, 1) for step in (2, 1)]


@pytest.mark.parametrize("window", [1, 3, 1000])
def test_windows_change_nothing_but_the_time_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int):
    for nth in range(7):
        session(
            tmp_path,
            (turns(f"word {nth}" if nth % 2 else "nothing"), saying("ok")),
            id=f"0000000{nth}",
            started=start().started + nth // 2,  # two at a time
        )
    monkeypatch.setattr(search_index, "_FIRST_WINDOW", window)
    monkeypatch.setattr(search_index, "_GROWTH", 1)
    assert [name[-1] for name, _, _ in found(tmp_path, "word")] == ["5", "3", "1"]
    some = SearchIndex(tmp_path).search(SearchQuery(texts=("word",), limit=2))
    assert ([hit.session[-1] for hit in some.hits], some.more) == (["5", "3"], True)
    assert not SearchIndex(tmp_path).search(SearchQuery(texts=("word",), limit=3)).more


def test_it_can_be_narrowed_to_speakers_sessions_and_times(tmp_path: Path):
    early, late = start().started, start().started + 100
    session(tmp_path, (turns("word"), saying("the word")), id="00000001", started=early)
    newer = session(tmp_path, (turns("word"), saying("the word")), id="00000002", started=late)
    assert found(tmp_path, "word", kinds=("assistant",)) == [("00000002", 1, "assistant"), ("00000001", 1, "assistant")]
    assert found(tmp_path, "word", since=late) == [("00000002", 1, "user"), ("00000002", 1, "assistant")]
    assert found(tmp_path, "word", since=late + 1) == []
    assert found(tmp_path, "word", folder=newer.folder.name, kinds=("user", "system")) == [("00000002", 1, "user")]


def test_sessions_with_a_text_are_those_a_search_finds(tmp_path: Path):
    one = session(tmp_path, (turns("Apples"), saying("ok")), id="00000001")
    two = session(tmp_path, (turns("apples and pears"), saying("ok")), id="00000002")
    index = SearchIndex(tmp_path)
    assert index.sessions_with("APPLES") == {one.folder.name, two.folder.name}
    assert index.sessions_with("apples", "pears") == {two.folder.name}
    assert index.sessions_with("plums") == set()


def test_a_snippet_shows_the_words_around_and_where_they_are(tmp_path: Path):
    long = "ä😀 " * 500 + "the Needle and another needle" + " z" * 500
    session(tmp_path, (turns(long), saying("short needle")))
    long_one, short_one = SearchIndex(tmp_path).search(SearchQuery(texts=("NEEDLE",))).hits
    assert marked(long_one) == ["Needle", "needle"]
    assert (long_one.from_start, long_one.to_end) == (False, False)
    assert len(long_one.snippet) < 700
    assert (short_one.snippet, marked(short_one)) == ("short needle", ["needle"])
    assert (short_one.from_start, short_one.to_end) == (True, True)


def test_marks_that_touch_are_one(tmp_path: Path):
    session(tmp_path, (turns("xx abcd xx"), saying("ok")))
    assert marked(snippet(tmp_path, "abc", "bcd")) == ["abcd"]


def test_a_needle_longer_than_any_snippet_is_marked_whole(tmp_path: Path):
    needle = "word " * 300
    session(tmp_path, (turns("before " + needle + "after"), saying("ok")))
    assert marked(snippet(tmp_path, needle)) == [needle]


def test_a_running_session_is_followed_step_by_step(tmp_path: Path):
    writer = session(tmp_path, (turns("first"), saying("one")), end=False)
    writer.request(request(2), turns("first", "one", "second"))
    assert found(tmp_path, "second") == [("7f3a2b9c", 2, "user")]
    assert found(tmp_path, "two") == []
    writer.request(request(3), turns("meanwhile"))
    writer.response(3, answer(), saying("three"))
    assert found(tmp_path, "three") == [("7f3a2b9c", 3, "assistant")]
    writer.response(2, answer(), saying("two"))
    assert found(tmp_path, "two") == [("7f3a2b9c", 2, "assistant")]
    writer.end(ended=5.0, exit_code=0, redactions=0, remarks=())
    for word, step in (("first", 1), ("one", 1), ("second", 2), ("meanwhile", 3), ("three", 3)):
        assert [hit[1] for hit in found(tmp_path, word)] == [step], word
    state = SearchIndex(tmp_path).catch_up()
    assert (state.sessions, state.texts) == (1, 7)


def test_what_had_come_of_an_answer_is_found_when_its_recorder_has_died(tmp_path: Path):
    writer = session(tmp_path, (turns("first"), saying("one")), end=False)
    writer.request(request(2), turns("second"))
    writer.part(2, JSON).append(100, b"half an ans")
    assert found(tmp_path, "half an ans") == []
    writer.close()
    assert [step for _, step, _ in found(tmp_path, "half an ans")] == [2]
    assert [step for _, step, _ in found(tmp_path, "first")] == [1]


def test_sessions_that_are_gone_are_forgotten(tmp_path: Path):
    gone = session(tmp_path, (turns("word"), saying("ok")), id="00000001")
    session(tmp_path, (turns("word"), saying("ok")), id="00000002")
    assert len(found(tmp_path, "word")) == 2
    gone.folder.rename(tmp_path / "away")
    assert found(tmp_path, "word") == [("00000002", 1, "user")]


def test_a_journal_that_shrank_is_another_one(tmp_path: Path):
    writer = session(tmp_path, (turns("before"), saying("ok")), (turns("after"), saying("ok")), end=False)
    writer.close()
    assert found(tmp_path, "after")
    journal = writer.folder / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:3]))
    assert found(tmp_path, "after") == []
    assert found(tmp_path, "before") == [("7f3a2b9c", 1, "user")]


def test_nothing_is_read_again_without_need(tmp_path: Path):
    session(tmp_path, (turns("word"), saying("ok")))
    told: list[tuple[int, int]] = []
    index = SearchIndex(tmp_path, on_progress=lambda done, total: told.append((done, total)))
    index.catch_up()
    index.catch_up()
    assert told == [(0, 1)]


def test_what_was_brought_in_before_an_interruption_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for nth in range(4):
        session(tmp_path, (turns(f"word {nth}"), saying("ok")), id=f"0000000{nth}", started=start().started + nth)
    monkeypatch.setattr(search_filling, "_BATCH", 1)

    def interrupt(done: int, _total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SearchIndex(tmp_path, on_progress=interrupt).catch_up()
    told: list[int] = []
    state = SearchIndex(tmp_path, on_progress=lambda _done, total: told.append(total)).catch_up()
    assert (state.sessions, told) == (4, [2, 2])
    assert not list(tmp_path.glob(".search-*"))


def test_an_interruption_inside_duckdb_is_one_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: Any) -> int:
        raise RuntimeError("Query interrupted")

    session(tmp_path, (turns("word"), saying("ok")))
    monkeypatch.setattr(search_index, "fill", interrupted)
    with pytest.raises(KeyboardInterrupt):
        SearchIndex(tmp_path).catch_up()


def test_damaged_bodies_are_counted_and_the_others_found(tmp_path: Path):
    writer = session(
        tmp_path, (turns("alpha " + "x" * 600), saying("beta")), (turns("gamma " + "y" * 600), saying("delta"))
    )
    pack = writer.folder / "pack"
    data = bytearray(pack.read_bytes())
    data[150:170] = b"\xff" * 20
    pack.write_bytes(data)
    state = SearchIndex(tmp_path).catch_up()
    assert state.unreadable == 2, "both requests share what was damaged, and neither answer does"
    assert SearchIndex(tmp_path).catch_up() == state, "still true when nothing new is read"
    words = [word for word in ("alpha", "beta", "gamma", "delta") if found(tmp_path, word)]
    assert words == ["beta", "delta"]


def test_a_session_without_its_pack_is_no_obstacle(tmp_path: Path):
    writer = session(tmp_path, (turns("lost"), saying("lost")), id="00000001")
    (writer.folder / "pack").unlink()
    session(tmp_path, (turns("kept"), saying("ok")), id="00000002")
    assert found(tmp_path, "kept") == [("00000002", 1, "user")]
    assert SearchIndex(tmp_path).catch_up().unreadable == 2


def test_a_journal_that_cannot_be_opened_for_a_while_loses_and_doubles_nothing(tmp_path: Path):
    writer = session(tmp_path, (turns("word"), saying("ok")), end=False)
    assert len(found(tmp_path, "word")) == 1
    journal, aside = writer.folder / "journal.jsonl", writer.folder / "aside"
    journal.rename(aside)
    journal.symlink_to("x" * 4000)  # longer than the journal, as if it had grown; links are not followed
    assert SearchIndex(tmp_path).catch_up().unreadable == 1
    journal.unlink()
    aside.rename(journal)
    writer.request(request(2), turns("word", "ok", "more"))
    assert len(found(tmp_path, "word")) == 1
    assert len(found(tmp_path, "more")) == 1


def test_a_long_text_is_searched_at_its_start_and_counted(tmp_path: Path):
    session(tmp_path, (turns("early " + "x" * LONGEST + " late"), saying("ok")))
    assert found(tmp_path, "early")
    assert found(tmp_path, " late") == []
    assert SearchIndex(tmp_path).catch_up().cut == 1


def test_no_recorded_text_makes_it_fail(tmp_path: Path):
    strange = "nul \0 lone \ud800 quote ' \" \\ line\nnext \u2028 end"
    session(tmp_path, (turns(strange), saying(strange)), started=start().started)
    assert len(found(tmp_path, "end")) == 2
    assert "nul \ufffd lone" in snippet(tmp_path, "nul", kinds=("user",)).snippet


def test_other_calls_and_the_reason_of_a_cut_are_found(tmp_path: Path):
    head = RequestHead(method="GET", scheme="https", host="shop.example", port=443, target="/orders?id=17", headers=())
    writer = SessionWriter.create(tmp_path, start())
    writer.request(request(1, head=head), b"")
    cut = answer(ending=Ending.UPSTREAM_CUT, reason="the server hung up")
    writer.response(1, cut, b'{"state": "shipp')
    writer.end(ended=5.0, exit_code=0, redactions=0, remarks=())
    assert found(tmp_path, "orders?id=17") == [("7f3a2b9c", 1, "http")]
    assert found(tmp_path, "shipp") == [("7f3a2b9c", 1, "http")]
    assert found(tmp_path, "hung up") == [("7f3a2b9c", 1, "error")]


@pytest.mark.parametrize("harm", ["garbage", "emptied", "older"])
def test_at_any_doubt_it_is_built_again(tmp_path: Path, harm: str):
    session(tmp_path, (turns("word"), saying("ok")))
    SearchIndex(tmp_path).catch_up()
    path = tmp_path / "search.duckdb"
    match harm:
        case "garbage":
            path.write_bytes(b"not a database" * 1000)
        case "emptied":
            path.write_bytes(b"")
        case "older":
            with duckdb.connect(str(path)) as db:
                db.execute("UPDATE made_as SET version = 0")
    assert found(tmp_path, "word") == [("7f3a2b9c", 1, "user")]


@pytest.mark.skipif(duckdb.__version__ < "2", reason="DuckDB 1 writes the older format, without zstd")
def test_texts_are_kept_packed(tmp_path: Path):
    words = " ".join(f"word{number}" for number in range(2000))
    session(tmp_path, *[(turns(f"{at} {words}"), saying(f"{at} {words}")) for at in range(40)])
    SearchIndex(tmp_path).catch_up()
    with duckdb.connect(str(tmp_path / "search.duckdb"), read_only=True) as db:
        ways = db.execute("SELECT DISTINCT compression FROM pragma_storage_info('texts') WHERE column_name = 'text'")
        assert ("ZSTD",) in ways.fetchall()


def test_a_session_that_is_deleted_while_it_is_read_leaves_no_texts_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session(tmp_path, (turns("the first"), saying("one")), id="aaaaaaaa", started=start().started - 9)
    going = session(tmp_path, (turns("the heron"), saying("two")), (turns("again"), saying("three"))).folder
    real = FolderReader.blob

    def deleted_meanwhile(reader: FolderReader, name: BlobId) -> bytes:
        data = real(reader, name)
        if reader._folder == going and going.exists():
            reader.close()
            shutil.rmtree(going)
        return data

    monkeypatch.setattr(FolderReader, "blob", deleted_meanwhile)
    assert SearchIndex(tmp_path).catch_up() == IndexState(sessions=1, texts=3)
    assert found(tmp_path, "heron") == []
    assert len(found(tmp_path, "first")) == 1
