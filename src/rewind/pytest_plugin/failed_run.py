"""A failing run is kept for ``rewind bisect`` until its test passes again."""

from pathlib import Path

from rewind.pytest_plugin.saying import quoted
from rewind.settings import FAILING_TESTS, PROJECT_FOLDER

FOLDER = Path(PROJECT_FOLDER) / FAILING_TESTS


def kept_path(root: Path, cassette: Path) -> Path:
    """Where a failing run of the test with that default cassette is kept."""
    try:
        parts = cassette.relative_to(root).parts
    except ValueError:
        parts = cassette.parts[-2:]
    return root.joinpath(FOLDER, *(part for part in parts if part != "cassettes"))


def keep(file: Path, root: Path, data: bytes) -> None:
    """Written for this machine only: the folder keeps itself out of git."""
    from rewind.store.cassette.cassette import write_cassette_file

    file.parent.mkdir(parents=True, exist_ok=True)
    ignore = root / FOLDER / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    write_cassette_file(file, data)


def forget(file: Path, root: Path) -> None:
    """The test passes again; folders that are empty now go, too."""
    if not file.exists():
        return
    file.unlink(missing_ok=True)
    for parent in file.parents:
        if parent == root / FOLDER:
            return
        try:
            parent.rmdir()
        except OSError:  # other failing tests are kept there
            return


def bisect_command(good: str, bad: str) -> str:
    return f"rewind bisect {quoted(good)} {quoted(bad)}"
