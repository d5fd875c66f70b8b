"""``rewind demo``: no key, a few seconds, and every command it suggests works."""

import json
import re
import sys
import time
from pathlib import Path

import pytest

from rewind.demo.run import run_demo
from rewind.errors import ExitCode
from rewind.reading.prices import load_prices
from support.cli import Result, plain_environment, run, run_rewind

pytestmark = pytest.mark.e2e


PATHLESS = {"PATH": "/usr/bin:/bin"}
"""As it is after ``make demo``: nobody has put the virtual environment on the path."""


def demo(home: Path) -> Result:
    return run_rewind(["demo"], home, PATHLESS, cwd=home.parent).ok()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store after the demo, for tests that only look at it."""
    home = tmp_path_factory.mktemp("demo") / "store"
    (home.parent / "shown").write_text(said(demo(home)))
    return home


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


def test_every_command_the_demo_suggests_works_as_it_is_printed(home: Path) -> None:
    shown = (home.parent / "shown").read_text()
    commands = re.findall(r"^  (\S+ .+)$", shown.partition("That is:")[2], re.MULTILINE)
    commands = [line for line in commands if re.search(r"\b(bisect|inspect|diff|replay|list|activate)\b", line)]
    assert len(commands) == 6, shown
    for line in commands:
        result = run(["sh", "-c", line], plain_environment(home) | PATHLESS, cwd=home.parent)
        differs = " diff " in line or " bisect " in line
        assert result.code == (ExitCode.DIFFERENT if differs else ExitCode.OK), (line, said(result))
        assert "activate" in line or said(result).strip(), line


def test_the_demo_suggests_the_store_it_was_given(tmp_path: Path) -> None:
    result = run_rewind(["demo", "--home", "a store"], tmp_path / "unused", PATHLESS, cwd=tmp_path).ok()
    (line,) = re.findall(r"^  (\S+ list .*)$", said(result), re.MULTILINE)
    listed = run(["sh", "-c", line], plain_environment(tmp_path / "unused") | PATHLESS, cwd=tmp_path).ok()
    assert "refund-good" in listed.text


def test_a_store_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for home in ("/proc/store", str(tmp_path / "file" / "store")):
        result = run_rewind(["demo", "--home", home], tmp_path / "unused", cwd=tmp_path)
        assert result.code == ExitCode.ENVIRONMENT
        assert "rewind: The demo could not be recorded. " in result.talk
        assert home in result.talk.partition("The demo")[2]
        assert "Somebody changed" not in result.talk, "the second run would only be in vain"


def test_the_demo_is_called_rewind_where_the_shell_finds_it(tmp_path: Path) -> None:
    path = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    shown = said(run_rewind(["demo"], tmp_path / "store", path, cwd=tmp_path).ok())
    assert re.search(r"^  rewind list$", shown, re.MULTILINE), shown
    assert "activate" not in shown


def test_the_demos_calls_have_a_price_everywhere(home: Path) -> None:
    shown = (home.parent / "shown").read_text()
    assert re.search(r"^good  [0-9a-f]{8}  4 LLM calls  [0-9,]+ tokens  \$0\.0\d+  ", shown, re.MULTILINE), shown
    for command in (["list"], ["stats"], ["inspect", "refund-good"]):
        told = run_rewind(command, home, cwd=home.parent).ok().text
        assert "$0.0" in told, command
    (row, *_) = json.loads(run_rewind(["list", "--json"], home).ok().text)["sessions"]
    assert row["unpriced"] == 0 and row["cost_usd"] > 0, row


def test_the_demo_leaves_two_whole_sessions_with_names(home: Path) -> None:
    listed = run_rewind(["list"], home).ok().text
    assert "refund-good" in listed and "refund-bad" in listed
    assert run_rewind(["verify"], home).code == 0
    for name, steps in (("refund-good", "4/4"), ("refund-bad", "3/3")):
        result = run_rewind(["replay", name], home).ok()
        assert re.search(f"{steps} steps replayed · 0 network calls · saved .* · output identical", result.talk)


def test_the_demo_can_be_run_again_in_the_same_store(tmp_path: Path) -> None:
    home = tmp_path / "store"
    demo(home)
    demo(home)
    assert run_rewind(["list", "--json"], home).ok().text.count('"refund-good"') == 2


def test_the_demos_key_is_nowhere_on_disk(home: Path) -> None:
    assert not [path for path in home.rglob("*") if path.is_file() and b"sk-ant-demo-key" in path.read_bytes()]


def test_the_demo_does_not_depend_on_the_users_own_proxies_and_base_urls(tmp_path: Path) -> None:
    env = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "socks5://127.0.0.1:9"}
    result = run_rewind(["demo"], tmp_path / "store", env, cwd=tmp_path)
    assert result.code == 0, result.talk
    assert "4/4 steps replayed · 0 network calls · output identical" in said(result)


def test_a_demo_whose_agent_fails_does_not_claim_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewind.demo.run.AGENT", (sys.executable, "-c", "raise SystemExit(3)"))
    assert run_demo(tmp_path / "store", lambda _sentence: None, load_prices()).code == ExitCode.AGENT_FAILED
