"""The lines of a journal: small JSON objects, each sealed with a checksum.

Every line ends with the CRC-32 of what stands before it, so a damaged line is known and the others are still read.
"""

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

Fields = dict[str, Any]

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SEAL = re.compile(rb',"~":"([0-9a-f]{8})"\}')
_SEAL_SIZE = len(b',"~":"00000000"}')
_LINE_START = b'{"kind":"'
_REQUEST = ord("r")
_MARK_WITHIN = 80
"""How far from its start a line has ``run``."""


class BadLine(ValueError):
    """A line that is not what was written; says why."""


def stamped(fields: Fields, *, run: str, number: int) -> Fields:
    """The fields of a line: first its kind, its time, its session and its number."""
    return {"kind": fields["kind"], "ts": fields["ts"], "run": run, "n": number, **fields}


def seal(fields: Fields) -> bytes:
    """One line, newline included, with its checksum as the last field."""
    try:
        body = _ENCODER.encode(fields).encode()[:-1]
    except UnicodeEncodeError:  # half a surrogate pair, as in a file name that is not UTF-8
        body = json.dumps(fields, separators=(",", ":")).encode()[:-1]
    return b'%b,"~":"%08x"}\n' % (body, zlib.crc32(body))


def unseal(line: bytes) -> Fields:
    """The fields of a line (without newline). Raises BadLine."""
    body, ending = line[:-_SEAL_SIZE], _SEAL.fullmatch(line, max(0, len(line) - _SEAL_SIZE))
    if ending is None:
        raise BadLine("it does not end with a checksum")
    if int(ending[1], 16) != zlib.crc32(body):
        raise BadLine("its checksum does not fit")
    try:
        fields = json.loads(body + b"}")
    except (ValueError, RecursionError) as error:
        raise BadLine(f"it is not JSON ({error})") from error
    if not isinstance(fields, dict):
        raise BadLine("it is not an object")
    return fields


def unseal_good(lines: Iterable[bytes]) -> Iterator[Fields]:
    """The fields of the good lines; ``verify`` names the others."""
    for line in lines:
        with suppress(BadLine):
            yield unseal(line)


def lines_in_damaged_line(line: bytes) -> list[Fields]:
    """The good lines inside a bad one: a newline that was overwritten welds two lines together."""
    ends = [0, *(found.end() for found in _SEAL.finditer(line))]
    return list(unseal_good(line[line.find(b"{", start) : end] for start, end in pairwise(ends)))


def is_torn(tail: bytes) -> bool:
    """True if this can be the unfinished last write of a killed recorder: the start of a line and nothing else."""
    return _LINE_START.startswith(tail[: len(_LINE_START)]) and b"\0" not in tail


def is_sound(line: bytes) -> bool:
    """True if its checksum fits; the content is not looked at."""
    return line[-_SEAL_SIZE:] == b',"~":"%08x"}' % zlib.crc32(line[:-_SEAL_SIZE])


def trimmed(lines: Iterable[bytes], mark: bytes = b"") -> list[bytes] | None:
    """The lines less their closing bracket, their checksum, and the long fields that nobody counts.

    ``None`` if one of them is damaged, or begins without the mark. Headers are the last field of a request, chunks
    and head the last of an answer. Inside a text the quotes would be escaped, and where no other bracket was opened
    before, the field is the line's own: what is left of it is whole.
    """
    kept = []
    try:
        # Hundreds of thousands pass here: no call of a function of our own, as long as all is well.
        for line in lines:
            body = line[:-_SEAL_SIZE]
            if int(line[-10:-2], 16) != zlib.crc32(body) or line.find(mark, 0, _MARK_WITHIN) < 0:
                return None
            is_request = line[len(_LINE_START)] == _REQUEST
            end = line.find(b',"headers":[') if is_request else line.find(b',"chunks":')
            kept.append(line[:end] if end > 0 and line.find(b"{", 1, end) < 0 else body)
    except (ValueError, IndexError):  # what stands where the checksum should is no number
        return None
    return kept


def fields_for_counting(data: bytes) -> list[Fields]:
    """The fields of each sound line that counting needs; damaged lines are left out."""
    *lines, _torn = data.split(b"\n")
    kept = trimmed(lines)
    if kept is None:
        lines = [line for line in lines if is_sound(line)]
        kept = trimmed(lines)
    try:
        # All at once: this takes half the time.
        fields: list[Fields] = json.loads((b"[" + b"},".join(kept or ()) + b"}]").decode())
    except (ValueError, RecursionError):
        return list(unseal_good(lines))  # there are none, or one is no JSON
    return fields
