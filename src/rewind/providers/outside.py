"""The APIs that other distributions bring, through the entry point group ``rewind.providers``.

What is brought may be broken. An API that cannot be loaded is left out. A reader that fails is taken for one that read
nothing: the bytes are kept and replayed all the same. Either is reported once.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from rewind.model.http import HttpRequest, HttpResponse, RequestHead
from rewind.model.message import Answered, Asked
from rewind.providers.api import Api, Reader
from rewind.providers.entry_points import GROUP, any_declared, report

T = TypeVar("T")


@cache
def outside_apis() -> tuple[Api, ...]:
    """Those that could be loaded, in the order of their names. Loaded once."""
    return tuple(_loaded()) if any_declared() else ()


def outside_hosts() -> tuple[str, ...]:
    """The hosts that they name, to be recorded like the known ones."""
    return tuple(dict.fromkeys(host for api in outside_apis() for host in api.hosts))


def _loaded() -> Iterator[Api]:
    from importlib.metadata import entry_points  # slow to import, and hardly ever needed

    names: set[str] = set()
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        called = f"the provider {entry.name!r} ({entry.dist.name if entry.dist else entry.value})"
        try:
            api = _checked(entry.load(), names)
        except Exception as error:  # noqa: BLE001  the code of a stranger, which must not cost a recording
            report(f"{called}: not used, {_told(error)}")
            continue
        names.add(api.name)
        yield replace(api, reader=GuardedReader(called, api.reader))


def _checked(api: Any, names: set[str]) -> Api:
    if not isinstance(api, Api):
        raise TypeError(f"a {type(api).__name__} instead of a rewind.providers.api.Api")
    if not api.name or api.name in names:
        raise ValueError(f"the name {api.name!r} is empty or taken")
    return api


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


@dataclass(frozen=True, slots=True)
class GuardedReader:
    """A reader of which nobody knows that it bears any bytes."""

    called: str
    reader: Reader

    def claims(self, head: RequestHead) -> bool:
        return self._tried(lambda: bool(self.reader.claims(head)), lambda _note: False)

    def asked(self, request: HttpRequest) -> Asked:
        return self._tried(lambda: self.reader.asked(request), lambda note: Asked(note=note))

    def answered(self, request: HttpRequest, response: HttpResponse) -> Answered:
        return self._tried(lambda: self.reader.answered(request, response), lambda note: Answered(note=note))

    def refusal(self, message: str) -> dict[str, Any]:
        return self._tried(lambda: self.reader.refusal(message), lambda _note: {"error": {"message": message}})

    def _tried(self, read: Callable[[], T], otherwise: Callable[[str], T]) -> T:
        try:
            return read()
        except Exception as error:  # noqa: BLE001  as above
            report(f"{self.called}: failed, {_told(error)}")
            return otherwise(f"not understood: {_told(error)}")
