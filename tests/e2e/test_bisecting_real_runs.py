"""Two real runs of the demo agent: what changed in between is found, shown, and can be gone on from."""

import re
import sys
from pathlib import Path

import pytest

from rewind.demo.agent import LENIENT, STRICT
from rewind.demo.run import DemoProvider
from support.cli import Result, run_rewind

pytestmark = pytest.mark.e2e

AGENT = (sys.executable, "-m", "rewind.demo.agent", "8821")


def record(home: Path, provider: DemoProvider, name: str, *more: str) -> str:
    env = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "sk-ant-demo-key-0001"}
    words = ["record", "--name", name, "--", *AGENT, *more]
    return run_rewind(words, home, env, cwd=home.parent).ok().session


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two good runs and two bad ones, recorded through the gateway; then the provider is gone."""
    home = tmp_path_factory.mktemp("bisect") / "store"
    with DemoProvider() as provider:
        record(home, provider, "good")
        record(home, provider, "good-again")
        record(home, provider, "bad", "--strict")
        record(home, provider, "bad-again", "--strict")
    return home


def compared(home: Path, *words: str, code: int, columns: str = "80") -> Result:
    result = run_rewind(words, home, {"COLUMNS": columns}, cwd=home.parent)
    assert result.code == code, result.talk
    return result


def test_the_changed_prompt_of_a_real_run_is_named_with_where_and_since_when(store: Path) -> None:
    result = compared(store, "bisect", "good", "bad", code=1)
    shown = re.sub(r"[0-9a-f]{8}", "01234567", result.text)
    assert shown.startswith("✗ First divergence at step 3 (llm_call · claude-sonnet-4-6 · anthropic)\n")
    for line in (
        r'  Step 1   match ✓   "Understood, .* → lookup_account\(…\)',
        r'  Step 2   match ✓   "The account is active\. .* → check_order\(…\)',
        r"  Step 3   DIVERGED ✗",
        r'    Good:  "It was delivered 6 days ago, so I\'ll proceed with the refund\."',
        r'           → refund\({"amount":189\.0,"order":"8821"}\)',
        r'    Bad:   "I cannot complete this action without explicit confirmation\."',
        r"Cause      system prompt changed, from step 1 on .*",
        r"Since      first seen 20.* UTC in 01234567 \(the bad run\).*",
        r"Ruled out  model claude-sonnet-4-6 · 3 tools · max_tokens 1024, temperature 0 ·.*",
        r"Matched    2 of 4 steps · re-sync: none",
    ):
        assert re.search(f"^{line}$", shown, re.MULTILINE), line
    assert max(map(len, shown.splitlines())) <= 80
    view = run_rewind(["bisect", "good", "bad", "--json"], store, cwd=store.parent)
    assert '"kind": "system"' in view.text and LENIENT in view.text and STRICT in view.text


def test_two_runs_of_the_same_agent_are_the_same(store: Path) -> None:
    assert compared(store, "bisect", "good", "good-again", code=0).text.startswith("✓ No divergence: 4 of 4 steps")
    assert "✓ the same" in compared(store, "diff", "good", "good-again", code=0).text


def test_the_difference_of_two_real_runs_is_told_step_by_step(store: Path) -> None:
    shown = compared(store, "diff", "good", "bad", code=1, columns="120").text
    assert "steps   0 equal · 3 changed · 1 only in a · 0 only in b\n" in shown
    assert "refund [-what is due-]{+only after explicit confirmation+}." in shown
    assert "≠ Step 2  system prompt as at step 1\n" in shown
    assert "  tool calls     − refund(" in shown
    assert re.search(r"^tokens  [0-9,]+ → [0-9,]+ \(−[0-9,]+\)$", shown, re.MULTILINE)


def test_a_few_real_runs_are_too_few_to_tell_and_what_comes_nearest_is_named(store: Path) -> None:
    shown = compared(store, "bisect", "--good", "good", "good-again", "--bad", "bad", "bad-again", code=0).text
    assert shown.startswith("? Not enough runs: 2 good runs, 2 bad runs; about ")
    assert re.search(r"^  bad   ×2 +·  ·  [·B]  [·-]$", shown, re.MULTILINE)
    assert "Nearest    system prompt changed, from step 1 on\n" in shown


def test_the_suggested_commands_work(store: Path) -> None:
    talk = compared(store, "bisect", "good", "bad", code=1).talk
    commands = re.findall(r"^→ [a-z ]+: +rewind (.+)$", talk, re.MULTILINE)
    prove, fork, diff = (command.split() for command in commands)
    assert (prove[0], prove[-1], fork[0], diff[0]) == ("bisect", "--prove", "fork", "diff")
    run_rewind([*fork, "--dry-run"], store, cwd=store.parent).ok()
    assert run_rewind(diff, store, cwd=store.parent).code == 1
