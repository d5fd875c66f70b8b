"""Journal lines as rows of the catalog.

Strings and numbers go in, each made to fit its column, so that no recorded text can make the catalog fail.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rewind.store.files import open_to_read, read_at
from rewind.store.journal import BadLine, Fields, unseal
from rewind.store.writer import FOLDER

SESSION = {
    "folder": "VARCHAR",
    "id": "VARCHAR",
    "name": "VARCHAR",
    "started": "DOUBLE",
    "command": "VARCHAR",
    "ended": "DOUBLE",
    "exit_code": "BIGINT",
    "broken": "VARCHAR",
    "read_to": "BIGINT",
}
STEP = {
    "folder": "VARCHAR",
    "session": "VARCHAR",
    "step": "BIGINT",
    "ts": "DOUBLE",
    "type": "VARCHAR",
    "provider": "VARCHAR",
    "host": "VARCHAR",
    "key": "VARCHAR",
    "request_size": "BIGINT",
    "model": "VARCHAR",
    "ending": "VARCHAR",
    "status": "BIGINT",
    "ms": "DOUBLE",
    "first_ms": "DOUBLE",
    "tokens_in": "BIGINT",
    "tokens_out": "BIGINT",
    "response_size": "BIGINT",
    "error": "VARCHAR",
    "text": "VARCHAR",
}
ANSWER = ("ending", "status", "ms", "first_ms", "tokens_in", "tokens_out", "response_size", "error", "text")
COLUMNS = {"row": "VARCHAR", **SESSION, **STEP}


def journal_sizes(sessions: Path) -> dict[str, int]:
    sizes: dict[str, int] = {}
    try:
        with os.scandir(sessions) as entries:
            names = [entry.name for entry in entries if FOLDER.fullmatch(entry.name)]
    except FileNotFoundError:
        return sizes
    for name in names:
        try:
            sizes[name] = (sessions / name / "journal.jsonl").lstat().st_size
        except OSError:  # gone meanwhile: it is not a session any more
            continue
    return sizes


def new_rows(folder: Path, start: int) -> Iterator[Fields]:
    """The rows of the whole lines from there on."""
    try:
        fd = open_to_read(folder / "journal.jsonl")
    except OSError:  # gone meanwhile: the next catch-up forgets it
        return
    try:
        data = read_at(fd, os.fstat(fd).st_size - start, start)
    finally:
        os.close(fd)
    whole = data.rfind(b"\n") + 1
    if start == 0:
        found = FOLDER.fullmatch(folder.name)
        yield _row("session", _first_fields(data), folder=folder.name, id=found and found[2])
    waiting: dict[Any, Fields] = {}
    for line in data[:whole].split(b"\n")[:-1]:
        try:
            fields = unseal(line)
        except BadLine:  # `verify` names it; a catalog of the rest is still of use
            continue
        match fields.get("kind"):
            case "request":
                row = _row(
                    "step",
                    fields,
                    folder=folder.name,
                    session=fields.get("run"),
                    request_size=fields.get("size"),
                )
                waiting[row.get("step")] = row
            case "step" | "cut":
                ending = fields.get("ending") or "complete"
                row = _row(
                    "answer", fields, folder=folder.name, ending=ending, response_size=fields.get("size")
                )
                if (asked := waiting.get(row.get("step"))) is None:
                    yield row
                else:
                    asked.update({name: row[name] for name in (*ANSWER, "model") if name in row})
            case "end":
                yield _row("end", fields, folder=folder.name, ended=fields.get("ts"))
    yield from waiting.values()
    yield _row("read", {}, folder=folder.name, read_to=start + whole)


def _first_fields(data: bytes) -> Fields:
    try:
        fields = unseal(data.partition(b"\n")[0])
    except BadLine:
        return {}
    command = fields.get("command")
    text = " ".join(map(str, command)) if isinstance(command, list) else None
    return {**fields, "started": fields.get("ts"), "command": text}


def _row(kind: str, fields: Fields, **more: Any) -> Fields:
    """One row: the columns that have a value, each made to fit its type."""
    row: Fields = {"row": kind}
    for name, value in {**fields, **more}.items():
        if value is not None and (sql := COLUMNS.get(name)) and (fitting := _fitting(value, sql)) is not None:
            row[name] = fitting
    return row


def _fitting(value: Any, sql: str) -> str | int | float | None:
    if sql == "VARCHAR":
        if not isinstance(value, str):
            return None
        plain = value.isascii() and "\0" not in value
        return value if plain else value.encode(errors="replace").decode().replace("\0", "\ufffd")
    if not isinstance(value, int | float) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if sql == "BIGINT":
        return int(value) if -(2**63) <= value < 2**63 else None
    return float(value) if abs(value) < 1e300 else None
