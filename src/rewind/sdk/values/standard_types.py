"""How values of the standard library's types are taken apart into JSON, and built again."""

import re
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import Any

from rewind.dataclass import dataclass
from rewind.sdk.values.objects import CannotBuild, class_name


@dataclass(frozen=True, slots=True)
class StandardType:
    """One type."""

    name: str
    parts: Callable[[Any], Any]
    """Its parts: simpler values. Raises CannotBuild for a value that has more to it."""
    build: Callable[[Any], Any]
    """The value again, from its parts."""


def standard_type(kind: type) -> StandardType | None:
    """For values of exactly this type."""
    if (built_in := _BUILT_IN.get(kind)) is not None:
        return built_in
    # A type of a module that is not loaded cannot come up, and loading it to ask would cost every tool call.
    for (module, name), form in _LIBRARY.items():
        if kind is getattr(sys.modules.get(module), name, None):
            return form
    return None


def standard_type_named(name: str) -> StandardType | None:
    return _BY_NAME.get(name)


def _library(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def _from(module: str, name: str, method: str | None = None) -> Callable[[Any], Any]:
    """Builds a type out of the table below: what is read from a recording never says what is imported."""

    def build(parts: Any) -> Any:
        kind = _library(module, name)
        return (kind if method is None else getattr(kind, method))(parts)

    return build


def _timedelta_parts(value: Any) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _base64(value: bytes | bytearray) -> str:
    return b64encode(value).decode()


def _pairs(value: Any) -> list[list[Any]]:
    return [[key, entry] for key, entry in value.items()]


def _factory_and_pairs(value: Any) -> list[Any]:
    factory = value.default_factory
    name = None if factory is None else next((kind.__name__ for kind in _FACTORIES if kind is factory), "")
    if name == "":
        raise CannotBuild("collections.defaultdict whose default is a function")
    return [name, _pairs(value)]


def _defaultdict(parts: Any) -> Any:
    name, pairs = parts
    factory = None if name is None else next(kind for kind in _FACTORIES if kind.__name__ == name)
    return _library("collections", "defaultdict")(factory, pairs)


def in_one_order(values: Iterable[Any]) -> list[Any]:
    """Sets have no order of their own, and what is written must not depend on the run."""
    return sorted(values, key=lambda value: (type(value).__qualname__, _sort_text(value)))


def _sort_text(value: Any) -> str:
    if isinstance(value, frozenset):
        return repr([_sort_text(item) for item in in_one_order(value)])
    return repr(value)


# ── dates and times ──────────────────────────────────────────────────────────────────────────────────────────
#
# Text that says all there is to them: also the zone by its key, its name, and ``fold``.
# ``2024-10-27T02:30:00+01:00[Europe/Berlin] fold=1`` is a time by the rules of a zone (in the way of RFC 9557), and
# ``2024-10-27T02:30:00+02:00(CEST)`` one by a fixed offset with a name. A zone is looked up by its key alone, in this
# machine's own tables.

_MOMENT = re.compile(r"(?P<iso>[^\[( ]+)(?:\[(?P<key>[^\]]+)\]|\((?P<name>.*)\))?(?P<fold> fold=1)?", re.DOTALL)


def moment_text(value: Any) -> str:
    """A ``datetime`` or ``time``. Raises CannotBuild for a zone that has no key."""
    return f"{value.isoformat()}{_zone(value.tzinfo)}{' fold=1' if value.fold else ''}"


def moment(kind: str, text: str) -> Any:
    """The ``datetime`` or ``time`` again. Raises CannotBuild where the zone's rules have changed since."""
    parsed = _MOMENT.fullmatch(text)
    if parsed is None:
        raise CannotBuild(f"datetime.{kind} that cannot be read")
    datetime = import_module("datetime")
    value = getattr(datetime, kind).fromisoformat(parsed["iso"])
    offset = value.utcoffset()
    if parsed["name"] is not None:
        value = value.replace(tzinfo=datetime.timezone(offset, parsed["name"]))
    if parsed["fold"]:
        value = value.replace(fold=1)
    if parsed["key"] is not None:
        value = value.replace(tzinfo=import_module("zoneinfo").ZoneInfo(parsed["key"]))
        if value.utcoffset() != offset:
            raise CannotBuild(f"datetime.{kind} of {parsed['key']}, whose rules differ here")
    return value


def _zone(tzinfo: Any) -> str:
    kind = type(tzinfo)
    if tzinfo is None:
        return ""
    if kind is sys.modules["datetime"].timezone:
        named = tzinfo.__getinitargs__()[1:]
        return f"({named[0]})" if named else ""
    if kind is getattr(sys.modules.get("zoneinfo"), "ZoneInfo", None) and tzinfo.key is not None:
        return f"[{tzinfo.key}]"
    raise CannotBuild(f"time in a zone of the type {class_name(kind)}")


# ── all of them ──────────────────────────────────────────────────────────────────────────────────────────────

_FACTORIES: tuple[type, ...] = (list, dict, set, int, float, str, tuple, bool, frozenset, bytes)
"""Defaults that a ``defaultdict`` can be given again; others are code."""

_BUILT_IN: dict[type, StandardType] = {
    tuple: StandardType("tuple", list, tuple),
    set: StandardType("set", in_one_order, set),
    frozenset: StandardType("frozenset", in_one_order, frozenset),
    dict: StandardType("dict", _pairs, dict),
    bytes: StandardType("bytes", _base64, lambda text: b64decode(text, validate=True)),
    bytearray: StandardType("bytearray", _base64, lambda text: bytearray(b64decode(text, validate=True))),
    complex: StandardType("complex", lambda value: [value.real, value.imag], lambda parts: complex(*parts)),
    range: StandardType("range", lambda value: [value.start, value.stop, value.step], lambda parts: range(*parts)),
    float: StandardType("float", repr, float),
    int: StandardType("int", hex, lambda text: int(text, 16)),
}
"""The last two are for what JSON has no words for: ``nan``, and numbers too long to be read in decimal."""

_LIBRARY: dict[tuple[str, str], StandardType] = {
    (module, name): StandardType(name, parts, build or _from(module, name))
    for module, name, parts, build in (
        ("datetime", "datetime", moment_text, partial(moment, "datetime")),
        ("datetime", "date", lambda value: value.isoformat(), _from("datetime", "date", "fromisoformat")),
        ("datetime", "time", moment_text, partial(moment, "time")),
        ("datetime", "timedelta", _timedelta_parts, lambda parts: _library("datetime", "timedelta")(*parts)),
        ("decimal", "Decimal", str, None),
        ("fractions", "Fraction", str, None),
        ("uuid", "UUID", str, None),
        ("pathlib", "PosixPath", str, None),
        ("pathlib", "WindowsPath", str, None),
        ("pathlib", "PurePosixPath", str, None),
        ("pathlib", "PureWindowsPath", str, None),
        ("collections", "OrderedDict", _pairs, None),
        ("collections", "defaultdict", _factory_and_pairs, _defaultdict),
        ("collections", "Counter", _pairs, lambda parts: _library("collections", "Counter")(dict(parts))),
    )
}
_BY_NAME = {form.name: form for form in (*_BUILT_IN.values(), *_LIBRARY.values())}
