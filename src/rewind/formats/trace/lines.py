"""A trace read back: the lines of one run, made safe to look at, and the names of what could not be read."""

import json
import math
import os
import re
from dataclasses import dataclass
from stat import S_ISREG
from typing import Any

from rewind.errors import BadCassette, SessionNotFound
from rewind.trace.blobs import Blobs, read_all
from rewind.trace.plain import DEEPEST

LARGEST = 512 * 1024 * 1024
"""Bytes of a trace that is read."""
LONGEST_LINE = 32 * 1024 * 1024
MOST_LINES = 1_000_000
MOST_VALUES = 200_000
"""JSON values in a line: each takes the memory of a hundred characters."""
MOST_VALUES_IN_ALL = 10_000_000
_OUTPUTS = 256 * 1024 * 1024
"""Bytes of all the long outputs of a run that are read back whole."""
_COUNTED = 2_000
"""Signs between values that are taken for such without a closer look: they may stand in texts."""
_TEXTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_BEGINNING = b'{"kind":"'
_NAMED = 20
"""Damaged lines that are named one by one."""
_LATEST = 253_402_300_799.0
"""The last second of the year 9999."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line."""

    number: int
    """Which line of the file it is, from 1."""
    kind: str
    ts: float
    run: str
    fields: dict[str, Any]
    """All else that it says; outputs that were cut are whole again, where they are to be had."""

    @property
    def pid(self) -> int | None:
        """Of a forked process: what others record beside it."""
        found = self.fields.get("pid")
        return found if isinstance(found, int) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """One run of a trace."""

    run: str
    rows: tuple[Entry | None, ...]
    """``None`` for a line that is damaged: it still counts as one."""
    others: tuple[str, ...] = ()
    """The other runs in the file, in order."""
    damage: tuple[str, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(row for row in self.rows if row is not None)


def read_trace(path: str | os.PathLike[str], run: str | None = None) -> Lines:
    """The run of that id in the file (default: the one that began last). Raises SessionNotFound or BadCassette."""
    name = os.fsdecode(path)
    return lines_of(bytes_of(name), name, Blobs(name), run)


def bytes_of(name: str) -> bytes:
    """All that the file holds now. Raises SessionNotFound or BadCassette."""
    try:
        fd = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SessionNotFound(f"There is no trace {name!r}.", hint="Give the path of its file.") from error
    except (OSError, ValueError) as error:
        raise BadCassette(f"{name} cannot be opened: {getattr(error, 'strerror', None) or error}.") from error
    try:
        status = os.fstat(fd)
        if not S_ISREG(status.st_mode):
            raise BadCassette(f"{name} is no file.")
        if status.st_size > LARGEST:
            raise BadCassette(
                f"{name} is too large for a trace: {status.st_size:,} bytes.",
                hint='Split it: each run has its own id in the field "run".',
            )
        return read_all(fd, LARGEST)
    except OSError as error:
        raise BadCassette(f"{name} cannot be read: {error.strerror}.") from error
    finally:
        os.close(fd)


def lines_of(data: bytes, name: str, blobs: Blobs, run: str | None = None) -> Lines:
    """The lines of one run. Raises SessionNotFound or BadCassette."""
    rows: list[tuple[str, Entry | None]] = []
    damage: list[str] = []
    known = ""
    pieces = data.split(b"\n")
    values = 0
    for number, line in enumerate(pieces, 1):
        if number > MOST_LINES:
            raise BadCassette(f"{name} has more than {MOST_LINES:,} lines.")
        if not line.strip():
            continue
        held = _values_in(line)
        values += held
        too_much = _too_much(line, held, values)
        entry, trouble = (None, too_much) if too_much else _entry(number, line, known)
        if entry is None and not too_much and (begins := line.rfind(_BEGINNING)) > 0:
            # A line that was torn when its writer died, and a whole one behind it.
            entry, _ = _entry(number, line[begins:], known)
            if entry is not None:
                damage.append(f"line {number}: {trouble}; what follows it is whole")
        if entry is not None:
            known = entry.run
        elif number == len(pieces) and not too_much and line.startswith(b"{") and b"\0" not in line:
            damage.append(f"line {number}: unfinished, as a crash leaves it")
        else:
            damage.append(f"line {number}: {trouble}")
        rows.append((known, entry))
    entries = [entry for _, entry in rows if entry is not None]
    if not entries:
        why = f" ({damage[0]})" if damage else ""
        raise BadCassette(
            f"{name} is no trace: no line of it tells of a step{why}.",
            hint="A trace is written by rewind.Trace: one JSON object a line, with a kind.",
        )
    _refuse_a_journal(entries[0], name)
    runs = list(dict.fromkeys(entry.run for entry in entries))
    wanted = runs[-1] if run is None else run
    if wanted not in runs:
        shown = ", ".join(one[:40] or "(none)" for one in runs[-5:])
        raise SessionNotFound(f"{name} has no run {wanted[:80]!r}.", hint=f"Its last ones: {shown}")
    mine = [entry for whose, entry in rows if whose in (wanted, "")]
    whole = _Whole(blobs)
    found = tuple(whole.entry(entry) if entry is not None else None for entry in mine)
    return Lines(
        run=wanted,
        rows=found,
        others=tuple(one for one in runs if one != wanted),
        damage=(*_few(damage), *_few(whole.missing)),
    )


def _too_much(line: bytes, held: int, values: int) -> str:
    """Why a line is not read: small files can ask for much memory. Empty where it is."""
    if len(line) > LONGEST_LINE:
        return f"longer than {LONGEST_LINE:,} bytes"
    if held > MOST_VALUES:
        return f"more than {MOST_VALUES:,} values"
    return (
        f"not read: there are {MOST_VALUES_IN_ALL:,} values before it" if values > MOST_VALUES_IN_ALL else ""
    )


def _values_in(line: bytes) -> int:
    """How many values a line holds, at most; told without reading it. One that is too long holds none."""
    if len(line) > LONGEST_LINE:
        return 0
    count = line.count(b",") + line.count(b"[") + line.count(b"{")
    if count <= _COUNTED:
        return count
    line = _TEXTS.sub(b"", line)
    return line.count(b",") + line.count(b"[") + line.count(b"{")


def _few(named: list[str]) -> list[str]:
    left = len(named) - _NAMED
    return named if left <= 0 else [*named[:_NAMED], f"and {left:,} more like these"]


def _refuse_a_journal(first: Entry, name: str) -> None:
    if first.kind == "session" and "~" in first.fields and "format" in first.fields:
        raise BadCassette(
            f"{name} is the journal of a recorded session, and no trace.",
            hint=f"rewind inspect {first.run[:8]}",
        )


def _entry(number: int, line: bytes, run: str) -> tuple[Entry | None, str]:
    """The line, or why there is none. One that names no run belongs to the run before it."""
    try:
        fields = json.loads(line, parse_constant=str)
    except RecursionError:
        return None, "nested too deep"
    except ValueError as error:
        return None, f"no JSON ({str(error)[:80]})"
    if not isinstance(fields, dict) or not isinstance(fields.get("kind"), str):
        return None, "no JSON object with a kind"
    safe = {name: _safe(value) for name, value in fields.items() if name not in ("kind", "ts", "run")}
    return (
        Entry(
            number=number,
            kind=_writable(fields["kind"])[:200],
            ts=_moment(fields.get("ts")),
            run=_writable(str(fields.get("run") or run))[:200],
            fields={_writable(name): value for name, value in safe.items()},
        ),
        "",
    )


def _moment(value: Any) -> float:
    told = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if told and 0 <= value <= _LATEST else 0.0


def _safe(value: Any, level: int = 0) -> Any:
    """Nothing that could not be written again: neither endless numbers, nor half characters, nor deep nesting."""
    match value:
        case str():
            return _writable(value)
        case float() if not math.isfinite(value):
            return str(value)
        case dict() | list() if level >= DEEPEST:
            return "(nested too deep)"
        case dict():
            return {_writable(name): _safe(one, level + 1) for name, one in value.items()}
        case list():
            return [_safe(one, level + 1) for one in value]
        case _:
            return value


def _writable(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Whole:
    """Puts the whole outputs back in the place of what was cut."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._left = _OUTPUTS
        self.missing: list[str] = []

    def entry(self, entry: Entry) -> Entry:
        cut = entry.fields.get("cut")
        if not isinstance(cut, dict):
            return entry
        fields = dict(entry.fields)
        for name, ref in cut.items():
            if not isinstance(fields.get(name), str):
                continue
            data = self._blobs.get(ref) if isinstance(ref, str) and self._left > 0 else None
            if data is None:
                self.missing.append(
                    f"line {entry.number}: the whole of {name!r} is not there, only its beginning"
                )
                continue
            self._left -= len(data)
            fields[name] = data.decode("utf-8", "replace")
        return Entry(number=entry.number, kind=entry.kind, ts=entry.ts, run=entry.run, fields=fields)
