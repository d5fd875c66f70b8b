"""After the last test: the summary, what strictness makes of it, and the review of stale cassettes."""

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rewind.pytest_plugin.belonging import orphans
from rewind.pytest_plugin.cassette_paths import shown_path
from rewind.pytest_plugin.options import Mode
from rewind.pytest_plugin.report import lines, unplayed
from rewind.pytest_plugin.usage import Figures, figures_from

if TYPE_CHECKING:
    from rewind.pytest_plugin.state import Desk

_SELECTING = (
    "keyword",
    "markexpr",
    "deselect",
    "lf",
    "failedfirst_only",
    "stepwise",
    "ignore",
    "ignore_glob",
)
"""Options of pytest that leave tests out."""


def print_summary(desk: "Desk", terminal: pytest.TerminalReporter) -> None:
    """The plugin's lines, in pytest's own summary."""
    if desk.config.option.collectonly:
        return
    told = judged(desk, terminal)
    lost = orphans_of(desk, terminal)
    if not told and not lost:
        return
    verbosity = desk.config.get_verbosity()
    shown = lines(
        told,
        lost,
        now=time.time(),
        old_after=float(desk.config.getini("rewind_old_after")),
        verbose=verbosity > 0 or desk.strict,
    )
    terminal.write_line("")
    for line in shown:
        terminal.write_line(line)


def all_figures(desk: "Desk") -> list[Figures]:
    """In the same order however many workers there were."""
    return sorted(map(figures_from, desk.figures), key=lambda one: (one.cassette, one.test))


def judged(desk: "Desk", terminal: pytest.TerminalReporter | None) -> list[Figures]:
    """As all figures; but nothing is unplayed on a cassette that tests may use of which this run knows nothing."""
    told = all_figures(desk)
    ran = Counter(one.cassette for one in told)
    users = {shown_path(Path(path), desk.root): number for path, number in desk.used.items()}
    whole = terminal is not None and whole_suite(desk.config, terminal)
    return [
        replace(one, on_tape=())
        if one.named and not (whole and ran[one.cassette] >= users.get(one.cassette, 0))
        else one
        for one in told
    ]


def orphans_of(desk: "Desk", terminal: pytest.TerminalReporter) -> list[str]:
    """Cassettes that no test uses; none where it cannot be told, because not every test was collected."""
    if not desk.used or not whole_suite(desk.config, terminal):
        return []
    return [shown_path(path, desk.root) for path in orphans(desk.used)]


def whole_suite(config: pytest.Config, terminal: pytest.TerminalReporter) -> bool:
    """Whether every test of the project was collected: no paths named, nothing left out, no file that failed."""
    options = config.option
    left_out = any(getattr(options, name, None) for name in _SELECTING)
    named = bool(getattr(options, "file_or_dir", None))
    stats = terminal.stats
    not_read = (*stats.get("error", []), *stats.get("skipped", []))
    broken = any(isinstance(report, pytest.CollectReport) for report in not_read)
    elsewhere = config.invocation_params.dir != config.rootpath
    return not (left_out or named or broken or elsewhere or stats.get("deselected"))


def close_session(desk: "Desk", session: pytest.Session) -> None:
    told = judged(desk, session.config.pluginmanager.get_plugin("terminalreporter"))
    if desk.strict and session.exitstatus == pytest.ExitCode.OK and unplayed(told):
        # Those that one test alone plays have failed it already; of a shared cassette only all tests together can tell.
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if desk.choice.mode is Mode.REVIEW and any(one.stale for one in told):
        from rewind.pytest_plugin.review import review

        review(desk, session, [one for one in told if one.stale])
