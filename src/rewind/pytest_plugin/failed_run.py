"""A failing run is kept for ``rewind bisect`` until its test passes again."""

from pathlib import Path

from rewind.reading.cassettes import RecordedRun, save_cassette
from rewind.safe import safe
from rewind.settings import FAILING_TESTS, PROJECT_FOLDER

FOLDER = Path(PROJECT_FOLDER) / FAILING_TESTS


def kept_path(root: Path, cassette: Path) -> Path:
    """Where a failing run of the test with that default cassette is kept."""
    try:
        parts = cassette.relative_to(root).parts
    except ValueError:
        parts = cassette.parts[-2:]
    return root.joinpath(FOLDER, *(part for part in parts if part != "cassettes"))


def keep(file: Path, root: Path, run: RecordedRun) -> None:
    """Written for this machine only: the folder keeps itself out of git."""
    file.parent.mkdir(parents=True, exist_ok=True)
    ignore = root / FOLDER / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    save_cassette(file, run)


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


def divergence(good: RecordedRun, bad: RecordedRun) -> str:
    """Where the failing run left the cassette, and why, in a line or two; empty where it did not."""
    if not good.recording.steps or not bad.recording.steps:
        return ""
    # Lazily: most tests do not fail.
    from rewind.compare.divergence import bisect
    from rewind.compare.phrases import cause_place, cause_title, step_label
    from rewind.compare.run import ComparedRun

    found = bisect(*(ComparedRun(run.recording, run.bodies, answer_body=run.answer) for run in (good, bad)))
    if found.at is None:
        return ""
    lines = [f"first divergence: step {step_label(found.at)}"]
    for cause in found.causes[:1]:
        place = cause_place(found, cause, brief=True)
        lines.append(f"cause: {cause_title(cause)}" + (f", {place}" if place else ""))
    return safe("\n".join(lines))
