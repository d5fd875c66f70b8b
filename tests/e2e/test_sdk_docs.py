"""Every example in docs/sdk.md does what the page says: it is run, in order, against a scripted provider."""

import re
from pathlib import Path
from typing import Any

import pytest

from support.answers import openai_chat
from support.cli import run_rewind
from support.provider import FakeProvider
from support.script import Answer, Request, routes

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("plain_variables")]

PAGE = Path(__file__).parents[2] / "docs" / "sdk.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def same_for_the_same(request: Request) -> Answer:
    return openai_chat(request, f"About {request.json()['messages'][-1]['content']!r}: well.")


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "store"
    monkeypatch.setenv("REWIND_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    shared: dict[str, Any] = {"__name__": "docs_sdk"}
    ran = {"python": 0, "console": 0}
    with FakeProvider(routes({"/v1/chat/completions": same_for_the_same})) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        for found in BLOCK.finditer(text):
            language, block = found.groups()
            ran[language] += 1
            if language == "python":
                line = text[: found.start()].count("\n") + 1
                exec(compile("\n" * line + block, str(PAGE), "exec"), shared)
            else:
                for command in block.splitlines():
                    assert command.startswith("$ rewind "), command
                    run_rewind(command.split()[2:], home, cwd=tmp_path).ok()
        shared["client"].close()
    assert ran["python"] >= 8
    assert ran["console"] >= 3
