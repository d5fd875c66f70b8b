"""Which recorded answers were served again, and when: one line per replay, so that the savings can be told.

The log is a convenience. A replay in a store that cannot be written runs all the same and is not counted.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from rewind.model.names import Renamed
from rewind.store.files import open_private, open_to_read, read_at
from rewind.store.journal.lines import BadLine, seal, unseal

_NAME = "replays.jsonl"
_MOST_RENAMED = 200
"""Steps of a replay whose names are remembered."""


class ServedAgain(NamedTuple):
    """A recorded step that answered in a replay."""

    ts: float
    session: str
    step: int


class ReplayNote(NamedTuple):
    """When a session was replayed, and what was called otherwise then."""

    ts: float
    renamed: dict[int, tuple[Renamed, ...]]


def note_replay(
    home: Path, *, ts: float, session: str, steps: Iterable[int], renamed: Mapping[int, Sequence[Renamed]] | None = None
) -> None:
    """Remember that these steps of the session answered a replay that ended then, some of them by other names."""
    spans = _spans(sorted(steps))
    if not spans:
        return
    names = [[step, [[pair.kind, pair.then, pair.now] for pair in pairs]] for step, pairs in (renamed or {}).items()]
    line = seal({"kind": "replay", "ts": ts, "run": session, "steps": spans, "renamed": names[:_MOST_RENAMED]})
    with suppress(OSError):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        fd = os.open(home / _NAME, flags, 0o600)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)


def forget_names(home: Path, is_there: Callable[[str], bool]) -> None:
    """Take out the names of sessions that are gone: they are words of theirs. Raises OSError."""
    lines = list(_lines(home))
    kept = [fields if is_there(str(fields.get("run"))) else {**fields, "renamed": []} for fields in lines]
    if kept == lines:
        return
    aside = home / f".{_NAME}"
    aside.unlink(missing_ok=True)  # of a deletion that was killed
    with os.fdopen(open_private(aside, os.O_WRONLY), "wb") as file:
        file.writelines(map(seal, kept))
    aside.replace(home / _NAME)


def last_replay(home: Path, session: str) -> ReplayNote | None:
    """The latest replay of that session; ``None`` where there is none, or none is known."""
    for fields in reversed(tuple(_lines(home, session.encode()))):
        if fields.get("run") == session:
            with suppress(KeyError, TypeError, ValueError):
                return ReplayNote(
                    ts=float(fields["ts"]),
                    renamed={
                        int(step): tuple(Renamed(str(kind), str(then), str(now)) for kind, then, now in names)
                        for step, names in fields.get("renamed") or ()
                    },
                )
    return None


def served_again(home: Path) -> Iterator[ServedAgain]:
    """Every step of every replay, in the order of the replays; damaged lines are passed over."""
    for fields in _lines(home):
        try:
            spans = [(int(first), int(last)) for first, last in fields["steps"]]
            ts, session = float(fields["ts"]), str(fields["run"])
        except (KeyError, TypeError, ValueError):
            continue
        for first, last in spans:
            yield from (ServedAgain(ts, session, step) for step in range(first, min(last, first + 10**6) + 1))


def _lines(home: Path, wanted: bytes = b"") -> Iterator[dict[str, Any]]:
    """The lines that hold ``wanted``; damaged ones are passed over."""
    try:
        fd = open_to_read(home / _NAME)
    except OSError:  # no replay yet, or a store that cannot be read, which others say
        return
    try:
        data = read_at(fd, os.fstat(fd).st_size, 0)
    finally:
        os.close(fd)
    for line in data.split(b"\n")[:-1]:
        if wanted in line:
            with suppress(BadLine):
                yield unseal(line)


def _spans(steps: list[int]) -> list[tuple[int, int]]:
    """``1, 2, 3, 7`` as ``(1, 3), (7, 7)``."""
    runs = groupby(enumerate(dict.fromkeys(steps)), key=lambda pair: pair[1] - pair[0])
    ends = [[step for _, step in run] for _, run in runs]
    return [(run[0], run[-1]) for run in ends]
