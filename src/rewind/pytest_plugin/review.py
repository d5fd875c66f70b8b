"""``--rewind=review``: show each stale cassette, and record it again where the user says yes."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from rewind.pytest_plugin.modes import VARIABLE, Mode, pytest_command
from rewind.pytest_plugin.state import PluginState
from rewind.pytest_plugin.usage import CassetteUsage
from rewind.safe import safe
from rewind.text import plural

_QUESTION = "re-record? [y/N/a/q] "
_REPORTS = ("--junitxml", "--junit-xml", "--report-log", "--html")
"""Options that name a file to write: the one of this run is not to be overwritten by that of a few tests."""


def review(state: PluginState, session: pytest.Session, stale: Sequence[CassetteUsage]) -> None:
    """Ask at a terminal; elsewhere print the commands."""
    terminal: Any = state.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None:
        return
    with _terminal_in_hand(state.config):
        if not (sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()):
            terminal.write_line(f"rewind: {plural(len(stale), 'stale cassette')}; to record again:")
            for usage in stale:
                terminal.write_line(f"  {pytest_command(usage.test, Mode.REWRITE)}")
            return
        wanted = chosen(stale, show=lambda text: terminal.write_line(safe(text)), ask=_ask)
        if not wanted:
            return
        terminal.write_line(f"rewind: recording {plural(len(wanted), 'test')} again")
        terminal.flush()
        done = _record(state, [usage.test for usage in wanted])
    failures = sum(len(terminal.stats.get(outcome, [])) for outcome in ("failed", "error"))
    if done == pytest.ExitCode.OK and failures == len(wanted):
        # All that failed was stale, and is recorded again now.
        session.exitstatus = pytest.ExitCode.OK


def chosen(
    stale: Sequence[CassetteUsage], *, show: Callable[[str], None], ask: Callable[[], str]
) -> list[CassetteUsage]:
    """Those to record again: ``y`` this one, ``a`` this one and all that follow, ``q`` stop here, anything else no."""
    wanted: list[CassetteUsage] = []
    for at, usage in enumerate(stale):
        for line in ("", usage.test, usage.stale):
            show(line)
        match ask().strip().lower():
            case "y" | "yes":
                wanted.append(usage)
            case "a" | "all":
                return [*wanted, *stale[at:]]
            case "q" | "quit":
                return wanted
    return wanted


def _ask() -> str:
    try:
        return input(_QUESTION)
    except (EOFError, KeyboardInterrupt):
        return "q"


def _record(state: PluginState, tests: Sequence[str]) -> int:
    """Run the same pytest with these tests alone, in another process."""
    words = [
        sys.executable,
        "-m",
        "pytest",
        *without_places(state.config),
        *tests,
        f"--rewind={Mode.REWRITE}",
    ]
    environ = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return subprocess.run(words, cwd=state.start_folder, env=environ, check=False).returncode


def without_places(config: pytest.Config) -> list[str]:
    """The words pytest was started with, less the files and folders among them, and the reports."""
    words = without_reports([str(word) for word in config.invocation_params.args])
    for place in reversed(getattr(config.option, "file_or_dir", None) or []):
        if place in words:
            last = len(words) - 1 - words[::-1].index(place)
            del words[last]
    if config.getoption("xmlpath", None):
        # It may stand in the ini file, too, which the other pytest reads as well.
        words.append("--junitxml=")
    return words


def without_reports(words: Sequence[str]) -> list[str]:
    """Less the options that write reports, and their files."""
    kept: list[str] = []
    left = iter(words)
    for word in left:
        if word in _REPORTS:
            next(left, None)
        elif word.partition("=")[0] not in _REPORTS:
            kept.append(word)
    return kept


@contextmanager
def _terminal_in_hand(config: pytest.Config) -> Iterator[None]:
    """Standard input and output as they really are."""
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    if capture is None:
        yield
        return
    capture.suspend_global_capture(in_=True)
    try:
        yield
    finally:
        capture.resume_global_capture()
