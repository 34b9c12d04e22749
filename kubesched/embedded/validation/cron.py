"""Cron schedules: when a CronJob is due.

In: a schedule (five fields, a name such as @hourly, or @every with a duration) and a time zone. Out: the moments it names, in
seconds since the epoch. A schedule that cannot be read is refused in the words of the library that kube-apiserver uses. Reads
no clock.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: at for at, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {name: at for at, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = ((0, 59, {}), (0, 23, {}), (1, 31, {}), (1, 12, _MONTHS), (0, 6, _DAYS))
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "ns": 1e-9}
_DURATION = re.compile(r"([0-9.]+)(h|ms|m|s|us|ns)")
_FURTHEST_DAYS = 5 * 366  # a schedule that names no day in five years names none: the 31st of February


class ScheduleError(ValueError):
    """A text that is not a schedule."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The minutes that a schedule names, by its five fields; or an interval, for @every."""

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = False  # the day of the month, or of the week, was left open: then both must fit, else either
    every_seconds: float = 0.0  # of @every; 0 for the five fields

    def next_after(self, moment: float, zone: tzinfo = UTC) -> float | None:
        """Return the first moment after another one; None if there is none within five years."""
        if self.every_seconds:
            return float(int(moment) + max(1.0, self.every_seconds))
        at = datetime.fromtimestamp(moment, zone).replace(second=0, microsecond=0)
        day = at.date()
        for _ in range(_FURTHEST_DAYS):
            if self._has_day(day.year, day.month, day.day):
                for hour in sorted(self.hours):
                    if hour < at.hour and day == at.date():
                        continue
                    for minute in sorted(self.minutes):
                        found = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone).timestamp()
                        if found > moment and _is_real(found, hour, zone):
                            return found
            day += timedelta(days=1)
        return None

    def latest_between(self, since: float, now: float, zone: tzinfo = UTC) -> float | None:
        """Return the last moment after `since` and not after `now`.

        It looks back from now in windows of 2, 4, 8... minutes: after a long pause there may be very many missed moments, and
        only the last one is needed.
        """
        if self.every_seconds:
            every = max(1.0, self.every_seconds)
            n_passed = int((now - int(since)) // every)
            return int(since) + n_passed * every if n_passed > 0 else None
        window = 120.0
        while True:
            start = max(since, now - window)
            found, moment = None, self.next_after(start, zone)
            while moment is not None and moment <= now:
                found, moment = moment, self.next_after(moment, zone)
            if found is not None or start <= since:
                return found
            window *= 2

    def _has_day(self, year: int, month: int, day: int) -> bool:
        """Return whether a day is named. If day and weekday are both given, either is enough: cron's old rule."""
        if month not in self.months:
            return False
        weekday = (datetime(year, month, day).weekday() + 1) % 7
        by_day, by_week = day in self.days, weekday in self.weekdays
        return (by_day and by_week) if self.any_day else (by_day or by_week)


def _is_real(found: float, hour: int, zone: tzinfo) -> bool:
    """Return whether the clocks of a zone show this hour on that day: in spring one hour is left out."""
    return datetime.fromtimestamp(found, zone).hour == hour


def read_schedule(text: str) -> Schedule:
    """Return the schedule that a text describes; raise ScheduleError."""
    text = re.sub(r"^(CRON_)?TZ=\S*\s*", "", text.strip())
    if text.startswith("@every "):
        return Schedule(every_seconds=_duration(text.removeprefix("@every ")))
    if text.startswith("@"):
        if text not in _NAMED:
            raise ScheduleError(f"unrecognized descriptor: {text}")
        text = _NAMED[text]
    parts = text.split()
    if not parts:
        raise ScheduleError("empty spec string")
    if len(parts) != len(_FIELDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    minutes, hours, days, months, weekdays = (_field(part, *bounds) for part, bounds in zip(parts, _FIELDS, strict=True))
    any_day = any(one in ("*", "?") or one.startswith("*/") for part in (parts[2], parts[4]) for one in part.split(","))
    return Schedule(minutes, hours, days, months, weekdays, any_day)


def zone_named(name: str | None) -> tzinfo:
    """Return a time zone; raise ScheduleError for an unknown one."""
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name}") from None


def _field(text: str, lowest: int, highest: int, names: dict[str, int]) -> frozenset[int]:
    """Return the numbers of one field: a list of ranges."""
    found: set[int] = set()
    for part in text.split(","):
        found |= set(_range(part, lowest, highest, names))
    return frozenset(found)


def _range(text: str, lowest: int, highest: int, names: dict[str, int]) -> range:
    """Return the numbers of `*`, `5`, `1-5`, `*/15` or `mon-fri/2`."""
    span, slash, step_text = text.partition("/")
    if "/" in step_text:
        raise ScheduleError(f"too many slashes: {text}")
    first_text, dash, last_text = span.partition("-")
    if "-" in last_text:
        raise ScheduleError(f"too many hyphens: {text}")
    if first_text in ("*", "?"):
        first, last = lowest, highest
    else:
        first = _number(first_text, names)
        last = _number(last_text, names) if dash else highest if slash else first
    step = _number(step_text, {}) if slash else 1
    if first < lowest:
        raise ScheduleError(f"beginning of range ({first}) below minimum ({lowest}): {text}")
    if last > highest:
        raise ScheduleError(f"end of range ({last}) above maximum ({highest}): {text}")
    if first > last:
        raise ScheduleError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")
    return range(first, last + 1, step)


def _number(text: str, names: dict[str, int]) -> int:
    """Return a number, or the number of a month or weekday."""
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", text):
        raise ScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if int(text) < 0:
        raise ScheduleError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def _duration(text: str) -> float:
    """Return the seconds of a Go duration, such as 1h30m."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ScheduleError(f'failed to parse duration @every {text}: time: invalid duration "{text}"')
    try:
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    except ValueError:
        raise ScheduleError(f'failed to parse duration @every {text}: time: invalid duration "{text}"') from None
