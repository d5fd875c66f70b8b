"""Patches of threads and event loops, and of the one client that keeps addresses to itself.

Threads take along for whom they work: those that are started, and those of a pool, for each piece of work.

asyncio resolves in a thread of an executor, uvloop resolves in C, and aiohttp remembers what a name resolved to.
Modules that are not there yet are changed when they are first imported.
"""

import asyncio
import socket
import sys
import threading
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from rewind.inprocess.redirect.callers import BOUND, Bound
from rewind.inprocess.redirect.connections import address_info, remember, stands_for
from rewind.inprocess.redirect.patch import wrap_function
from rewind.inprocess.redirect.uvloop_patch import patch_uvloop


def carry_into_threads() -> None:
    """Have threads take the caller along."""
    wrap_function(threading.Thread, "start", _starting)


def carry_into_executors(module: ModuleType) -> None:
    """Of ``concurrent.futures.thread``."""
    wrap_function(module.ThreadPoolExecutor, "submit", _submitting)


def carry_into_pools(module: ModuleType) -> None:
    """Of ``multiprocessing.pool``: only its pools of threads, which go by the name of their own class."""
    for name in ("apply_async", "_map_async", "imap", "imap_unordered"):
        wrap_function(module.ThreadPool, name, _handing_out)


def _starting(real: Callable[..., Any]) -> Callable[..., Any]:
    def start(self: Any) -> None:
        caller = BOUND.get()
        if caller is None:
            real(self)
            return
        own_run, run = self.__dict__.get("run"), self.run

        def restore() -> None:
            if own_run is None:
                del self.run
            else:
                self.run = own_run

        def run_for_caller() -> None:
            restore()
            BOUND.set(caller)
            run()

        self.run = run_for_caller
        try:
            real(self)
        except BaseException:
            restore()
            raise

    return start


def _submitting(real: Callable[..., Any]) -> Callable[..., Any]:
    def submit(self: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        caller = BOUND.get()
        if caller is None:
            return real(self, fn, *args, **kwargs)
        token = BOUND.set(None)  # a worker that is started now will work for others, too
        try:
            return real(self, _work_for, caller, fn, args, kwargs)
        finally:
            BOUND.reset(token)

    return submit


def _handing_out(real: Callable[..., Any]) -> Callable[..., Any]:
    def hand_out(self: Any, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        caller = BOUND.get()
        # Also where there is none: the pool's threads may have been started by a run.
        return real(self, lambda *given, **named: _work_for(caller, func, given, named), *args, **kwargs)

    return hand_out


def _work_for(caller: Bound, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    token = BOUND.set(caller)
    try:
        return fn(*args, **kwargs)
    finally:
        BOUND.reset(token)


def _patch_asyncio() -> None:
    wrap_function(asyncio.BaseEventLoop, "getaddrinfo", _resolving)


def _resolving(real: Callable[..., Any]) -> Callable[..., Any]:
    async def getaddrinfo(self: Any, host: Any, port: Any, *, flags: int = 0, **hints: int) -> Any:
        address = stands_for(host, flags)
        if address is not None:
            return address_info(address, port, hints.get("family", 0), hints.get("type", 0), hints.get("proto", 0))
        return remember(host, await real(self, host, port, flags=flags, **hints))

    return getaddrinfo


def _patch_uvloop(uvloop: ModuleType) -> None:
    wrap_function(uvloop.Loop, "getaddrinfo", _resolving)
    patch_uvloop(uvloop)


def _patch_aiohttp(connector: ModuleType) -> None:
    wrap_function(connector.TCPConnector, "_resolve_host", _resolving_for_aiohttp)


def _resolving_for_aiohttp(real: Callable[..., Any]) -> Callable[..., Any]:
    """Before its cache, which knows of no runs, and before resolvers that go past the socket module."""

    async def resolve_host(self: Any, host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        address = stands_for(host)
        if address is None:
            return await real(self, host, port, *args, **kwargs)
        found = {"hostname": host, "host": address, "port": port, "family": socket.AF_INET}
        return [found | {"proto": 0, "flags": socket.AI_NUMERICHOST}]

    return resolve_host


_PATCHES: dict[str, Callable[[ModuleType], None]] = {
    "uvloop": _patch_uvloop,
    "aiohttp.connector": _patch_aiohttp,
    "concurrent.futures.thread": carry_into_executors,
    "multiprocessing.pool": carry_into_pools,
}


class _Awaiting(MetaPathFinder):
    """Waits for those modules and changes each as soon as it has run."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        change = _PATCHES.get(name)
        spec = PathFinder.find_spec(name, path) if change is not None else None
        if change is None or spec is None or spec.loader is None:
            return None
        run = spec.loader.exec_module

        def run_and_change(module: ModuleType) -> None:
            run(module)
            change(module)

        spec.loader.exec_module = run_and_change  # type: ignore[method-assign]
        return spec


def patch_concurrency() -> None:
    """Once, for as long as the process lives."""
    _patch_asyncio()
    for name, change_module in _PATCHES.items():
        if (module := sys.modules.get(name)) is not None:
            change_module(module)
    sys.meta_path.insert(0, _Awaiting())
