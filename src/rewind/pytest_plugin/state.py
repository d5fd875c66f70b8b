"""What the plugin remembers through one run of pytest, in the controller and in each of its workers."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from rewind.pytest_plugin.options import Choice, choose

OLD_AFTER = "180"
"""Days after which a cassette is called old."""


class Desk:
    """Light: it is made in every run of pytest, whether a test is marked or not."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.choice = _choice(config)
        self.strict = bool(config.getoption("rewind_strict") or config.getini("rewind_strict"))
        self.blocks_network = bool(
            config.getoption("rewind_block_network") or config.getini("rewind_block_network")
        )
        self.allowed_hosts: tuple[str, ...] = tuple(config.getini("rewind_allowed_hosts"))
        self.connect_to: tuple[str, ...] = tuple(config.getoption("rewind_connect_to") or ())
        self.figures: list[dict[str, Any]] = []
        """Of the tests that are over, as they came with their reports."""
        self.used: dict[str, int] = {}
        """Cassette → how many collected tests use it."""
        self._folder: str | None = None

    @property
    def root(self) -> Path:
        return self.config.rootpath

    @property
    def here(self) -> Path:
        """Where pytest was started, and where its user types the next command."""
        return self.config.invocation_params.dir

    @property
    def is_worker(self) -> bool:
        return hasattr(self.config, "workerinput")

    @property
    def folder(self) -> Path:
        """A temporary folder of this run, shared with its workers."""
        if self._folder is None:
            given = getattr(self.config, "workerinput", {}).get("rewind_folder")
            if given is None:
                import tempfile

                given = tempfile.mkdtemp(prefix="rewind-pytest-")
            self._folder = str(given)
        return Path(self._folder)

    def close(self) -> None:
        """The folder goes with whoever made it."""
        if self._folder is not None and not self.is_worker:
            import shutil

            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    # ── what pytest tells ────────────────────────────────────────────────────────────────────────────────────

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Take note of the cassettes that the tests use, those that are left out further on included."""
        for item in items:
            if item.get_closest_marker("rewind") is not None:
                from rewind.pytest_plugin.belonging import (
                    cassette_of,
                )  # lazily: most runs have no marked test

                if (cassette := cassette_of(item)) is not None:
                    self.used[str(cassette)] = self.used.get(str(cassette), 0) + 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if (plain := getattr(report, "rewind", None)) is not None:
            self.figures.append(plain)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """xdist: before a worker starts."""
        node.workerinput["rewind_folder"] = str(self.folder)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """xdist: the workers have collected, the controller has not."""
        self.used |= getattr(node, "workeroutput", {}).get("rewind_used", {})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """After everybody else: a review asks its questions below the summary."""
        if self.is_worker:
            self.config.workeroutput["rewind_used"] = self.used  # type: ignore[attr-defined]  # xdist's
        yield
        if self.figures and not self.is_worker:
            from rewind.pytest_plugin.closing import close_session

            close_session(self, session)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.figures or self.used:
            from rewind.pytest_plugin.closing import print_summary

            print_summary(self, terminalreporter)


def _choice(config: pytest.Config) -> Choice:
    try:
        return choose(config.getoption("rewind"), os.environ, config.getini("rewind_mode"))
    except ValueError as problem:
        raise pytest.UsageError(f"{problem}.") from None


DESK = pytest.StashKey[Desk]()
