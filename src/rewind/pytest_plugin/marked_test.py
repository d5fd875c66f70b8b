"""One marked test: its run begins before its fixtures, is judged when the test is over, and ends after them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rewind.errors import RewindError
from rewind.pytest_plugin.cassette_paths import TestCassette, action_for, parameters_of, path_for
from rewind.pytest_plugin.cassette_update import WrittenCassettes
from rewind.pytest_plugin.marks import MarkOptions, read_mark
from rewind.pytest_plugin.modes import BadOption, Mode, pytest_command
from rewind.pytest_plugin.observed import RewindRun
from rewind.pytest_plugin.state import PluginState
from rewind.pytest_plugin.tested_run import TestedRun
from rewind.pytest_plugin.usage import CassetteUsage
from rewind.safe import safe

_SECTION = "rewind"
"""The title of what we add to the report of a failing test."""


class MarkedTest:
    """What happens to one test between its setup and its teardown."""

    def __init__(self, state: PluginState, item: pytest.Item, mark: pytest.Mark, defaults: Mapping[str, Any]) -> None:
        self._state = state
        self._item = item
        self._mark = mark
        self._defaults = defaults
        self._address = state.address(item.nodeid)
        self.usage = CassetteUsage(test=self._address, cassette="", action="")
        self._run: TestedRun | None = None
        self._passed = False
        self._failed = False
        self._judged = False
        self.fixture_calls: tuple[str, ...] = ()
        """What is said of calls of wider fixtures, which are on no cassette."""

    # ── before ───────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Raises pytest's own failure, in words, where the test cannot be run."""
        try:
            options = read_mark(self._mark.args, self._mark.kwargs, self._defaults)
            self._begin(options)
        except (BadOption, RewindError) as problem:
            text = _problem_text(problem)
        else:
            return
        pytest.fail(text, pytrace=False)  # outside: one sentence, and not what it came from

    def _begin(self, options: MarkOptions) -> None:
        state = self._state
        path = path_for(self._item, options)
        shown = state.shown(path)
        mode = state.choice.for_test(options.mode)
        written = _written_cassettes(state.folder)
        action = action_for(mode, exists=path.exists(), written_now=path in written)
        self.usage = CassetteUsage(test=self._address, cassette=shown, action=action.value)
        cassette = TestCassette(
            test=self._item.nodeid,
            address=self._address,
            path=path,
            shown=shown,
            default=path_for(self._item, MarkOptions()),
            options=options,
            action=action,
            missing=self._missing(shown, mode),
            given=parameters_of(self._item),
            shared=state.users.get(str(path), 0) > 1,
        )
        run = TestedRun(state, written, cassette)
        run.start()
        self._run = run

    def _missing(self, shown: str, mode: Mode) -> str:
        why = "CI is set" if self._state.choice.origin == "CI" else f"the mode is {mode}"
        return (
            f"rewind: {shown} does not exist, and nothing is recorded because {why}.\n"
            f"Record it:  {pytest_command(self._address, Mode.ONCE)}"
        )

    @property
    def observed(self) -> RewindRun:
        assert self._run is not None, "a test that could not begin has no body"
        return self._run.observed

    # ── the verdict ──────────────────────────────────────────────────────────────────────────────────────────

    def judge(self) -> None:
        """A test that passed by itself fails for calls without an answer, where nothing was replayed, and, if strict,
        for unplayed steps."""
        if text := self._verdict(strict=self._state.strict, passed=True):
            self._judged = True
            pytest.fail(text, pytrace=False)

    def judge_skipped(self) -> None:
        """A test that skips itself for want of an answer would otherwise hide it."""
        if text := self._verdict(strict=False):
            self._judged = True
            raise pytest.fail.Exception(text, pytrace=False) from None

    def _verdict(self, *, strict: bool, passed: bool = False) -> str:
        return "" if self._run is None else self._run.failure_text(strict=strict, passed=passed)

    def add_to_report(self, report: pytest.TestReport) -> None:
        """Called for each phase; a failing run is kept, and its report says what we know."""
        self._failed = self._failed or report.failed  # a subtest has a report of its own
        if report.when == "call":
            self._passed = report.passed and not self._failed
        if self._run is None or not report.failed or report.when == "teardown":
            return
        texts = [] if self._judged else [self._verdict(strict=False)]
        texts.append(_kept(self._run))
        if text := "\n\n".join(filter(None, texts)):
            report.sections.append((_SECTION, text))

    # ── after ────────────────────────────────────────────────────────────────────────────────────────────────

    def end(self) -> None:
        """The fixture's finalizer: what it raises is an error of the teardown."""
        if self._run is None:
            return
        late = self._verdict(strict=False) if self._passed else ""
        self._passed = self._passed and not late
        self.usage = self._run.end(passed=self._passed)
        if late:  # a fixture asked something when it was torn down
            pytest.fail(late, pytrace=False)

    def settle(self, *, clean: bool) -> None:
        """After the last fixture: what becomes of the cassette. ``clean``: no fixture failed."""
        if self._run is None:
            return
        self.usage = replace(self.usage, passed=self._passed and clean, fixture_calls=self.fixture_calls)
        try:
            self.usage = self._run.settle(self.usage)
        except RewindError as problem:
            text = _problem_text(problem)
        else:
            return
        pytest.fail(text, pytrace=False)


def _kept(run: TestedRun) -> str:
    try:
        return run.keep_failing()
    except Exception as problem:  # noqa: BLE001  whatever it is: the test's own failure is what must be shown
        return safe(f"rewind: this run could not be kept: {problem}")


@cache
def _written_cassettes(folder: Path) -> WrittenCassettes:
    return WrittenCassettes(folder / "written")


def _problem_text(problem: BadOption | RewindError) -> str:
    return safe(f"rewind: {problem.message}" + (f"\n{problem.hint}" if problem.hint else ""))
