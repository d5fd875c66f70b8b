"""How values of the standard library's types are taken apart into JSON, and built again."""

import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from rewind.sdk.values.moments import moment, moment_text
from rewind.sdk.values.objects import CannotBuild


@dataclass(frozen=True, slots=True)
class Form:
    """One type."""

    name: str
    parts: Callable[[Any], Any]
    """Its parts: simpler values. Raises CannotBuild for a value that has more to it."""
    build: Callable[[Any], Any]
    """The value again, from its parts."""


def form_of(kind: type) -> Form | None:
    """For values of exactly this type."""
    if (found := _BUILT_IN.get(kind)) is not None:
        return found
    # A type of a module that is not loaded cannot come up, and loading it to ask would cost every tool call.
    for (module, name), form in _LIBRARY.items():
        if kind is getattr(sys.modules.get(module), name, None):
            return form
    return None


def form_named(name: str) -> Form | None:
    return _BY_NAME.get(name)


def _from(module: str, name: str, method: str | None = None) -> Callable[[Any], Any]:
    """Builds a type out of the table below: what is read from a recording never says what is imported."""

    def build(parts: Any) -> Any:
        kind = getattr(import_module(module), name)
        return (kind if method is None else getattr(kind, method))(parts)

    return build


def _spread(module: str, name: str) -> Callable[[Any], Any]:
    return lambda parts: getattr(import_module(module), name)(*parts)


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
    return import_module("collections").defaultdict(factory, pairs)


def in_one_order(values: Iterable[Any]) -> list[Any]:
    """Sets have no order of their own, and what is written must not depend on the run."""
    return sorted(values, key=lambda value: (type(value).__qualname__, _sort_text(value)))


def _sort_text(value: Any) -> str:
    if isinstance(value, frozenset):
        return repr([_sort_text(one) for one in in_one_order(value)])
    return repr(value)


_FACTORIES: tuple[type, ...] = (list, dict, set, int, float, str, tuple, bool, frozenset, bytes)
"""Defaults that a ``defaultdict`` can be given again; others are code."""

_BUILT_IN: dict[type, Form] = {
    tuple: Form("tuple", list, tuple),
    set: Form("set", in_one_order, set),
    frozenset: Form("frozenset", in_one_order, frozenset),
    dict: Form("dict", _pairs, dict),
    bytes: Form("bytes", _base64, lambda text: b64decode(text, validate=True)),
    bytearray: Form("bytearray", _base64, lambda text: bytearray(b64decode(text, validate=True))),
    complex: Form("complex", lambda value: [value.real, value.imag], lambda parts: complex(*parts)),
    range: Form("range", lambda value: [value.start, value.stop, value.step], lambda parts: range(*parts)),
    float: Form("float", repr, float),
    int: Form("int", hex, lambda text: int(text, 16)),
}
"""The last two are for what JSON has no words for: ``nan``, and numbers too long to be read in decimal."""

_LIBRARY: dict[tuple[str, str], Form] = {
    ("datetime", "datetime"): Form("datetime", moment_text, partial(moment, "datetime")),
    ("datetime", "date"): Form(
        "date", lambda value: value.isoformat(), _from("datetime", "date", "fromisoformat")
    ),
    ("datetime", "time"): Form("time", moment_text, partial(moment, "time")),
    ("datetime", "timedelta"): Form(
        "timedelta",
        lambda value: [value.days, value.seconds, value.microseconds],
        _spread("datetime", "timedelta"),
    ),
    ("decimal", "Decimal"): Form("Decimal", str, _from("decimal", "Decimal")),
    ("fractions", "Fraction"): Form("Fraction", str, _from("fractions", "Fraction")),
    ("uuid", "UUID"): Form("UUID", str, _from("uuid", "UUID")),
    ("pathlib", "PosixPath"): Form("PosixPath", str, _from("pathlib", "PosixPath")),
    ("pathlib", "WindowsPath"): Form("WindowsPath", str, _from("pathlib", "WindowsPath")),
    ("pathlib", "PurePosixPath"): Form("PurePosixPath", str, _from("pathlib", "PurePosixPath")),
    ("pathlib", "PureWindowsPath"): Form("PureWindowsPath", str, _from("pathlib", "PureWindowsPath")),
    ("collections", "OrderedDict"): Form("OrderedDict", _pairs, _from("collections", "OrderedDict")),
    ("collections", "defaultdict"): Form("defaultdict", _factory_and_pairs, _defaultdict),
    ("collections", "Counter"): Form(
        "Counter", _pairs, lambda parts: import_module("collections").Counter(dict(parts))
    ),
}
_BY_NAME = {form.name: form for form in (*_BUILT_IN.values(), *_LIBRARY.values())}
