"""One marked test: its run begins before its fixtures, is judged when the test is over, and ends after them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rewind.errors import RewindError
from rewind.pytest_plugin import saying
from rewind.pytest_plugin.belonging import path_for
from rewind.pytest_plugin.cassette_paths import shown_path
from rewind.pytest_plugin.ledger import Ledger
from rewind.pytest_plugin.marks import Wish, read_wish
from rewind.pytest_plugin.options import Mode, act_for
from rewind.pytest_plugin.part import Part
from rewind.pytest_plugin.tested_run import Running
from rewind.pytest_plugin.usage import Figures
from rewind.safe import safe

if TYPE_CHECKING:
    from rewind.pytest_plugin.observed import RewindRun
    from rewind.pytest_plugin.state import Desk

SECTION = "rewind"


class Take:
    """What happens to one test between its setup and its teardown."""

    def __init__(
        self, desk: "Desk", item: pytest.Item, mark: pytest.Mark, defaults: Mapping[str, Any]
    ) -> None:
        self._desk = desk
        self._item = item
        self._mark = mark
        self._defaults = defaults
        self.address = saying.test_address(item.nodeid, desk.root, desk.here)
        self.figures = Figures(test=self.address, cassette="", act="")
        self._running: Running | None = None
        self._passed = False
        self._failed = False
        self._judged = False

    # ── before ───────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Raises pytest's own failure, in words, where the test cannot be run."""
        try:
            wish = read_wish(self._mark.args, self._mark.kwargs, self._defaults)
            self._begin(wish)
        except RewindError as problem:
            text = _told(problem)
        else:
            return
        pytest.fail(text, pytrace=False)  # outside: one sentence, and not what it came from

    def _begin(self, wish: Wish) -> None:
        path = path_for(self._item, wish)
        shown = shown_path(path, self._desk.root)
        mode = self._desk.choice.of(wish.mode)
        ledger = _ledger(self._desk.folder)
        act = act_for(mode, there=path.exists(), made_now=ledger.was_written(path))
        self.figures = Figures(test=self.address, cassette=shown, act=act.value)
        part = Part(
            test=self._item.nodeid,
            address=self.address,
            cassette=path,
            own=path_for(self._item, Wish()),
            wish=wish,
            act=act,
            missing=self._missing(shown, mode),
            shared=self._desk.used.get(str(path), 0) > 1,
        )
        running = Running(self._desk, ledger, part)
        running.start()
        self._running = running

    def _missing(self, shown: str, mode: Mode) -> str:
        why = "CI is set" if self._desk.choice.origin == "CI" else f"the mode is {mode}"
        return (
            f"rewind: {shown} is not there, and nothing is recorded because {why}.\n"
            f"Record it:  {saying.command(self.address, Mode.ONCE)}"
        )

    @property
    def observed(self) -> "RewindRun":
        assert self._running is not None, "a test that could not begin has no body"
        return self._running.observed

    # ── the moment of truth ──────────────────────────────────────────────────────────────────────────────────

    def judge(self) -> None:
        """A test that passed by itself fails for calls that nobody answered, and, if strict, for steps left over."""
        if self._running is None:
            return
        if text := self._running.verdict(strict=self._desk.strict):
            self._judged = True
            pytest.fail(text, pytrace=False)

    def judge_skipped(self) -> None:
        """A test that skips itself because nobody answered would otherwise hide it."""
        if self._running is None:
            return
        if text := self._running.verdict(strict=False):
            self._judged = True
            raise pytest.fail.Exception(text, pytrace=False) from None

    def hear(self, report: pytest.TestReport) -> None:
        """Told of each phase; a failing one is kept, and says what we know."""
        self._failed = self._failed or report.failed  # a subtest has a report of its own
        if report.when == "call":
            self._passed = report.passed and not self._failed
        if self._running is None or not report.failed or report.when == "teardown":
            return
        texts = [] if self._judged else [self._running.verdict(strict=False)]
        texts.append(self._kept(self._running))
        if text := "\n\n".join(filter(None, texts)):
            report.sections.append((SECTION, text))

    def _kept(self, running: Running) -> str:
        try:
            return running.keep_failing()
        except Exception as problem:  # noqa: BLE001  whatever it is: the test's own failure is what must be shown
            return safe(f"rewind: this run could not be kept: {problem}")

    # ── after ────────────────────────────────────────────────────────────────────────────────────────────────

    def end(self) -> None:
        """The fixture's finalizer: what it raises is an error of the teardown."""
        if self._running is None:
            return
        late = self._running.verdict(strict=False) if self._passed else ""
        self._passed = self._passed and not late
        self.figures = self._running.end(passed=self._passed)
        if late:  # a fixture asked something when it was torn down
            pytest.fail(late, pytrace=False)

    def settle(self, *, good: bool) -> None:
        """After the last fixture: what becomes of the cassette. ``good``: none of them failed."""
        if self._running is None:
            return
        self.figures = replace(self.figures, passed=self._passed and good)
        try:
            self.figures = self._running.settle(self.figures)
        except RewindError as problem:
            text = _told(problem)
        else:
            return
        pytest.fail(text, pytrace=False)


@cache
def _ledger(folder: Path) -> Ledger:
    return Ledger(folder / "ledger")


def _told(problem: RewindError) -> str:
    return safe(f"rewind: {problem.message}" + (f"\n{problem.hint}" if problem.hint else ""))
