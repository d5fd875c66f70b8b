"""After the last test: the plugin's lines, what strictness makes of them, and the review of stale cassettes.

``rewind: 41 replayed, 0 live, saved $1.84 · 2 unused steps``
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewind.dataclass import dataclass
from rewind.model.clock import SystemClock
from rewind.pytest_plugin.cassette_paths import CassetteAction, orphans
from rewind.pytest_plugin.modes import VARIABLE, Mode, pytest_command
from rewind.pytest_plugin.state import PluginState
from rewind.pytest_plugin.usage import CassetteUsage, usage_from
from rewind.safe import safe
from rewind.text import UNKNOWN, dollars, plural

Usages = Sequence[CassetteUsage]
_DAY = 86400.0
_SHOWN = 8
_SELECTING = ("keyword", "markexpr", "deselect", "lf", "failedfirst_only", "stepwise", "ignore", "ignore_glob")
"""Options of pytest that leave tests out."""
_QUESTION = "re-record? [y/N/a/q] "
_REPORTS = ("--junitxml", "--junit-xml", "--report-log", "--html")
"""Options that name a file to write: the one of this run is not to be overwritten by that of a few tests."""


# ── at the end of a run ──────────────────────────────────────────────────────────────────────────────────────


class SuiteReport:
    """What is said, and done, after the last test."""

    def __init__(self, state: PluginState) -> None:
        self._state = state
        self._terminal: pytest.TerminalReporter | None = state.config.pluginmanager.get_plugin("terminalreporter")

    def print_summary(self) -> None:
        """The plugin's lines, in pytest's own summary."""
        state, terminal = self._state, self._terminal
        if state.config.option.collectonly or terminal is None:
            return
        usages, unused = self._usages(), self._orphans()
        if not usages and not unused:
            return
        lines = summary_lines(
            usages,
            unused,
            now=SystemClock().now(),
            old_after=float(state.config.getini("rewind_old_after")),
            verbose=state.config.get_verbosity() > 0 or state.strict,
        )
        for line in ("", *lines):
            terminal.write_line(line)

    def close(self, session: pytest.Session) -> None:
        state, usages = self._state, self._usages()
        if state.strict and session.exitstatus == pytest.ExitCode.OK and unplayed(usages):
            # Those that one test alone plays have failed it already; of a shared cassette only all tests can tell.
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if state.choice.mode is Mode.REVIEW and (stale := [usage for usage in usages if usage.stale]):
            review(state, session, stale)

    def _usages(self) -> list[CassetteUsage]:
        """In the same order however many workers there were; and nothing is unplayed on a cassette that tests may use
        of which this run knows nothing."""
        usages = sorted(map(usage_from, self._state.usages), key=lambda usage: (usage.cassette, usage.test))
        ran = Counter(usage.cassette for usage in usages)
        users = {self._state.shown(Path(path)): number for path, number in self._state.users.items()}
        whole = self._is_whole_suite()
        return [
            replace(usage, on_tape=())
            if usage.may_have_other_users and not (whole and ran[usage.cassette] >= users.get(usage.cassette, 0))
            else usage
            for usage in usages
        ]

    def _orphans(self) -> list[str]:
        """Cassettes that no test uses; none where it cannot be told, because not every test was collected."""
        if not self._state.users or not self._is_whole_suite():
            return []
        return list(map(self._state.shown, orphans(self._state.users)))

    def _is_whole_suite(self) -> bool:
        """Whether every test of the project was collected: no paths named, nothing left out, no file that failed."""
        if self._terminal is None:
            return False
        config, stats = self._state.config, self._terminal.stats
        left_out = any(getattr(config.option, name, None) for name in _SELECTING)
        named = bool(getattr(config.option, "file_or_dir", None))
        not_read = (*stats.get("error", []), *stats.get("skipped", []))
        broken = any(isinstance(report, pytest.CollectReport) for report in not_read)
        elsewhere = config.invocation_params.dir != config.rootpath
        return not (left_out or named or broken or elsewhere or stats.get("deselected"))


# ── the lines ────────────────────────────────────────────────────────────────────────────────────────────────


def summary_lines(usages: Usages, unused: Sequence[str], *, now: float, old_after: float, verbose: bool) -> list[str]:
    """Everything the summary says, safe to print. ``unused``: cassettes that no test uses."""
    first = headline(usages, now=now, old_after=old_after)
    return [safe(line) for line in (first, *_details(usages, unused, verbose=verbose))]


def headline(usages: Usages, *, now: float, old_after: float) -> str:
    """The one line that is always shown."""
    live = sum(usage.live for usage in usages)
    calls = [
        f"{sum(usage.replayed for usage in usages):,} replayed" + _renamed(usages),
        f"{live:,} live" + (f" (spent {_spent(usages)})" if live else ""),
    ]
    if any(usage.replayed for usage in usages):
        calls.append(f"saved {_saved(usages)}")
    parts = [", ".join(calls)]
    if left := sum(len(steps.left) for steps in unplayed(usages)):
        parts.append(plural(left, "unused step"))
    if wrote := len({usage.cassette for usage in usages if usage.wrote}):
        parts.append(f"{plural(wrote, 'cassette')} written")
    if same := len({usage.cassette for usage in usages if usage.unchanged}):
        parts.append(f"{plural(same, 'cassette')} recorded again, unchanged")
    if stale := sum(bool(usage.stale) for usage in usages):
        parts.append(f"{plural(stale, 'test')} with a stale cassette")
    if old := _old(usages, now, old_after):
        parts.append(old)
    return "rewind: " + " · ".join(parts)


def _renamed(usages: Usages) -> str:
    """``(2 same but for names)``."""
    renamed = sum(usage.renamed for usage in usages)
    return f" ({renamed:,} same but for names)" if renamed else ""


def _saved(usages: Usages) -> str:
    return _money([usage.saved for usage in usages], sum(usage.saved_unpriced for usage in usages))


def _spent(usages: Usages) -> str:
    return _money([usage.spent for usage in usages], sum(usage.spent_unpriced for usage in usages))


def _money(sums: Iterable[float | None], unpriced: int) -> str:
    """Unknown is a dash, and what a sum leaves out is said."""
    known = [usd for usd in sums if usd is not None]
    text = dollars(sum(known)) if known and (sum(known) or not unpriced) else UNKNOWN
    return text + (f", {plural(unpriced, 'call')} unpriced" if unpriced else "")


def _old(usages: Usages, now: float, old_after: float) -> str:
    recorded = {usage.cassette: usage.recorded for usage in usages if usage.recorded is not None and not usage.wrote}
    ages = sorted(int((now - moment) // _DAY) for moment in recorded.values())
    old = [age for age in ages if age >= old_after]
    if not old:
        return ""
    if len(old) == 1:
        return f"1 cassette {old[0]} days old"
    return f"{len(old)} cassettes {old[0]} to {old[-1]} days old"


def _details(usages: Usages, unused: Sequence[str], *, verbose: bool) -> Iterator[str]:
    """The lines below: always what needs a look, and with ``-v`` all the rest."""
    for usage in usages:
        for secret in usage.secrets:
            yield f"  {usage.cassette}: {secret}: check it before you commit"
        for text in usage.fixture_calls:
            yield from (f"  {line}" for line in text.removeprefix("rewind: ").splitlines())
    for cassette, kept in _kept_steps(usages):
        yield (
            f"  {cassette}: {plural(kept, 'older step')} {'is' if kept == 1 else 'are'} kept, because other tests may "
            "need them; to drop them, delete it and record all its tests"
        )
    for cassette in unused:
        yield f"  {cassette}: no test uses it"
    if not verbose:
        return
    for left in unplayed(usages):
        yield f"  {left}"
    for usage in usages:
        for where in usage.blocked:
            yield f"  {usage.test}: a connection to {where} was blocked"
        for remark in usage.remarks:
            yield f"  {usage.test}: {remark}"
        if usage.names:
            yield f"  {usage.test}: same but for {', '.join(usage.names)}"
    for cassette in sorted({usage.cassette for usage in usages if usage.wrote}):
        yield f"  {cassette}: written"


def _kept_steps(usages: Usages) -> list[tuple[str, int]]:
    """Each test that records replaces more of them, so the least is what is left."""
    left: dict[str, int] = {}
    for usage in usages:
        if usage.wrote:
            left[usage.cassette] = min(usage.kept, left.get(usage.cassette, usage.kept))
    return [(cassette, kept) for cassette, kept in sorted(left.items()) if kept]


@dataclass(frozen=True, slots=True)
class UnplayedSteps:
    """A cassette of which steps were left over by all the tests that played it, and passed."""

    cassette: str
    left: tuple[int, ...]
    total: int

    def __str__(self) -> str:
        if len(self.left) == self.total:
            return f"{self.cassette}: none of its {plural(self.total, 'step')} was played"
        shown = ", ".join(map(str, self.left[:_SHOWN])) + (", …" if len(self.left) > _SHOWN else "")
        steps = f"step {shown} was" if len(self.left) == 1 else f"steps {shown} were"
        return f"{self.cassette}: {steps} not played ({len(self.left)} of {self.total})"


def unplayed(usages: Usages) -> list[UnplayedSteps]:
    """A failed test may have stopped early, so a cassette that a failed test used is left out."""
    by_cassette: dict[str, list[CassetteUsage]] = {}
    for usage in usages:
        by_cassette.setdefault(usage.cassette, []).append(usage)
    unplayed_steps = []
    for cassette, tests in sorted(by_cassette.items()):
        if not all(test.action == CassetteAction.PLAY and test.passed for test in tests):
            continue
        on_tape = {index for test in tests for index in test.on_tape}
        played = {index for test in tests for index in test.played}
        if left := tuple(sorted(on_tape - played)):
            unplayed_steps.append(UnplayedSteps(cassette, left, len(on_tape)))
    return unplayed_steps


# ── the review of stale cassettes (--rewind=review) ──────────────────────────────────────────────────────────


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
    words = [sys.executable, "-m", "pytest", *without_places(state.config), *tests, f"--rewind={Mode.REWRITE}"]
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
