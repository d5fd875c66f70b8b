"""What tests of imported sessions share: a gateway that plays one, and what it is asked."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rewind.reading.import_ import Imported, import_file
from support.cli import AGENTS
from support.lab import Gate, Lab


@contextmanager
def playing(lab: Lab, session: str) -> Iterator[Gate]:
    """An imported session has no command of its own; here one only holds the door, and the test asks."""
    lab.provider.go_away()
    before = lab.provider.connections
    door = [sys.executable, str(AGENTS / "hold_the_door.py")]
    with lab._gate(["replay", session, *lab.upstream, "--", *door], {}) as gate:
        yield gate
    assert lab.provider.connections == before, "the replay went to the network"


def taken_in(lab: Lab, file: Path) -> Imported:
    imported = import_file(lab.home, file)
    assert imported.new
    return imported
