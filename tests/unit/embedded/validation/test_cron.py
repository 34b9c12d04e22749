"""Cron schedules: which moments they name, and what is refused in which words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kubesched.embedded.validation.cron import ScheduleError, read_schedule, zone_named


def at(text: str, zone: str = "") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone_named(zone)).timestamp()


def shown(moment: float | None) -> str:
    return "never" if moment is None else datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        pytest.param("* * * * *", "", "2026-01-01 00:00:30", "2026-01-01 00:01:00", id="every minute"),
        pytest.param("*/15 * * * *", "", "2026-01-01 00:45:00", "2026-01-01 01:00:00", id="the moment itself is over"),
        pytest.param("30 2 * * mon-fri", "", "2026-01-02 03:00", "2026-01-05 02:30:00", id="days of the week by name"),
        pytest.param("0 0 13 * 5", "", "2026-01-01 00:00", "2026-01-02 00:00:00", id="two kinds of day: either"),
        pytest.param("0 0 */2 * 5", "", "2026-01-01 00:00", "2026-01-09 00:00:00", id="one with a star: both"),
        pytest.param("0 0 31 2 *", "", "2026-01-01 00:00", "never", id="a day that never comes"),
        pytest.param("@yearly", "", "2026-01-01 00:00", "2027-01-01 00:00:00", id="by its nickname"),
        pytest.param("@every 1h30m", "", "2026-01-01 00:00", "2026-01-01 01:30:00", id="an interval"),
        pytest.param("0 9 * * *", "Europe/Berlin", "2026-07-01 10:00", "2026-07-02 07:00:00", id="a zone with summer time"),
        pytest.param(
            "30 2 * * *", "Europe/Berlin", "2026-03-28 03:00", "2026-03-30 00:30:00", id="the hour left out in spring"
        ),
    ],
)
def test_next_moment(schedule: str, zone: str, after: str, expected: str) -> None:
    assert shown(read_schedule(schedule).next_after(at(after, zone), zone_named(zone))) == expected


@pytest.mark.parametrize(
    ("schedule", "since", "now", "expected"),
    [
        pytest.param("* * * * *", "2026-01-01 00:00", "2026-01-01 00:00:59", "never", id="not yet"),
        pytest.param("* * * * *", "2020-01-01 00:00", "2026-01-01 00:00:59", "2026-01-01 00:00:00", id="years were missed"),
        pytest.param("0 0 1 1 *", "2025-06-01 00:00", "2026-03-01 00:00", "2026-01-01 00:00:00", id="far back"),
        pytest.param("@every 1h", "2026-01-01 00:10", "2026-01-01 05:00", "2026-01-01 04:10:00", id="counted from the start"),
    ],
)
def test_latest_moment(schedule: str, since: str, now: str, expected: str) -> None:
    assert shown(read_schedule(schedule).latest_between(at(since), at(now))) == expected


@pytest.mark.parametrize(
    ("schedule", "refusal"),
    [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("@every soon", 'failed to parse duration @every soon: time: invalid duration "soon"'),
        ("", "empty spec string"),
    ],
)
def test_what_is_no_schedule_is_refused(schedule: str, refusal: str) -> None:
    with pytest.raises(ScheduleError) as error:
        read_schedule(schedule)
    assert str(error.value) == refusal


def test_a_zone_that_nobody_knows() -> None:
    with pytest.raises(ScheduleError, match="unknown time zone Mars/North"):
        zone_named("Mars/North")
