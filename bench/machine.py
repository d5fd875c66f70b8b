"""What the machine tells us: CPU time of a process, cores to pin to, a description without names."""

import contextlib
import os
import platform
import resource
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100

ALL_CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
"""Those this process was given when it began."""


def cpu_seconds(pid: int) -> float | None:
    """What a process has used so far, its threads included and its children not. ``None`` without ``/proc``."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS


def children_cpu_seconds() -> float:
    """What our children have used that have ended, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cores() -> list[int]:
    """Those we may use; a single one where pinning is not possible."""
    return sorted(ALL_CORES)


def pin(pid: int, core: int | None) -> None:
    """Keep a process on one core, or on none in particular, where the system can do that.

    Only the thread of that number moves, so this is for processes of one thread, or about to be one.
    """
    if hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(pid, ALL_CORES if core is None else {core})


def description() -> str:
    model = "processor unknown"
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    system, python = platform.system(), platform.python_version()
    return f"{len(cores())} cores ({model}), {system} {platform.release().split('-')[0]}, Python {python}"


def load() -> float:
    """Processes waiting to run over the last minute; how quiet the machine was."""
    return os.getloadavg()[0]
