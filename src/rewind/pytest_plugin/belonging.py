"""Which cassette belongs to which test, and which to none."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from rewind.errors import UsageError
from rewind.pytest_plugin.cassette_paths import default_path
from rewind.pytest_plugin.marks import Wish, read_wish

_FOLDER = "cassettes"


def path_for(item: pytest.Item, wish: Wish) -> Path:
    """The path that the mark names, relative to the root; else the one that follows from the test's name."""
    if wish.cassette is not None:
        return item.config.rootpath / wish.cassette
    callspec: Any = getattr(item, "callspec", None)
    return default_path(
        item.path,
        classes=[node.name for node in item.listchain() if isinstance(node, pytest.Class)],
        test=getattr(item, "originalname", None) or item.name,
        params=None if callspec is None else callspec.params,
        indices=None if callspec is None else callspec.indices,
        id="" if callspec is None else callspec.id,
    )


def cassette_of(item: pytest.Item) -> Path | None:
    """For a marked test; ``None`` where the mark makes no sense, which the test will say when it is run."""
    mark = item.get_closest_marker("rewind")
    assert mark is not None, "only marked tests have cassettes"
    try:
        return path_for(item, read_wish(mark.args, mark.kwargs, {}))
    except UsageError:
        return None


def orphans(used: Iterable[str]) -> list[Path]:
    """Cassettes in the same ``cassettes`` folders that no test uses."""
    paths = {Path(one) for one in used}
    folders = {parent for path in paths for parent in path.parents if parent.name == _FOLDER}
    found = {file for folder in folders for ending in ("*.rw", "*.rw.zst") for file in folder.rglob(ending)}
    return sorted(found - paths)
