"""Journals on their way into the catalog.

DuckDB reads the lines itself, many sessions in one temporary file; Python only checks each line's checksum. A journal
in which anything is unusual goes line by line instead, each value made to fit, so that no recorded text can make the
catalog fail or lose the rest.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any, BinaryIO

from rewind.dataclass import dataclass
from rewind.model.program import program_of
from rewind.store.derived import as_sql_text, columns
from rewind.store.files import open_to_read, read_at
from rewind.store.journal.lines import Fields, is_sound, trimmed, unseal_good
from rewind.store.journal.reader import end_in, read_short_lines, start_in

TOKENS = ("tokens_in", "tokens_out", "cache_read", "cache_write", "reasoning")

_OF_BOTH = columns(
    VARCHAR="type provider method host target model ending error tier usage",
    BIGINT="step thread status " + " ".join(TOKENS),
    DOUBLE="ts ms first_ms",
)
SESSION = columns(
    INTEGER="nr",
    VARCHAR="folder id name program replay_of part_of first last prices uploads",
    DOUBLE="started ended",
    BIGINT="exit_code size damaged",
    BOOLEAN="broken probe",
) | {"tags": "MAP(VARCHAR, VARCHAR)"}
"""``nr`` names the session in the table of steps, by another number each time it is read. ``first`` and ``last`` are
the journal's first line and its end line; ``prices`` is the fingerprint of the prices that its costs are by,
``uploads`` that of the rules by which its telemetry is known, and ``damaged`` the number of lines that could not be
read."""
STEP = _OF_BOTH | columns(
    INTEGER="nr", DATE="day", VARCHAR="asked outcome", BOOLEAN="replayed retry telemetry", DOUBLE="cost"
)
"""``asked`` is the model that was asked for, where the answer names another one; ``outcome`` a StepOutcome."""
LINE = _OF_BOTH | columns(VARCHAR="kind run key", BIGINT="tape")
"""What is read of a line, and as what."""

_END = b'{"kind":"end"'
_LONGEST_LINE = 4 * 1024 * 1024
_BEYOND = 2**63
_HALF_PAIR = b"\\ud"
"""How half a surrogate pair begins; DuckDB takes no line with one."""


@dataclass(slots=True)
class Copier:
    """Copies journals into a file for DuckDB, and gives a row for each session."""

    lines: BinaryIO
    copied: int = 0
    """Bytes, to know when there is enough for one go."""
    _runs: set[str] = field(default_factory=set)

    def copy(self, folder: Path, nr: int) -> Fields | None:
        """The session's row; ``None`` when it is gone meanwhile."""
        try:
            fd = open_to_read(folder / "journal.jsonl")
        except OSError:  # the next catch-up forgets it
            return None
        try:
            data = read_at(fd, os.fstat(fd).st_size, 0)
        finally:
            os.close(fd)
        *lines, _torn = data.split(b"\n")
        run, first, size = folder.name[-8:], lines[0] if lines else b"", len(data)
        if lines and not lines[-1].startswith(_END):
            short_lines = read_short_lines(folder)
            data += short_lines
            lines[1:1] = short_lines.split(b"\n")[:-1]  # not last: the last line says how it ended
        total = len(lines)
        if run not in self._runs and (usual := _usual(data, lines, run)) is not None:
            self._runs.add(run)
            self.copied += self.lines.write(b"}\n".join([*usual, b""]))
        else:
            run, lines = f"#{nr}", [line for line in lines if is_sound(line)]
            self.copied += sum(self.lines.write(row) for row in _careful(lines, run))
        last = lines[-1] if lines else b""
        damaged = total - len(lines)
        return {"nr": nr, "run": run, "size": size, "damaged": damaged, **_session_row(folder.name, first, last)}


def _usual(data: bytes, lines: list[bytes], run: str) -> list[bytes] | None:
    """The lines, trimmed, if DuckDB can have them all: sound, of that session, nothing it would choke on."""
    if b"\\" in data and _HALF_PAIR in data:
        return None
    if len(data) > _LONGEST_LINE and max(map(len, lines), default=0) > _LONGEST_LINE:
        return None
    return trimmed(lines, b'"run":"%b"' % run.encode())


def _careful(lines: list[bytes], run: str) -> Iterator[bytes]:
    """The lines again with what DuckDB reads of them, each value made to fit its column."""
    for fields in unseal_good(lines):
        fields["run"] = run
        row = {name: _fitting(fields.get(name), sql) for name, sql in LINE.items()}
        yield json.dumps({name: value for name, value in row.items() if value is not None}).encode() + b"\n"


def _session_row(folder: str, first: bytes, last: bytes) -> Fields:
    """From the first line, and the last one that is sound."""
    start, end = start_in(first, folder), end_in(last)
    row: Fields = {
        "folder": folder,
        "id": start.id,
        "name": start.name,
        "started": start.started,
        "program": program_of(start.command),
        "replay_of": start.replay_of,
        "part_of": start.part_of,
        "probe": start.forked_from is not None and start.forked_from.probe,
        "first": first.decode(errors="replace"),
    }
    if end is not None:
        row |= {
            "ended": end.ended,
            "exit_code": end.exit_code,
            "broken": end.broken is not None,
            "last": last.decode(errors="replace"),
        }
    tags = start.tags if isinstance(start.tags, dict) else {}
    return {
        **{name: _fitting(value, SESSION[name]) for name, value in row.items()},
        "tags": {as_sql_text(str(key)): as_sql_text(str(value)) for key, value in tags.items()},
    }


def _fitting(value: Any, sql: str) -> str | int | float | bool | None:
    """The value if its column can hold it. A nested value becomes its JSON."""
    match sql:
        case "VARCHAR":
            if value is None or isinstance(value, str):
                return None if value is None else as_sql_text(value)
            return json.dumps(value)
        case "BOOLEAN":
            return value if isinstance(value, bool) else None
    if not isinstance(value, int | float) or not -_BEYOND < value < _BEYOND:
        return None
    return float(value) if sql == "DOUBLE" else int(value)
