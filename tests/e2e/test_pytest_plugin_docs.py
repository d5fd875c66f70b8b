"""docs/testing.md, followed word by word: its files are written, its commands typed, its output compared."""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.answers import anthropic_message
from support.cli import run
from support.lab import Lab
from support.plugin_project import Project
from support.script import Answer, Playbook, Request

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

DOCS = Path(__file__).parents[2] / "docs" / "testing.md"
BLOCK = re.compile(
    r"<!-- file: (?P<file>\S+) -->\n```python\n(?P<text>.*?)```"
    r"|<!-- edit: (?P<edited>\S+): (?P<old>.*?) → (?P<new>.*?) -->"
    r"|```console\n(?P<console>.*?)```",
    re.DOTALL,
)


def support_desk(request: Request) -> Answer:
    """Plays the model of the document."""
    messages = request.json()["messages"]
    order = messages[0]["content"].rpartition(" ")[2]
    match len(messages):
        case 1:
            text, tools = "I'll look into the account.", [("lookup_account", {"order": order})]
        case 3:
            text, tools = "", [("refund", {"order": order})]
        case _:
            text, tools = f"The refund of order {order} is on its way.", []
    return anthropic_message(request, text, tools=tools)


def commands(console: str) -> Iterator[tuple[str, list[str]]]:
    """Each command, and the lines that it is said to print."""
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, *lines = part.rstrip("\n").split("\n")
        yield command, lines


def shows(printed: str, lines: list[str]) -> str | None:
    """The first line that was not printed behind those before it; ``…`` stands for anything."""
    at = 0
    for line in lines:
        pattern = ".*".join(re.escape(piece) for piece in line.split("…"))
        found = re.compile(f"^{pattern}$", re.MULTILINE).search(printed, at)
        if found is None:
            return line
        at = found.end()
    return None


def test_every_example_of_the_document_does_what_it_says(lab: Callable[[Playbook], Lab]) -> None:
    project = Project.create(lab(support_desk))
    ran = 0
    for block in BLOCK.finditer(DOCS.read_text()):
        if block["file"]:
            project.write(block["file"], block["text"])
        elif block["edited"]:
            file = project.folder / block["edited"]
            assert block["old"] in file.read_text()
            file.write_text(file.read_text().replace(block["old"], block["new"]))
        else:
            for command, lines in commands(block["console"]):
                program, *words = shlex.split(command)
                if program == "pytest":
                    done = project.pytest(*words)
                else:
                    done = run([program, *words], project.environment(), cwd=project.folder)
                missing = shows(done.text, lines)
                assert missing is None, f"$ {command}\nshould print {missing!r}, and printed:\n{done.text}{done.talk}"
                ran += 1
    assert ran == 7, "commands of the document"


def test_the_readmes_test_needs_no_other_plugin(lab: Callable[[Playbook], Lab]) -> None:
    section = (
        (DOCS.parents[1] / "README.md").read_text().partition("## Test on it\n")[2].partition("\nThe first run")[0]
    )
    sample = "".join(line.removeprefix("    ") for line in section.splitlines(keepends=True))
    agent = next(block["text"] for block in BLOCK.finditer(DOCS.read_text()) if block["file"] == "agent.py")
    project = Project.create(lab(support_desk))
    project.write("agent.py", agent)
    project.write("tests/test_refunds.py", f"from agent import support\n{sample}")
    for words in ((), ("--rewind=none",)):
        done = project.pytest(*words)
        assert done.code == 0, done.text
    assert (project.folder / "tests/cassettes/test_refunds/test_agent_handles_refund_request.rw").is_file()


def test_every_python_block_of_the_document_is_run() -> None:
    text = DOCS.read_text()
    assert text.count("```python") == sum(1 for block in BLOCK.finditer(text) if block["file"])
    assert text.count("```console") == sum(1 for block in BLOCK.finditer(text) if block["console"])
