"""Dates and times as programs write them, and whether one is a reading of a run's own clock.

A date in a prompt is noise only if it is "now". So each writing is read as the stretches of time that it may mean (a
minute where no seconds are written; two of them where neither the zone nor am or pm is), and those are compared with
the time in which the run ran. Every other date is text: a booking, a birthday, "valid until".
"""

import calendar
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta

from rewind.dataclass import dataclass

DAY = 86400
_ZONES = tuple(3600 * hours for hours in range(-12, 15))
"""In which a mere date may be meant: it need not be the day of the place."""
_SLACK = 2.0
"""Seconds that a clock may be read before the run's first line or after its last."""
_MOST_DAYS = 30
"""Of a run, in which a mere time of day is looked for."""
_PARTS = ("year", "hour", "second", "half", "zone")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_MONTH = (
    r"(?P<name>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:(?:Mon|Tue(?:s)?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\.?,? )"
_YEAR, _DAY = r"(?P<year>\d{4})", r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?P<fraction>[.,]\d{1,9})?)?"
    r"(?:[ \u202f]?(?P<half>[ap])\.?m\b\.?)?"
)
_ZONE = r"(?: ?(?P<zone>(?:UTC|GMT)?[+-]\d\d:?\d\d|Z\b|UTC\b|GMT\b)(?: \([^()\n]{3,60}\))?)?"
_LATER = rf"(?:,? (?:at )?{_CLOCK}{_ZONE})?"
_BEFORE, _AFTER = r"(?<![A-Za-z0-9.+])(?<!\d[-/:_])", r"(?![A-Za-z0-9]|[.,:+-]\d)"


def _written(text: str) -> re.Pattern[str]:
    return re.compile(_BEFORE + text + _AFTER, re.IGNORECASE | re.ASCII)


WRITINGS: tuple[re.Pattern[str], ...] = (
    # 2026-11-16T10:15:30.123Z, 2026-11-16 10:15, 2026/11/16, 10:15
    _written(rf"{_YEAR}[-/](?P<month>\d\d)[-/](?P<day>\d\d)(?:[T_ ]|, ?){_CLOCK}{_ZONE}"),
    # 2026-11-16T10-15-30-123Z, as file names have it
    _written(
        rf"{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)[T_-](?P<hour>\d\d)-(?P<minute>\d\d)"
        r"(?:-(?P<second>\d\d)(?:-(?P<fraction>\d{3,6}))?)?(?P<zone>Z)?"
    ),
    # 20261116T101530Z, 20261116_101530, 20261116101530
    _written(
        r"(?P<year>20\d\d)(?P<month>\d\d)(?P<day>\d\d)[T_-]?(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)?(?P<zone>Z)?"
    ),
    # Monday, November 16, 2026 at 10:15 AM; Mon Nov 16 2026 10:15:30 GMT+0000 (Coordinated Universal Time)
    _written(rf"{_WEEKDAY}?{_MONTH} {_DAY},? {_YEAR}{_LATER}"),
    # Mon, 16 Nov 2026 10:15:30 GMT; 16 November 2026
    _written(rf"{_WEEKDAY}?{_DAY}[ -]{_MONTH}[ -]{_YEAR}{_LATER}"),
    # 16/Nov/2026:10:15:30 +0000, as logs of web servers have it
    _written(rf"(?P<day>\d\d)/{_MONTH}/{_YEAR}:{_CLOCK}{_ZONE}"),
    # Mon Nov 16 10:15:30 UTC 2026
    _written(rf"{_WEEKDAY}{_MONTH} {{1,2}}{_DAY} {_CLOCK}(?: (?P<zone>(?-i:[A-Z]{{3,5}})))? {_YEAR}"),
    # 11/16/2026, 10:15:30 AM; 16.11.2026: which of the two is the month is tried
    _written(rf"(?P<either>\d{{1,2}})(?P<sign>[/.])(?P<other>\d{{1,2}})(?P=sign){_YEAR}{_LATER}"),
    # Nov 16 10:15, as ls has it
    _written(rf"{_MONTH} {{1,2}}{_DAY} {_CLOCK}"),
    _written(rf"{_YEAR}[-/](?P<month>\d\d)[-/](?P<day>\d\d)"),
    _written(r"(?P<year>20\d\d)(?P<month>\d\d)(?P<day>\d\d)"),
    _written(rf"{_MONTH},? {_YEAR}"),
    _written(rf"{_CLOCK}{_ZONE}"),
    # seconds, milliseconds, microseconds or nanoseconds since 1970
    _written(r"(?P<epoch>1\d{9}(?:\d{3}){0,3}(?:\.\d+)?)"),
)
"""The usual writings; what is written at more length stands before what it contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClock:
    """The time in which a run ran."""

    began: float
    until: Callable[[], float]
    """When it ended; for a run that goes on, now."""
    offsets: tuple[int, ...] = (0,)
    """Seconds east of UTC that a time without a zone may mean."""

    def zones(self, found: re.Match[str]) -> frozenset[int | str]:
        """The zones, in seconds east of UTC, in which this writing is a reading of the clock: within the run.

        ``local`` is the zone of the place, ``said`` the one that is written.
        """
        began, ended = self.began - _SLACK, self.until() + _SLACK
        fields = found.groupdict()
        return frozenset(zone for low, high, zone in self._meant(fields) if low <= ended and high > began)

    def _meant(self, fields: dict[str, str | None]) -> Iterator[tuple[float, float, int | str]]:
        """From when to when it may mean, and in which zone."""
        if (epoch := fields.get("epoch")) is not None:
            yield *_since_1970(epoch), "said"
            return
        clock = fields.get("hour") is not None
        length = _length(fields) if clock else DAY
        offset = _offset(fields.get("zone"))
        for day in self._days(fields):
            if fields.get("day") is None and fields.get("either") is None and not clock:
                length = DAY * calendar.monthrange(day.year, day.month)[1]
            midnight = calendar.timegm(day.timetuple())
            for seconds in _of_day(fields) if clock else (0.0,):
                if offset is not None:
                    yield midnight + seconds - offset, midnight + seconds - offset + length, "said"
                    continue
                for zone in self.offsets if clock else (*self.offsets, *_ZONES):
                    low = midnight + seconds - zone
                    yield low, low + length, zone
                    if zone == self.offsets[-1]:
                        yield low, low + length, "local"

    def _days(self, fields: dict[str, str | None]) -> Iterator[date]:
        """The days that it may mean; none where there is no such day."""
        year, name = fields.get("year"), fields.get("name")
        month = str(1 + _MONTHS.index(name[:3].lower())) if name else fields.get("month")
        if month is None and fields.get("either") is None:  # a time of day: of a day of the run
            first = _date(self.began) - timedelta(days=1)
            for number in range(min(int((self.until() - self.began) // DAY) + 4, _MOST_DAYS)):
                yield first + timedelta(days=number)
            return
        years = [year] if year else [str(_date(at).year) for at in (self.began, self.until())]
        for one in dict.fromkeys(years):
            if month is not None:
                yield from _day(one, month, fields.get("day") or "1")
            else:
                yield from _day(one, fields.get("either"), fields.get("other"))
                yield from _day(one, fields.get("other"), fields.get("either"))


def same_reading(then: RunClock, old: re.Match[str], now: RunClock, new: re.Match[str]) -> bool:
    """Whether two writings are readings of two clocks, made in one way: in one zone, and to the same unit.

    So a booking for tomorrow is not taken for one for today, though it may be tomorrow already elsewhere.
    """
    told, telling = old.groupdict(), new.groupdict()
    if any((told.get(part) is None) != (telling.get(part) is None) for part in _PARTS):
        return False
    return not then.zones(old).isdisjoint(now.zones(new))


def _date(at: float) -> date:
    return datetime.fromtimestamp(at, UTC).date()


def _day(year: str | None, month: str | None, day: str | None) -> Iterator[date]:
    try:
        yield date(int(year or 0), int(month or 0), int(day or 0))
    except ValueError:
        return


def _since_1970(text: str) -> tuple[float, float]:
    whole, _, fraction = text.partition(".")
    unit = 10.0 ** -(len(whole) - 10)
    return float(text) * unit, (float(text) + 10.0 ** -len(fraction)) * unit


def _length(fields: dict[str, str | None]) -> float:
    if fields.get("fraction"):
        return 0.001
    return 1.0 if fields.get("second") else 60.0


def _of_day(fields: dict[str, str | None]) -> Iterator[float]:
    """Seconds since midnight; twice where it may be morning or evening."""
    hour, half = int(fields["hour"] or 0), fields.get("half")
    fraction = (fields.get("fraction") or "").lstrip(".,")
    rest = 60 * int(fields["minute"] or 0) + int(fields.get("second") or 0)
    seconds = rest + (int(fraction) / 10 ** len(fraction) if fraction else 0.0)
    if hour > 24 or rest >= 3600:
        return
    if half:
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    yield 3600 * hour + seconds


def _offset(zone: str | None) -> int | None:
    """Seconds east of UTC; ``None`` where that is not said."""
    if not zone:
        return None
    sign = re.search(r"([+-])(\d\d):?(\d\d)$", zone)
    if sign is None:
        return 0 if zone.upper() in ("Z", "UTC", "GMT") else None
    return (-1 if sign[1] == "-" else 1) * (3600 * int(sign[2]) + 60 * int(sign[3]))
