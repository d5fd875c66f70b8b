"""Finding sessions: by id, name, prefix and age, and saying so when there is none or more than one."""

from pathlib import Path

import pytest

from rewind.errors import AmbiguousSession, DamagedStore, SessionNotFound
from rewind.model.ids import BlobId
from rewind.model.session import split_step
from rewind.store.library import Library
from unit.store.making import record


class HeldClock:
    """A clock that stands still."""

    def now(self) -> float:
        return 1_000_000_000.0

    def ticks(self) -> int:
        return 0


def store(home: Path, *sessions: tuple[str, str | None]) -> Library:
    """Sessions of those ids and names, each a minute younger than the one before."""
    for nth, (session_id, name) in enumerate(sessions):
        record(home, [], id=session_id, name=name, started=999_996_400.0 + 60 * nth)
    return Library(home, clock=HeldClock())


def test_an_absent_store_is_an_empty_library(tmp_path: Path) -> None:
    library = Library(tmp_path / "nowhere")
    assert library.sessions() == []
    with pytest.raises(SessionNotFound, match="none has been recorded") as raised:
        library.find("last")
    assert raised.value.hint == "Record one: rewind record -- COMMAND"
    assert not (tmp_path / "nowhere").exists()


def test_sessions_come_newest_first(tmp_path: Path) -> None:
    library = store(tmp_path, ("00000001", None), ("00000002", "two"), ("00000003", None))
    assert [session.id for session in library.sessions()] == ["00000003", "00000002", "00000001"]
    assert [session.id for session in library.sessions(2)] == ["00000003", "00000002"]
    assert library.sessions(0) == []


def test_a_session_has_many_names(tmp_path: Path) -> None:
    library = store(tmp_path, ("7f3a2b9c", "run-good-7f3a"), ("9b2c0000", "twin"), ("9b2d0000", "twin"))
    for ref, expected in {
        "7f3a2b9c": "7f3a2b9c",
        "7F3A": "7f3a2b9c",
        "7": "7f3a2b9c",
        "run-good-7f3a": "7f3a2b9c",
        "twin": "9b2d0000",
        "9b2c": "9b2c0000",
        "last": "9b2d0000",
        "last~0": "9b2d0000",
        "last~2": "7f3a2b9c",
    }.items():
        assert library.find(ref).id == expected


def test_a_name_that_looks_like_a_prefix_wins_over_the_prefix(tmp_path: Path) -> None:
    library = store(tmp_path, ("11111111", "bad"), ("bad00000", None))
    assert library.find("bad").id == "11111111"
    assert library.find("bad0").id == "bad00000"


def test_an_ambiguous_prefix_lists_the_candidates(tmp_path: Path) -> None:
    library = store(tmp_path, ("7f3a0000", "good"), ("7f3b0000", None))
    with pytest.raises(AmbiguousSession) as raised:
        library.find("7f3")
    assert raised.value.message == "'7f3' names 2 sessions: 7f3b0000 (59 min ago), 7f3a0000 ('good', 1 h ago)."


def test_an_unknown_name_brings_the_nearest(tmp_path: Path) -> None:
    library = store(tmp_path, ("7f3a2b9c", "customer-support"), ("00000001", None))
    with pytest.raises(SessionNotFound) as raised:
        library.find("custmer-suport")
    assert raised.value.message == "No session is called 'custmer-suport'."
    assert raised.value.hint == "Nearest: 7f3a2b9c ('customer-support', 1 h ago). See them all: rewind list"
    with pytest.raises(SessionNotFound):
        library.find("last~2")


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "..",
        "../..",
        "/etc/passwd",
        "sessions",
        "\0",
        "\x1b[31m",
        "last~-1",
        "last~x",
        "*",
        "x" * 5000,
        "\udcff",
        "١",
    ],
)
def test_a_hostile_name_is_just_not_found(tmp_path: Path, ref: str) -> None:
    library = store(tmp_path, ("7f3a2b9c", "good"))
    with pytest.raises(SessionNotFound) as raised:
        library.find(ref)
    assert raised.value.message.isprintable()
    assert len(raised.value.message) < 200


@pytest.mark.parametrize(
    "name", ["../../etc", "a/b", "\x1b]0;x\x07", "\udcff", "漢字", 'q"uo\\te', "n\nl", "x" * 9000, "", " "]
)
def test_a_name_is_data_and_never_a_path(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    library = store(home, ("7f3a2b9c", name))
    assert library.sessions()[0].start.name == name
    if name and len(name) < 4000:
        assert library.find(name).id == "7f3a2b9c"
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert sorted(path.name for path in home.iterdir()) == ["format", "sessions"]


def test_only_folders_of_our_own_form_are_looked_at(tmp_path: Path) -> None:
    library = store(tmp_path, ("7f3a2b9c", None))
    for name in (
        ".new-20261115T202257.123Z-00000000",
        "notes",
        "20261115T202257.123Z-XYZ",
        "20261115T202257.123Z-00000000",
    ):
        (tmp_path / "sessions" / name).mkdir()
    (tmp_path / "sessions" / "20261116T202257.123Z-00000001").symlink_to("/etc")
    (tmp_path / "sessions" / "20261117T202257.123Z-00000002").write_text("a file")
    assert [session.id for session in library.sessions()] == ["7f3a2b9c"]


def test_a_planted_journal_link_is_not_read(tmp_path: Path) -> None:
    library = store(tmp_path / "home", ("7f3a2b9c", None))
    planted = tmp_path / "home" / "sessions" / "20361115T202257.123Z-0000000a"
    planted.mkdir()
    (planted / "journal.jsonl").symlink_to("/etc/passwd")
    assert [session.id for session in library.sessions()] == ["7f3a2b9c"]


def test_a_session_that_is_gone_is_said_to_be_gone(tmp_path: Path) -> None:
    library = store(tmp_path, ("7f3a2b9c", None))
    session = library.find("last")
    (tmp_path / "sessions" / session.folder).rename(tmp_path / "elsewhere")
    with library.open(session) as reader, pytest.raises(SessionNotFound):
        reader.recording()


@pytest.mark.parametrize(
    "blob", ["", "sha256:", "sha256:../../x", "md5:" + "0" * 64, "sha256:" + "z" * 64, "sha256:" + "0" * 64]
)
def test_a_name_that_is_no_blob_gives_no_bytes(tmp_path: Path, blob: str) -> None:
    library = store(tmp_path, ("7f3a2b9c", None))
    with library.open(library.find("last")) as reader, pytest.raises(DamagedStore):
        reader.blob(BlobId(blob))


def test_a_step_is_split_from_its_session() -> None:
    assert split_step("7f3a:4") == ("7f3a", 4)
    assert split_step("a:b:12") == ("a:b", 12)
    for whole in ("7f3a", "7f3a:", ":4", "7f3a:x", "a:-1", "a:4\n", ""):
        assert split_step(whole) == (whole, None)
