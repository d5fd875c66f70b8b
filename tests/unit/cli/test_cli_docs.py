"""``docs/cli.md`` names every option of every command, and every member of its JSON."""

import ast
import importlib
import re
from pathlib import Path

import click
import pytest

from rewind.cli.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^## ", DOCUMENT, flags=re.MULTILINE)[1:]
EVERYWHERE = {"--home", "--debug", "--help", "--json"}
"""Said once for all commands."""


def about(command: str) -> str:
    """The sections whose heading names the command, and its row in the table of commands."""
    sections = [text for text in SECTIONS if re.search(rf"`(rewind )?{command}`", text.partition("\n")[0])]
    return "\n".join([*sections, *re.findall(rf"^\| `{command}\b.*$", DOCUMENT, re.MULTILINE)])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_named_where_its_command_is_told_of(name: str) -> None:
    command = importlib.import_module(COMMANDS[name][0]).command
    options = [option for one in command.params if isinstance(one, click.Option) for option in one.opts]
    text = about(name)
    missing = [
        option
        for option in options
        if option.startswith("--") and option not in EVERYWHERE and not re.search(rf"{option}(?![\w-])", text)
    ]
    assert not missing


def json_views() -> list[tuple[str, list[str]]]:
    """Every schema of the views, with the members of its object."""
    found = []
    for file in sorted((ROOT / "src" / "rewind" / "views").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                members = {key.value: value for key, value in pairs if isinstance(key, ast.Constant)}
                if isinstance(schema := members.pop("schema", None), ast.Constant):
                    found.append((str(schema.value), sorted(map(str, members))))
    return found


@pytest.mark.parametrize(("schema", "members"), json_views(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_member_is_named_beside_its_schema(schema: str, members: list[str]) -> None:
    (row,) = re.findall(rf"^\| `{schema}`.*$", DOCUMENT, re.MULTILINE)
    assert [member for member in members if f"`{member}`" not in row] == []
