"""A store and cassettes of version 0.1.0: read, verified, compared, replayed and exported as that version did."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import zstandard

from support.cli import Result, run_rewind

pytestmark = pytest.mark.e2e

EARLIER = Path(__file__).resolve().parents[1] / "data" / "earlier"
EXPECTED = EARLIER / "expected"
AGENTS = EARLIER / "agents"
SESSIONS = ("good", "bad", "forked", "chat", "tools", "killed")
COMMANDS = {
    "good": ("python", "refund_agent.py", "8821"),
    "bad": ("python", "refund_agent.py", "8821", "--strict"),
    "forked": ("python", "refund_agent.py", "8821", "--strict"),
    "chat": ("python", "chat_agent.py"),
}
STEPS = {"good": 4, "bad": 3, "forked": 4, "chat": 6}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EARLIER / "store", tmp_path / "store"))


def expected(name: str) -> str:
    return (EXPECTED / name).read_text(encoding="utf-8")


def assert_still_says(now: str, then: str) -> None:
    """Objects may have new members, and must have all that they had."""
    told, before = json.loads(now), json.loads(then)
    assert _as_then(told, before) == before


def _as_then(now: Any, then: Any) -> Any:
    """``now`` without the members of objects that ``then`` does not have."""
    match now, then:
        case dict(), dict():
            return {name: _as_then(value, then[name]) for name, value in now.items() if name in then}
        case list(), list() if len(now) == len(then):
            return [_as_then(one, other) for one, other in zip(now, then, strict=True)]
        case _:
            return now


def printed(store: Path, *arguments: str) -> Result:
    return run_rewind(list(arguments), store, cwd=store.parent)


@pytest.mark.parametrize("session", SESSIONS)
def test_sessions_read_as_before(store: Path, session: str) -> None:
    assert_still_says(printed(store, "inspect", session, "--json").ok().text, expected(f"inspect-{session}.json"))
    assert printed(store, "messages", session).text == expected(f"messages-{session}.json")


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (("list", "--json"), "list.json"),
        (("stats", "--days", "0", "--json"), "stats.json"),
        (("search", "refund", "--json"), "search.json"),
        (("verify", "--json"), "verify.json"),
        (("diff", "good", "bad", "--json"), "diff.json"),
        (("diff", "bad", "forked", "--json"), "diff-fork.json"),
        (("bisect", "good", "bad", "--json"), "bisect.json"),
    ],
)
def test_reading_commands_print_the_same(store: Path, arguments: tuple[str, ...], file: str) -> None:
    assert_still_says(printed(store, *arguments).text, expected(file))


@pytest.mark.parametrize("session", SESSIONS)
def test_exports_have_the_same_bytes(store: Path, session: str) -> None:
    file = store.parent / f"{session}.rw"
    printed(store, "export", session, "-o", str(file)).ok()
    assert file.read_bytes() == (EXPECTED / file.name).read_bytes()


def test_packed_and_har_exports_hold_the_same(store: Path) -> None:
    packed, har = store.parent / "good.rw.zst", store.parent / "good.har"
    printed(store, "export", "good", "-o", str(packed)).ok()
    printed(store, "export", "good", "--har", "-o", str(har)).ok()
    assert _unpacked(packed) == _unpacked(EXPECTED / packed.name)
    assert har.read_bytes() == (EXPECTED / har.name).read_bytes()


@pytest.mark.parametrize("session", SESSIONS)
def test_cassettes_are_imported_and_exported_to_the_same_bytes(tmp_path: Path, session: str) -> None:
    store, again = tmp_path / "store", tmp_path / "again.rw"
    printed(store, "import", str(EXPECTED / f"{session}.rw")).ok()
    printed(store, "export", session, "-o", str(again)).ok()
    assert again.read_bytes() == (EXPECTED / f"{session}.rw").read_bytes()


@pytest.mark.parametrize("session", COMMANDS)
def test_sessions_and_cassettes_replay_whole(store: Path, session: str) -> None:
    steps = STEPS[session]
    for source in (session, str(EXPECTED / f"{session}.rw")):
        result = run_rewind(["replay", source, "--", *COMMANDS[session]], store, cwd=AGENTS)
        assert f"{steps}/{steps} steps replayed · 0 network calls" in result.talk, result.talk
        assert result.code == 0, result.talk


def _unpacked(file: Path) -> bytes:
    return zstandard.ZstdDecompressor().stream_reader(file.read_bytes()).read()
