"""The only source of time, so that tests can hold it still."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time names moments; monotonic time measures spans."""

    def now(self) -> float:
        """Seconds since 1970, UTC."""
        ...

    def ticks(self) -> int:
        """Microseconds of a clock that never goes back."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        return time.time()

    def ticks(self) -> int:
        return time.monotonic_ns() // 1000
