"""Checks of what a record of a cassette holds: anybody may have written it."""

import re
from collections.abc import Iterable
from math import isfinite
from typing import Any, NoReturn

from rewind.errors import BadCassette, UsageError
from rewind.match.canonical import compiled_rules

Fields = dict[str, Any]

_ID = re.compile(r"[0-9a-f]{8}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_LARGEST = 2**53
_LONGEST_SPAN = 1e12
_MOST_PATHS, _LONGEST_PATHS = 1000, 20_000


def bad(why: str) -> NoReturn:
    raise BadCassette(why)


def fields_of(value: Any, what: str) -> Fields:
    if type(value) is not dict:
        bad(f"{what} is not an object.")
    fields: Fields = value
    return fields


def text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    return value if type(value) is str else bad(f"{name!r} is not a string.")


def some_text(fields: Fields, name: str) -> str | None:
    """``None`` if it is not there; never empty."""
    return None if fields.get(name) is None else text(fields, name) or bad(f"{name!r} is empty.")


def texts(fields: Fields, name: str) -> tuple[str, ...]:
    value = fields.get(name, [])
    if type(value) is not list or not _are_texts(value):
        bad(f"{name!r} is not a list of strings.")
    return tuple(value)


def paths(fields: Fields, name: str) -> tuple[str, ...]:
    """Places in requests, which match keys leave out."""
    found = texts(fields, name)
    if len(found) > _MOST_PATHS or sum(map(len, found)) > _LONGEST_PATHS:
        bad(f"{name!r} holds too many paths.")
    try:
        compiled_rules((), found)
    except UsageError as error:
        bad(f"{name!r} does not hold paths: {error.message}")
    return found


def named_texts(fields: Fields, name: str) -> dict[str, str]:
    value = fields.get(name, {})
    if type(value) is not dict or not _are_texts(value.values()):
        bad(f"{name!r} is not an object of strings.")
    return dict(value)


def flag(fields: Fields, name: str) -> bool:
    value = fields.get(name, False)
    return value if type(value) is bool else bad(f"{name!r} is neither true nor false.")


def count(fields: Fields, name: str, *, least: int = 0, most: int = _LARGEST) -> int:
    value = fields.get(name)
    if type(value) is not int or not least <= value <= most:
        bad(f"{name!r} is not a whole number from {least} to {most}.")
    return value


def some_count(fields: Fields, name: str, *, least: int = 0) -> int | None:
    return None if fields.get(name) is None else count(fields, name, least=least)


def counts(fields: Fields, name: str) -> list[int]:
    value = fields.get(name, [])
    return value if type(value) is list and _are_counts(value) else bad(f"{name!r} is not a list of whole numbers.")


def named_counts(fields: Fields, name: str) -> dict[str, int]:
    value = fields.get(name, {})
    if type(value) is not dict or not _are_counts(value.values()):
        bad(f"{name!r} is not an object of whole numbers.")
    return dict(value)


def number(fields: Fields, name: str) -> float:
    value = fields.get(name)
    if (type(value) is not float and type(value) is not int) or not isfinite(value):
        bad(f"{name!r} is not a number.")
    return value if abs(value) <= _LONGEST_SPAN else bad(f"{name!r} is too large.")


def some_number(fields: Fields, name: str) -> float | None:
    return None if fields.get(name) is None else number(fields, name)


def session_id(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if type(value) is not str or not _ID.fullmatch(value):
        bad(f"{name!r} is not a session id: eight hexadecimal digits.")
    return value


def digest(fields: Fields, name: str) -> str:
    value = fields.get(name)
    return value if type(value) is str and _DIGEST.fullmatch(value) else bad(f"{name!r} is not a SHA-256 hash.")


def head_text(fields: Fields, name: str) -> str:
    """Text that can stand in the head of a message."""
    value = text(fields, name)
    return value if can_be_sent(value) else bad(f"{name!r} cannot be sent.")


def can_be_sent(value: str) -> bool:
    """Whether a head can hold it: nothing that would end the head, and nothing beyond latin-1."""
    plain = value.isascii() or max(value) < "\u0100"
    return plain and "\n" not in value and "\r" not in value and "\0" not in value


def _are_texts(values: Iterable[Any]) -> bool:
    return all(type(value) is str for value in values)


def _are_counts(values: Iterable[Any]) -> bool:
    return all(type(value) is int and abs(value) <= _LARGEST for value in values)
