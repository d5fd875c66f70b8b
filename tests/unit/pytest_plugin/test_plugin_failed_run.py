"""Where failing runs are kept, and that keeping them moves nothing else."""

from pathlib import Path

from rewind.pytest_plugin.cassette_update import failed_run_path, forget_failed_run
from rewind.settings import read_settings


def test_a_failing_run_is_kept_under_the_name_of_its_test(tmp_path: Path) -> None:
    cassette = tmp_path / "tests" / "cassettes" / "test_refund" / "test_it.rw"
    assert failed_run_path(tmp_path, cassette) == tmp_path / ".rewind/last-failed/tests/test_refund/test_it.rw"


def test_a_folder_that_only_failing_tests_made_is_no_store(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "home")}
    usual = read_settings(env=environ, cwd=tmp_path).home
    (tmp_path / ".rewind" / "last-failed").mkdir(parents=True)
    assert read_settings(env=environ, cwd=tmp_path).home == usual
    (tmp_path / ".rewind" / "sessions").mkdir()
    assert read_settings(env=environ, cwd=tmp_path).home == tmp_path / ".rewind"


def test_an_empty_folder_is_a_store_that_somebody_made(tmp_path: Path) -> None:
    (tmp_path / ".rewind").mkdir()
    assert read_settings(env={"HOME": str(tmp_path / "home")}, cwd=tmp_path).home == tmp_path / ".rewind"


def test_forgetting_takes_empty_folders_along_and_nothing_else(tmp_path: Path) -> None:
    one, other = (failed_run_path(tmp_path, tmp_path / "tests" / folder / "t.rw") for folder in ("a", "b"))
    for file in (one, other):
        file.parent.mkdir(parents=True)
        file.touch()
    forget_failed_run(one, tmp_path)
    assert not one.parent.exists()
    assert other.exists()
    forget_failed_run(one, tmp_path)
    forget_failed_run(other, tmp_path)
    assert (tmp_path / ".rewind" / "last-failed").is_dir()
    assert not other.parent.parent.exists()
