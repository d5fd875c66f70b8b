"""Threads take along for whom they work: those that are started, and those of a pool, for each piece of work."""

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from rewind.inprocess.redirect.callers import BOUND, Bound
from rewind.inprocess.redirect.patch import change


def carry_into_threads() -> None:
    """Have threads take the caller along."""
    change(threading.Thread, "start", _starting)


def carry_into_executors(module: ModuleType) -> None:
    """Of ``concurrent.futures.thread``."""
    change(module.ThreadPoolExecutor, "submit", _submitting)


def carry_into_pools(module: ModuleType) -> None:
    """Of ``multiprocessing.pool``: only its pools of threads, which go by the name of their own class."""
    for name in ("apply_async", "_map_async", "imap", "imap_unordered"):
        change(module.ThreadPool, name, _handing_out)


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


def _work_for(
    caller: Bound,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    token = BOUND.set(caller)
    try:
        return fn(*args, **kwargs)
    finally:
        BOUND.reset(token)
