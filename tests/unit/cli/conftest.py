"""Run a command in this process, on a store that the test fills itself."""

from pathlib import Path

import pytest

from rewind.cli.main import run
from unit.cli.shelf import Ran, Rewind, Shelf


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def rewind(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Rewind:
    """``rewind("list", "--json")`` as a user of that store would run it, without a terminal."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "REWIND_DEBUG", "_REWIND_COMPLETE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REWIND_HOME", str(home))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)

    def rewind(*arguments: str) -> Ran:
        capsysbinary.readouterr()
        code = run(list(arguments))
        captured = capsysbinary.readouterr()
        return Ran(int(code), captured.out, captured.err.decode())

    return rewind


@pytest.fixture
def shelf(home: Path) -> Shelf:
    return Shelf(home)
