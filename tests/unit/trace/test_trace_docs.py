"""Every example of docs/traces.md does what the page says."""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openai.types.chat import ChatCompletion

from rewind.cli.main import run
from unit.formats.trace.traced import chat_asks, chat_says

PAGE = Path(__file__).resolve().parents[3] / "docs" / "traces.md"


@dataclass
class Completions:
    """Gives one answer after the other, as a model would."""

    answers: list[ChatCompletion] = field(default_factory=lambda: [chat_asks(), chat_says(), chat_says()])
    asked: list[dict[str, Any]] = field(default_factory=list)

    def create(self, **request: Any) -> ChatCompletion:
        self.asked.append(request)
        return self.answers.pop(0)


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Completions:
    """The page's Python, run from top to bottom."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REWIND_HOME", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    completions = Completions()
    names: dict[str, Any] = {
        "client": SimpleNamespace(chat=SimpleNamespace(completions=completions)),
        "TOOLS": [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}],
        "run_tool": lambda name, arguments: f"{name} says {arguments}",
    }
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), names)
    return completions


def test_the_python_of_the_page_runs(written: Completions) -> None:
    assert len(blocks("python")) == 4
    assert len(written.asked) == 3 and len(written.asked[-1]["messages"]) == 4
    assert written.asked[-1]["model"] == "gpt-5-mini"
    assert Path("traces/run.jsonl").read_text().count("\n") == 5


def test_the_commands_of_the_page_run(written: Completions, capsys: pytest.CaptureFixture[str]) -> None:
    other = Path("traces/other.jsonl")
    other.write_text(Path("traces/run.jsonl").read_text().replace("weather says", "weather does not say"))
    (console,) = blocks("console")
    commands = [shlex.split(line.removeprefix("$ "))[1:] for line in console.splitlines()]
    assert len(commands) == 6
    for command in commands:
        code = run(command)
        said = capsys.readouterr()
        # The tool says something else, and the model decides the same: a difference, and no divergence.
        assert code == (1 if command[0] == "diff" else 0), (command, said.err)
        assert said.out or said.err
