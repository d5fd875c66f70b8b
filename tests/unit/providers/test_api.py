"""The parts of an API: which there are, and that a recording does not load those it has no use for."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import rewind
from rewind.providers.api import Api, Lazy
from rewind.providers.catalogue import BUILT_IN, FALLBACK, named

PARTS = ("patcher", "speaker", "writer", "unissued")


def parts_of(api: Api) -> dict[str, Lazy[object]]:
    found = {name: getattr(api, name) for name in PARTS}
    return {name: part for name, part in found.items() if part is not None}


@pytest.mark.parametrize("api", BUILT_IN, ids=lambda api: f"{api.name} {api.kind.value}")
def test_every_part_that_an_api_names_is_there(api: Api) -> None:
    for part in parts_of(api).values():
        assert part.load() is part.load()


def test_an_api_that_can_be_written_has_a_shape_and_no_other_has() -> None:
    assert all((api.writer is None) == (not api.shape) for api in BUILT_IN)


def test_an_api_is_found_by_the_name_that_journals_have() -> None:
    assert {named(api.name) for api in (*BUILT_IN, FALLBACK)} <= {*BUILT_IN, FALLBACK}
    first = {api.name: api for api in reversed(BUILT_IN)}
    assert all(named(name) is api for name, api in first.items())
    assert named("nobody") is None


@pytest.mark.process
def test_the_catalogue_loads_no_part_that_only_a_fork_needs() -> None:
    code = "import sys, rewind.providers.catalogue; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    forks = re.compile(r"rewind\.providers\.\w+\.(patch|speak|write|fork|request_body)$|rewind\.edit")
    assert [name for name in told.split() if forks.match(name)] == []


def test_parts_are_loaded_in_one_place() -> None:
    package = Path(rewind.__file__).parent / "providers"
    importing = {
        str(file.relative_to(package)) for file in package.rglob("*.py") if "import_module" in file.read_text()
    }
    assert importing == {"api.py"}
