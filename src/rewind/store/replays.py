"""Which recorded answers were served again, and when: one line per replay, so that the savings can be told.

The log is a convenience. A replay in a store that cannot be written runs all the same and is not counted.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from rewind.store.files import open_to_read, read_at
from rewind.store.journal.lines import BadLine, seal, unseal

_NAME = "replays.jsonl"


class ServedAgain(NamedTuple):
    """A recorded step that answered in a replay."""

    ts: float
    session: str
    step: int


def note_replay(home: Path, *, ts: float, session: str, steps: Iterable[int]) -> None:
    """Remember that these steps of the session answered a replay that ended then."""
    spans = _spans(sorted(steps))
    if not spans:
        return
    line = seal({"kind": "replay", "ts": ts, "run": session, "steps": spans})
    with suppress(OSError):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        fd = os.open(home / _NAME, flags, 0o600)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)


def served_again(home: Path) -> Iterator[ServedAgain]:
    """Every step of every replay, in the order of the replays; damaged lines are passed over."""
    try:
        fd = open_to_read(home / _NAME)
    except OSError:  # no replay yet, or a store that cannot be read, which others say
        return
    try:
        data = read_at(fd, os.fstat(fd).st_size, 0)
    finally:
        os.close(fd)
    for line in data.split(b"\n")[:-1]:
        try:
            fields = unseal(line)
            spans = [(int(first), int(last)) for first, last in fields["steps"]]
            ts, session = float(fields["ts"]), str(fields["run"])
        except (BadLine, KeyError, TypeError, ValueError):
            continue
        for first, last in spans:
            yield from (ServedAgain(ts, session, step) for step in range(first, min(last, first + 10**6) + 1))


def _spans(steps: list[int]) -> list[tuple[int, int]]:
    """``1, 2, 3, 7`` as ``(1, 3), (7, 7)``."""
    runs = groupby(enumerate(dict.fromkeys(steps)), key=lambda pair: pair[1] - pair[0])
    ends = [[step for _, step in run] for _, run in runs]
    return [(run[0], run[-1]) for run in ends]
