"""The APIs that other distributions bring, through the entry point group ``rewind.providers``.

What is brought may be broken. An API that cannot be loaded is left out. A reader that fails is taken for one that read
nothing: the bytes are kept and replayed all the same. Either is reported once.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from rewind.dataclass import dataclass
from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked
from rewind.model.step import StepKind
from rewind.model.usage import NO_USAGE, Usage
from rewind.providers.api import Api, Reader, Volatile
from rewind.providers.entry_points import GROUP, any_declared, report

T = TypeVar("T")
Understood = TypeVar("Understood", Asked, Answered)

RESERVED: set[str] = set()
"""Names of the APIs that Rewind brings itself; the catalogue fills it."""


@cache
def outside_apis() -> tuple[Api, ...]:
    """Those that could be loaded, in the order of their names. Loaded once."""
    return tuple(_loaded()) if any_declared() else ()


def outside_hosts() -> tuple[str, ...]:
    """The hosts that they name, to be recorded like the known ones."""
    return tuple(dict.fromkeys(host for api in outside_apis() for host in api.hosts))


def _loaded() -> Iterator[Api]:
    from importlib.metadata import entry_points  # slow to import, and hardly ever needed

    try:
        entries = sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))
    except Exception as error:  # noqa: BLE001  what stands in other distributions' metadata must not cost a recording
        report(f"providers of other distributions: not used, their metadata cannot be read: {_named(error)}")
        return
    names: set[str] = set()
    for entry in entries:
        called = f"the provider {entry.name!r} ({entry.value})"
        try:
            called = f"the provider {entry.name!r} ({entry.dist.name if entry.dist else entry.value})"
            with redirect_stdout(sys.stderr):  # stdout is the agent's
                api = _checked(entry.load(), names)
            yield replace(api, reader=GuardedReader(called, api.reader))
            names.add(api.name)
        except (Exception, SystemExit) as error:  # noqa: BLE001  the code of a stranger, as above
            report(f"{called}: not used, {_named(error)}: {error}")


def _checked(api: Any, names: set[str]) -> Api:
    if not isinstance(api, Api):
        raise TypeError(f"a {type(api).__name__} instead of a rewind.providers.api.Api")
    if not isinstance(api.name, str) or not api.name or api.name in names or api.name in RESERVED:
        raise ValueError(f"the name {api.name!r} is empty or taken")
    if not isinstance(api.kind, StepKind):
        raise TypeError(f"kind is {api.kind!r} instead of a StepKind")
    for member, kind in (("hosts", str), ("volatile", Volatile)):
        values = getattr(api, member)
        if not isinstance(values, tuple) or not all(isinstance(value, kind) and value for value in values):
            raise TypeError(f"{member} is {values!r} instead of a tuple of {kind.__name__}")
    return api


def _named(error: BaseException) -> str:
    return type(error).__name__


@dataclass(frozen=True, slots=True)
class GuardedReader:
    """A reader of which nobody knows that it bears any bytes."""

    called: str
    reader: Reader

    def claims(self, head: RequestHead) -> bool:
        return self._tried(lambda: bool(self.reader.claims(head)), lambda _note: False)

    def asked(self, request: HttpRequest) -> Asked:
        return self._tried(lambda: _sound(self.reader.asked(request), Asked), lambda note: Asked(note=note))

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        return self._tried(
            lambda: _sound(self.reader.answered(request, response), Answered), lambda note: Answered(note=note)
        )

    def refusal(self, message: str) -> dict[str, Any]:
        def made() -> dict[str, Any]:
            refusal = self.reader.refusal(message)
            json.dumps(refusal)
            return refusal

        return self._tried(made, lambda _note: {"error": {"message": message}})

    def _tried(self, read: Callable[[], T], otherwise: Callable[[str], T]) -> T:
        try:
            return read()
        except (Exception, SystemExit) as error:  # noqa: BLE001  as above; its words may quote the request's secrets
            report(f"{self.called}: failed, {_named(error)}")
            return otherwise(f"not understood: {_named(error)}")


def _sound(understood: Understood, kind: type[Understood]) -> Understood:
    """What a stranger's reader gave, if its types are those that everybody else relies on. Raises TypeError."""
    if not isinstance(understood, kind):
        raise TypeError
    texts = [understood.model, understood.note, getattr(understood, "error", None)]
    if not all(text is None or isinstance(text, str) for text in texts):
        raise TypeError
    usage: Usage = getattr(understood, "usage", NO_USAGE)
    json.dumps([*usage.more.items(), usage.tier])
    counts = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning)
    if not all(count is None or isinstance(count, int) for count in counts):
        raise TypeError
    return understood
