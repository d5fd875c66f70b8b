"""Journal lines for counting: many at a time, and only the few fields that counting needs."""

import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from rewind.model.usage import Usage
from rewind.store.catalog.totals import Asked, Told, whole
from rewind.store.journal.format import BadLine, Fields, unseal

SEAL_SIZE = len(b',"~":"00000000"}')
_KIND = len(b'{"kind":"')
_REQUEST = ord("r")
_MARK_WITHIN = 80
"""How far from its start a line has ``run``."""


def is_sound(line: bytes) -> bool:
    """Whether its checksum fits; says nothing of what stands in it."""
    return line[-SEAL_SIZE:] == b',"~":"%08x"}' % zlib.crc32(line[:-SEAL_SIZE])


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
            body = line[:-SEAL_SIZE]
            if int(line[-10:-2], 16) != zlib.crc32(body) or line.find(mark, 0, _MARK_WITHIN) < 0:
                return None
            end = line.find(b',"headers":[') if line[_KIND] == _REQUEST else line.find(b',"chunks":')
            kept.append(line[:end] if end > 0 and line.find(b"{", 1, end) < 0 else body)
    except (ValueError, IndexError):  # what stands where the checksum should is no number
        return None
    return kept


def few_fields(data: bytes) -> list[Fields]:
    """Of each sound line what counting needs; damaged lines are left out."""
    *lines, _torn = data.split(b"\n")
    kept = trimmed(lines)
    if kept is None:
        lines = [line for line in lines if is_sound(line)]
        kept = trimmed(lines)
    try:
        # All at once: this takes half the time.
        fields: list[Fields] = json.loads((b"[" + b"},".join(kept or ()) + b"}]").decode())
    except (ValueError, RecursionError):
        return list(_one_by_one(lines))  # there are none, or one is no JSON
    return fields


def _one_by_one(lines: Iterable[bytes]) -> Iterator[Fields]:
    for line in lines:
        with suppress(BadLine):  # `verify` names it; what the others say is still of use
            yield unseal(line)


def asked_in(fields: Fields) -> tuple[int, Asked] | None:
    """The number and the facts of a ``request`` line, each of the right type or left out."""
    index, ts = whole(fields.get("step")), fields.get("ts")
    if index is None:
        return None
    return index, Asked(
        _text(fields.get("type")) or "",
        _text(fields.get("key")),
        whole(fields.get("thread")),
        _text(fields.get("host")) or "",
        _text(fields.get("target")) or "/",
        _text(fields.get("provider")) or "",
        _text(fields.get("model")),
        float(ts) if isinstance(ts, int | float) and abs(ts) < 1e12 else 0.0,
    )


def told_in(fields: Fields) -> tuple[int, Told] | None:
    """The number and the facts of a ``step`` or ``cut`` line."""
    index, ms = whole(fields.get("step")), fields.get("ms")
    if index is None:
        return None
    return index, Told(
        _text(fields.get("ending")) or "complete",
        whole(fields.get("status")),
        fields.get("error") is not None,
        _text(fields.get("model")),
        usage_of(
            whole(fields.get("tokens_in")),
            whole(fields.get("tokens_out")),
            whole(fields.get("cache_read")),
            whole(fields.get("cache_write")),
            whole(fields.get("reasoning")),
            _text(fields.get("tier")),
            fields.get("usage"),
        ),
        fields.get("tape") is not None,
        float(ms) if isinstance(ms, int | float) and abs(ms) < 1e12 else None,
    )


def usage_of(
    tokens_in: int | None,
    tokens_out: int | None,
    cache_read: int | None,
    cache_write: int | None,
    reasoning: int | None,
    tier: str | None,
    more: Any,
) -> Usage:
    """Tokens by kind; of the rarer kinds those that are counts."""
    rarer = more.items() if isinstance(more, dict) else ()
    return Usage(
        input=tokens_in,
        output=tokens_out,
        cache_read=cache_read,
        cache_write=cache_write,
        reasoning=reasoning,
        more={name: count for name, value in rarer if (count := whole(value)) is not None},
        tier=tier or "",
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
