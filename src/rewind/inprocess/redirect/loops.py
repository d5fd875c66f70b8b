"""The seams of event loops, of pools of threads, and of the one client that keeps addresses to itself.

asyncio resolves in a thread of an executor, uvloop resolves in C, and aiohttp remembers what a name resolved to.
Modules that are not there yet are changed when they are first imported.
"""

import asyncio
import socket
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from rewind.inprocess.redirect.names import address_info, remember, stands_for
from rewind.inprocess.redirect.patch import change as change_seam
from rewind.inprocess.redirect.threads import carry_into_executors, carry_into_pools
from rewind.inprocess.redirect.uvloop_patch import change as change_uvloop


def _change_asyncio() -> None:
    change_seam(asyncio.BaseEventLoop, "getaddrinfo", _resolving)


def _resolving(real: Callable[..., Any]) -> Callable[..., Any]:
    async def getaddrinfo(
        self: Any,
        host: Any,
        port: Any,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002  its name in the standard library
        proto: int = 0,
        flags: int = 0,
    ) -> Any:
        address = stands_for(host, flags)
        if address is not None:
            return address_info(address, port, family, type, proto)
        found = await real(self, host, port, family=family, type=type, proto=proto, flags=flags)
        return remember(host, found)

    return getaddrinfo


def _change_uvloop(uvloop: ModuleType) -> None:
    change_seam(uvloop.Loop, "getaddrinfo", _resolving)
    change_uvloop(uvloop)


def _change_aiohttp(connector: ModuleType) -> None:
    change_seam(connector.TCPConnector, "_resolve_host", _resolving_for_aiohttp)


def _resolving_for_aiohttp(real: Callable[..., Any]) -> Callable[..., Any]:
    """Before its cache, which knows of no runs, and before resolvers that go past the socket module."""

    async def resolve_host(self: Any, host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        address = stands_for(host)
        if address is None:
            return await real(self, host, port, *args, **kwargs)
        found = {"hostname": host, "host": address, "port": port, "family": socket.AF_INET}
        return [found | {"proto": 0, "flags": socket.AI_NUMERICHOST}]

    return resolve_host


_CHANGES: dict[str, Callable[[ModuleType], None]] = {
    "uvloop": _change_uvloop,
    "aiohttp.connector": _change_aiohttp,
    "concurrent.futures.thread": carry_into_executors,
    "multiprocessing.pool": carry_into_pools,
}


class _Awaiting(MetaPathFinder):
    """Waits for those modules and changes each as soon as it has run."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        change = _CHANGES.get(name)
        spec = PathFinder.find_spec(name, path) if change is not None else None
        if change is None or spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def run_and_change(module: ModuleType) -> None:
            run(module)
            change(module)

        spec.loader.exec_module = run_and_change  # type: ignore[method-assign]
        return spec


def change() -> None:
    """Put the seams in; once, for as long as the process lives."""
    _change_asyncio()
    for name, change_module in _CHANGES.items():
        if (module := sys.modules.get(name)) is not None:
            change_module(module)
    sys.meta_path.insert(0, _Awaiting())
