"""Counts, money, moments and spans of time as people read them."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

NONE = "-"
"""Stands where there is no value."""
UNKNOWN = "—"
"""Stands where an amount is not known, which is not the same as zero."""
SOME_UNKNOWN = "+"
"""Stands behind a sum that some calls are missing from, because their price is not known."""
_SPAN = re.compile(r"(\d{1,6}) *(s|min|h|d|w)", re.ASCII)
_SECONDS = {"s": 1, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def uploads_shown(counts: Mapping[str, int]) -> str:
    """``5 telemetry uploads (event_logging ×4, traces ×1)``."""
    kinds = ", ".join(f"{name} ×{count}" for name, count in counts.items())
    return f"{plural(sum(counts.values()), 'telemetry upload')} ({kinds})"


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 step``, ``1,204 steps``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def number(value: float | None) -> str:
    """A whole number, or a dash where there is none."""
    return NONE if value is None else f"{value:,.0f}"


def dollars(usd: float | None, unpriced: int = 0) -> str:
    """``$0.034``; ``—`` where it is not known; ``$0.034+`` where some calls could not be priced."""
    if usd is None or (unpriced and not usd):
        return UNKNOWN
    return amount(usd) + (SOME_UNKNOWN if unpriced else "")


def amount(usd: float) -> str:
    """With as many digits as matter: cents from a dollar on, tenths of a cent, or the first two digits."""
    if usd == 0:
        return "$0"
    if usd >= 1:
        return f"${usd:,.2f}"
    if usd >= 0.01:
        return f"${usd:.3f}"
    return f"${usd:.2g}" if usd >= 0.0001 else "<$0.0001"


def size(count: int) -> str:
    """``1.2 MB``, in powers of a thousand."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if count >= unit:
            return f"{count / unit:,.1f} {name}"
    return plural(count, "byte")


def age(seconds: float) -> str:
    """How long ago, in the largest unit that fits."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def duration(seconds: float) -> str:
    """A span of time: tenths of a second below a minute, then minutes and seconds, then hours and minutes."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def moment_of(value: str, *, now: float) -> float:
    """``2h`` or ``7d`` before now, or an ISO date and time, local where it names no zone. Raises ValueError."""
    if span := _SPAN.fullmatch(value.strip().lower()):
        return now - int(span[1]) * _SECONDS[span[2]]
    try:
        return datetime.fromisoformat(value.strip()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError) as problem:
        raise ValueError(
            f"{value!r} is neither a span (30min, 2h, 7d) nor a date (2026-11-01, 2026-11-01T14:30)."
        ) from problem


def moment(seconds: float) -> str:
    """ISO 8601, UTC, to the millisecond."""
    try:
        when = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{seconds:g} s"  # a clock that was far off, or a file that is not ours: still to be shown
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def minute(seconds: float) -> str:
    """``2026-11-15 09:14 UTC``."""
    written = moment(seconds)
    return written[:16].replace("T", " ") + " UTC" if written.endswith("Z") else written


def spans(numbers: Iterable[int]) -> str:
    """``1–3, 5``"""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in found)
