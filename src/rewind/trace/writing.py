"""Lines as JSON: quickly where the values allow it, and by a way that can bear any value where they do not."""

import json
from typing import Any

from rewind.trace.plain import DEEPEST, plain

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=plain).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=plain).encode


def json_of(line: Any) -> str:
    """As JSON, by the quick road, or by the one that can bear any value; fit to be written as UTF-8."""
    try:
        text = _encode(line)
        if text.count("{") + text.count("[") <= DEEPEST or not _is_deep(line):
            return text if text.isascii() or _is_whole(text) else _encode_ascii(line)
    except (
        ValueError,
        TypeError,
        RecursionError,
    ):  # no number, inside itself, a key that is no text, too deep
        pass
    return _encode_ascii(plain(line))


def _is_whole(text: str) -> bool:
    """Whether no half of a surrogate pair is in it, which has to be written as an escape."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def whole_field(value: Any) -> bytes:
    """A field as text: its own, or its JSON."""
    text = value if isinstance(value, str | dict | list | tuple) else plain(value)
    if not isinstance(text, str):
        return json_of(text).encode()
    try:
        return text.encode(
            "utf-8", "surrogateescape"
        )  # bytes of a file name, or an output, that are no UTF-8
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _is_deep(value: Any) -> bool:
    """Whether it is nested deeper than a reader may be able to follow."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        below = (
            one.values() if isinstance(one, dict) else one
            for one in level
            if isinstance(one, dict | list | tuple)
        )
        level = [one for inside in below for one in inside if isinstance(one, dict | list | tuple)]
        if not level:
            return False
    return True
