"""Any value of an agent as JSON: an object becomes its fields, what is not JSON becomes text. Never raises."""

import json
import math
from base64 import b64encode
from typing import Any

DEEPEST = 100
"""Levels of nesting that are kept; what lies deeper becomes text, so that every reader of the line can follow."""
_LONGEST_NUMBER = 4096
"""Bits of a whole number that is written as one; Python refuses to write and read the digits of much longer ones."""
_DUMPS = ("model_dump", "to_dict", "dict", "_asdict")
"""Methods that give the fields of an object: pydantic's, protobuf's and many SDKs', old pydantic's, named tuples'."""


def plain(value: Any, level: int = 0, above: tuple[int, ...] = ()) -> Any:
    """The value in JSON's own types. ``above`` are the ids of the containers that it stands in."""
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)
        case int():
            return int(value) if value.bit_length() <= _LONGEST_NUMBER else hex(value)
        case float():
            return float(value) if math.isfinite(value) else _words(float(value))
    if level >= DEEPEST or id(value) in above:
        return f"<{type(value).__name__}, {'nested too deep' if level >= DEEPEST else 'inside itself'}>"
    try:
        return _taken_apart(value, level + 1, (*above, id(value)))
    except Exception:  # noqa: BLE001  whatever an agent's own object does when it is looked at
        return _words(value)


def _taken_apart(value: Any, level: int, above: tuple[int, ...]) -> Any:
    match value:
        case dict():
            return {_key(name): plain(inner, level, above) for name, inner in value.items()}
        case list() | tuple() if not hasattr(value, "_asdict"):
            return [plain(inner, level, above) for inner in value]
        case set() | frozenset():
            return _in_order([plain(inner, level, above) for inner in value])
        case bytes() | bytearray() | memoryview():
            return _text_of(bytes(value))
        case type() | BaseException():
            return _words(value)
        case _:
            return _fields_of(value, level, above)


def _fields_of(value: Any, level: int, above: tuple[int, ...]) -> Any:
    if isinstance(fields := getattr(value, "__dataclass_fields__", None), dict):
        return {name: plain(getattr(value, name), level, above) for name in fields if hasattr(value, name)}
    for name in _DUMPS:
        if callable(dump := getattr(value, name, None)) and isinstance(fields := dump(), dict):
            return plain(fields, level, above)
    if hasattr(value, "__index__"):
        return plain(value.__index__(), level, above)  # numbers of numpy and its like
    if hasattr(type(value), "_member_map_"):
        return plain(value.value, level, above)  # a member of an enumeration
    return _words(value)


def _key(name: Any) -> str:
    match name:
        case str():
            return str.__str__(name)
        case None:
            return "null"
        case bool():
            return "true" if name else "false"
        case bytes():
            return _text_of(name)
        case _:
            return _words(name)


def _in_order(values: list[Any]) -> list[Any]:
    """Sets have no order; in a trace they have the same one every time."""
    return sorted(values, key=lambda value: (type(value).__name__, repr(value)))


def _text_of(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "base64:" + b64encode(data).decode()


def _words(value: Any) -> str:
    """As the object puts itself; where even that fails, what it is."""
    try:
        if isinstance(value, BaseException):
            return f"{type(value).__name__}: {value}".removesuffix(": ")
        return str(value)[:]
    except Exception:  # noqa: BLE001  the object's own fault, and not a reason to lose the step
        return f"<{type(value).__name__}>"


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=plain).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=plain).encode


def json_bytes(value: Any) -> bytes:
    """The value as JSON in UTF-8: quickly where the value allows it, else by way of :func:`plain`."""
    try:
        text = _encode(value)
        if text.count("{") + text.count("[") <= DEEPEST or not _is_deep(value):
            return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair can only be written as an escape
        return _encode_ascii(value).encode()
    except (ValueError, TypeError, RecursionError):
        pass  # not a finite number, inside itself, a key that is not text, too deep
    return _encode_ascii(plain(value)).encode()


def field_bytes(value: Any) -> bytes:
    """A field in UTF-8: its own text, or its JSON."""
    text = value if isinstance(value, str | dict | list | tuple) else plain(value)
    if not isinstance(text, str):
        return json_bytes(text)
    try:
        # Bytes of a file name, or of an output, that are not UTF-8.
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _is_deep(value: Any) -> bool:
    """True if it is nested deeper than a reader may be able to follow."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        below = (
            container.values() if isinstance(container, dict) else container
            for container in level
            if isinstance(container, dict | list | tuple)
        )
        level = [inner for values in below for inner in values if isinstance(inner, dict | list | tuple)]
        if not level:
            return False
    return True
