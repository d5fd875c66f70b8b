"""What the plugin remembers through one run of pytest, in the controller and in each of its workers."""

import os
from pathlib import Path
from typing import Any

import pytest

from rewind.pytest_plugin.modes import BadOption, ModeChoice, choose_mode

OLD_AFTER = "180"
"""Days after which a cassette is called old."""


class PluginState:
    """Light: it is made in every run of pytest, whether a test is marked or not."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.choice = _choice(config)
        self.strict, self.blocks_network = (
            bool(config.getoption(name) or config.getini(name)) for name in ("rewind_strict", "rewind_block_network")
        )
        self.allowed_hosts: tuple[str, ...] = tuple(config.getini("rewind_allowed_hosts"))
        self.connect_to: tuple[str, ...] = tuple(config.getoption("rewind_connect_to") or ())
        self.usages: list[dict[str, Any]] = []
        """A :class:`~rewind.pytest_plugin.usage.CassetteUsage` per finished test, as it came with its report."""
        self.users: dict[str, int] = {}
        """Cassette → how many collected tests use it."""
        self._folder: str | None = None

    @property
    def root(self) -> Path:
        return self.config.rootpath

    @property
    def start_folder(self) -> Path:
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
        """Whoever made the folder removes it."""
        if self._folder is not None and not self.is_worker:
            import shutil

            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def address(self, nodeid: str) -> str:
        """The test as pytest takes it where it was started; node ids are relative to the root."""
        return address_of(nodeid, self.root, self.start_folder)

    def shown(self, path: Path) -> str:
        """Relative to the root where it lies below it."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return str(path)


def address_of(nodeid: str, root: Path, start_folder: Path) -> str:
    file, separator, rest = nodeid.partition("::")
    return os.path.relpath(root / file, start_folder).replace(os.sep, "/") + separator + rest


def _choice(config: pytest.Config) -> ModeChoice:
    try:
        return choose_mode(config.getoption("rewind"), os.environ, config.getini("rewind_mode"))
    except BadOption as problem:
        raise pytest.UsageError(problem.message) from None
