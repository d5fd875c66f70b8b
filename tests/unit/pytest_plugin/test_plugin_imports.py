"""Everybody who installed Rewind loads its plugin in every run of pytest: what that loads is next to nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

CONFTEST = """
import sys

def pytest_unconfigure():
    print("LOADED", *sorted(name for name in sys.modules if name.partition(".")[0] == "rewind"))
"""
LIGHT = {
    "rewind",
    "rewind.dataclass",
    "rewind.pytest_plugin",
    "rewind.pytest_plugin.modes",
    "rewind.pytest_plugin.plugin",
    "rewind.pytest_plugin.state",
    "rewind.version",
}


def run_pytest(folder: Path, *words: str) -> str:
    """What it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "rewind.pytest_plugin.plugin", *words],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("plugins", [(), ("-p", "xdist", "-n1")], ids=["alone", "xdist"])
def test_a_project_without_marks_loads_no_more_than_the_hooks(tmp_path: Path, plugins: tuple[str, ...]) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text("def test_nothing(): ...\n")
    (loaded,) = [line for line in run_pytest(tmp_path, *plugins).splitlines() if line.startswith("LOADED")]
    assert set(loaded.split()[1:]) == LIGHT


def test_pytest_rewrites_no_module_that_a_marked_test_needs(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import sys, pytest\n"
        "pytest.register_assert_rewrite('rewind')  # as it does with whatever a plugin's distribution holds\n"
        "def pytest_unconfigure():\n"
        "    ours = [(name, module) for name, module in sys.modules.items() if name.startswith('rewind.')]\n"
        "    rewritten = [name for name, it in ours if type(it.__spec__.loader).__name__ != 'SourceFileLoader']\n"
        "    print('LOADED', len(ours), 'REWRITTEN', *rewritten)\n"
    )
    (tmp_path / "test_it.py").write_text("import pytest\n@pytest.mark.rewind\ndef test_nothing(): ...\n")
    (told,) = [line.split() for line in run_pytest(tmp_path, "--rewind=none").splitlines() if line.startswith("LOADED")]
    assert int(told[1]) > len(LIGHT)
    assert set(told[3:]) <= LIGHT, "only what the plugin itself needs came before it could say so"


@pytest.mark.parametrize(
    ("before", "after"),
    [("", (True, False)), ("gc.disable()", (False, False)), ("gc.freeze()", (True, True))],
    ids=["as usual", "disabled", "frozen"],
)
def test_the_collector_is_left_as_the_project_has_it(tmp_path: Path, before: str, after: tuple[bool, bool]) -> None:
    (tmp_path / "conftest.py").write_text(f"import gc\n{before}\n")
    (tmp_path / "test_it.py").write_text(
        "import gc, pytest\n"
        "@pytest.mark.rewind\n"
        f"def test_it(): assert (gc.isenabled(), gc.get_freeze_count() > 0) == {after}\n"
    )
    run_pytest(tmp_path, "--rewind=none")
