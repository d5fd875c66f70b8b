"""``rewind demo``: no key, a few seconds, and every command it suggests works."""

import re
import sys
import time
from pathlib import Path

import pytest

from rewind.demo.run import run_demo
from rewind.errors import ExitCode
from support.cli import Result, run_rewind

pytestmark = pytest.mark.e2e


def demo(home: Path) -> Result:
    return run_rewind(["demo"], home, cwd=home.parent).ok()


def said(result: Result) -> str:
    return result.text + result.talk


def test_the_demo_records_two_runs_and_replays_one_in_a_few_seconds(tmp_path: Path) -> None:
    began = time.monotonic()
    shown = said(demo(tmp_path / "store"))
    assert time.monotonic() - began < 20
    assert "4/4 steps replayed · 0 network calls · output identical" in shown
    assert "on its way back to you" in shown
    assert "cannot complete this action without explicit confirmation" in shown
    assert "7 calls went to the provider while recording, none in the replay" in shown
    assert "Traceback" not in shown


def test_every_command_the_demo_suggests_works(tmp_path: Path) -> None:
    home = tmp_path / "store"
    shown = said(demo(home))
    commands = re.findall(r"^  rewind (.+)$", shown.partition("Try next:")[2], re.MULTILINE)
    assert len(commands) >= 4
    for line in commands:
        result = run_rewind(line.split(), home, cwd=tmp_path)
        assert result.code == (ExitCode.DIFFERENT if line.startswith("diff") else ExitCode.OK), line
        assert said(result).strip(), line


def test_the_demo_leaves_two_whole_sessions_with_names(tmp_path: Path) -> None:
    home = tmp_path / "store"
    demo(home)
    listed = run_rewind(["list"], home).ok().text
    assert "refund-good" in listed and "refund-bad" in listed
    assert run_rewind(["verify"], home).code == 0
    for name, steps in (("refund-good", "4/4"), ("refund-bad", "3/3")):
        result = run_rewind(["replay", name], home).ok()
        assert f"{steps} steps replayed · 0 network calls · output identical" in result.talk


def test_the_demo_can_be_run_again_in_the_same_store(tmp_path: Path) -> None:
    home = tmp_path / "store"
    demo(home)
    demo(home)
    assert run_rewind(["list", "--json"], home).ok().text.count('"refund-good"') == 2


def test_the_demos_key_is_nowhere_on_disk(tmp_path: Path) -> None:
    home = tmp_path / "store"
    demo(home)
    assert not [path for path in home.rglob("*") if path.is_file() and b"sk-ant-demo-key" in path.read_bytes()]


def test_the_demo_does_not_depend_on_the_users_own_proxies_and_base_urls(tmp_path: Path) -> None:
    env = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "socks5://127.0.0.1:9"}
    result = run_rewind(["demo"], tmp_path / "store", env, cwd=tmp_path)
    assert result.code == 0, result.talk
    assert "4/4 steps replayed · 0 network calls · output identical" in said(result)


def test_a_demo_whose_agent_fails_does_not_claim_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewind.demo.run.AGENT", (sys.executable, "-c", "raise SystemExit(3)"))
    assert run_demo(tmp_path / "store", lambda _sentence: None).code == ExitCode.AGENT_FAILED
