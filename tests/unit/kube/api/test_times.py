from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.errors import MalformedObject
from kubesched.kube.api.meta import format_micro_time, format_time, parse_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2026-07-24T04:09:49Z", 1784866189.0),
        ("2026-07-24T06:09:49+02:00", 1784866189.0),
        ("2026-07-24T04:09:49.250000Z", 1784866189.25),
        ("2026-07-24T04:09:49.5Z", 1784866189.5),
    ],
)
def test_times(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "yesterday", "2026-07-24", "2026-07-24T04:09:49"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(MalformedObject, match="not an RFC 3339 time"):
        parse_time(text)


@given(st.integers(0, 4_000_000_000))
def test_seconds_come_back(seconds: int) -> None:
    assert parse_time(format_time(seconds)) == seconds


@given(st.integers(0, 4_000_000_000_000_000))
def test_microseconds_come_back(micros: int) -> None:
    assert abs(parse_time(format_micro_time(micros / 1e6)) - micros / 1e6) < 2e-6


def test_texts() -> None:
    assert format_time(1784866189.9) == "2026-07-24T04:09:49Z"
    assert format_micro_time(1784866189.25) == "2026-07-24T04:09:49.250000Z"
