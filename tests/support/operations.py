"""How much work something is, counted and not timed: the same on every machine, under any load."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def operations(work: Callable[[], object], *, package: str = "rewind.") -> int:
    """How many instructions of that package's modules Python executes for it, in this thread."""
    count = 0

    def on_event(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        if event == "opcode":
            count += 1
        return on_event

    def on_call(frame: FrameType, _event: str, _argument: Any) -> Any:
        if not str(frame.f_globals.get("__name__", "")).startswith(package):
            return None
        frame.f_trace_opcodes = True
        return on_event

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def growth(work_of: Callable[[int], Callable[[], object]], n: int, times: int = 4) -> float:
    """How much more work there is for ``times`` as much: ``times`` where it is linear."""
    for size in (n, n * times):
        work_of(size)()  # what is remembered between calls is there for both
    return operations(work_of(n * times)) / operations(work_of(n))
