"""The shape of the code: one owner per name, no circles, and documents that name files which exist."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from code_figures import GOALS, Project, figures, read_project, statements

ROOT = Path(__file__).resolve().parents[2]

SHARED_NAMES: dict[str, str] = {}
"""Class names that two modules may share, with the reason."""

TESTED_THROUGH = {
    "rewind.cli": "tests/unit/cli: commands are run with their arguments, screens are compared as a whole",
    "rewind.providers": "tests/unit/providers, tests/unit/edit: by the API that a request is recognised as",
    "rewind.edit": "tests/unit/edit: by the row of the grammar",
    "rewind.formats": "tests/unit/formats, tests/unit/trace: by whole files",
    "rewind.inprocess": "tests/unit/inprocess, tests/e2e/test_inprocess_clients.py: by real clients",
    "rewind.pytest_plugin": "tests/unit/pytest_plugin, tests/e2e/test_pytest_plugin_modes.py: by real pytest runs",
    "rewind.reading": "tests/unit/reading, tests/unit/cli: through the commands",
    "rewind.playback.renamed_steps": "tests/e2e/test_another_day.py: by replays of a real agent",
    "rewind.model.names": "tests/unit/match/test_renaming.py, tests/unit/test_settings.py: by what they name",
    "rewind.wire.json_strings": "tests/unit/redaction: in the streams that are redacted",
    "rewind.runs": "tests/unit/runs, tests/e2e/test_torture_table.py: by real child processes",
    "rewind.sdk": "tests/unit/sdk, tests/e2e/test_sdk_sessions.py: through rewind.session and rewind.tool",
    "rewind.store": "tests/unit/store: through the library, the reader and the writer",
    "rewind.redaction": "tests/unit/redaction: through the redactor and the scan",
    "rewind.compare": "tests/unit/compare: through bisect and diff",
    "rewind.views": "tests/unit/cli, tests/unit/test_views.py: by the JSON of the commands",
    "rewind.trace": "tests/unit/trace: through rewind.Trace",
    "rewind.gateway.hooks": "tests/e2e/test_clients_reach_the_gateway.py: in the programs that load them",
    "rewind.conversation": "tests/unit/conversation: through threads, outline and context",
    "rewind.files": "tests/unit/gateway/test_authority.py, tests/unit/store: by what they write",
    "rewind.version": "tests/unit/cli/test_command_main.py: by what --version prints",
    "rewind.__main__": "tests/e2e/test_command_line.py",
}
"""Packages whose modules need no test file that imports them by name, and the tests that reach them instead."""


@pytest.fixture(scope="module")
def project() -> Project:
    return read_project(ROOT / "src")


def test_the_code_stays_within_its_figures(project: Project) -> None:
    over = {name: count for name, count in figures(project).items() if count > GOALS[name]}
    assert over == {}, "python scripts/code_figures.py src --list"


def test_a_public_class_name_has_one_owner(project: Project) -> None:
    assert project.shared_class_names().keys() == SHARED_NAMES.keys()


def test_no_module_imports_itself_in_a_circle(project: Project) -> None:
    assert project.cycles() == []


def test_every_module_is_reached_by_a_test(project: Project) -> None:
    imported = {name for file in _test_files() for name in _imported_by(file, project)}
    alone = [
        name
        for name, module in project.modules.items()
        if name not in imported and not module.is_package and not _reached_through(name)
    ]
    assert alone == [], "write a test that imports it, or say in TESTED_THROUGH what reaches it"


def test_what_reaches_a_package_is_there() -> None:
    for package, tests in TESTED_THROUGH.items():
        assert (ROOT / "src" / Path(*package.split("."))).with_suffix("").exists() or (
            ROOT / "src" / Path(*package.split("."))
        ).with_suffix(".py").exists(), package
        for named in re.findall(r"tests/[\w/.]+", tests.partition(":")[0]):
            assert (ROOT / named).exists(), f"{package}: {named}"


def test_folders_of_unit_tests_are_packages() -> None:
    for folder in (ROOT / "tests" / "unit").iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            assert (ROOT / "src" / "rewind" / folder.name).is_dir(), folder.name


# Documents


def test_the_seven_walks_name_files_that_exist_and_none_is_long() -> None:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition("## Seven walks")[2].partition("\n## ")[0]
    walks = re.findall(r"^\*\*(.+?)\*\*(.+?)(?=^\*\*|\Z)", section, re.MULTILINE | re.DOTALL)
    assert len(walks) == 7
    for title, body in walks:
        files = re.findall(r"`([\w/]+\.py)`", body)
        assert 3 <= len(files) <= 12, title
        assert len(set(files)) == len(files), title
        for file in files:
            assert (ROOT / "src" / "rewind" / file).is_file(), f"{title}: {file}"


def test_contributing_answers_where_things_are() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("## Where is it?")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?\?) \| (.+?) \|$", section, re.MULTILINE)
    assert len(rows) >= 4
    for question, answer in rows:
        files = re.findall(r"`(src/[\w/.]+)`", answer)
        assert files, question
        for file in files:
            assert (ROOT / file).exists(), f"{question} {file}"


@pytest.mark.parametrize("name", ["docs/ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "docs/glossary.md"])
def test_source_files_that_a_document_names_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for file in re.findall(r"`(?:src/rewind/)?((?:[a-z_]+/)+[a-z_]+\.py)`", text):
        assert any((ROOT / base / file).is_file() for base in ("src/rewind", ".", "tests")), file


# What runs elsewhere


def _commands(value: object) -> Iterator[str]:
    """Every ``run`` of a workflow and every ``entry`` of a hook."""
    if isinstance(value, dict):
        yield from (str(value[name]) for name in ("run", "entry") if name in value)
        for inner in value.values():
            yield from _commands(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _commands(inner)


@pytest.mark.parametrize(
    "name", [".github/workflows/ci.yml", ".github/workflows/release.yml", ".pre-commit-config.yaml"]
)
def test_what_ci_and_hooks_run_is_there(name: str) -> None:
    commands = list(_commands(yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))))
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    tools = {re.split(r"[<>=;\[ ]", need)[0] for need in needs["dev"]} | {"lint-imports"}
    assert commands
    for command in commands:
        program, *words = command.split()
        if program == "make":
            assert words[0] in targets, command
        elif program.startswith(".venv/bin/"):
            assert program.removeprefix(".venv/bin/") in tools, command
        else:
            assert all((ROOT / word).exists() for word in words if word.startswith("src/")), command


def _test_files() -> list[Path]:
    ignored = {"node_modules", "data", "__pycache__"}
    return [path for path in (ROOT / "tests").rglob("*.py") if not ignored & set(path.parts)]


def _imported_by(file: Path, project: Project) -> set[str]:
    names: set[str] = set()
    for node in statements(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return names & project.modules.keys()


def _reached_through(name: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in TESTED_THROUGH)
