"""What a tool was asked: its arguments by name, as JSON, and beside them in ``types`` what JSON cannot say.

Equal calls are equal bytes, and others are not: a ``Decimal`` is not its text, nor a tuple a list.
"""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewind.sdk.values.serialise import as_json, write

_OWN = ("self", "cls")
"""Whoever the tool belongs to is no argument of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call, as it is looked up and kept."""

    body: bytes
    vague: tuple[str, ...] = ()
    """The classes of arguments of which only a text is kept that does not tell two of them apart."""


class Arguments:
    """Binds the calls of one function."""

    def __init__(self, function: Callable[..., Any], ignore: Collection[str]) -> None:
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except Exception:  # noqa: BLE001  some functions written in C have none, and a class may give anything
            self._signature = None
        parameters = () if self._signature is None else self._signature.parameters
        first = next(iter(parameters), None)
        self._left_out = {*ignore, *((first,) if first in _OWN else ())}

    def request(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Request | None:
        """``None`` for a call that the function itself will refuse."""
        named = self._named(args, kwargs)
        if named is None:
            return None
        written = write({name: value for name, value in named.items() if name not in self._left_out})
        types = {"types": dict(written.types)} if written.types else {}
        return Request(body=as_json({"arguments": written.plain, **types}), vague=written.vague)

    def _named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
        signature = self._signature
        if signature is None:
            return ({"args": list(args)} if args else {}) | dict(kwargs)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return None
        bound.apply_defaults()
        named: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            match signature.parameters[name].kind:
                case inspect.Parameter.VAR_KEYWORD if not value.keys() & named.keys():
                    named |= value
                case inspect.Parameter.VAR_POSITIONAL:
                    if value:
                        named[name] = list(value)
                case _:
                    named[name] = value
        return named
