"""A session that came in a file is read by every command, and runs nothing by itself."""

import json
from pathlib import Path

import pytest

from rewind.runs.rerun import ignored_endpoints, remembered_endpoints, remembered_key_variables, trusted_start
from rewind.store.library import Library
from unit.cli.shelf import Rewind, Shelf
from unit.cli.talks import begin, refund

EVIL = ("sh", "-c", "touch owned; echo '\x1b]0;x\x07'")


@pytest.fixture
def cassettes(rewind: Rewind, shelf: Shelf) -> None:
    """good.rw and bad.rw; the store that the commands work on knows nothing of them."""
    for session, name, agrees in (("aaaa0001", "good", True), ("bbbb0002", "bad", False)):
        talk = begin(shelf, session, name=name)
        refund(talk, agrees=agrees).end()
        assert rewind("export", name).code == 0


def away(rewind: Rewind, *arguments: str) -> tuple[int, str, str]:
    ran = rewind(*arguments, "--home", "elsewhere")
    return ran.code, ran.text, ran.talk


@pytest.mark.usefixtures("cassettes")
def test_every_reading_command_opens_a_cassette(rewind: Rewind) -> None:
    assert away(rewind, "inspect", "good.rw")[0] == 0
    assert away(rewind, "inspect", "good.rw:2", "--context")[0] == 0
    assert away(rewind, "inspect", "good.rw:1.1")[0] == 0
    code, messages, _ = away(rewind, "messages", "good.rw:2", "--as", "openai")
    assert (code, json.loads(messages)[0]["role"]) == (0, "system")
    assert away(rewind, "diff", "good.rw", "bad.rw")[0] == 1
    assert away(rewind, "bisect", "good.rw", "bad.rw", "--json")[0] == 1
    assert away(rewind, "bisect", "--good", "good.rw", "--bad", "bad.rw")[0] == 1
    assert away(rewind, "verify", "good.rw")[0] == 0
    assert away(rewind, "fork", "bad.rw:2", "--dry-run", "--set", "system=@good.rw:2")[0] == 0
    assert away(rewind, "list", "--json")[1].strip().endswith('"sessions": []\n}')


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("replay", "FILE"), "rewind replay FILE -- "),
        (("replay", "FILE", "--json"), "rewind replay FILE -- "),
        (("replay", "FILE", "--until", "1"), "rewind replay FILE -- "),
        (("fork", "FILE:2"), "rewind fork FILE:2 -- "),
        (("fork", "FILE:2", "--edit"), "rewind fork FILE:2 -- "),
        (("bisect", "good.rw", "FILE", "--prove"), "rewind bisect good.rw FILE --prove -- "),
    ],
)
@pytest.mark.parametrize("imported", [False, True])
def test_a_strangers_command_is_shown_and_never_run(
    rewind: Rewind, shelf: Shelf, tmp_path: Path, cassettes: None, arguments: tuple[str, ...], hint: str, imported: bool
) -> None:
    writer = shelf.begin("cccc0003", command=EVIL, cwd=str(tmp_path), name="evil")
    talk = begin(shelf, "dddd0004")
    talk.writer = writer
    refund(talk, agrees=False).end()
    assert rewind("export", "evil").code == 0
    assert rewind("import", "evil.rw", "--home", "elsewhere").code == 0
    named = "cccc0003" if imported else "evil.rw"
    code, _, talk_ = away(rewind, *(word.replace("FILE", named) for word in arguments))
    assert code == 2, talk_
    assert not (tmp_path / "owned").exists()
    assert "shown, not run: sh -c 'touch owned; echo " in talk_
    assert hint.replace("FILE", named).replace("rewind ", "rewind --home elsewhere ") in talk_
    assert "\x1b" not in talk_ and "\x07" not in talk_


def test_a_strangers_environment_reaches_no_agent(shelf: Shelf, rewind: Rewind, home: Path) -> None:
    writer = shelf.begin(
        "cccc0003",
        key_variables=("OPENAI_API_KEY", "LD_PRELOAD", "PYTHONSTARTUP"),
        base_urls={"OPENAI_BASE_URL": "https://evil.example/v1", "LD_PRELOAD": "/tmp/evil.so"},
    )
    writer.end(ended=1_700_000_008.0, exit_code=0, redactions=0, remarks=())
    own = Library(home).find("cccc0003")
    assert remembered_endpoints(own, live=True)["OPENAI_BASE_URL"] == "https://evil.example/v1"
    assert rewind("export", "cccc0003", "-o", "x.rw").code == 0
    stranger = Library(home).find("x.rw")
    assert stranger.is_foreign
    assert remembered_endpoints(stranger, live=False) == {"OPENAI_BASE_URL": "https://evil.example/v1"}
    assert remembered_endpoints(stranger, live=True) == {}
    assert remembered_key_variables(stranger) == ("OPENAI_API_KEY",)
    ours = trusted_start(stranger)
    assert (ours.base_urls, ours.key_variables, ours.imported) == ({}, ("OPENAI_API_KEY",), False)
    told = ignored_endpoints(stranger, {}) or ""
    assert "may miss" in told
    assert "set it yourself:" in told and "OPENAI_BASE_URL=https://evil.example/v1 rewind" in told
    assert ignored_endpoints(own, {}) is None


def test_a_trace_is_read_and_neither_replayed_nor_forked(rewind: Rewind, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text(
        '{"ts": 1763197320.0, "run": "aaaa0001", "kind": "llm_call", "messages": [{"role": "user", "content": "Hi"}]}\n'
        '{"ts": 1763197321.0, "run": "aaaa0001", "kind": "final", "text": "Hello"}\n'
    )
    assert rewind("inspect", "run.jsonl").code == 0
    for arguments in (("replay", "run.jsonl", "--", "true"), ("fork", "run.jsonl:1", "--", "true")):
        ran = rewind(*arguments)
        assert (ran.code, "is a trace" in ran.talk) == (2, True), ran.talk
