"""Moments and time spans in CEL, exact to a nanosecond, read and written as Go reads and writes them.

Python's own `datetime` counts microseconds and begins with the year 1. CEL has nanoseconds, and a moment keeps the offset
that it was written with, which shows when it becomes a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubesched.kube.cel.values import INT_MAX, INT_MIN, EvaluationError, no_overload

_SECOND = 10**9
_MILLISECOND, _MINUTE, _HOUR = 10**6, 60 * _SECOND, 3600 * _SECOND
_DAY = 86400
_FIRST, _LAST = -62135596800, 253402300799
"""The seconds since 1970 at which the year 1 begins and the year 9999 ends."""

_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": _MILLISECOND, "s": _SECOND, "m": _MINUTE, "h": _HOUR}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^.0-9]*)", re.DOTALL)
_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A time span."""

    cel_type: ClassVar[str] = "google.protobuf.Duration"
    nanos: int

    @staticmethod
    def checked(nanos: int) -> Duration:
        """Return a time span that fits 64 bits."""
        if not INT_MIN <= nanos <= INT_MAX:
            raise EvaluationError("integer overflow")
        return Duration(nanos)

    @staticmethod
    def parse(text: str) -> Duration:
        """Read Go's notation: "1h30m", "-1.5s", "0"."""
        refused = EvaluationError(f'time: invalid duration "{text}"')
        sign, body = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
        if body == "0":
            return Duration(0)
        at = total = 0
        while at < len(body) or not body:
            part = _PART.match(body, at)
            if part is None or not (part[1] or part[2]) or part[3] not in _UNITS:
                raise refused
            at, unit = part.end(), _UNITS[part[3]]
            total += int(part[1][:30] or "0") * unit + _fraction(part[2] or "", unit)
            if total > INT_MAX + 1:
                raise refused
        if total > INT_MAX and sign > 0:
            raise refused
        return Duration(sign * total)

    def __str__(self) -> str:
        seconds = _truncated(self.nanos, _SECOND)
        return f"{Decimal(repr(seconds + (self.nanos - seconds * _SECOND) / 1e9)):f}".removesuffix(".0") + "s"

    def whole(self, unit: int) -> int:
        """Return whole units, cut off towards zero after a computation in doubles, as the reference does it."""
        units = _truncated(self.nanos, unit)
        return units if unit == _MILLISECOND else int(units + (self.nanos - units * unit) / unit)


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A moment: nanoseconds since 1970, and the seconds that its text is east of Greenwich."""

    cel_type: ClassVar[str] = "google.protobuf.Timestamp"
    nanos: int
    east: int = field(default=0, compare=False)

    @staticmethod
    def checked(nanos: int, east: int = 0) -> Timestamp:
        """Return a moment of the years 1 to 9999."""
        if not _FIRST <= nanos // _SECOND <= _LAST:
            raise EvaluationError("timestamp overflow")
        return Timestamp(nanos, east)

    @staticmethod
    def parse(text: str) -> Timestamp:
        """Read RFC 3339 as Go does: the hour may have one digit, and the fraction of a second may follow a comma."""
        refused = EvaluationError(f'cannot parse "{text}" as a timestamp')
        found = _MOMENT.fullmatch(text)
        if found is None:
            raise refused
        year, month, day, hour, minute, second = map(int, found.groups()[:6])
        hours, minutes = int(found[9] or 0), int(found[10] or 0)
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        days = 29 if leap and month == 2 else _DAYS.get(month, 0)
        if not 1 <= day <= days or hour > 23 or minute > 59 or second > 59 or hours > 24 or minutes > 60:
            raise refused
        east = (hours * 3600 + minutes * 60) * (-1 if found[8] == "-" else 1)
        seconds = _days_before(year, month, day) * _DAY + hour * 3600 + minute * 60 + second - east
        return Timestamp.checked(seconds * _SECOND + int((found[7] or "0")[:9].ljust(9, "0")), east)

    def plus(self, span: int) -> Timestamp:
        """Return the moment so many nanoseconds later."""
        return Timestamp.checked(self.nanos + span, self.east)

    def minus(self, other: Timestamp) -> Duration:
        """Return the time since another moment; the seconds alone have to fit, too."""
        Duration.checked((self.nanos // _SECOND - other.nanos // _SECOND) * _SECOND)
        return Duration.checked(self.nanos - other.nanos)

    def in_utc(self) -> Timestamp:
        """Return the same moment with Greenwich's text."""
        return Timestamp(self.nanos)

    def __str__(self) -> str:
        seconds, nanos = divmod(self.nanos, _SECOND)
        year, month, day = _date(seconds + self.east)
        second = (seconds + self.east) % _DAY
        fraction = f".{nanos:09}".rstrip("0") if nanos else ""
        minutes = abs(self.east) // 60
        zone = f"{'-' if self.east < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}" if self.east else "Z"
        clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        return f"{year:04}-{month:02}-{day:02}T{clock}{fraction}{zone}"


_DAYS = dict(enumerate((31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), start=1))


def _truncated(value: int, unit: int) -> int:
    return value // unit if value >= 0 else -(-value // unit)


def _fraction(digits: str, unit: int) -> int:
    """Return the part of a unit that digits after a point mean; digits that do not fit 63 bits are ignored."""
    value, scale = 0, 1.0
    for digit in digits:
        if value > INT_MAX // 10 or value * 10 + int(digit) > INT_MAX + 1:
            break
        value, scale = value * 10 + int(digit), scale * 10
    return int(float(value) * (float(unit) / scale)) if value else 0


def _days_before(year: int, month: int, day: int) -> int:
    """Return the days from 1970 to a date; the year may be 0."""
    year, month = (year, month) if month > 2 else (year - 1, month + 12)
    return year * 365 + year // 4 - year // 100 + year // 400 + (month * 153 - 457) // 5 + day - 719469


def _date(seconds: int) -> tuple[int, int, int]:
    """Return year, month and day. Python knows the years 1 to 9999; others look like those 400 years away."""
    days, shift = seconds // _DAY, 0
    while not _FIRST <= (days + shift * 146097) * _DAY <= _LAST:
        shift += 1 if days < 0 else -1
    found = datetime.fromtimestamp(0, UTC) + timedelta(days=days + shift * 146097)
    return found.year - shift * 400, found.month, found.day


def _east(moment: Timestamp, zone: str) -> int:
    """Return how many seconds a zone is east of Greenwich at a moment; the zone is a name or an offset as "-5:30"."""
    if ":" in zone:
        found = re.fullmatch(r"([+-]?[0-9]{1,12}):([+-]?[0-9]{1,12})", zone)
        if found is None:
            raise EvaluationError(f"unknown time zone {zone}")
        return int(found[1]) * 3600 + (-int(found[2]) if zone[0] == "-" else int(found[2])) * 60
    if zone in ("", "UTC", "Local"):
        return 0
    try:
        # A day's distance from the ends of time keeps Python's arithmetic within its years.
        seconds = min(max(moment.nanos // _SECOND, _FIRST + 2 * _DAY), _LAST - 2 * _DAY)
        there = (datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)).astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {zone}") from None
    return int((there.utcoffset() or timedelta()).total_seconds())


def _part(name: str, of_clock: Callable[[int, int], int], unit: int = 0) -> Callable[..., int]:
    def answer(value: Any, *zones: Any) -> int:
        zone = zones[0] if zones else "UTC"
        if isinstance(value, Timestamp) and isinstance(zone, str) and len(zones) < 2:
            seconds, nanos = divmod(value.nanos, _SECOND)
            return of_clock(seconds + _east(value, zone), nanos)
        if isinstance(value, Duration) and unit and not zones:
            return value.whole(unit)
        raise no_overload(name, value, *zones)

    return answer


def _day_of_year(seconds: int) -> int:
    return seconds // _DAY - _days_before(_date(seconds)[0], 1, 1)


_PARTS: dict[str, tuple[Any, ...]] = {
    "getFullYear": (lambda s, _: _date(s)[0],),
    "getMonth": (lambda s, _: _date(s)[1] - 1,),
    "getDate": (lambda s, _: _date(s)[2],),
    "getDayOfMonth": (lambda s, _: _date(s)[2] - 1,),
    "getDayOfWeek": (lambda s, _: (s // _DAY + 4) % 7,),
    "getDayOfYear": (lambda s, _: _day_of_year(s),),
    "getHours": (lambda s, _: s // 3600 % 24, _HOUR),
    "getMinutes": (lambda s, _: s // 60 % 60, _MINUTE),
    "getSeconds": (lambda s, _: s % 60, _SECOND),
    "getMilliseconds": (lambda _, nanos: nanos // _MILLISECOND, _MILLISECOND),
}

MEMBERS: dict[str, Callable[..., Any]] = {name: _part(name, *readers) for name, readers in _PARTS.items()}
"""What can be asked of a moment or a time span."""
