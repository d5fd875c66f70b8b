"""The door: help, version, unknown commands, errors and their exit codes."""

import subprocess
import sys
from pathlib import Path

import pytest

import rewind as package
from rewind.cli import commands, group, main
from rewind.errors import DamagedStore, ExitCode, RewindError

SOURCES = str(Path(package.__file__).parents[1])


def python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {SOURCES!r})\n{code}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["--debug", "--help"], ["--home", "/x", "-h"]])
def test_help_names_every_command_with_its_summary(rewind, arguments):
    ran = rewind(*arguments)
    assert ran.code == 0
    assert ran.text == commands.help_text()
    assert all(name in ran.text and summary in ran.text for name, (_, summary) in commands.COMMANDS.items())
    assert max(map(len, ran.text.splitlines())) <= 80


@pytest.mark.parametrize("name", sorted(commands.COMMANDS))
def test_every_command_has_help_with_examples(rewind, name):
    ran = rewind(name, "--help")
    assert ran.code == 0
    assert "Examples:" in ran.text
    assert f"rewind {name}" in ran.text
    assert ran.talk == ""


def test_the_version_is_one_line(rewind):
    assert rewind("--version").text == f"rewind {package.__version__}\n"


@pytest.mark.process
@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_import_nothing_heavy(argument):
    code = f"""
from rewind.cli.main import run
run([{argument!r}])
heavy = "click re json asyncio ssl socket duckdb cryptography httptools zstandard tomllib dataclasses typing rich"
print("LOADED", [name for name in heavy.split() if name in sys.modules])
"""
    already = python("print([n for n in 're typing json'.split() if n in sys.modules])")
    loaded = python(code).rsplit("LOADED ", 1)[1]
    assert loaded == already, "what the bare interpreter has loaded is not our doing"


def test_an_unknown_command_names_the_nearest(rewind):
    ran = rewind("lst")
    assert ran.code == ExitCode.USAGE
    assert ran.talk == "rewind: There is no command 'lst'.\n  try: rewind list\n"


def test_an_unknown_command_like_no_other_points_to_help(rewind):
    assert "try: rewind --help" in rewind("frobnicate").talk


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["list", "--jsno"], "--json"),
        (["list", "--limit", "many"], "many"),
        (["list", "surplus"], "surplus"),
        (["inspect"], "SESSION"),
        (["record"], "no command"),
        (["record", "--nmae", "x", "true"], "--name"),
        (["record", "--tag", "novalue", "true"], "KEY=VALUE"),
        (["record", "--port", "70000", "true"], "70000"),
        (["replay", "last", "--latency", "fast"], "'fast'"),
        (["replay", "last", "--latency", "nan"], "'nan'"),
        (["replay", "last", "--latency", "-1"], "-1"),
        (["replay", "last", "--on-miss", "guess"], "guess"),
        (["replay", "last:3"], "whole session"),
        (["completion", "tcsh"], "tcsh"),
        (["--debug"], "command"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_exit_code_2(rewind, home, arguments, part):
    ran = rewind(*arguments)
    assert ran.code == ExitCode.USAGE
    assert ran.data == b""
    assert part in ran.talk
    assert ran.talk.startswith("rewind: ")
    assert "Traceback" not in ran.talk
    assert len(ran.talk.splitlines()) <= 2
    assert not home.exists()


def make_list_raise(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_arguments: object) -> int:
        raise error

    monkeypatch.setattr(group, "dispatch", fail)


def test_an_error_of_ours_is_a_sentence_a_hint_and_its_exit_code(rewind, monkeypatch):
    make_list_raise(monkeypatch, DamagedStore("Bytes are gone.", hint="rewind verify"))
    ran = rewind("list")
    assert (ran.code, ran.talk) == (ExitCode.ENVIRONMENT, "rewind: Bytes are gone.\n  try: rewind verify\n")


def test_an_error_cannot_steer_the_terminal(rewind, monkeypatch):
    make_list_raise(monkeypatch, RewindError("\x1b]0;owned\x07", hint="\x9b31m"))
    talk = rewind("list").talk
    assert "\x1b" not in talk
    assert "\x07" not in talk
    assert "\x9b" not in talk


def test_ctrl_c_is_exit_code_130_without_a_traceback(rewind, monkeypatch):
    make_list_raise(monkeypatch, KeyboardInterrupt())
    ran = rewind("list")
    assert (ran.code, ran.talk) == (130, "rewind: interrupted\n")


def test_an_unknown_fault_keeps_its_traceback_and_says_whose_it_is(rewind, monkeypatch):
    make_list_raise(monkeypatch, ZeroDivisionError("nobody's fault \x1b[31m"))
    ran = rewind("list")
    assert ran.code == main.BUG
    assert "Traceback" in ran.talk
    assert "ZeroDivisionError" in ran.talk
    assert "\x1b" not in ran.talk
    assert "bug in Rewind" in ran.talk.splitlines()[-1]


def test_a_broken_pipe_that_is_not_ours_is_a_bug_and_not_silence(rewind, monkeypatch):
    make_list_raise(monkeypatch, BrokenPipeError())
    assert rewind("list").code == main.BUG


def test_debug_shows_where_an_error_came_from(rewind, monkeypatch):
    plain, flag = rewind("inspect", "nope"), rewind("inspect", "nope", "--debug")
    assert "Traceback" not in plain.talk
    assert "Traceback" in flag.talk
    assert flag.talk.endswith(plain.talk)
    monkeypatch.setenv("REWIND_DEBUG", "1")
    assert "Traceback" in rewind("inspect", "nope").talk
    monkeypatch.setenv("REWIND_DEBUG", "0")
    assert "Traceback" not in rewind("inspect", "nope").talk


@pytest.mark.process
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(rewind, shell):
    ran = rewind("completion", shell)
    assert ran.code == 0
    assert commands.COMPLETE_VARIABLE in ran.text


def test_a_completing_shell_is_told_commands_and_sessions(rewind, shelf, monkeypatch):
    shelf.add("7f3a2b9c", name="refund")
    monkeypatch.setenv(commands.COMPLETE_VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "rewind in")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert {line.split(",")[1] for line in rewind().text.splitlines()} == {"init", "inspect"}
    monkeypatch.setenv("COMP_WORDS", "rewind inspect ")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert {line.split(",")[1] for line in rewind().text.splitlines()} == {"last", "7f3a2b9c", "refund"}
