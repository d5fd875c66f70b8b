"""A trace read back: the lines of one run, made safe to look at, and the names of what could not be read."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rewind.dataclass import dataclass
from rewind.errors import BadCassette, SessionNotFound

_MIB = 1024 * 1024
_DEEPEST = 100
"""Levels of nesting that are kept, as the recorder does."""
_COUNTED = 2_000
"""Commas and brackets that are taken for values without a closer look: they may be inside texts."""
_TEXTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_LINE_START = b'{"kind":"'
_NAMED = 20
"""Damaged lines that are named one by one."""
_LAST_SECOND = 253_402_300_799.0
"""Of the year 9999."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLimits:
    """How much of a trace is read. A small file of a stranger can ask for much memory and time."""

    line_bytes: int = 32 * _MIB
    lines: int = 1_000_000
    line_values: int = 200_000
    """JSON values in a line: each takes the memory of a hundred characters."""
    values: int = 10_000_000
    """JSON values in all lines together."""
    output_bytes: int = 256 * _MIB
    """Of all the long outputs of a run that are read back whole."""
    settings: int = 256
    """That may be told once for all calls: each of them is repeated in every call."""
    inherited_turns: int = 200_000
    """That forked processes may take over from what was asked before them, all together."""
    request_bytes: int = 1024 * _MIB
    """Of all requests together. After that, a call is told without what was said before."""
    short_settings_bytes: int = 16 * 1024
    """Settings and system prompt that are still repeated in every call after ``request_bytes``."""
    reread_bytes: int = 128 * 1024
    """Of calls that are read whole although they continue one that was."""
    read_bytes: int = 8 * _MIB
    """Of calls that are read whole. Later ones are read when somebody looks at them."""
    settings_bytes: int = 32 * _MIB
    """Of settings that are read for calls of which only the new turns are."""
    unsettled_results: int = 500_000
    """That are gone through again and again, where no answer comes between them."""


LIMITS = TraceLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFile:
    """A trace as it is on the disk."""

    name: str
    data: bytes
    output: Callable[[str], bytes | None]
    """The whole of a long output by its name; ``None`` where it is not to be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLine:
    """One line."""

    number: int
    """Which line of the file it is, from 1."""
    kind: str
    ts: float
    run: str
    fields: dict[str, Any]
    """All else that it says. Outputs that were cut are whole again, where they are to be had."""

    @property
    def pid(self) -> int | None:
        """Of a forked process that records beside its parent."""
        pid = self.fields.get("pid")
        return pid if isinstance(pid, int) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRun:
    """One run of a trace."""

    run: str
    rows: tuple[TraceLine | None, ...]
    """``None`` for a line that is damaged: it still counts as one."""
    other_runs: tuple[str, ...] = ()
    """The other runs in the file, in order."""
    damage: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[TraceLine, ...]:
        return tuple(row for row in self.rows if row is not None)


def read_run(file: TraceFile, run: str | None = None, limits: TraceLimits = LIMITS) -> TraceRun:
    """The run of that id (default: the one that began last). Raises SessionNotFound or BadCassette."""
    rows, damage = _rows(file, limits)
    lines = [line for _, line in rows if line is not None]
    if not lines:
        why = f" ({damage[0]})" if damage else ""
        raise BadCassette(
            f"It is not a trace: no line of it tells of a step{why}.",
            path=file.name,
            hint="A trace is written by rewind.Trace: one JSON object a line, with a kind.",
        )
    _refuse_journal(lines[0], file.name)
    runs = list(dict.fromkeys(line.run for line in lines))
    wanted = runs[-1] if run is None else run
    if wanted not in runs:
        shown = ", ".join(known[:40] or "(none)" for known in runs[-5:])
        raise SessionNotFound(f"{file.name} has no run {wanted[:80]!r}.", hint=f"Its last ones: {shown}")
    outputs = _Outputs(file.output, limits.output_bytes)
    own = tuple(line and outputs.restored(line) for owner, line in rows if owner in (wanted, ""))
    return TraceRun(
        run=wanted,
        rows=own,
        other_runs=tuple(known for known in runs if known != wanted),
        damage=(*_first_of(damage), *_first_of(outputs.missing)),
    )


def _rows(file: TraceFile, limits: TraceLimits) -> tuple[list[tuple[str, TraceLine | None]], list[str]]:
    """Each line that is not empty with the run it belongs to, and what is damaged."""
    rows: list[tuple[str, TraceLine | None]] = []
    damage: list[str] = []
    run = ""
    pieces = file.data.split(b"\n")
    values = 0
    for number, piece in enumerate(pieces, 1):
        if number > limits.lines:
            raise BadCassette(f"It has more than {limits.lines:,} lines.", path=file.name)
        if not piece.strip():
            continue
        held = _count_values(piece, limits)
        values += held
        too_much = _too_much(piece, held, values, limits)
        line, trouble = (None, too_much) if too_much else _parse(number, piece, run)
        if line is None and not too_much and (begins := piece.rfind(_LINE_START)) > 0:
            # A line that was torn when its writer died, and a whole one behind it.
            line, _ = _parse(number, piece[begins:], run)
            if line is not None:
                damage.append(f"line {number}: {trouble}; what follows it is whole")
        if line is not None:
            run = line.run
        elif number == len(pieces) and not too_much and piece.startswith(b"{") and b"\0" not in piece:
            damage.append(f"line {number}: unfinished, as a crash leaves it")
        else:
            damage.append(f"line {number}: {trouble}")
        rows.append((run, line))
    return rows, damage


def _too_much(line: bytes, held: int, values: int, limits: TraceLimits) -> str:
    """Why a line is not read; empty where it is."""
    if len(line) > limits.line_bytes:
        return f"longer than {limits.line_bytes:,} bytes"
    if held > limits.line_values:
        return f"more than {limits.line_values:,} values"
    return f"not read: there are {limits.values:,} values before it" if values > limits.values else ""


def _count_values(line: bytes, limits: TraceLimits) -> int:
    """How many values a line holds, at most, without reading it; 0 for one that is too long to be read."""
    if len(line) > limits.line_bytes:
        return 0
    count = line.count(b",") + line.count(b"[") + line.count(b"{")
    if count <= _COUNTED:
        return count
    line = _TEXTS.sub(b"", line)
    return line.count(b",") + line.count(b"[") + line.count(b"{")


def _first_of(named: list[str]) -> list[str]:
    left = len(named) - _NAMED
    return named if left <= 0 else [*named[:_NAMED], f"and {left:,} more like these"]


def _refuse_journal(first: TraceLine, name: str) -> None:
    if first.kind == "session" and "~" in first.fields and "format" in first.fields:
        raise BadCassette(
            "It is the journal of a recorded session, not a trace.", path=name, hint=f"rewind inspect {first.run[:8]}"
        )


def _parse(number: int, line: bytes, run: str) -> tuple[TraceLine | None, str]:
    """The line, or why it cannot be read. One that names no run belongs to the run before it."""
    try:
        fields = json.loads(line, parse_constant=str)
    except RecursionError:
        return None, "nested too deep"
    except ValueError as error:
        return None, f"not JSON ({str(error)[:80]})"
    if not isinstance(fields, dict) or not isinstance(fields.get("kind"), str):
        return None, "not a JSON object with a kind"
    kind, ts, own_run = fields.pop("kind"), fields.pop("ts", None), fields.pop("run", None)
    is_moment = isinstance(ts, int | float) and not isinstance(ts, bool) and 0 <= ts <= _LAST_SECOND
    parsed = TraceLine(
        number=number,
        kind=_writable(kind)[:200],
        ts=float(ts) if is_moment else 0.0,
        run=_writable(str(own_run or run))[:200],
        fields={_writable(name): _sound(value) for name, value in fields.items()},
    )
    return parsed, ""


def _sound(value: Any, level: int = 0) -> Any:
    """Only what can be written again: no endless numbers, no half characters, no deep nesting."""
    match value:
        case str():
            return _writable(value)
        case float() if not math.isfinite(value):
            return str(value)
        case dict() | list() if level >= _DEEPEST:
            return "(nested too deep)"
        case dict():
            return {_writable(name): _sound(inner, level + 1) for name, inner in value.items()}
        case list():
            return [_sound(inner, level + 1) for inner in value]
        case _:
            return value


def _writable(text: str) -> str:
    """With surrogate pairs joined, and lone surrogates replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Outputs:
    """Puts the whole outputs back in the place of what was cut."""

    def __init__(self, output: Callable[[str], bytes | None], most: int) -> None:
        self._output = output
        self._left = most
        self.missing: list[str] = []

    def restored(self, line: TraceLine) -> TraceLine:
        cut = line.fields.get("cut")
        if not isinstance(cut, dict):
            return line
        fields = dict(line.fields)
        for name, ref in cut.items():
            if not isinstance(fields.get(name), str):
                continue
            data = self._output(ref) if isinstance(ref, str) and self._left > 0 else None
            if data is None:
                self.missing.append(f"line {line.number}: the whole of {name!r} is not there, only its beginning")
                continue
            self._left -= len(data)
            fields[name] = data.decode("utf-8", "replace")
        return replace(line, fields=fields)
