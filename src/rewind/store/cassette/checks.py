"""What a value of a cassette must be before anything is made of it."""

import re
from math import isfinite
from typing import Any, NoReturn

from rewind.errors import BadCassette
from rewind.model.http import Headers

Fields = dict[str, Any]

_ID = re.compile(r"[0-9a-f]{8}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_LARGEST = 2**53
_LONGEST_SPAN = 1e12


def bad(what: str) -> NoReturn:
    raise BadCassette(what)


def fields_of(value: Any, what: str) -> Fields:
    if type(value) is not dict:
        bad(f"{what} is no object.")
    fields: Fields = value
    return fields


def text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if type(value) is not str:
        bad(f"{name!r} is no text.")
    return value


def some_text(fields: Fields, name: str) -> str | None:
    """``None`` where it is not there; never empty."""
    if fields.get(name) is None:
        return None
    return text(fields, name) or bad(f"{name!r} is empty.")


def texts(fields: Fields, name: str) -> tuple[str, ...]:
    value = fields.get(name, [])
    if type(value) is not list or not all(type(one) is str for one in value):
        bad(f"{name!r} is no list of texts.")
    return tuple(value)


def named_texts(fields: Fields, name: str) -> dict[str, str]:
    value = fields.get(name, {})
    if type(value) is not dict or not all(type(one) is str for one in value.values()):
        bad(f"{name!r} is no object of texts.")
    return dict(value)


def flag(fields: Fields, name: str) -> bool:
    value = fields.get(name, False)
    if type(value) is not bool:
        bad(f"{name!r} is neither true nor false.")
    return value


def count(fields: Fields, name: str, *, least: int = 0, most: int = _LARGEST) -> int:
    value = fields.get(name)
    if type(value) is not int or not least <= value <= most:
        bad(f"{name!r} is no whole number from {least} to {most}.")
    return value


def some_count(fields: Fields, name: str, *, least: int = 0, most: int = _LARGEST) -> int | None:
    return None if fields.get(name) is None else count(fields, name, least=least, most=most)


def counts(fields: Fields, name: str) -> list[int]:
    value = fields.get(name, [])
    if type(value) is not list or not all(type(one) is int and abs(one) <= _LARGEST for one in value):
        bad(f"{name!r} is no list of whole numbers.")
    return value


def named_counts(fields: Fields, name: str) -> dict[str, int]:
    value = fields.get(name, {})
    if type(value) is not dict or not all(
        type(one) is int and abs(one) <= _LARGEST for one in value.values()
    ):
        bad(f"{name!r} is no object of whole numbers.")
    return dict(value)


def number(fields: Fields, name: str) -> float:
    value = fields.get(name)
    if (type(value) is not float and type(value) is not int) or not isfinite(value):
        bad(f"{name!r} is no number.")
    if abs(value) > _LONGEST_SPAN:
        bad(f"{name!r} is too large.")
    return value


def some_number(fields: Fields, name: str) -> float | None:
    return None if fields.get(name) is None else number(fields, name)


def session_id(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if type(value) is not str or not _ID.fullmatch(value):
        bad(f"{name!r} is no session id: eight hexadecimal digits.")
    return value


def digest(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if type(value) is not str or not _DIGEST.fullmatch(value):
        bad(f"{name!r} is no SHA-256.")
    return value


def head_text(fields: Fields, name: str) -> str:
    """Text that can stand in the head of a message."""
    value = text(fields, name)
    if not _can_be_sent(value):
        bad(f"{name!r} cannot be sent.")
    return value


def _can_be_sent(value: str) -> bool:
    """Whether a head can hold it: nothing that would end it, and nothing beyond latin-1."""
    plain = value.isascii() or max(value) < "\u0100"
    return plain and "\n" not in value and "\r" not in value and "\0" not in value


def headers_shown(headers: Headers, size: int) -> Fields | list[list[str]]:
    """An object where no name stands twice; the length of the body by a word, since it says nothing of its own."""
    pairs = [(name, _value_shown(name, value, size)) for name, value in headers]
    by_name = dict(pairs)
    return by_name if len(by_name) == len(pairs) else [list(pair) for pair in pairs]


def headers_in(shown: Any, size: int) -> Headers:
    pairs = list(shown.items()) if type(shown) is dict else shown
    if type(pairs) is not list:
        bad("Headers are neither an object nor a list.")
    headers: list[tuple[str, str]] = []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            bad("A header is no pair.")
        if type(pair[0]) is not str or type(pair[1]) is not str:
            bad("A header is no pair of texts.")
        name, value = pair[0], _value_in(pair[1], size)
        if not (_can_be_sent(name) and _can_be_sent(value)):
            bad("A header cannot be sent.")
        headers.append((name, value))
    return tuple(headers)


_SIZE = "@size"


def _value_shown(name: str, value: str, size: int) -> str:
    if name.lower() == "content-length" and value == str(size):
        return _SIZE
    return "@" + value if value.startswith("@") else value


def _value_in(value: str, size: int) -> str:
    return str(size) if value == _SIZE else value.removeprefix("@")
